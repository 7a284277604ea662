//! One regular file of a seal: is it what was checked out, and if not, which blob does it become?

use std::borrow::Cow;

use git2::{ObjectType, Oid};

use super::frame::{Frame, LINK};
use super::walk::Walk;
use super::{ProblemCode, SealError, stored};
use crate::history::{Side, unreadable};
use crate::shown;
use crate::store::StoreError;
use crate::tree::{Traits, to_git, to_worktree};

/// A file is held in memory while it is stored; a larger one does not belong in a repository.
const FILE_LIMIT: u64 = 1 << 30;

/// Where the file is: its name in the folder, and its path from the root.
type Place<'p> = (&'p [u8], &'p [u8]);

impl Walk<'_> {
    pub(super) fn file(
        &mut self,
        frame: &mut Frame,
        (name, path): Place<'_>,
    ) -> Result<(), SealError> {
        let read = self
            .chain
            .enter(&frame.path)
            .and_then(|folder| folder.read(name, FILE_LIMIT));
        let (bytes, facts) = match read {
            Ok(Some(read)) => read,
            Ok(None) => {
                frame.keep(name);
                let message = format!("holds more than {FILE_LIMIT} bytes");
                self.report(path, ProblemCode::TooLarge, message);
                return Ok(());
            }
            Err(error) => {
                frame.keep(name);
                self.report(
                    path,
                    ProblemCode::Unreadable,
                    format!("cannot be read: {error}"),
                );
                return Ok(());
            }
        };
        if facts.st_mode & 0o6000 != 0 {
            self.report(
                path,
                ProblemCode::SetId,
                "would run as another user or group",
            );
        }
        let tracked = frame.tracked(name);
        let mode = self.mode(tracked, facts.st_mode & 0o100 != 0);
        let oid = match tracked {
            Some(base) if self.untouched(base, path, &bytes)? => base.oid,
            _ => self.changed(tracked, path, &bytes)?,
        };
        frame.put(name, Side { oid, mode });
        Ok(())
    }

    /// Where the file system cannot say it, the mode of the base stays.
    fn mode(&self, tracked: Option<Side>, executable: bool) -> u32 {
        match tracked {
            Some(base) if base.mode == LINK && !self.settings.symlinks => LINK,
            Some(base) if base.mode != LINK && !self.settings.file_mode => base.mode,
            _ if executable && self.settings.file_mode => 0o100_755,
            _ => 0o100_644,
        }
    }

    /// Whether the bytes are those that the checkout has written.
    fn untouched(&mut self, base: Side, path: &[u8], bytes: &[u8]) -> Result<bool, SealError> {
        if base.mode == LINK && self.settings.symlinks {
            return Ok(false);
        }
        let traits = self.base_attributes.of(path, self.settings);
        if traits.checked_out_as_is(self.settings) {
            let hashed = Oid::hash_object(ObjectType::Blob, bytes);
            let oid = hashed.map_err(|source| stored(path)(StoreError::Hash { source }))?;
            return Ok(oid == base.oid);
        }
        let blob = self.base_blob(base.oid, path)?;
        Ok(to_worktree(&blob, &traits, self.settings) == bytes)
    }

    /// The blob of a file that is new or was changed.
    fn changed(
        &mut self,
        tracked: Option<Side>,
        path: &[u8],
        bytes: &[u8],
    ) -> Result<Oid, SealError> {
        let now = self.attributes.of(path, self.settings);
        let before = self.base_attributes.of(path, self.settings);
        let text = if self.must_stay_raw(&before, &now, path) {
            Cow::Borrowed(bytes)
        } else {
            let indexed = || {
                tracked
                    .map(|base| self.base_blob(base.oid, path))
                    .transpose()
            };
            to_git(bytes, &now, self.settings, indexed)?
        };
        self.store
            .add(ObjectType::Blob, &text)
            .map_err(stored(path))
    }

    /// A program would have to convert the file: it is stored as it is, and named. An agent can ask for a filter,
    /// but neither have it run nor get rid of one that the base asks for.
    fn must_stay_raw(&mut self, before: &Traits, now: &Traits, path: &[u8]) -> bool {
        let known = |traits: &Traits| {
            let filter = traits.filter.as_deref();
            filter.is_some_and(|name| self.settings.filters.contains(name))
        };
        let raw = known(before) || known(now) || now.encoding;
        if raw || before.filter.is_some() {
            self.unconverted.push(path.to_vec());
        }
        raw
    }

    fn base_blob(&self, oid: Oid, path: &[u8]) -> Result<Vec<u8>, SealError> {
        let blob = self.repo.find_blob(oid).map_err(|source| SealError::Base {
            path: shown(path),
            source: unreadable("blob", oid)(source),
        })?;
        Ok(blob.content().to_vec())
    }
}
