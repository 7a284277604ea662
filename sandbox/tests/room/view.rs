//! What a command in the room sees and what comes back of it.

use std::os::unix::ffi::OsStrExt as _;

use sandbox::{Exit, Layer, Limits, Meta};

use crate::runner::{Task, Test, names, start, unique};

pub(crate) const TESTS: &[Test] = &[
    ("plain", plain),
    ("code", code),
    ("signal", signal),
    ("real_time_signal", real_time_signal),
    ("missing_program", missing_program),
    ("missing_folder", missing_folder),
    ("script_without_interpreter", script_without_interpreter),
    ("environment_is_the_given_one", environment_is_the_given_one),
    ("init_tells_nothing", init_tells_nothing),
    ("descriptors_are_closed", descriptors_are_closed),
    ("standard_input", standard_input),
    ("no_line_end", no_line_end),
    ("flood", flood),
    ("odd_words", odd_words),
    (
        "jobs_share_home_tmp_and_localhost",
        jobs_share_home_tmp_and_localhost,
    ),
    ("file_size", file_size),
    ("processes", processes),
    ("meta_is_whole", meta_is_whole),
    ("shown_folders", shown_folders),
    ("loopback_only", loopback_only),
    (
        "layers_take_what_is_written_and_the_host_keeps_its_own",
        layers_take_what_is_written_and_the_host_keeps_its_own,
    ),
    (
        "files_that_hold_tokens_are_covered_in_tools",
        files_that_hold_tokens_are_covered_in_tools,
    ),
    (
        "layers_take_from_the_size_of_home",
        layers_take_from_the_size_of_home,
    ),
];

fn plain() {
    let task = Task::new();
    let (outcome, log) = task.run("pwd; id -un; cat a.txt .git; echo made > b.txt; echo $HOME");
    assert_eq!(outcome.exit, Exit::Code(0), "{log}");
    assert_eq!(
        log,
        "/home/someone/project\nagent\na\ngitdir: /run/airlock/git\n/home/agent\n"
    );
    assert_eq!(
        std::fs::read(task.spec.tree.join("b.txt")).unwrap(),
        b"made\n"
    );
    assert_eq!(outcome.output_bytes, u64::try_from(log.len()).unwrap());
    assert_eq!(task.lock_files(), Vec::<String>::new());
    assert_eq!(
        names(&task.spec.tree),
        [".bg", ".git", ".sub", "a.txt", "b.txt"]
    );
}

fn code() {
    let (outcome, _) = Task::new().run("exit 7");
    assert_eq!(
        (outcome.exit, outcome.code, outcome.signal),
        (Exit::Code(7), Some(7), None)
    );
}

fn signal() {
    let (outcome, _) = Task::new().run("kill -KILL $$");
    assert_eq!(
        (outcome.exit, outcome.code, outcome.signal),
        (Exit::Signal(9), None, Some(9))
    );
    let (outcome, _) = Task::new().run("exit 137");
    assert_eq!(outcome.exit, Exit::Code(137));
}

fn real_time_signal() {
    let (outcome, _) = Task::new().run("(kill -40 $(exec sh -c 'echo $PPID')); kill -35 $$");
    assert_eq!(outcome.exit, Exit::Signal(35));
}

fn missing_program() {
    let task = Task::new();
    let room = task.open();
    let (outcome, _) = task.wait(start(&room, &task.job("x", &["no-such-program", "a"])), "x");
    let Exit::NotStarted { reason } = &outcome.exit else {
        panic!("{outcome:?}")
    };
    assert_eq!(
        reason,
        "cannot execute no-such-program: No such file or directory (os error 2)"
    );
    assert_eq!(
        (outcome.code, outcome.signal, outcome.started_ms),
        (None, None, None)
    );
    let (outcome, _) = task.wait(start(&room, &task.job("y", &["/etc/passwd"])), "y");
    assert!(
        matches!(&outcome.exit, Exit::NotStarted { reason } if reason.contains("denied")),
        "{outcome:?}"
    );
}

fn missing_folder() {
    let task = Task::new();
    let room = task.open();
    let mut job = task.job("x", &["true"]);
    job.cwd = "/no/such/folder".into();
    let (outcome, _) = task.wait(start(&room, &job), "x");
    assert!(
        matches!(&outcome.exit, Exit::NotStarted { reason } if reason.contains("enter /no/such/folder")),
        "{outcome:?}"
    );
}

fn script_without_interpreter() {
    let task = Task::new();
    let (outcome, log) = task.run("echo 'echo by the shell' > s; chmod +x s; env ./s");
    assert_eq!(
        (outcome.exit, log.as_str()),
        (Exit::Code(0), "by the shell\n")
    );
}

fn environment_is_the_given_one() {
    let task = Task::new();
    let room = task.open();
    let mut job = task.job("env", &["/usr/bin/env"]);
    job.env.insert("WITH SPACE".into(), "a\nb=c".into());
    let (_, log) = task.wait(start(&room, &job), "env");
    let expected: Vec<_> = job
        .env
        .iter()
        .map(|(name, value)| {
            format!(
                "{name}={value}
"
            )
        })
        .collect();
    let expected = expected.concat();
    let sorted = |text: &str| {
        let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    };
    assert_eq!(sorted(&log), sorted(&expected));
}

fn init_tells_nothing() {
    let (_, log) = Task::new().run(
        "tr '\\0' ' ' < /proc/1/cmdline; echo; cat /proc/1/environ; for f in environ mem maps fd exe root cwd; do ls /proc/1/$f/. 2>&1 | head -1; done; echo done",
    );
    assert!(
        log.starts_with("/run/airlock/bin/airlock __warden 3 4 7 8 \n"),
        "{log}"
    );
    assert!(log.ends_with("done\n"), "{log}");
    assert_eq!(log.matches("Permission denied").count(), 5, "{log}");
}

fn descriptors_are_closed() {
    let (_, log) =
        Task::new().run("ls -l /proc/self/fd | awk 'NR>1{print $9}' | sort -n | tr '\\n' ' '");
    // The fourth is the folder that `ls` itself reads.
    assert_eq!(log, "0 1 2 3 ");
}

fn standard_input() {
    let task = Task::new();
    let room = task.open();
    let mut job = task.job("cat", &["cat"]);
    let (outcome, log) = task.wait(start(&room, &job), "cat");
    assert_eq!((outcome.exit, log.as_str()), (Exit::Code(0), ""));
    job.job = "cat2".into();
    job.dir = task.spec.bg.join("cat2");
    job.stdin = vec![b'x'; 3 << 20];
    job.output_cap = 8 << 20;
    let (outcome, log) = task.wait(start(&room, &job), "cat2");
    assert_eq!((outcome.exit, log.len()), (Exit::Code(0), 3 << 20));
}

fn no_line_end() {
    let (outcome, log) = Task::new().run("printf x; exit 7");
    assert_eq!((outcome.exit, log.as_str()), (Exit::Code(7), "x"));
}

fn flood() {
    let task = Task::new();
    let room = task.open();
    let mut job = task.script(
        "flood",
        "yes 0123456789 | head -c 100000000; echo; echo last",
    );
    job.output_cap = 100_000;
    let (outcome, log) = task.wait(start(&room, &job), "flood");
    assert_eq!(outcome.exit, Exit::Code(0));
    assert_eq!(outcome.output_bytes, 100_000_006);
    assert!(log.starts_with("0123456789\n") && log.ends_with("\nlast\n"));
    assert!(log.len() < 100_100 && log.len() > 60_000, "{}", log.len());
    assert!(log.contains(&format!(
        "[airlock: {} bytes of output dropped here]",
        outcome.output_dropped
    )));
    assert_eq!(names(&job.dir), ["meta.json", "output.log"]);
}

fn odd_words() {
    let task = Task::new();
    let room = task.open();
    let mut job = task.job("odd", &["printf", "%s|", "", "a b", "new\nline", "--"]);
    job.argv
        .push(std::ffi::OsStr::from_bytes(b"\xff\xfe").to_owned());
    let keeper = start(&room, &job);
    keeper.wait();
    let log = std::fs::read(job.dir.join("output.log")).unwrap();
    assert_eq!(log, b"|a b|new\nline|--|\xff\xfe|");
}

fn jobs_share_home_tmp_and_localhost() {
    let task = Task::new();
    let room = task.open();
    let server = "import socket,os; s=socket.socket(); s.bind(('127.0.0.1',4711)); s.listen(); open('/tmp/ready','w').close(); open(os.environ['HOME']+'/h','w').close(); c,_=s.accept(); c.sendall(b'hello')";
    let server = start(
        &room,
        &task.job("server", &["/usr/bin/python3", "-c", server]),
    );
    let client = "import socket,os,time\nwhile not os.path.exists('/tmp/ready'): time.sleep(0.01)\nc=socket.create_connection(('127.0.0.1',4711)); print(c.recv(9), os.listdir('/home/agent'), os.listdir('/var/tmp'))";
    let (outcome, log) = task.wait(
        start(
            &room,
            &task.job("client", &["/usr/bin/python3", "-c", client]),
        ),
        "client",
    );
    assert_eq!(
        (outcome.exit, log.as_str()),
        (Exit::Code(0), "b'hello' ['h'] ['ready']\n")
    );
    assert_eq!(server.wait().exit, Exit::Code(0));
}

fn file_size() {
    let task = Task::new();
    let room = task.open();
    let mut job = task.job("big", &["/usr/bin/python3", "-c", "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_DFL); f=open('big','wb'); f.write(b'x'*3000000)"]);
    job.limits = Limits {
        fsize: 1 << 20,
        ..Limits::default()
    };
    let (outcome, _) = task.wait(start(&room, &job), "big");
    assert_eq!(
        outcome.exit,
        Exit::OverLimit {
            limit: "file_size".into()
        }
    );
}

fn processes() {
    let task = Task::new();
    let room = task.open();
    let count = "import os,time\nn=0\ntry:\n  while n<200:\n    if os.fork()==0: time.sleep(60); os._exit(0)\n    n+=1\nexcept OSError as e: pass\nprint(n, flush=True)\ntime.sleep(60)";
    let mut job = task.job("forks", &["/usr/bin/python3", "-c", count]);
    job.limits = Limits {
        pids: 50,
        ..Limits::default()
    };
    let (outcome, log) = task.wait(start(&room, &job), "forks");
    let limit = "pids".to_owned();
    assert_eq!(outcome.exit, Exit::OverLimit { limit });
    // It may have been ended before it could say how many.
    for count in log.lines() {
        let count: u64 = count.parse().unwrap();
        assert!((40..=50).contains(&count), "{count}");
    }
}

fn meta_is_whole() {
    let task = Task::named(&unique("task"));
    let room = task.open();
    let job = task.script("one", "echo hello; exit 3");
    start(&room, &job).wait();
    let meta = Meta::read(&job.dir).unwrap().unwrap();
    assert_eq!(
        (meta.schema, meta.job.as_str(), meta.confined),
        (1, "one", true)
    );
    assert_eq!(
        (meta.exit, meta.code, meta.output.bytes),
        (Some(Exit::Code(3)), Some(3), 6)
    );
    assert!(meta.started_ms >= Some(meta.created_ms) && meta.ended_ms >= meta.started_ms);
    assert!(meta.elapsed_ms.is_some() && !meta.leaked);
}

fn shown_folders() {
    let task = Task::new();
    std::fs::create_dir(task.spec.bg.join("other")).unwrap();
    let (_, log) = task.run(
        "ls .bg .sub; cat .bg/main/meta.json | grep -c '^  .state'; cat /run/airlock/feedback/round /run/airlock/objects/0/x; for d in .bg .sub /run/airlock/feedback /run/airlock/objects/0 /run/airlock /etc / /usr /dev /var /home; do touch $d/x 2>/dev/null && echo $d; done; touch /run/airlock/git/x .git 2>&1",
    );
    let expected = ".bg:\nmain\nother\n\n.sub:\n1\nno\nobject\ntouch: cannot touch '.git': Permission denied\n";
    assert_eq!(log, expected);
    assert!(task.spec.git.as_ref().unwrap().shadow.join("x").exists());
}

fn loopback_only() {
    let (_, log) =
        Task::new().run("awk -F: 'NR>2{print $1}' /proc/net/dev; cat /proc/net/route | wc -l");
    assert_eq!(log, "    lo\n1\n");
}

/// A cache of the host, open to nobody but its owner.
fn cache() -> (tempfile::TempDir, std::path::PathBuf) {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let cache = std::fs::canonicalize(folder.path()).unwrap().join("cache");
    std::fs::create_dir_all(cache.join("sub")).unwrap();
    for (name, text) in [("a", "host\n"), ("sub/b", "b\n"), ("private", "own\n")] {
        std::fs::write(cache.join(name), text).unwrap();
    }
    let private = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(cache.join("private"), private).unwrap();
    (folder, cache)
}

fn layer(from: &std::path::Path, at: &str, writable: bool) -> Layer {
    Layer {
        from: from.to_owned(),
        at: format!("/home/agent/{at}").into(),
        writable,
    }
}

fn layers_take_what_is_written_and_the_host_keeps_its_own() {
    let (_folder, cache) = cache();
    let mut task = Task::new();
    task.spec.layers = vec![
        layer(&cache, ".tool/cache", true),
        layer(&cache, ".tool/fixed", false),
        layer(&cache.join("a"), ".tool/settings", false),
    ];
    let (outcome, log) = task.run(
        "cd ~/.tool; cat cache/a cache/private settings; echo more >> cache/a; rm cache/sub/b; \
         mkdir cache/new; echo x > cache/new/x; mv cache/new/x cache/sub/x; cat cache/a; ls cache cache/sub; \
         (echo x > fixed/a) 2>/dev/null || echo fixed; (echo x > settings) 2>/dev/null || echo settled; \
         mv cache other 2>/dev/null || echo stays; ls -A ~ /run/airlock/layers 2>/dev/null",
    );
    assert_eq!(outcome.exit, Exit::Code(2), "{log}");
    assert_eq!(
        log,
        "host\nown\nhost\nhost\nmore\ncache:\na\nnew\nprivate\nsub\n\ncache/sub:\nx\nfixed\nsettled\nstays\n\
         /home/agent:\n.tool\n"
    );
    assert_eq!(std::fs::read(cache.join("a")).unwrap(), b"host\n");
    assert_eq!(names(&cache), ["a", "private", "sub"]);
    assert_eq!(names(&cache.join("sub")), ["b"]);
    let (_, log) = task.run("cat ~/.tool/cache/a");
    assert_eq!(log, "host\n", "another room begins anew");
}

/// Files of a tool's folder that hold tokens, by the tools that write them.
const TOKENS: &[&str] = &[
    ".npmrc",
    ".git/config",
    "etc/npmrc",
    "versions/node/v20/etc/npmrc",
    "versions/node/v20/lib/node_modules/npm/npmrc",
    "versions/3.12/pip.conf",
    "versions/3.12/envs/e/pip.conf",
    "installs/node/20/etc/npmrc",
    "venvs/x/pipx_metadata.json",
    "x/uv-receipt.toml",
    "plugins/p/.git/config",
    "tools/image/node/20/etc/npmrc",
    "node-versions/v20/installation/etc/npmrc",
    "credentials.toml",
];

fn files_that_hold_tokens_are_covered_in_tools() {
    let (_folder, cache) = cache();
    for name in TOKENS {
        let path = cache.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "TOKEN\n").unwrap();
    }
    let shown = ["bin/tool", "auth.json.md", "sub/own", "hidden"];
    for name in shown {
        std::fs::create_dir_all(cache.join(name).parent().unwrap()).unwrap();
        std::fs::write(cache.join(name), "seen\n").unwrap();
    }
    // The room follows a link to the same file, and none of these leads to where nothing may be covered.
    let link = |target: &std::path::Path, name: &str| {
        std::os::unix::fs::symlink(target, cache.join(name)).unwrap();
    };
    std::fs::write(cache.join("renamed"), "TOKEN\n").unwrap();
    link(std::path::Path::new("renamed"), "_netrc");
    link(std::path::Path::new("20"), "installs/node/lts");
    link(std::path::Path::new("/proc/self/root"), "hosts.yml");
    link(std::path::Path::new("/home/someone/project/a.txt"), "npmrc");
    std::fs::create_dir(cache.join("credentials")).unwrap();
    std::fs::write(cache.join("credentials/named"), "named\n").unwrap();
    let before = names(&cache);
    let mut task = Task::new();
    task.spec.ro = vec![cache.clone(), cache.join("versions/3.12/pip.conf")];
    task.spec.tools = vec![cache.clone()];
    task.spec.layers = vec![layer(&cache, "fixed", false), layer(&cache, "own", true)];
    let at = cache.display();
    let (outcome, log) = task.run(&format!(
        "cd {at}; for f in {}; do test -f $f || echo none $f; cat $f; done; cat {}; grep -rsl TOKEN {at} ~/fixed ~/own; \
         cat npmrc credentials/named; (echo x > etc/npmrc) 2>/dev/null || echo kept; \
         (echo x > ~/own/etc/npmrc) 2>/dev/null || echo kept",
        TOKENS.join(" "),
        shown.join(" "),
    ));
    assert_eq!(outcome.exit, Exit::Code(0), "{log}");
    // The one that is named is shown, where it was named.
    let expected = format!(
        "TOKEN\nseen\nseen\nseen\nseen\n{at}/versions/3.12/pip.conf\na\nnamed\nkept\nkept\n"
    );
    assert_eq!(log, expected);
    assert_eq!(names(&cache), before, "nothing is made on the host");
    for name in TOKENS {
        let text = std::fs::read_to_string(cache.join(name)).unwrap();
        assert_eq!(text, "TOKEN\n", "{name}");
    }
    // What a person names as a whole is shown as a whole.
    task.spec.tools.clear();
    let (_, log) = task.run(&format!("cat {at}/.npmrc {at}/etc/npmrc"));
    assert_eq!(log, "TOKEN\nTOKEN\n");
}

fn layers_take_from_the_size_of_home() {
    let (_folder, cache) = cache();
    let mut task = Task::new();
    task.spec.layers = vec![layer(&cache, "cache", true)];
    task.spec.home_bytes = 4 << 20;
    let (_, log) = task.run(
        "head -c 3M /dev/zero > ~/cache/big && echo fits; head -c 3M /dev/zero > ~/more || echo full",
    );
    assert!(log.contains("fits") && log.contains("full"), "{log}");
}
