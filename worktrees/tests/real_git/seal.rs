//! Sealing gives the tree that `git add -A` gives, whatever the configuration, and names what cannot be sealed.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use worktrees::Seal;

use crate::fixture::{Fixture, write};

type Edit = fn(&Path);

/// Seals an edit, and checks the tree against git's own.
#[track_caller]
fn same_as_git(fixture: &Fixture, edit: Edit) -> Seal {
    let worktree = fixture.worktree("t1");
    let untouched = fixture.seal(&worktree);
    assert_eq!(untouched.commit, None, "an untouched tree is empty");
    edit(&worktree.tree);
    let seal = fixture.seal(&worktree);
    let plain = fixture.plain_tree(&edit);
    if seal.tree != plain {
        let diff = fixture.git(["diff", "--stat", &plain.to_string(), &seal.tree.to_string()]);
        panic!("the trees differ, git's against ours:\n{diff}");
    }
    assert_eq!(
        fixture.seal(&worktree),
        seal,
        "sealing twice gives the same"
    );
    fixture.git(["fsck", "--strict"]);
    seal
}

fn crlf_base() -> Fixture {
    let fixture = Fixture::empty();
    write(&fixture.repo.join("lf.txt"), "one\ntwo\n");
    write(&fixture.repo.join("crlf.txt"), "one\r\ntwo\r\n");
    write(&fixture.repo.join("mixed.txt"), "one\r\ntwo\n");
    write(&fixture.repo.join("binary.bin"), b"a\0b\r\n\r\n");
    write(&fixture.repo.join("d/lf.txt"), "one\ntwo\n");
    fixture.git(["-c", "core.autocrlf=false", "add", "-A"]);
    fixture.git(["commit", "-q", "-m", "base"]);
    fixture
}

fn edit_lines(tree: &Path) {
    for name in ["lf.txt", "crlf.txt", "mixed.txt", "binary.bin", "d/lf.txt"] {
        let mut bytes = fs::read(tree.join(name)).unwrap();
        bytes.extend_from_slice(b"more\r\n");
        fs::write(tree.join(name), bytes).unwrap();
    }
    write(&tree.join("new-crlf.txt"), "x\r\ny\r\n");
    write(&tree.join("new-lf.txt"), "x\ny\n");
    write(&tree.join("new-cr.txt"), "x\ry\r\n");
    write(&tree.join("new.bin"), b"\0\r\n");
}

#[test]
fn line_ends_by_configuration() {
    for (key, value) in [
        ("core.autocrlf", "true"),
        ("core.autocrlf", "input"),
        ("core.autocrlf", "false"),
        ("core.eol", "crlf"),
        ("core.eol", "lf"),
    ] {
        let fixture = crlf_base();
        fixture.git(["config", key, value]);
        same_as_git(&fixture, edit_lines);
    }
}

#[test]
fn line_ends_by_attributes() {
    for rules in [
        "* text=auto\n",
        "* text\n",
        "* text eol=crlf\n",
        "* text=auto eol=crlf\n",
        "* text=auto eol=lf\n",
        "* -text\n",
        "*.txt crlf\n*.bin -crlf\n",
        "*.txt crlf=input\n",
        "*.txt eol=lf\nd/*.txt -text\n",
        "[attr]win text eol=crlf\n*.txt win\n*.bin binary\n",
        "d/** text eol=crlf\n/lf.txt eol=crlf\n",
    ] {
        for autocrlf in ["false", "true"] {
            let fixture = crlf_base();
            write(&fixture.repo.join(".gitattributes"), rules);
            fixture.git(["add", ".gitattributes"]);
            fixture.git(["commit", "-q", "-m", "attributes"]);
            fixture.git(["config", "core.autocrlf", autocrlf]);
            same_as_git(&fixture, edit_lines);
        }
    }
}

#[test]
fn attributes_changed_by_the_agent_count_for_changed_files_only() {
    let fixture = crlf_base();
    let seal = same_as_git(&fixture, |tree| {
        write(&tree.join(".gitattributes"), "*.txt text\n");
        write(&tree.join("d/.gitattributes"), "*.txt -text\n");
        write(&tree.join("d/lf.txt"), "a\r\n");
        write(&tree.join("new.txt"), "a\r\n");
    });
    let blob = |path: &str| fixture.git(["rev-parse", &format!("{}:{path}", seal.tree)]);
    assert_eq!(
        blob("crlf.txt"),
        fixture.git(["rev-parse", "HEAD:crlf.txt"])
    );
}

#[test]
fn local_attributes_and_deleted_attributes() {
    let fixture = crlf_base();
    write(
        &fixture.repo.join(".git/info/attributes"),
        "*.txt text eol=crlf\n",
    );
    same_as_git(&fixture, edit_lines);
    let fixture = crlf_base();
    write(
        &fixture.repo.join(".gitattributes"),
        "*.txt text eol=crlf\n",
    );
    fixture.git(["add", ".gitattributes"]);
    fixture.git(["commit", "-q", "-m", "attributes"]);
    same_as_git(&fixture, |tree| {
        fs::remove_file(tree.join(".gitattributes")).unwrap();
        write(&tree.join("lf.txt"), "x\r\n");
    });
}

#[test]
fn idents() {
    let fixture = Fixture::with(&[
        (".gitattributes", "*.c ident\n*.txt ident eol=crlf\n"),
        ("a.c", "/* $Id$ */ int a; /* $Id: old 1.2 x $ */\n"),
        ("b.c", "$Id: 0123 $\n$Id\n$ $Idx$ $Id: a\n"),
        ("c.c", "$Id$\n"),
        ("d.txt", "$Id$\n$Id$\n"),
    ]);
    same_as_git(&fixture, |tree| {
        for name in ["a.c", "b.c", "d.txt"] {
            let mut bytes = fs::read(tree.join(name)).unwrap();
            bytes.extend_from_slice(b"// $Id: new thing$ $Id$\n");
            fs::write(tree.join(name), bytes).unwrap();
        }
    });
}

#[test]
fn modes_and_links() {
    let setup = || {
        let fixture = Fixture::with(&[
            ("plain", "p\n"),
            ("script", "s\n"),
            ("file", "f\n"),
            ("dir/x", "x\n"),
        ]);
        fs::set_permissions(
            fixture.repo.join("script"),
            fs::Permissions::from_mode(0o755),
        )
        .unwrap();
        symlink("plain", fixture.repo.join("link")).unwrap();
        fixture.commit("modes");
        fixture
    };
    let edit: Edit = |tree| {
        fs::set_permissions(tree.join("plain"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::set_permissions(tree.join("script"), fs::Permissions::from_mode(0o644)).unwrap();
        write(&tree.join("new-script"), "n\n");
        fs::set_permissions(tree.join("new-script"), fs::Permissions::from_mode(0o700)).unwrap();
        fs::remove_file(tree.join("link")).unwrap();
        symlink("/etc/passwd", tree.join("link")).unwrap();
        symlink("nowhere\n", tree.join("dangling")).unwrap();
        symlink("dir", tree.join("to-dir")).unwrap();
        // A file becomes a folder, a folder becomes a link.
        fs::remove_file(tree.join("file")).unwrap();
        write(&tree.join("file/inner"), "i\n");
        fs::remove_dir_all(tree.join("dir")).unwrap();
        symlink("/", tree.join("dir")).unwrap();
    };
    same_as_git(&setup(), edit);
    let fixture = setup();
    fixture.git(["config", "core.fileMode", "false"]);
    same_as_git(&fixture, edit);
    let fixture = setup();
    fixture.git(["config", "core.symlinks", "false"]);
    same_as_git(&fixture, |tree| write(&tree.join("link"), "elsewhere"));
}

#[test]
fn ignore_rules() {
    let fixture = Fixture::with(&[
        (
            ".gitignore",
            "*.o\nbuild/\n/top\nkept/*\n!kept/yes\n\\#odd\ntrail \\ \n**/deep/x\n",
        ),
        ("src/.gitignore", "!keep.o\nlocal\n"),
        ("src/a.c", "a\n"),
    ]);
    // Tracked against the rules.
    write(&fixture.repo.join("build/tracked"), "t\n");
    write(&fixture.repo.join("build/gone"), "t\n");
    fixture.git(["add", "-f", "build/tracked", "build/gone"]);
    fixture.git(["commit", "-q", "-m", "forced"]);
    write(&fixture.repo.join(".git/info/exclude"), "*.private\n");
    let excludes = fixture.state().join("excludes");
    write(&excludes, "*.swp\n");
    fixture.git(["config", "core.excludesFile", excludes.to_str().unwrap()]);
    same_as_git(&fixture, |tree| {
        for name in [
            "x.o",
            "src/keep.o",
            "src/b.o",
            "src/local",
            "src/sub/local",
            "build/new",
            "build/deeper/new",
            "top",
            "src/top",
            "kept/no",
            "kept/yes",
            "#odd",
            "trail  ",
            "a/deep/x",
            "a/deep/y",
            "a.private",
            "b.swp",
            "node/.gitignore",
        ] {
            write(&tree.join(name), "x\n");
        }
        write(&tree.join("node/.gitignore"), "*\n");
        write(&tree.join("node/x"), "x\n");
        write(&tree.join("build/tracked"), "changed\n");
        fs::remove_file(tree.join("build/gone")).unwrap();
        fs::create_dir_all(tree.join("linked")).unwrap();
        symlink("../.gitignore", tree.join("linked/.gitignore")).unwrap();
        write(&tree.join("linked/z.txt"), "z\n");
        fs::create_dir(tree.join("empty")).unwrap();
    });
}

#[test]
fn case_folding_of_rules() {
    let fixture = Fixture::with(&[
        (".gitignore", "*.LOG\n"),
        (".gitattributes", "*.TXT text\n"),
    ]);
    fixture.git(["config", "core.ignoreCase", "true"]);
    same_as_git(&fixture, |tree| {
        write(&tree.join("a.log"), "x\n");
        write(&tree.join("b.txt"), "x\r\n");
        write(&tree.join("README"), "x\n");
    });
}

#[test]
fn odd_names() {
    let fixture = Fixture::with(&[("a", "a\n"), ("Case", "c\n")]);
    same_as_git(&fixture, |tree| {
        let long = "n".repeat(255);
        for name in [
            b"new\nline".as_slice(),
            b"\xff\xfe",
            b" lead",
            b"tail ",
            b"tab\t",
            b"quote\"",
            b"back\\slash",
            b"-dash",
            b"a.b",
            b"a0",
            b"a-",
            "ümlaut".as_bytes(),
            b":colon",
            b"*star",
            long.as_bytes(),
        ] {
            write(&tree.join(OsStr::from_bytes(name)), "x\n");
            write(&tree.join("dir").join(OsStr::from_bytes(name)), "x\n");
        }
        fs::rename(tree.join("Case"), tree.join("case")).unwrap();
        // Sorting: the folder `a` stands behind `a.b` and before `a0`.
        fs::remove_file(tree.join("a")).unwrap();
        write(&tree.join("a/inner"), "x\n");
    });
}

#[test]
fn everything_deleted() {
    let fixture = Fixture::with(&[("a", "a\n"), ("d/b", "b\n")]);
    let seal = same_as_git(&fixture, |tree| {
        fs::remove_file(tree.join("a")).unwrap();
        fs::remove_dir_all(tree.join("d")).unwrap();
    });
    assert!(seal.commit.is_some());
}

#[test]
fn filters_are_never_run() {
    let marker = Fixture::empty();
    let mark = marker.state().join("ran");
    let setup = |configured: bool| {
        let fixture = Fixture::with(&[
            (".gitattributes", "*.big filter=lfs -text\n"),
            ("a.big", "pointer\n"),
            ("b.big", "pointer b\n"),
        ]);
        if configured {
            let program = format!("touch {}; cat", mark.display());
            for side in ["clean", "smudge"] {
                fixture.git(["config", &format!("filter.lfs.{side}"), &program]);
            }
            fixture.git(["config", "filter.lfs.required", "true"]);
        }
        fixture
    };
    for configured in [true, false] {
        let fixture = setup(configured);
        let worktree = fixture.worktree("t1");
        assert_eq!(fixture.seal(&worktree).commit, None);
        write(&worktree.tree.join("a.big"), "raw\r\nbytes\n");
        write(&worktree.tree.join("new.big"), "raw\n");
        // Taking the rule away does not hide that the base asks for a filter.
        write(&worktree.tree.join(".gitattributes"), "*.txt filter=lfs\n");
        write(&worktree.tree.join("own.txt"), "a\r\n");
        let seal = fixture.seal(&worktree);
        let named: &[&str] = if configured {
            &["a.big", "new.big", "own.txt"]
        } else {
            &["a.big", "new.big"]
        };
        assert_eq!(seal.unconverted, named);
        let blob = |path: &str| fixture.git(["cat-file", "blob", &format!("{}:{path}", seal.tree)]);
        assert_eq!(blob("a.big"), "raw\r\nbytes");
        assert_eq!(blob("b.big"), "pointer b");
    }
    assert!(!mark.exists(), "a filter ran");
}

#[test]
fn the_commit_is_the_engines() {
    let fixture = Fixture::with(&[("a", "a\n")]);
    let worktree = fixture.worktree("t1");
    write(&worktree.tree.join("b"), "b\n");
    let commit = fixture.seal(&worktree).commit.unwrap().to_string();
    let show = |format: &str| fixture.git(["log", "-1", &format!("--format={format}"), &commit]);
    assert_eq!(
        show("%an <%ae> %cn %at %ct"),
        "Airlock <airlock@localhost> Airlock 1700000000 1700000000"
    );
    assert_eq!(show("%P"), worktree.base.to_string());
    assert_eq!(show("%s"), "the work");
    assert_eq!(
        show("%(trailers:key=Airlock-Task,valueonly)%(trailers:key=Airlock-Run,valueonly)"),
        "t1\nr1"
    );
}
