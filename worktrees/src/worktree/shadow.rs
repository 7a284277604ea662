//! The shadow git directory: what the agent's git commands read and write. It has one branch, our settings
//! and an index; objects of the repository are read through mounts that exist only in the room. After it is
//! handed over it is hostile, and the engine never opens it as a repository.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use git2::{IndexEntry, ObjectType};
use gix_filter::eol::{AutoCrlf, Mode};

use super::create::{CreateError, write_index, write_new};
use super::{History, WorktreeRequest};
use crate::owner::must_hand_over;
use crate::repository::{Repository, full_name, object_mount};
use crate::tree::{Chain, Folder, Settings};

/// Who the agent is in the commits that it makes for itself.
const AGENT: (&str, &str) = ("Airlock agent", "agent@localhost");

/// Where the room sees this folder.
const MOUNTED_AT: &str = "/run/airlock/git";

/// Makes the folder and all that is in it.
pub(super) fn create(
    repository: &Repository,
    request: &WorktreeRequest<'_>,
    settings: &Settings,
    entries: &[IndexEntry],
) -> Result<(), CreateError> {
    let shadow = request.shadow;
    let written = |source| CreateError::Write {
        path: shadow.to_path_buf(),
        source,
    };
    for folder in [
        "",
        "objects",
        "objects/info",
        "objects/pack",
        "refs",
        "refs/heads",
        "refs/tags",
        "hooks",
        "info",
    ] {
        fs::create_dir(shadow.join(folder)).map_err(written)?;
    }
    let branch = full_name(request.branch).map_err(|source| CreateError::Branch {
        branch: request.branch.to_owned(),
        source,
    })?;
    write_new(shadow, "HEAD", format!("ref: {branch}\n").as_bytes())?;
    write_new(shadow, "config", config(settings).as_bytes())?;
    write_new(
        shadow,
        "info/exclude",
        &[b"/.bg/\n/.sub/\n", settings.local_excludes.as_slice()].concat(),
    )?;
    write_new(shadow, "info/attributes", &settings.local_attributes)?;
    write_new(shadow, "user-excludes", &settings.user_excludes)?;
    write_new(shadow, "user-attributes", &settings.user_attributes)?;
    write_new(
        shadow,
        "objects/info/alternates",
        alternates(repository, request)?.as_bytes(),
    )?;
    write_new(
        shadow,
        "packed-refs",
        packed_refs(repository, request, &branch)?.as_bytes(),
    )?;
    if let Some(shallow) = shallow(repository, request) {
        write_new(shadow, "shallow", &shallow)?;
    }
    write_index(&shadow.join("index"), entries)?;
    fs::set_permissions(shadow, fs::Permissions::from_mode(0o700)).map_err(written)?;
    if must_hand_over(repository.owner()) {
        hand_over(shadow, repository.owner()).map_err(written)?;
    }
    Ok(())
}

/// Only what decides how files are compared and stored is taken over from the repository: no remote, no
/// include, no program.
fn config(settings: &Settings) -> String {
    let autocrlf = match settings.eol.auto_crlf {
        AutoCrlf::Enabled => "true",
        AutoCrlf::Input => "input",
        AutoCrlf::Disabled => "false",
    };
    let eol = match settings.eol.eol {
        Some(Mode::Lf) => "lf",
        Some(Mode::CrLf) => "crlf",
        None => "native",
    };
    let Settings {
        file_mode,
        symlinks,
        ignore_case,
        ..
    } = settings;
    // The users of the room are mapped, so that owner and change time of a file differ from what was recorded.
    format!(
        "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tfilemode = {file_mode}\n\tsymlinks = {symlinks}\n\
         \tignorecase = {ignore_case}\n\tautocrlf = {autocrlf}\n\teol = {eol}\n\tlogallrefupdates = true\n\
         \tcheckStat = minimal\n\ttrustctime = false\n\
         \texcludesFile = {MOUNTED_AT}/user-excludes\n\tattributesFile = {MOUNTED_AT}/user-attributes\n\
         [user]\n\tname = {}\n\temail = {}\n[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n",
        AGENT.0, AGENT.1
    )
}

fn alternates(
    repository: &Repository,
    request: &WorktreeRequest<'_>,
) -> Result<String, CreateError> {
    let folders = repository
        .object_dirs()
        .map_err(|source| CreateError::Base {
            base: request.base,
            source,
        })?;
    let lines = (0..folders.len()).map(|index| format!("{}\n", object_mount(index).display()));
    Ok(lines.collect())
}

/// The task's branch, and the tags: `git describe` gives many builds their version, and a tag says nothing that
/// the objects do not say. Other branches stay out.
fn packed_refs(
    repository: &Repository,
    request: &WorktreeRequest<'_>,
    branch: &str,
) -> Result<String, CreateError> {
    let failed = |source| CreateError::Settings {
        path: repository.common_dir().to_path_buf(),
        source,
    };
    let mut lines = vec![(branch.to_owned(), request.base, None)];
    if request.history == History::Full {
        let repo = repository.open().map_err(failed)?;
        let odb = repo.odb().map_err(failed)?;
        for tag in repo
            .references_glob("refs/tags/*")
            .map_err(failed)?
            .flatten()
        {
            // What cannot be shown to a room, such as a name that is not UTF-8 or a missing object, is left out.
            if let (Ok(name), Some(target)) = (tag.name(), tag.target())
                && let Ok((_, kind)) = odb.read_header(target)
            {
                // Some readers of this file demand that it says what annotated tags lead to.
                let leads_to = (kind == ObjectType::Tag).then(|| tag.peel(ObjectType::Any));
                match leads_to.transpose() {
                    Ok(object) => {
                        lines.push((name.to_owned(), target, object.map(|object| object.id())));
                    }
                    Err(_missing) => {}
                }
            }
        }
    }
    lines.sort_unstable();
    let rows = lines.iter().map(|(name, oid, leads_to)| {
        let peeled = leads_to.map_or_else(String::new, |object| format!("^{object}\n"));
        format!("{oid} {name}\n{peeled}")
    });
    let text = std::iter::once("# pack-refs with: peeled fully-peeled sorted \n".to_owned())
        .chain(rows)
        .collect();
    Ok(text)
}

fn shallow(repository: &Repository, request: &WorktreeRequest<'_>) -> Option<Vec<u8>> {
    match request.history {
        History::None => Some(format!("{}\n", request.base).into_bytes()),
        History::Full => fs::read(repository.common_dir().join("shallow")).ok(),
    }
}

/// Gives the new folder to the repository's owner, who is the user in the room.
fn hand_over(shadow: &Path, owner: (u32, u32)) -> std::io::Result<()> {
    let mut chain = Chain::new(Folder::open(shadow)?);
    let mut pending = vec![Vec::new()];
    while let Some(path) = pending.pop() {
        let folder = chain.enter(&path)?;
        for name in folder.names()? {
            folder.give(&name, owner)?;
            if folder.stat(&name)?.st_mode & nix::libc::S_IFMT == nix::libc::S_IFDIR {
                pending.push([path.as_slice(), &name, b"/"].concat());
            }
        }
    }
    let root = Folder::open(shadow)?;
    Ok(nix::unistd::fchown(
        &root,
        Some(owner.0.into()),
        Some(owner.1.into()),
    )?)
}
