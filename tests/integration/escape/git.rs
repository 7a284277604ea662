//! The repository: its configuration, hooks, refs and objects, and the pointer that leads to the task's own.

use std::fs;

use tests::TestEnv;

use super::attack;

#[test]
fn hooks_and_config_of_the_repository_stay_as_they_were() {
    let env = TestEnv::new();
    let repo = env.repository();
    let marker = env.path().join("ran");
    let before = repo.read(".git/config");
    let script = format!(
        "mkdir -p .git/hooks; echo 'touch {0}' > .git/hooks/pre-commit; git config core.fsmonitor 'touch {0}'; \
         git config core.hooksPath {1}; git config alias.status '!touch {0}'; git config diff.external 'touch {0}'; \
         g=$(git rev-parse --git-dir); mkdir -p $g/hooks; echo 'touch {0}' > $g/hooks/post-checkout; chmod +x $g/hooks/post-checkout; \
         echo 'touch {0}' > post-checkout; chmod +x post-checkout; echo 'x = 1' > x.py; git add -A; git commit -qm x",
        marker.display(),
        repo.path().display(),
    );
    repo.task(&["--merge", "--task", "t1"], &script).exits(0);
    assert_eq!(repo.read(".git/config"), before);
    repo.status();
    repo.git(&["diff", "HEAD~1"]);
    repo.git(&["checkout", "-q", "HEAD~0"]);
    repo.git(&["switch", "-q", "main"]);
    assert!(!marker.exists());
}

#[test]
fn the_git_pointer_cannot_be_replaced() {
    let env = TestEnv::new();
    let repo = env.repository();
    let script = "rm -f .git && echo removed; mv .git g && echo moved; (echo 'gitdir: /tmp' > .git) && echo written; \
                  ln -sf /tmp .git && echo linked; rm -rf .bg .sub && echo removed; mv .bg b && echo moved; \
                  (echo x > .bg/x) && echo written; mkdir /tmp/n && mv /tmp/n .sub/n && echo moved; cat .git; true";
    repo.task(&["--task", "t1"], &format!("({script}) 2>/dev/null"))
        .exits(11);
    assert_eq!(repo.log_of("t1"), "gitdir: /run/airlock/git\n");
    repo.is_clean();
}

#[test]
fn refs_and_objects_of_the_repository_cannot_be_damaged() {
    let env = TestEnv::new();
    let repo = env.repository();
    let (head, references) = (repo.head(), repo.references());
    let script = r"
own = os.path.realpath(open('.git').read().split('gitdir: ')[1].strip())
common = '/run/airlock/git'
for path in ('refs/heads/main', 'packed-refs', 'HEAD', 'refs/heads/airlock', 'refs/notes/airlock', 'config', 'objects/info/alternates'):
    try:
        os.makedirs(os.path.dirname(common + '/' + path), exist_ok=True)
        with open(common + '/' + path, 'w') as file: file.write('0' * 40 + '\n')
    except OSError: pass
for folder, folders, files in os.walk('/run/airlock/objects'):
    for name in files + ['new']:
        place = os.path.join(folder, name)
        writes(place); tries('unlink', lambda: os.unlink(place)); tries('chmod', lambda: os.chmod(place, 0o777))
# Locks that a killed git leaves.
for folder in {own, common}:
    for name in ('index.lock', 'HEAD.lock', 'config.lock', 'packed-refs.lock', 'refs/heads/main.lock', 'shallow.lock'):
        try: os.close(os.open(folder + '/' + name, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        except OSError: pass
with open('x.py', 'w') as file: file.write('x = 1\n')
";
    attack(&repo, "t1", &[], script);
    assert_eq!(repo.head(), head);
    assert!(
        references
            .iter()
            .all(|reference| repo.references().contains(reference))
    );
    repo.is_sound();
    // A person's git works on, and so does ours.
    repo.git(&["config", "some.key", "value"]);
    repo.write("y.py", "y = 1\n");
    repo.commit("beside");
    repo.airlock(&["merge", "t1"]).run().exits(0);
    assert_eq!(repo.file_in("main", "x.py"), "x = 1\n");
    repo.is_sound();
}

#[test]
fn a_repository_that_an_agent_leaves_runs_nothing_for_a_person() {
    let env = TestEnv::new();
    let repo = env.repository();
    let marker = env.path().join("ran");
    let script = format!(
        r#"
marker = {marker:?}
quiet = dict(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
orders = '[core]\n\tfsmonitor = "touch %s; false"\n\thooksPath = hooks\n\tsshCommand = touch %s\n[filter "e"]\n\tclean = "touch %s; cat"\n[diff]\n\texternal = touch %s\n[alias]\n\tst = !touch %s\n' % ((marker,) * 5)
for name, bare in (('nested', False), ('deep/er/nested', False), ('Nested', False), ('bare', True), ('bare/in/bare', True)):
    subprocess.run(['git', 'init', '-q'] + (['--bare'] if bare else []) + [name], check=True, **quiet)
    with open(name + ('/config' if bare else '/.git/config'), 'a') as file: file.write(orders)
    with open(name + ('/info/attributes' if bare else '/.git/info/attributes'), 'w') as file: file.write('* filter=e\n')
    if not bare:
        with open(name + '/file', 'w') as file: file.write('x\n')
        subprocess.run(['git', '-C', name, '-c', 'core.fsmonitor=false', 'add', '-f', 'file'], **quiet)
# A bare repository in parts, names that some file systems take for `.git`, a pointer to a folder of ours.
for folder in ('parts/objects', 'parts/refs'): os.makedirs(folder)
with open('parts/HEAD', 'w') as file: file.write('ref: refs/heads/main\n')
with open('parts/config', 'w') as file: file.write(orders + '[core]\n\tbare = false\n\tworktree = ..\n')
for name in ('.GIT', 'git~1', '.git '):
    try: os.makedirs('odd/' + name + '/objects'); open('odd/' + name + '/config', 'w').write(orders)
    except OSError: pass
os.makedirs('pointed'); open('pointed/.git', 'w').write('gitdir: ../parts\n')
time.sleep(0.01); open('nested/file', 'w').write('y\n') if os.path.exists('nested/file') else None
"#
    );
    attack(&repo, "t1", &["--cleanup", "never"], &script);
    let tree = env.task_folder("t1").join("tree");
    for place in [
        "",
        "nested",
        "deep/er/nested",
        "bare",
        "bare/in/bare",
        "parts",
        "odd",
        "pointed",
    ] {
        for verb in [
            &["status"][..],
            &["add", "--dry-run", "-A"],
            &["diff"],
            &["st"],
            &["log"],
        ] {
            let call = env
                .program("git", &tree.join(place))
                .args(["-c", "safe.directory=*"]);
            // Whatever it answers: nothing of the agent's may run.
            let _any_code = call.args(verb).run().code;
            assert!(
                !marker.exists(),
                "git {verb:?} in {place:?} ran what an agent left"
            );
        }
    }
    repo.airlock(&["show", "t1"]).run().exits(0);
    let _any_code = repo.airlock(&["deliver", "t1"]).run().code;
    repo.airlock(&["rm", "t1", "--discard"]).run().exits(0);
    assert!(!marker.exists() && !tree.exists());
    repo.is_clean();
}

#[test]
fn a_poisoned_git_dir_neither_stalls_nor_leaks() {
    let env = TestEnv::new();
    let repo = env.repository();
    fs::create_dir(env.home().join(".ssh")).unwrap();
    let key = env.home().join(".ssh/id");
    fs::write(&key, "PRIVATE-KEY-OF-A-PERSON\n").unwrap();
    let script = format!(
        r"
key = {key:?}; own = '/run/airlock/git'
with open('x.py', 'w') as file: file.write('x = 1\n')
def put(name, make):
    path = own + '/' + name
    try: os.unlink(path)
    except OSError: pass
    try: os.makedirs(os.path.dirname(path), exist_ok=True); make(path)
    except OSError: pass
link = lambda path: os.symlink(key, path)
pipe = lambda path: os.mkfifo(path)
def sparse(path):
    with open(path, 'wb') as file: file.truncate(400 << 20)
for name, make in (('HEAD', link), ('ORIG_HEAD', pipe), ('index', pipe), ('packed-refs', link), ('AIRLOCK_NOTE', link), ('config', pipe),
                   ('objects/info/alternates', link), ('commondir', link), ('gitdir', pipe), ('logs/HEAD', pipe), ('info/exclude', link),
                   ('info/attributes', pipe), ('COMMIT_EDITMSG', sparse), ('shallow', pipe), ('refs/heads/main', pipe)): put(name, make)
"
    );
    for (id, note) in [
        ("linked", ""),
        ("piped", "put('AIRLOCK_NOTE', pipe)"),
        ("large", "put('AIRLOCK_NOTE', sparse)"),
    ] {
        let script = format!("{script}\n{note}");
        attack(&repo, id, &["--cleanup", "never"], &script);
        for verb in ["show", "diff", "logs", "events"] {
            let run = repo.airlock(&[verb, id]).run();
            assert!(!format!("{run}").contains("PRIVATE-KEY"), "{run}");
        }
        let evidence = env.task_folder(id).join("evidence");
        for entry in fs::read_dir(&evidence).unwrap().flatten() {
            let text = fs::read(entry.path()).unwrap_or_default();
            assert!(
                !text.windows(11).any(|word| word == b"PRIVATE-KEY"),
                "{}",
                entry.path().display()
            );
        }
    }
    repo.is_sound();
}
