//! A link with the name of a source file: what somebody who opens that name will read. Follows links inside the
//! judged tree only, by its entries; what lies outside of it is no part of a delivery.

use std::collections::{HashMap, VecDeque};

use crate::{MODE_LINK, MODE_SUBMODULE, Source, TreeEntry};

/// More links one after the other are a circle, or meant to look like none.
const LONGEST_CHAIN: usize = 40;

/// What a link leads to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// A file of the tree: its path and object id.
    File(String, String),
    /// No file of the tree; as the link names it.
    Nowhere(String),
    /// The link itself could not be had.
    Unreadable,
}

/// Follows the link at `path` whose target is in the blob `oid`.
pub(super) fn follow(path: &str, oid: &str, source: &mut dyn Source) -> Target {
    let Some(named) = source.blob(oid) else {
        return Target::Unreadable;
    };
    let named = String::from_utf8_lossy(&named).into_owned();
    let entries: HashMap<String, TreeEntry> = source
        .entries()
        .into_iter()
        .map(|entry| (entry.path.clone(), entry))
        .collect();
    walk(path, &named, &entries, source).map_or(Target::Nowhere(named), |entry| {
        Target::File(entry.path.clone(), entry.oid.clone())
    })
}

fn walk<'e>(
    path: &str,
    named: &str,
    entries: &'e HashMap<String, TreeEntry>,
    source: &mut dyn Source,
) -> Option<&'e TreeEntry> {
    let mut at: Vec<String> = path.split('/').map(str::to_owned).collect();
    at.pop();
    let mut left = parts(named)?;
    let mut links = 1;
    while let Some(part) = left.pop_front() {
        match part.as_str() {
            "" | "." => continue,
            ".." => {
                at.pop()?;
                continue;
            }
            _ => at.push(part),
        }
        let Some(entry) = entries.get(&at.join("/")) else {
            continue;
        };
        match entry.mode {
            MODE_LINK if links < LONGEST_CHAIN => {
                links += 1;
                let target = source.blob(&entry.oid)?;
                let mut rest = parts(&String::from_utf8_lossy(&target))?;
                rest.append(&mut left);
                left = rest;
                at.pop();
            }
            MODE_LINK | MODE_SUBMODULE => return None,
            // A file has nothing below it.
            _ => return left.is_empty().then_some(entry),
        }
    }
    None
}

/// The components of a link's target; none when it leaves the tree from the start.
fn parts(target: &str) -> Option<VecDeque<String>> {
    (!target.starts_with('/')).then(|| target.split('/').map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MODE_LINK;

    /// Files and links of a tree; the object id is the content.
    struct Tree(&'static [(&'static str, u32, &'static str)]);

    impl Source for Tree {
        fn blob(&mut self, oid: &str) -> Option<Vec<u8>> {
            (oid != "gone").then(|| oid.as_bytes().to_vec())
        }

        fn entries(&mut self) -> Vec<TreeEntry> {
            let entry = |(path, mode, content): &(&str, u32, &str)| TreeEntry {
                path: (*path).to_owned(),
                oid: (*content).to_owned(),
                mode: *mode,
            };
            self.0.iter().map(entry).collect()
        }
    }

    const TREE: &[(&str, u32, &str)] = &[
        ("a.txt", 0o100_644, "A"),
        ("d/b.txt", 0o100_644, "B"),
        ("d/up", MODE_LINK, "../a.txt"),
        ("e", MODE_LINK, "d"),
        ("round", MODE_LINK, "trip"),
        ("trip", MODE_LINK, "round"),
        ("sub", MODE_SUBMODULE, "S"),
    ];

    fn leads(path: &str, to: &str) -> Target {
        follow(path, to, &mut Tree(TREE))
    }

    #[test]
    fn links_lead_to_files_of_the_tree() {
        let file = |path: &str, oid: &str| Target::File(path.to_owned(), oid.to_owned());
        assert_eq!(leads("x.py", "a.txt"), file("a.txt", "A"));
        assert_eq!(leads("d/x.py", "../d/./b.txt"), file("d/b.txt", "B"));
        assert_eq!(leads("x.py", "e/up"), file("a.txt", "A"), "through links");
    }

    #[test]
    fn links_lead_nowhere() {
        for to in [
            "",
            "/dev/null",
            "../a.txt",
            "d",
            "none",
            "a.txt/b",
            "round",
            "sub",
            "sub/a.py",
        ] {
            assert_eq!(leads("x.py", to), Target::Nowhere(to.to_owned()), "{to}");
        }
        assert_eq!(leads("x.py", "gone"), Target::Unreadable);
    }
}
