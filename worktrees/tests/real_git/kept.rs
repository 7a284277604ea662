//! What a setup leaves: which folders may be kept, how they are taken out of one tree and put into others.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use worktrees::{Keepable, KeptError, KeptLimit, KeptSize, take_kept};

use crate::fixture::{Fixture, write};

const LIMIT: KeptLimit = KeptLimit {
    files: 100,
    bytes: 1 << 20,
};

fn folder(path: &Path) {
    fs::create_dir_all(path).unwrap();
}

#[test]
fn only_what_is_ignored_and_not_tracked_is_keepable() {
    let fixture = Fixture::with(&[
        (".gitignore", "node_modules\n/build/\n!/build/keep\n*.log\n"),
        ("web/.gitignore", "deps/\n"),
        ("web/index.html", "x"),
        ("vendor/x", "x"),
    ]);
    let (repository, base) = (fixture.repository(), fixture.rev("HEAD"));
    for (path, expected) in [
        ("node_modules", Keepable::Yes),
        ("web/node_modules", Keepable::Yes),
        ("new/node_modules", Keepable::Yes),
        ("node_modules/deep/down", Keepable::Yes),
        ("build", Keepable::Yes),
        ("web/build", Keepable::NotIgnored),
        ("web/deps", Keepable::Yes),
        ("deps", Keepable::NotIgnored),
        ("target", Keepable::NotIgnored),
        ("vendor", Keepable::Tracked),
        ("vendor/x", Keepable::Tracked),
        ("vendor/y", Keepable::NotIgnored),
    ] {
        let found = repository.keepable(base, path).unwrap();
        assert_eq!(found, expected, "{path}");
    }
}

#[test]
fn a_copy_is_whole_and_a_copy() {
    let fixture = Fixture::with(&[("web/a", "a")]);
    let repository = fixture.repository();
    let at = |name: &str| fixture.state().join(name);
    let made = at("made");
    folder(&made.join("web/deps/bin"));
    write(&made.join("web/deps/bin/run"), "#!/bin/sh\n");
    fs::set_permissions(
        made.join("web/deps/bin/run"),
        fs::Permissions::from_mode(0o4755),
    )
    .unwrap();
    let then = UNIX_EPOCH + Duration::from_secs(1_600_000_000);
    let file = fs::File::open(made.join("web/deps/bin/run")).unwrap();
    file.set_modified(then).unwrap();
    symlink("/etc", made.join("web/deps/out")).unwrap();
    folder(&at("kept"));
    let paths = ["web/deps".to_owned(), "not/there".to_owned()];
    let size = take_kept(&made, &paths, &at("kept"), LIMIT).unwrap();
    assert_eq!(
        size,
        KeptSize {
            files: 3,
            bytes: 10
        }
    );
    assert!(!made.join("web/deps").exists() && made.join("web").exists());

    folder(&at("tree/web"));
    let copied = repository
        .put_kept(&at("kept"), &at("tree"), LIMIT)
        .unwrap();
    // With the folders on the way.
    assert_eq!(
        copied,
        KeptSize {
            files: 5,
            bytes: 10
        }
    );
    let run = at("tree/web/deps/bin/run");
    let facts = fs::metadata(&run).unwrap();
    assert_eq!(
        (
            facts.permissions().mode() & 0o7777,
            facts.modified().unwrap()
        ),
        (0o755, then)
    );
    assert_eq!(
        fs::read_link(at("tree/web/deps/out")).unwrap(),
        Path::new("/etc")
    );
    write(&run, "changed");
    assert_eq!(
        fs::read(at("kept/web/deps/bin/run")).unwrap(),
        b"#!/bin/sh\n"
    );
    let again = repository.put_kept(&at("kept"), &at("tree"), LIMIT);
    assert!(
        matches!(again, Err(KeptError::Copy { .. })),
        "nothing is written over"
    );
}

#[test]
fn too_much_and_detours_are_refused() {
    let fixture = Fixture::with(&[("a", "a")]);
    let at = |name: &str| fixture.state().join(name);
    folder(&at("made/deps"));
    folder(&at("kept"));
    for number in 0..4 {
        write(&at(&format!("made/deps/{number}")), "12345678");
    }
    let take = |path: &str, files, bytes| {
        let limit = KeptLimit { files, bytes };
        take_kept(&at("made"), &[path.to_owned()], &at("kept"), limit)
    };
    for (files, bytes) in [(3, 100), (100, 31)] {
        let refused = take("deps", files, bytes);
        assert!(
            matches!(refused, Err(KeptError::TooMuch { .. })),
            "{refused:?}"
        );
    }
    symlink(at("made/deps"), at("made/link")).unwrap();
    folder(&at("made/deps/inner"));
    assert!(matches!(
        take("link/inner", 100, 100),
        Err(KeptError::Copy { .. })
    ));
    assert!(matches!(
        take("link", 100, 100),
        Err(KeptError::Kind { .. })
    ));
    let taken = take("deps", 100, 100).unwrap();
    assert_eq!(
        taken,
        KeptSize {
            files: 5,
            bytes: 32
        }
    );
}
