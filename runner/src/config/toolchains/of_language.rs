//! What belongs to each toolchain: its programs, and the folders of its caches by name. Never a whole home of a tool:
//! beside the caches lie `credentials.toml`, `.npmrc`, `pip.conf`, `.netrc`, and settings that may hold a token.

use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;

use super::find::{Finder, Found};
use crate::toolchain::Language;

/// Adds everything of a language that is here.
pub(super) fn look(finder: &Finder<'_>, language: Language, found: &mut Found) {
    match language {
        Language::Rust => rust(finder, found),
        Language::Node => node(finder, found),
        Language::Python => python(finder, found),
        Language::Go => go(finder, found),
    }
}

fn rust(finder: &Finder<'_>, found: &mut Found) {
    for name in ["cargo", "rustc"] {
        finder.program(name, found);
    }
    let cargo = finder.named_or("CARGO_HOME", ".cargo");
    for name in ["registry", "git"] {
        let from = cargo.as_ref().map(|cargo| cargo.join(name));
        finder.layer(from, &format!(".cargo/{name}"), true, found);
    }
    let rustup = finder.named_or("RUSTUP_HOME", ".rustup");
    for name in ["toolchains", "settings.toml"] {
        let from = rustup.as_ref().map(|rustup| rustup.join(name));
        finder.layer(from, &format!(".rustup/{name}"), false, found);
    }
    offline(found, "CARGO_NET_OFFLINE", "true");
}

fn node(finder: &Finder<'_>, found: &mut Found) {
    for name in ["node", "npm", "npx", "pnpm", "yarn"] {
        finder.program(name, found);
    }
    let rc = finder.named_or("NPM_CONFIG_USERCONFIG", ".npmrc");
    let configured = || {
        let path = PathBuf::from(Finder::setting(&rc?, "cache")?);
        path.is_absolute().then_some(path)
    };
    let npm = finder
        .named("npm_config_cache")
        .or_else(|| finder.named("NPM_CONFIG_CACHE"))
        .or_else(configured)
        .or_else(|| Some(finder.home()?.join(".npm")));
    let npm = npm.map(|npm| npm.join("_cacache"));
    finder.layer(npm, ".npm/_cacache", true, found);
    let pnpm = finder
        .named("XDG_DATA_HOME")
        .or_else(|| Some(finder.home()?.join(".local/share")))
        .map(|data| data.join("pnpm/store"));
    finder.layer(pnpm, ".local/share/pnpm/store", true, found);
    finder.layer(finder.cache("yarn"), ".cache/yarn", true, found);
    set(found, "npm_config_update_notifier", "false");
    offline(found, "npm_config_offline", "true");
    offline(found, "npm_config_audit", "false");
}

fn python(finder: &Finder<'_>, found: &mut Found) {
    // An environment that the caller has entered, unless it lies in the checkout: the task has its own.
    let env = finder.named("VIRTUAL_ENV");
    if let Some(env) = env.filter(|env| env.join("pyvenv.cfg").is_file()) {
        let shown = found.toolchain.programs.len();
        finder.installed(std::slice::from_ref(&env), vec![env.join("bin")], found);
        if found.toolchain.programs.len() > shown {
            if let Some(path) = env.to_str() {
                set(found, "VIRTUAL_ENV", path);
            }
            if let Some(python) = env.join("bin/python").to_str() {
                finder.program(python, found);
            }
        }
    }
    for name in ["python3", "python", "pytest", "uv"] {
        finder.program(name, found);
    }
    let pip = finder
        .named("PIP_CACHE_DIR")
        .or_else(|| finder.cache("pip"));
    finder.layer(pip, ".cache/pip", true, found);
    let uv = finder.named("UV_CACHE_DIR").or_else(|| finder.cache("uv"));
    finder.layer(uv, ".cache/uv", true, found);
    packages_of_user(finder, found);
    // A folder of wheels, if the caller's pip has one.
    if let Some(wheels) = finder.named("PIP_FIND_LINKS").filter(|path| path.is_dir()) {
        let shown = found.toolchain.programs.len();
        finder.installed(std::slice::from_ref(&wheels), Vec::new(), found);
        if let (true, Some(path)) = (found.toolchain.programs.len() > shown, wheels.to_str()) {
            set(found, "PIP_FIND_LINKS", path);
        }
    }
    set(found, "PIP_DISABLE_PIP_VERSION_CHECK", "1");
    offline(found, "PIP_NO_INDEX", "1");
    offline(found, "UV_OFFLINE", "1");
}

/// What `pip install --user` has installed, for each version of Python.
fn packages_of_user(finder: &Finder<'_>, found: &mut Found) {
    let Some(lib) = finder.home().map(|home| home.join(".local/lib")) else {
        return;
    };
    let mut versions: Vec<String> = fs::read_dir(&lib)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.starts_with("python3"))
        .collect();
    versions.sort_unstable();
    for version in versions {
        let inside = format!("{version}/site-packages");
        let at = format!(".local/lib/{inside}");
        finder.layer(Some(lib.join(inside)), &at, true, found);
    }
}

fn go(finder: &Finder<'_>, found: &mut Found) {
    finder.program("go", found);
    // What `go env -w` writes.
    let own = finder
        .named_or("XDG_CONFIG_HOME", ".config")
        .map(|config| config.join("go/env"));
    let setting = |key: &str| {
        let named = finder.caller.get(OsStr::new(key)).cloned();
        let list = named.or_else(|| Some(Finder::setting(own.as_deref()?, key)?.into()))?;
        // Modules are kept below the first of several.
        let first = std::env::split_paths(&list).next()?;
        first.is_absolute().then_some(first)
    };
    let modules = setting("GOMODCACHE").or_else(|| {
        let path = setting("GOPATH").or_else(|| Some(finder.home()?.join("go")))?;
        Some(path.join("pkg/mod"))
    });
    finder.layer(modules, "go/pkg/mod", true, found);
    offline(found, "GOPROXY", "off");
    offline(found, "GOTOOLCHAIN", "local");
}

fn set(found: &mut Found, name: &str, value: &str) {
    let env = &mut found.toolchain.env;
    env.insert(name.to_owned(), value.to_owned());
}

fn offline(found: &mut Found, name: &str, value: &str) {
    let env = &mut found.toolchain.offline;
    env.insert(name.to_owned(), value.to_owned());
}
