//! Tokens beside programs and caches of the host: none of them is read in a room that nobody opened to them, and the
//! host keeps its files.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use tests::TestEnv;

use crate::toolchains::{LOOK, file, program};

/// A program of the caller's that only says its name.
fn says(path: &Path, word: &str) {
    file(path, &format!("#!/bin/sh\necho {word} $*\n"));
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn tokens_beside_installed_programs_are_not_in_the_room() {
    let env = TestEnv::new();
    let repo = env.repository();
    repo.write("package.json", "{}\n");
    repo.commit("a package");
    let home = env.home();
    let planted = [
        ".nvm/.npmrc",
        ".nvm/versions/node/v20/etc/npmrc",
        ".nvm/.git/config",
        ".local/share/uv/tools/agent/uv-receipt.toml",
        ".local/share/uv/tools/agent/pip.conf",
    ];
    for name in planted {
        file(&home.join(name), "SECRET\n");
    }
    says(&home.join(".nvm/versions/node/v20/bin/node"), "node runs");
    says(
        &home.join(".local/share/uv/tools/agent/bin/agent"),
        "agent runs; node; grep -rs SECRE[T] $* || true",
    );
    let tool = home.join(".local/share/uv/tools/agent/bin");
    let path = format!(
        "{}:{}:/usr/bin:/bin",
        home.join(".nvm/versions/node/v20/bin").display(),
        tool.display()
    );
    repo.airlock(&["run", "--task", "t1", "--", "agent", home.to_str().unwrap()])
        .env("PATH", &path)
        .run()
        .exits(11);
    assert_eq!(repo.log_of("t1"), "agent runs\nnode runs\n");
    let nvm = home.join(".nvm");
    let settings = nvm.join(".npmrc");
    let flags = ["run", "--task", "t2", "--ro", nvm.to_str().unwrap()];
    let args = [&flags[..], &["--", "cat", settings.to_str().unwrap()]].concat();
    repo.airlock(&args).env("PATH", &path).run().exits(11);
    assert_eq!(repo.log_of("t2"), "SECRET\n", "a person may name it");
    for name in planted {
        assert_eq!(fs::read_to_string(home.join(name)).unwrap(), "SECRET\n");
    }
}

#[test]
fn an_environment_comes_without_the_settings_that_hold_a_token() {
    if program("python3").is_none() {
        return;
    }
    let env = TestEnv::new();
    let repo = env.repository();
    let venv = env.shared().join("venv");
    env.program("python3", env.path())
        .args(["-m", "venv", "--without-pip"])
        .arg(&venv)
        .run()
        .exits(0);
    let token = "[global]\nindex-url=https://u:SECRET@index.example.org/\n";
    file(&venv.join("pip.conf"), token);
    let script = "python -c 'import sys; print(sys.prefix)'; cat $VIRTUAL_ENV/pip.conf && echo empty || true";
    let run = |id: &str, env: &Path| {
        let args = ["run", "--task", id, "--toolchain", "python", "--", "sh"];
        let args = [&args[..], &["-c", script]].concat();
        repo.airlock(&args).env("VIRTUAL_ENV", env).run().exits(11);
        repo.log_of(id)
    };
    assert_eq!(run("t1", &venv), format!("{}\nempty\n", venv.display()));
    // A folder that is no environment is not shown because a variable names it.
    file(&env.home().join(".ssh/pip.conf"), token);
    let log = run("t2", &env.home().join(".ssh"));
    assert!(!log.contains("SECRET"), "{log}");
}

#[test]
fn a_cache_that_is_a_link_out_of_its_folder_is_not_shown() {
    let env = TestEnv::new();
    let repo = env.repository();
    let home = env.home();
    file(&home.join(".ssh/id"), "SECRET");
    file(&home.join("private/id"), "SECRET");
    file(&home.join(".cargo/of-registries/cache/a.crate"), "crate");
    file(&home.join("far/pkg/mod/cache/x"), "module");
    fs::create_dir_all(home.join(".cache")).unwrap();
    for (target, name) in [
        ("../private", ".cargo/git"),
        ("of-registries", ".cargo/registry"),
        ("../.ssh", ".cache/pip"),
        ("far", "go"),
    ] {
        symlink(target, home.join(name)).unwrap();
    }
    let look = |id: &str, name: &str, value: &Path| {
        let args = ["run", "--task", id, "--toolchain", "rust,python,go"];
        let args = [&args[..], &["--", "sh", "-c", LOOK]].concat();
        repo.airlock(&args).env(name, value).run().exits(11);
        let log = repo.log_of(id);
        let seen = log.lines().filter(|line| line.starts_with("./"));
        seen.map(str::to_owned).collect::<Vec<_>>()
    };
    let within = [
        "./.cargo/registry/cache/a.crate: crate",
        "./go/pkg/mod/cache/x: module",
    ];
    assert_eq!(look("t1", "LANGUAGE", Path::new("en")), within);
    // What a variable names is no way to a folder of keys, nor to all of the home.
    assert_eq!(look("t2", "UV_CACHE_DIR", &home.join(".ssh")), within);
    assert_eq!(look("t3", "UV_CACHE_DIR", &home), within);
}
