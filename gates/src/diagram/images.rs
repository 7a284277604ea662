//! Finds a picture's target in the judged tree: what the document says, resolved without any disk.
//! It must never leave the tree or follow a link out of it.

use std::collections::HashMap;

use crate::{MODE_LINK, Source, TreeEntry};

/// Where a target leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// A file of the tree: its path and object.
    File {
        path: String,
        oid: String,
    },
    /// A file whose name differs in case.
    OtherCase(String),
    Missing,
    /// Out of the tree.
    Escapes,
    /// A path on the author's machine.
    Local,
    /// On another machine; `true` for a badge.
    Remote(bool),
    Data(String),
    /// Computed when the site is built.
    Computed,
    /// Not a picture's address: a mail link, an anchor.
    Other,
}

/// The tree's files by path, by path in lower case, and by last part.
#[derive(Debug, Default)]
pub(super) struct Tree {
    files: HashMap<String, (String, u32)>,
    lower: HashMap<String, String>,
    by_name: HashMap<String, Vec<String>>,
    links: HashMap<String, String>,
}

/// Links followed in one path at most.
const HOPS: usize = 8;
/// Links of a tree that are read at most.
const MOST_LINKS: usize = 2000;

impl Tree {
    pub(super) fn of(source: &mut dyn Source) -> Self {
        let mut tree = Self::default();
        let entries = source.entries();
        for TreeEntry { path, oid, mode } in entries {
            if mode == MODE_LINK && tree.links.len() < MOST_LINKS {
                let target = source
                    .blob(&oid)
                    .and_then(|bytes| String::from_utf8(bytes).ok());
                tree.links.insert(path.clone(), target.unwrap_or_default());
            }
            let name = path.rsplit('/').next().unwrap_or(&path).to_owned();
            tree.by_name.entry(name).or_default().push(path.clone());
            tree.lower.insert(path.to_lowercase(), path.clone());
            tree.files.insert(path, (oid, mode));
        }
        tree
    }

    /// Resolves a target as the document at `from` means it. `searched`: the format knows folders of its own.
    pub(super) fn resolve(
        &self,
        from: &str,
        target: &str,
        searched: bool,
        imagesdir: Option<&str>,
    ) -> Target {
        let target = target.trim().trim_matches(['<', '>']).trim();
        if let Some(outside) = outside(target) {
            return outside;
        }
        let folder = from.rsplit_once('/').map_or("", |(folder, _)| folder);
        let mut last = Target::Missing;
        for path in readings(target) {
            if let Some(rooted) = path.strip_prefix('/') {
                let found = self.by_suffix(rooted);
                if found != Target::Missing {
                    return found;
                }
                if path.starts_with("/home/")
                    || path.starts_with("/Users/")
                    || path.starts_with("/tmp/")
                    || path.starts_with("/root/")
                {
                    return Target::Local;
                }
                continue;
            }
            for start in [
                Some(folder.to_owned()),
                imagesdir.map(|dir| join(folder, dir)),
            ]
            .into_iter()
            .flatten()
            {
                match self.find(&join(&start, &path)) {
                    Target::Missing => {}
                    found @ (Target::File { .. } | Target::OtherCase(_)) => return found,
                    Target::Escapes
                    | Target::Local
                    | Target::Remote(_)
                    | Target::Data(_)
                    | Target::Computed
                    | Target::Other => last = Target::Escapes,
                }
            }
            if searched && last == Target::Missing {
                let dir = imagesdir
                    .map(|dir| dir.trim_matches('/'))
                    .filter(|dir| !dir.is_empty());
                let suffix = normal(&path).unwrap_or_default();
                let with_dir =
                    dir.map(|dir| format!("{}/{suffix}", normal(dir).unwrap_or_default()));
                for candidate in with_dir.into_iter().chain([suffix]) {
                    let found = self.by_suffix(&candidate);
                    if found != Target::Missing {
                        return found;
                    }
                }
            }
        }
        last
    }

    /// A normal path is looked up, through links that stay inside.
    fn find(&self, path: &str) -> Target {
        let Some(mut path) = normal(path) else {
            return Target::Escapes;
        };
        for _ in 0..HOPS {
            match self.through_link(&path) {
                None => break,
                Some(next) => match normal(&next) {
                    Some(next) => path = next,
                    None => return Target::Escapes,
                },
            }
        }
        if let Some((oid, mode)) = self.files.get(&path) {
            return if *mode == MODE_LINK {
                Target::Missing
            } else {
                Target::File {
                    path,
                    oid: oid.clone(),
                }
            };
        }
        match self.lower.get(&path.to_lowercase()) {
            Some(real) => Target::OtherCase(real.clone()),
            None => Target::Missing,
        }
    }

    /// The path with its first link replaced, or `None` when it has none.
    fn through_link(&self, path: &str) -> Option<String> {
        if self.links.is_empty() {
            return None;
        }
        let ends = path
            .match_indices('/')
            .map(|(at, _)| at)
            .chain([path.len()]);
        for end in ends {
            let head = path.get(..end)?;
            if let Some(target) = self.links.get(head) {
                let folder = head.rsplit_once('/').map_or("", |(folder, _)| folder);
                let rest = path.get(end..).unwrap_or("");
                let absolute = target.starts_with('/') || target.is_empty();
                return Some(if absolute {
                    "..".to_owned()
                } else {
                    format!("{}{rest}", join(folder, target))
                });
            }
        }
        None
    }

    /// A file whose path ends in this path: site generators serve from folders that a document does not name.
    fn by_suffix(&self, suffix: &str) -> Target {
        let Some(suffix) = normal(suffix).filter(|suffix| !suffix.is_empty()) else {
            return Target::Missing;
        };
        if let found @ Target::File { .. } = self.find(&suffix) {
            return found;
        }
        let name = suffix.rsplit('/').next().unwrap_or(&suffix);
        let tail = format!("/{suffix}");
        let paths = self.by_name.get(name).map_or(&[][..], Vec::as_slice);
        match paths.iter().find(|path| path.ends_with(&tail)) {
            Some(path) => self.find(path),
            None => Target::Missing,
        }
    }
}

/// Targets that do not mean a file of the tree.
fn outside(target: &str) -> Option<Target> {
    let lower: String = target
        .chars()
        .take(16)
        .collect::<String>()
        .to_ascii_lowercase();
    if target.is_empty() || lower.starts_with('#') {
        return Some(Target::Other);
    }
    if lower.starts_with("http://") || lower.starts_with("https://") || lower.starts_with("//") {
        return Some(Target::Remote(is_badge(target)));
    }
    if lower.starts_with("data:") {
        return Some(Target::Data(target.to_owned()));
    }
    let drive = lower.len() > 2
        && lower.as_bytes().get(1) == Some(&b':')
        && lower.starts_with(|c: char| c.is_ascii_alphabetic());
    if lower.starts_with("file:") || drive || target.starts_with("~/") || target.starts_with('\\') {
        return Some(Target::Local);
    }
    let computed = ["{{", "{%", "${", "<%", "{", "@site", "~@", "@/"];
    if computed.iter().any(|mark| target.contains(mark)) {
        return Some(Target::Computed);
    }
    let scheme = target.split_once(':').map(|(scheme, _)| scheme);
    scheme
        .filter(|scheme| {
            scheme.len() > 1
                && scheme
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-'))
        })
        .map(|_| Target::Other)
}

fn is_badge(target: &str) -> bool {
    let lower = target.to_ascii_lowercase();
    let hosts = [
        "shields.io",
        "badge",
        "codecov.io",
        "travis-ci",
        "circleci.com",
        "appveyor.com",
        "coveralls.io",
        "docs.rs",
        "deps.rs",
        "img.io",
        "app.netlify.com",
        "opencollective.com",
        "contrib.rocks",
        "star-history.com",
        "repology.org",
        "bencher.dev",
        "isitmaintained.com",
    ];
    hosts.iter().any(|host| lower.contains(host))
        || (lower.contains("/workflows/") && lower.contains(".svg"))
}

/// The path that a relative target names, whether or not there is such a file.
pub(super) fn written_path(from: &str, target: &str) -> Option<String> {
    let folder = from.rsplit_once('/').map_or("", |(folder, _)| folder);
    normal(&join(folder, readings(target).first()?))
}

/// The path as written, and without query and fragment; both percent-decoded.
fn readings(target: &str) -> Vec<String> {
    let bare = target.split(['?', '#']).next().unwrap_or(target);
    let mut readings = vec![decoded(bare), target.to_owned()];
    if let Some(stem) = bare.strip_suffix(".*") {
        // Sphinx takes the best format that there is.
        readings.extend(ENDINGS.iter().map(|ending| format!("{stem}.{ending}")));
    }
    readings.dedup();
    readings.retain(|reading| !reading.is_empty());
    readings
}

fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let pair = bytes.get(at + 1..at + 3).filter(|_| byte == b'%');
        let digits = pair.and_then(|pair| std::str::from_utf8(pair).ok());
        let value = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        out.push(value.unwrap_or(byte));
        at += if value.is_some() { 3 } else { 1 };
    }
    String::from_utf8(out).unwrap_or_else(|_| text.to_owned())
}

fn join(folder: &str, path: &str) -> String {
    if folder.is_empty() || path.starts_with('/') {
        path.trim_start_matches('/').to_owned()
    } else {
        format!("{folder}/{path}")
    }
}

/// Without `.` and `..`; `None` when it leaves the root.
fn normal(path: &str) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

const ENDINGS: &[&str] = &[
    "png", "jpg", "jpeg", "gif", "webp", "bmp", "svg", "avif", "tif", "tiff",
];

/// Whether a target looks like a picture's by its name.
pub(super) fn has_picture_ending(target: &str) -> bool {
    let bare = target.split(['?', '#']).next().unwrap_or(target);
    let ending = bare
        .rsplit_once('.')
        .map(|(_, ending)| ending.to_ascii_lowercase());
    ending.is_some_and(|ending| ENDINGS.contains(&ending.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Files(Vec<TreeEntry>, HashMap<String, Vec<u8>>);

    impl Source for Files {
        fn blob(&mut self, oid: &str) -> Option<Vec<u8>> {
            self.1.get(oid).cloned()
        }
        fn entries(&mut self) -> Vec<TreeEntry> {
            self.0.clone()
        }
    }

    fn tree(paths: &[&str], links: &[(&str, &str)]) -> Tree {
        let file = |path: &str, mode| TreeEntry {
            path: path.to_owned(),
            oid: path.to_owned(),
            mode,
        };
        let mut entries: Vec<TreeEntry> = paths.iter().map(|path| file(path, 0o100_644)).collect();
        entries.extend(links.iter().map(|(path, _)| file(path, MODE_LINK)));
        let blobs = links
            .iter()
            .map(|(path, to)| ((*path).to_owned(), to.as_bytes().to_vec()))
            .collect();
        Tree::of(&mut Files(entries, blobs))
    }

    #[test]
    fn targets_are_resolved_in_the_tree_alone() {
        let tree = tree(
            &[
                "docs/a b.png",
                "docs/img/x.png",
                "static/img/site.png",
                "src/main.rs",
            ],
            &[
                ("docs/link.png", "img/x.png"),
                ("docs/out.png", "../../etc/x.png"),
                ("docs/abs.png", "/etc/x.png"),
                ("pics", "docs/img"),
                ("docs/loop.png", "loop.png"),
            ],
        );
        let go = |target: &str| tree.resolve("docs/readme.md", target, false, None);
        let file = |target: &str| matches!(go(target), Target::File { .. });
        for target in [
            "img/x.png",
            "./img/x.png",
            "a%20b.png",
            "<a b.png>",
            "img/x.png?raw=true",
            "../docs/img/x.png#y",
            "/img/site.png",
            "link.png",
            "../pics/x.png",
        ] {
            assert!(file(target), "{target}: {:?}", go(target));
        }
        assert_eq!(go("x.png"), Target::Missing);
        assert_eq!(
            go("img/X.png"),
            Target::OtherCase("docs/img/x.png".to_owned())
        );
        assert_eq!(go("../../x.png"), Target::Escapes);
        assert_eq!(go("out.png"), Target::Escapes);
        assert_eq!(go("abs.png"), Target::Escapes);
        assert_eq!(go("loop.png"), Target::Missing);
        assert_eq!(go("file:///tmp/x.png"), Target::Local);
        assert_eq!(go("C:\\x.png"), Target::Local);
        assert_eq!(go("/home/me/x.png"), Target::Local);
        assert_eq!(go("https://img.shields.io/x.svg"), Target::Remote(true));
        assert_eq!(go("//example.com/x.png"), Target::Remote(false));
        assert_eq!(go("{{ site.url }}/x.png"), Target::Computed);
        assert_eq!(go("mailto:a@b.c"), Target::Other);
        assert_eq!(go(""), Target::Other);
        let searched = tree.resolve("guide/index.adoc", "site.png", true, Some("img"));
        assert!(matches!(searched, Target::File { .. }));
    }
}
