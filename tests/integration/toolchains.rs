//! Toolchains in a room: real builds without a network, from caches that stay as they are, and no credential beside
//! them.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use tests::{TestEnv, TestRepo};

/// A program of this host as its caller would find it; where it is not here, says that nothing was checked.
pub(crate) fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let of_caller = folders.iter().map(|folder| folder.join(name));
    let found = of_caller.into_iter().find(|file| file.is_file());
    found.or_else(|| of_system(name))
}

/// The same, where every room has it.
fn of_system(name: &str) -> Option<PathBuf> {
    let usual = ["/usr/bin", "/usr/local/bin"].map(|folder| Path::new(folder).join(name));
    let found = usual.into_iter().find(|file| file.is_file());
    if found.is_none() {
        // Past the harness, which keeps what a test that passes prints to itself.
        let said = format!("COULD NOT CHECK {name}: it is not installed here\n");
        std::io::stderr().write_all(said.as_bytes()).unwrap();
    }
    found
}

/// The folder that rust itself is installed in, with `bin/cargo` and `bin/rustc`; not that of rustup.
fn sysroot() -> Option<PathBuf> {
    let said = std::process::Command::new(program("rustc")?)
        .args(["--print", "sysroot"])
        .output()
        .unwrap();
    Some(PathBuf::from(
        String::from_utf8(said.stdout).unwrap().trim(),
    ))
}

pub(crate) fn file(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A home with a cache of each kind, and with what must stay outside beside each.
fn furnished(env: &TestEnv) {
    for (name, text) in [
        (".cargo/registry/cache/index-1/a.crate", "crate"),
        (".cargo/git/db/dep/HEAD", "ref"),
        (".cargo/credentials.toml", "SECRET"),
        (".cargo/config.toml", "SECRET"),
        (".npm/_cacache/content-v2/x", "tarball"),
        (".npm/_logs/x", "SECRET"),
        (".npmrc", "SECRET\ncache=/nowhere\n"),
        (".cache/pip/wheels/x", "wheel"),
        (".cache/uv/x", "uv"),
        (".cache/other/x", "SECRET"),
        (".config/pip/pip.conf", "SECRET"),
        (".pypirc", "SECRET"),
        (".netrc", "SECRET"),
        ("go/pkg/mod/cache/download/x", "module"),
        ("go/src/own/x.go", "SECRET"),
        (".local/lib/python3.11/site-packages/x.py", "x = 1"),
        (".local/share/uv/credentials/c", "SECRET"),
    ] {
        file(&env.home().join(name), text);
    }
}

/// Everything below the room's home with its content.
pub(crate) const LOOK: &str =
    "cd ~; find . -type f | sort | while read f; do echo \"$f: $(cat $f)\"; done; env | sort";

#[test]
fn a_repository_gets_the_caches_that_its_base_calls_for_and_no_secret() {
    let env = TestEnv::new();
    furnished(&env);
    let repo = env.repository();
    repo.write("web/package.json", "{}\n");
    repo.write("go.mod", "module x\n");
    repo.write("pyproject.toml", "");
    repo.write("Cargo.toml", "");
    repo.commit("all four");
    let run = repo
        .airlock(&["run", "--task", "t1", "--", "sh", "-c", LOOK])
        .env("npm_config_cache", env.home().join(".npm"))
        .run();
    run.exits(11);
    let log = repo.log_of("t1");
    let seen: Vec<&str> = log.lines().filter(|line| line.starts_with("./")).collect();
    assert_eq!(
        seen,
        [
            "./.cache/pip/wheels/x: wheel",
            "./.cache/uv/x: uv",
            "./.cargo/git/db/dep/HEAD: ref",
            "./.cargo/registry/cache/index-1/a.crate: crate",
            "./.local/lib/python3.11/site-packages/x.py: x = 1",
            "./.npm/_cacache/content-v2/x: tarball",
            "./go/pkg/mod/cache/download/x: module",
        ]
    );
    assert!(!log.contains("SECRET"), "{log}");
    for set in [
        "CARGO_NET_OFFLINE=true",
        "npm_config_offline=true",
        "PIP_NO_INDEX=1",
        "GOPROXY=off",
    ] {
        assert!(log.contains(set), "{set}\n{log}");
    }
    let shown = repo.show("t1");
    let tools: Vec<String> = shown["toolchains"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tools| format!("{}: {}", tools["language"], tools["origin"]))
        .collect();
    assert_eq!(
        tools,
        [
            r#""rust": "Cargo.toml of the base commit""#,
            r#""node": "web/package.json of the base commit""#,
            r#""python": "pyproject.toml of the base commit""#,
            r#""go": "go.mod of the base commit""#,
        ]
    );
    let report = repo.airlock(&["show", "t1"]).run().exits(0);
    let registry = env.home().join(".cargo/registry");
    report.prints(&format!(
        "{} as /home/agent/.cargo/registry, written to a layer of its own",
        registry.display()
    ));
}

#[test]
fn a_room_writes_to_a_copy_of_a_cache() {
    let env = TestEnv::new();
    furnished(&env);
    let repo = env.repository();
    let script = "cd ~/.cargo/registry/cache/index-1; echo worse > a.crate; echo b > b.crate; rm -r ~/.cargo/git/db; \
                  cat a.crate b.crate; ls ~/.cargo/git";
    repo.task(&["--task", "t1", "--toolchain", "rust"], script)
        .exits(11);
    assert_eq!(repo.log_of("t1"), "worse\nb\n");
    let cache = env.home().join(".cargo");
    let crates = cache.join("registry/cache/index-1");
    assert_eq!(fs::read_to_string(crates.join("a.crate")).unwrap(), "crate");
    assert!(!crates.join("b.crate").exists());
    assert!(cache.join("git/db/dep/HEAD").exists());
    let shown = repo.show("t1");
    assert_eq!(shown["toolchains"][0]["origin"], "--toolchain");
}

#[test]
fn what_nothing_calls_for_is_not_shown() {
    let env = TestEnv::new();
    furnished(&env);
    let repo = env.repository();
    repo.write("Cargo.toml", "");
    repo.write("deep/er/package.json", "");
    repo.commit("rust");
    let languages = |id: &str, flags: &[&str]| {
        let mut all = vec!["--task", id];
        all.extend(flags);
        repo.task(&all, "ls -A ~").exits(11);
        let shown = repo.show(id);
        let tools = shown["toolchains"].as_array().unwrap().clone();
        let names: Vec<String> = tools
            .iter()
            .map(|tools| tools["language"].as_str().unwrap().to_owned())
            .collect();
        (names.join(" "), repo.log_of(id))
    };
    assert_eq!(languages("t1", &[]), ("rust".into(), ".cargo\n".into()));
    assert_eq!(
        languages("t2", &["--toolchain", "none"]),
        (String::new(), String::new())
    );
    assert_eq!(languages("t3", &["--toolchain", "go,auto"]).0, "rust go");
    env.configure("[sandbox]\ntoolchain = [\"node\"]\n");
    assert_eq!(languages("t4", &[]).0, "node");
    // A repository may do with less, and gets nothing that its user does not show.
    repo.write("airlock.toml", "[sandbox]\ntoolchain = [\"rust\"]\n");
    repo.commit("rust only");
    assert_eq!(languages("t5", &[]).0, "");
    env.configure("");
    assert_eq!(languages("t6", &[]).0, "rust");
    repo.write("airlock.toml", "[sandbox]\ntoolchain = \"none\"\n");
    repo.commit("none");
    assert_eq!(languages("t7", &[]).0, "");
    assert_eq!(languages("t8", &["--toolchain", "auto"]).0, "rust");
}

#[test]
fn a_toolchain_that_is_named_and_not_here_is_an_error() {
    let env = TestEnv::new();
    let repo = env.repository();
    let call = |word: &str| {
        let script = ["run", "--toolchain", word, "--", "true"];
        repo.airlock(&script).env("PATH", env.path()).run()
    };
    call("go").exits(2).says("no go toolchain is here");
    call("cobol")
        .exits(2)
        .says("\"cobol\" is not one of auto, none, rust");
    call("none,go").exits(2).says("\"none\" stands alone");
}

#[test]
fn a_cache_that_leads_to_what_no_room_sees_is_left_out() {
    let env = TestEnv::new();
    let repo = env.repository();
    repo.write("Cargo.toml", "");
    repo.commit("rust");
    fs::create_dir_all(env.home().join(".cargo")).unwrap();
    fs::create_dir_all(env.state()).unwrap();
    symlink(env.state(), env.home().join(".cargo/registry")).unwrap();
    symlink(repo.path().join(".git"), env.home().join(".cargo/git")).unwrap();
    repo.task(&["--task", "t1"], "ls -A ~").exits(11);
    assert_eq!(repo.log_of("t1"), "");
}

#[test]
fn doctor_lists_what_is_found() {
    let env = TestEnv::new();
    furnished(&env);
    let checks = env
        .airlock(env.path())
        .args(["doctor", "--json"])
        .run()
        .exits(0)
        .json();
    let of = |name: &str| {
        let mut checks = checks["checks"].as_array().unwrap().iter();
        let check = checks.find(|check| check["name"] == name).unwrap();
        check["detail"].as_str().unwrap().to_owned()
    };
    assert!(
        of("toolchain rust").contains(".cargo/registry"),
        "{}",
        of("toolchain rust")
    );
    assert!(of("toolchain go").contains("go/pkg/mod"));
    assert!(
        of("private layers over caches").starts_with("overlays"),
        "no overlays on this host"
    );
}

/// A crate with a dependency beside it and one of a registry.
fn crate_with_dependencies(repo: &TestRepo<'_>) {
    let manifest = |name: &str, more: &str| {
        format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2021\"\n{more}")
    };
    repo.write("dep/Cargo.toml", manifest("dep", ""));
    repo.write("dep/src/lib.rs", "pub fn two() -> u8 { 2 }\n");
    repo.write(
        "Cargo.toml",
        manifest(
            "tiny",
            "[dependencies]\ndep = { path = \"dep\" }\nvendored = \"1\"\n",
        ),
    );
    repo.write(
        "src/lib.rs",
        "#[test]\nfn t() { assert_eq!(dep::two() + vendored::one(), 3); }\n",
    );
    repo.write(".gitignore", "/target\n/Cargo.lock\n");
}

/// A registry that lives in a folder, so that no network is needed to fill the cache from it.
fn registry(env: &TestEnv, repo: &TestRepo<'_>) {
    let vendor = env.path().join("vendor/vendored");
    file(
        &vendor.join("Cargo.toml"),
        "[package]\nname = \"vendored\"\nversion = \"1.0.0\"\nedition = \"2021\"\n",
    );
    file(&vendor.join("src/lib.rs"), "pub fn one() -> u8 { 1 }\n");
    file(&vendor.join(".cargo-checksum.json"), "{\"files\":{}}");
    // What was unpacked of a registry is what a build reads.
    let unpacked = env.home().join(".cargo/registry/src/local");
    fs::create_dir_all(&unpacked).unwrap();
    fs::rename(&vendor, unpacked.join("vendored")).unwrap();
    repo.write(
        ".cargo/config.toml",
        "[source.crates-io]\nreplace-with = \"local\"\n\
         [source.local]\ndirectory = \"/home/agent/.cargo/registry/src/local\"\n",
    );
}

#[test]
fn cargo_tests_a_crate_and_its_dependencies_offline() {
    let Some(sysroot) = sysroot() else { return };
    let env = TestEnv::new();
    let repo = env.repository();
    crate_with_dependencies(&repo);
    registry(&env, &repo);
    repo.commit("a crate");
    file(&env.home().join(".cargo/credentials.toml"), "SECRET");
    let path = format!("{}:/usr/bin:/bin", sysroot.join("bin").display());
    let script = "cargo test 2>&1; cat ~/.cargo/credentials.toml; ls ~/.cargo";
    repo.airlock(&["run", "--task", "t1", "--", "sh", "-c", script])
        .env("PATH", path)
        .run()
        .exits(11);
    let log = repo.log_of("t1");
    assert!(
        log.contains("test t ... ok") && log.contains("Compiling vendored v1.0.0"),
        "{log}"
    );
    assert!(!log.contains("SECRET"), "{log}");
}

#[test]
fn npm_installs_from_its_cache_and_tests_offline() {
    if program("npm").is_none() {
        return;
    }
    let env = TestEnv::new();
    let repo = env.repository();
    let package = env.path().join("left-pad");
    file(
        &package.join("package.json"),
        "{\"name\": \"one\", \"version\": \"1.0.0\", \"main\": \"one.js\"}",
    );
    file(&package.join("one.js"), "module.exports = 1;\n");
    let npm = |at: &Path, args: &[&str]| env.program("npm", at).args(args).run().exits(0).stdout;
    npm(&package, &["pack", "--silent", "--offline"]);
    let tarball = package.join("one-1.0.0.tgz");
    npm(
        env.path(),
        &["cache", "add", tarball.to_str().unwrap(), "--offline"],
    );
    let integrity = npm(&package, &["pack", "--json", "--dry-run", "--offline"]);
    let integrity: serde_json::Value = serde_json::from_str(&integrity).unwrap();
    let integrity = integrity[0]["integrity"].as_str().unwrap();
    repo.write(
        "package.json",
        "{\"name\": \"p\", \"version\": \"1.0.0\", \"dependencies\": {\"one\": \"1.0.0\"}, \"scripts\": {\"test\": \
         \"node -e 'console.log(\\\"one is\\\", require(\\\"one\\\"))'\"}}",
    );
    // The content is found by its digest, wherever it once came from.
    repo.write(
        "package-lock.json",
        format!(
            "{{\"name\": \"p\", \"version\": \"1.0.0\", \"lockfileVersion\": 3, \"requires\": true, \"packages\": {{\"\": \
             {{\"name\": \"p\", \"version\": \"1.0.0\", \"dependencies\": {{\"one\": \"1.0.0\"}}}}, \"node_modules/one\": \
             {{\"version\": \"1.0.0\", \"resolved\": \"https://registry.example.org/one/-/one-1.0.0.tgz\", \
             \"integrity\": \"{integrity}\"}}}}}}"
        ),
    );
    repo.write(".gitignore", "node_modules\n");
    repo.commit("a package");
    file(
        &env.home().join(".npmrc"),
        "//registry.example.org/:_authToken=SECRET\n",
    );
    repo.task(
        &["--task", "t1"],
        "npm ci 2>&1 && npm test 2>&1; cat ~/.npmrc; npm config ls -l",
    )
    .exits(11);
    let log = repo.log_of("t1");
    assert!(log.contains("one is 1"), "{log}");
    assert!(!log.contains("SECRET"), "{log}");
}

#[test]
fn pytest_runs_from_an_environment_of_the_callers() {
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
    let lib = fs::read_dir(venv.join("lib"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    // As much of a test runner as the promise needs: it is found, imported and run.
    file(
        &lib.join("site-packages/pytest.py"),
        "import sys\nfrom test_it import test_it\n\ndef main():\n    test_it()\n    print('1 passed in', sys.prefix)\n\nif __name__ == '__main__':\n    main()\n",
    );
    let runner = venv.join("bin/pytest");
    let text = format!(
        "#!{}\nimport sys\nsys.path.insert(0, '.')\nimport pytest\npytest.main()\n",
        venv.join("bin/python").display()
    );
    file(&runner, &text);
    fs::set_permissions(&runner, fs::Permissions::from_mode(0o755)).unwrap();
    repo.write("pyproject.toml", "");
    repo.write("test_it.py", "def test_it():\n    assert 1 + 1 == 2\n");
    repo.write(".gitignore", "__pycache__\n");
    repo.commit("a test");
    repo.airlock(&[
        "run",
        "--task",
        "t1",
        "--",
        "sh",
        "-c",
        "pytest; python -m pytest; touch $VIRTUAL_ENV/x || echo kept",
    ])
    .env("VIRTUAL_ENV", &venv)
    .run()
    .exits(11);
    let log = repo.log_of("t1");
    let passed = format!("1 passed in {}", venv.display());
    assert_eq!(log.matches(&passed).count(), 2, "{log}");
    assert!(log.contains("kept"), "{log}");
}

#[test]
fn go_finds_modules_in_its_cache() {
    let env = TestEnv::new();
    furnished(&env);
    let repo = env.repository();
    repo.write("go.mod", "module x\n");
    repo.commit("go");
    let cache = env.shared().join("modules");
    file(&cache.join("cache/lock"), "of another place");
    let run = |id: &str, name: &str, value: &str| {
        let script = "cat ~/go/pkg/mod/cache/*; echo $GOTOOLCHAIN";
        repo.airlock(&["run", "--task", id, "--", "sh", "-c", script])
            .env(name, value)
            .run()
            .exits(11);
        repo.log_of(id)
    };
    assert_eq!(
        run("t1", "GOMODCACHE", cache.to_str().unwrap()),
        "of another placelocal\n"
    );
    file(
        &env.path().join("config/go/env"),
        &format!("GOMODCACHE={}\n", cache.display()),
    );
    assert_eq!(run("t2", "LANGUAGE", "en"), "of another placelocal\n");
}

#[test]
fn runtimes_start_under_the_default_limits() {
    let env = TestEnv::new();
    let repo = env.repository();
    let mut checked = Vec::new();
    for (name, words) in [
        ("node", "node -e console.log(\"started\")"),
        ("bun", "bun -e console.log(\"started\")"),
        ("java", "java --version"),
        ("python3", "python3 -c print(\"started\")"),
        ("go", "go version"),
    ] {
        let Some(path) = of_system(name) else {
            continue;
        };
        let id = format!("of-{name}");
        let mut args = vec!["run", "--task", &id, "--", path.to_str().unwrap()];
        args.extend(words.split(' ').skip(1));
        repo.airlock(&args).run().exits(11);
        checked.push(name);
    }
    assert!(
        checked.contains(&"python3"),
        "nothing could be checked: {checked:?}"
    );
}
