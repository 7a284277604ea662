//! What the repository's own configuration says about its format, read before libgit2 opens it.
//! Whatever is unknown is refused by name: a guess would be silently wrong.

use std::path::Path;

use git2::Config;

use super::OpenError;

/// Facts of `<common>/config` that decide whether and how the repository can be used.
#[derive(Debug, Clone, Default)]
pub(crate) struct Format {
    pub(crate) bare: Option<bool>,
    pub(crate) worktree: Option<String>,
    /// Objects may be missing and would have to be fetched.
    pub(crate) partial: bool,
    /// Each checkout may have a `config.worktree` of its own.
    pub(crate) worktree_config: bool,
    extensions: Vec<(String, String)>,
    version: i64,
}

impl Format {
    pub(crate) fn read(common: &Path) -> Result<Self, OpenError> {
        let file = common.join("config");
        if !file.exists() {
            return Ok(Self::default());
        }
        let failed = |source| OpenError::Open {
            path: file.clone(),
            source,
        };
        let config = Config::open(&file).map_err(failed)?;
        let mut format = Self {
            bare: config.get_bool("core.bare").ok(),
            worktree: config.get_string("core.worktree").ok(),
            version: config.get_i64("core.repositoryformatversion").unwrap_or(0),
            ..Self::default()
        };
        let entries = config.entries(None).map_err(failed)?;
        entries
            .for_each(|entry| {
                let (Ok(name), Ok(value)) = (entry.name(), entry.value()) else {
                    return;
                };
                format.note(name, value);
            })
            .map_err(failed)?;
        Ok(format)
    }

    fn note(&mut self, name: &str, value: &str) {
        if let Some(extension) = name.strip_prefix("extensions.") {
            let value = value.to_ascii_lowercase();
            match extension {
                "partialclone" => self.partial = true,
                "worktreeconfig" => self.worktree_config = value != "false",
                _ => {}
            }
            self.extensions.push((extension.to_owned(), value));
        }
        if name.starts_with("remote.") && name.ends_with(".promisor") && value != "false" {
            self.partial = true;
        }
    }

    /// Refuses what cannot be read at all.
    pub(crate) fn refuse_unknown(&self, common: &Path) -> Result<(), OpenError> {
        let refused = |feature: String| OpenError::Unsupported {
            path: common.to_path_buf(),
            feature,
        };
        if self.version > 1 {
            return Err(refused(format!(
                "repository format version {}",
                self.version
            )));
        }
        for (extension, value) in &self.extensions {
            match (extension.as_str(), value.as_str()) {
                (
                    "noop" | "worktreeconfig" | "preciousobjects" | "relativeworktrees"
                    | "partialclone",
                    _,
                )
                | ("objectformat", "sha1")
                | ("refstorage", "files") => {}
                ("objectformat", format) => {
                    return Err(refused(format!("the object format {format}")));
                }
                ("refstorage", storage) => {
                    return Err(refused(format!("the ref storage {storage}")));
                }
                // Version 0 promises nothing about extensions, and git ignores unknown ones there.
                (_, _) if self.version == 0 => {}
                (unknown, _) => return Err(refused(format!("the extension {unknown}"))),
            }
        }
        Ok(())
    }
}
