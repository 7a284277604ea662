//! All places to one [`Spec`]: every choice is made here, once, and what cannot be is refused before
//! anything is made. Reads the repository; changes nothing but an agreement that the user gives.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use worktrees::Repository;

use super::flags::Flags;
use super::layers::{Layers, repository_file, user_file};
use super::scene::Scene;
use super::wishes::Wishes;
use super::{agents, widening};
use crate::exit::{Exit, Failure, OrFail as _};
use crate::home::StateRoot;
use crate::spec_file;
use crate::task::{Secrets, Spec};
use crate::trust::Trust;

/// What somebody asks for on the command line.
#[derive(Debug, Clone)]
pub struct Request {
    /// The flags.
    pub flags: Flags,
    /// The folder that relative paths start at.
    pub directory: PathBuf,
}

/// The host as a resolution sees it.
#[derive(Debug)]
pub(super) struct Host {
    /// The environment of whoever asks.
    pub(super) caller: BTreeMap<OsString, OsString>,
    /// The state root.
    pub(super) state: PathBuf,
    /// What the user has agreed to.
    pub(super) trust: Trust,
}

/// Resolves a request to a task. `ask` puts a question to a person; `None`: nobody can be asked.
pub fn resolve(
    request: Request,
    repository: &Repository,
    root: &StateRoot,
    ask: &dyn Fn(&str) -> Option<bool>,
) -> Result<(Spec, Secrets), Failure> {
    let host = Host {
        caller: std::env::vars_os().collect(),
        state: root.path().to_owned(),
        trust: Trust::of(root),
    };
    resolve_on(&host, request, repository, ask)
}

fn resolve_on(
    host: &Host,
    request: Request,
    repository: &Repository,
    ask: &dyn Fn(&str) -> Option<bool>,
) -> Result<(Spec, Secrets), Failure> {
    let Request {
        flags: said,
        directory,
    } = request;
    let directory = std::path::absolute(directory).or_fail(Exit::Usage)?;
    let flags = said.wishes(&directory)?;
    let task = match &said.spec {
        Some(path) => spec_file::read(path, &directory)?,
        None => Wishes::default(),
    };
    let user = user_file(&host.caller)?;
    let revision = [&flags, &task, &user]
        .into_iter()
        .find_map(|wishes| wishes.base.as_ref());
    let base = crate::place::resolve(repository, revision.map_or("HEAD", |base| &base.value))?;
    let theirs = repository_file(repository, base, &host.caller)?;
    let layers = Layers {
        flags: &flags,
        task: &task,
        user: &user,
        repository: &theirs,
    };
    let scene = Scene {
        layers,
        repository,
        host,
        built_in: agents::built_in(),
    };
    scene.agree(ask)?;
    scene.spec(base.to_string(), seconds())
}

impl Scene<'_> {
    /// Makes sure that the user agrees to what the repository's file asks for.
    fn agree(&self, ask: &dyn Fn(&str) -> Option<bool>) -> Result<(), Failure> {
        let asks = widening::asks(self.layers.repository);
        let agent = self
            .layers
            .pick(|wishes| wishes.agent.as_ref())
            .map(|agent| agent.value.as_str());
        let needed = widening::needed(&asks, self.layers.user, &self.layers.stronger(), agent);
        let trust = &self.host.trust;
        let repository = self.repository.common_dir();
        if needed.is_empty() || trust.covers(repository, &asks)? {
            return Ok(());
        }
        let list: Vec<String> = asks.iter().map(|ask| format!("  {ask}")).collect();
        let list = list.join("\n");
        let question = format!(
            "airlock.toml of {} asks for more than you allow:\n{list}\nAllow it?",
            self.repository.name()
        );
        match ask(&question) {
            Some(true) => {
                trust.agree(repository, &asks, seconds())?;
                Ok(())
            }
            Some(false) => Err(Failure::usage("you did not allow what airlock.toml asks for")
                .advise("flags of your own beat the file, such as --net none")),
            None => Err(Failure::usage(format!(
                "airlock.toml asks for more than you allow, and nobody can be asked:\n{list}"
            ))
            .advise("look at it with `airlock trust` and agree with `airlock trust --yes`, or give the flags yourself")),
        }
    }
}

fn seconds() -> i64 {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(now.as_secs()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::fs;
    use std::path::Path;
    use std::process::Command;

    use super::*;
    use crate::config::EnvEntry;
    use crate::task::{Cleanup, Isolation, Net, Style};

    /// A repository and a host of its own.
    struct World {
        folder: tempfile::TempDir,
        host: Host,
    }

    impl World {
        fn new(airlock_toml: &str, config_toml: &str) -> Self {
            let folder = tempfile::tempdir().unwrap();
            let path = fs::canonicalize(folder.path()).unwrap();
            let config = path.join("home/.config/airlock");
            fs::create_dir_all(&config).unwrap();
            fs::create_dir_all(path.join("state")).unwrap();
            fs::write(config.join("config.toml"), config_toml).unwrap();
            let home = path.join("home").into_os_string();
            let caller =
                BTreeMap::from([("HOME".into(), home), ("MY_TOKEN".into(), "s3cret".into())]);
            let trust = Trust::at(path.join("state/trusted.json"));
            let world = Self {
                host: Host {
                    caller,
                    state: path.join("state"),
                    trust,
                },
                folder,
            };
            world.git(&["init", "-q", "-b", "main", "repo"], &path);
            fs::write(world.repo().join("airlock.toml"), airlock_toml).unwrap();
            world.commit();
            world
        }

        /// A program on the caller's search path.
        fn install(&mut self, name: &str) {
            use std::os::unix::fs::PermissionsExt as _;
            let folder = fs::canonicalize(self.folder.path()).unwrap().join("bin");
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join(name), "#!/bin/sh\n").unwrap();
            fs::set_permissions(folder.join(name), fs::Permissions::from_mode(0o755)).unwrap();
            self.host
                .caller
                .insert("PATH".into(), folder.into_os_string());
        }

        fn repo(&self) -> PathBuf {
            fs::canonicalize(self.folder.path()).unwrap().join("repo")
        }

        fn commit(&self) {
            self.git(&["add", "-A"], &self.repo());
            let who = [
                "-c",
                "user.name=a",
                "-c",
                "user.email=a@b",
                "commit",
                "-q",
                "-m",
                "x",
            ];
            self.git(&who, &self.repo());
        }

        fn git(&self, args: &[&str], at: &Path) {
            let mut git = Command::new("git");
            git.args(args).current_dir(at).env_clear();
            git.env("PATH", "/usr/local/bin:/usr/bin:/bin")
                .env("HOME", self.folder.path());
            assert!(git.status().unwrap().success(), "git {args:?}");
        }

        fn resolve(&self, flags: Flags, answer: Option<bool>) -> Result<(Spec, Secrets), Failure> {
            let repository = Repository::discover(&self.repo()).unwrap();
            let request = Request {
                flags,
                directory: self.repo(),
            };
            resolve_on(&self.host, request, &repository, &|_| answer)
        }
    }

    fn command() -> Flags {
        Flags {
            command: vec!["true".into()],
            ..Flags::default()
        }
    }

    #[test]
    fn defaults_are_plain_and_safe() {
        let (spec, secrets) = World::new("", "").resolve(command(), None).unwrap();
        assert_eq!(spec.agent, "true");
        assert_eq!(
            (spec.isolation, spec.net, spec.cleanup),
            (Isolation::Sandbox, Net::None, Cleanup::OnSuccess)
        );
        assert_eq!(spec.branch, format!("airlock/{0}/{0}", spec.task));
        assert_eq!(spec.into.as_deref(), Some("main"));
        assert_eq!(
            (spec.merge, spec.attempts, spec.bounds.timeout_ms),
            (None, 1, None)
        );
        assert!(
            spec.env.is_empty()
                && secrets == Secrets::default()
                && spec.protect.iter().any(|path| path == "airlock.toml")
        );
    }

    #[test]
    fn the_repository_narrows_without_a_question_and_widens_only_with_an_answer() {
        let world = World::new("[task]\ntimeout = \"5m\"\nattempts = 2\n", "");
        let (spec, _) = world.resolve(command(), None).unwrap();
        assert_eq!((spec.bounds.timeout_ms, spec.attempts), (Some(300_000), 2));

        fs::write(
            world.repo().join("airlock.toml"),
            "[sandbox]\nnet = \"host\"\n",
        )
        .unwrap();
        let (spec, _) = world.resolve(command(), None).unwrap();
        assert_eq!(spec.net, Net::None, "the checkout is not what is read");
        world.commit();
        let refused = world.resolve(command(), None).unwrap_err();
        assert_eq!(refused.exit, Exit::Usage);
        assert!(refused.what.contains("sandbox.net = host"), "{refused}");
        assert!(refused.next.unwrap().contains("airlock trust"));
        assert_eq!(
            world.resolve(command(), Some(false)).unwrap_err().exit,
            Exit::Usage
        );
        let (own, _) = world
            .resolve(
                Flags {
                    net: Some(Net::None),
                    ..command()
                },
                None,
            )
            .unwrap();
        assert_eq!(
            own.net,
            Net::None,
            "a flag decides, so there is nothing to ask"
        );

        let (spec, _) = world.resolve(command(), Some(true)).unwrap();
        assert_eq!(spec.net, Net::Host);
        assert_eq!(spec.origins["net"], "airlock.toml:2 of the base commit");
        let asked = Cell::new(false);
        let repository = Repository::discover(&world.repo()).unwrap();
        let request = Request {
            flags: command(),
            directory: world.repo(),
        };
        let again = resolve_on(&world.host, request, &repository, &|_| {
            asked.set(true);
            None
        });
        assert!(again.is_ok() && !asked.get(), "the answer is remembered");

        fs::write(
            world.repo().join("airlock.toml"),
            "[sandbox]\nnet = \"host\"\nro = [\"/opt\"]\n",
        )
        .unwrap();
        world.commit();
        assert!(
            world.resolve(command(), None).is_err(),
            "another wish asks again"
        );
    }

    #[test]
    fn agents_get_their_prompt_and_what_they_sign_in_with() {
        let config = "[agent.bot]\ncommand = [\"bot\", \"{prompt}\"]\nenv = [\"MY_TOKEN\", \"MODE=fast\", \"ABSENT\"]\n";
        let mut world = World::new("", config);
        world.install("bot");
        let flags = || Flags {
            agent: Some("bot".to_owned()),
            prompt: Some("do it".to_owned()),
            ..Flags::default()
        };
        let (spec, secrets) = world.resolve(flags(), None).unwrap();
        let bot = world.repo().with_file_name("bin").join("bot");
        assert_eq!(spec.argv, [bot.into_os_string(), "do it".into()]);
        assert_eq!(spec.goal.as_deref(), Some("do it"));
        assert_eq!(
            (spec.pass_env.as_slice(), secrets.env["MY_TOKEN"].as_str()),
            (["MY_TOKEN".to_owned()].as_slice(), "s3cret")
        );
        assert_eq!(spec.env["MODE"], "fast");
        assert!(!serde_json::to_string(&spec).unwrap().contains("s3cret"));
        let (spec, _) = world
            .resolve(
                Flags {
                    attempts: Some(3),
                    ..flags()
                },
                None,
            )
            .unwrap();
        assert!(spec.argv[1].to_string_lossy().contains("AIRLOCK_FEEDBACK"));
        let unknown = world
            .resolve(
                Flags {
                    agent: Some("bto".to_owned()),
                    ..flags()
                },
                None,
            )
            .unwrap_err();
        assert!(unknown.what.contains("did you mean \"bot\"?"), "{unknown}");
        let absent = world
            .resolve(
                Flags {
                    agent: Some("codex".to_owned()),
                    ..flags()
                },
                None,
            )
            .unwrap_err();
        assert!(
            absent.what.contains("agent codex is not installed"),
            "{absent}"
        );
        assert!(
            absent
                .next
                .unwrap()
                .contains("npm install -g @openai/codex")
        );
        let silent = world
            .resolve(
                Flags {
                    prompt: None,
                    ..flags()
                },
                None,
            )
            .unwrap_err();
        assert!(silent.what.contains("needs a prompt"), "{silent}");
        assert!(
            world
                .resolve(Flags::default(), None)
                .unwrap_err()
                .what
                .contains("nothing to run")
        );
    }

    #[test]
    fn what_would_open_the_room_is_refused_whoever_asks() {
        let world = World::new("", "");
        let fine = world.host.state.parent().unwrap().join("fine");
        fs::create_dir(&fine).unwrap();
        let (spec, _) = world
            .resolve(
                Flags {
                    ro: vec![fine.clone()],
                    ..command()
                },
                None,
            )
            .unwrap();
        assert_eq!(spec.ro, [fine]);
        let home = world.host.state.parent().unwrap().join("home");
        for bad in [
            world.repo(),
            world.repo().join(".git"),
            world.host.state.clone(),
            home,
            "/".into(),
            "/run".into(),
        ] {
            let refused = world
                .resolve(
                    Flags {
                        rw: vec![bad.clone()],
                        ..command()
                    },
                    None,
                )
                .unwrap_err();
            assert_eq!(refused.exit, Exit::Usage, "{}", bad.display());
            assert!(refused.to_string().contains("is refused"), "{refused}");
        }
    }

    #[test]
    fn landings_that_cannot_be_are_refused_first() {
        let world = World::new("", "[merge]\nstyle = \"squash\"\n");
        let merge = || Flags {
            merge: Some(None),
            ..command()
        };
        assert_eq!(
            world.resolve(merge(), None).unwrap().0.merge,
            Some(Style::Squash)
        );
        let refused = |flags| world.resolve(flags, None).unwrap_err();
        let unconfined = refused(Flags {
            isolation: Some(Isolation::Worktree),
            ..merge()
        });
        assert!(unconfined.next.unwrap().contains("--allow-unconfined"));
        assert!(
            refused(Flags {
                isolation: Some(Isolation::None),
                ..merge()
            })
            .what
            .contains("delivers no commit")
        );
        assert!(
            refused(Flags {
                into: Some("nope".to_owned()),
                ..merge()
            })
            .what
            .contains("no branch nope")
        );
        world.git(&["checkout", "-q", "--detach"], &world.repo());
        assert!(refused(merge()).what.contains("detached"));
        assert!(world.resolve(command(), None).unwrap().0.into.is_none());
    }

    #[test]
    fn a_flag_demands_a_variable_and_never_stores_it() {
        let world = World::new("", "");
        let env = |entry: &str| Flags {
            env: vec![EnvEntry::parse(entry).unwrap()],
            ..command()
        };
        let (spec, secrets) = world.resolve(env("MY_TOKEN"), None).unwrap();
        assert_eq!(
            (spec.pass_env.len(), secrets.env.len(), spec.env.len()),
            (1, 1, 0)
        );
        assert!(
            world
                .resolve(env("NOT_THERE"), None)
                .unwrap_err()
                .what
                .contains("has no NOT_THERE")
        );
    }
}
