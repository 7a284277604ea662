//! The event store: append-only rows in `SQLite`, the only truth about tasks. Holds no status and
//! nothing that an agent wrote unchecked. One process writes (the supervisor), everybody reads.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, params};

use crate::event::{Event, Record};
use crate::exit::{Exit, Failure};
use crate::task::TaskId;

/// Each entry is applied once, in order; the count is kept in `user_version`.
const MIGRATIONS: &[&str] = &["CREATE TABLE event (
        seq  INTEGER PRIMARY KEY AUTOINCREMENT,
        at   INTEGER NOT NULL,
        task TEXT NOT NULL,
        kind TEXT NOT NULL,
        body TEXT NOT NULL
    ) STRICT;
    CREATE INDEX event_task ON event (task, seq);"];

/// Why the store could not be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// It does not open.
    #[error("cannot open the event store {}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What `SQLite` said.
        #[source]
        source: rusqlite::Error,
    },
    /// It was made by a newer program.
    #[error("the event store {} has schema {found}, this program knows {known}", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its schema.
        found: usize,
        /// Ours.
        known: usize,
    },
    /// Rows could not be written.
    #[error("cannot record an event of task {task}")]
    Append {
        /// The task.
        task: TaskId,
        /// What `SQLite` said.
        #[source]
        source: rusqlite::Error,
    },
    /// Rows could not be brought to the disk.
    #[error("cannot sync {}", path.display())]
    Flush {
        /// The write-ahead log.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Rows could not be read.
    #[error("cannot read the event store")]
    Read(#[source] rusqlite::Error),
    /// A row that is not an event of this program.
    #[error("event {seq} of the store cannot be understood")]
    Row {
        /// Which.
        seq: u64,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::caused(Exit::Internal, &error)
    }
}

/// An open store.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    /// Where the newest rows are until they are on disk.
    log: PathBuf,
    /// Whether rows wait for the next flush.
    waiting: bool,
}

impl Store {
    /// Opens for writing and brings the schema up to date.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let fail = |source| StoreError::Open {
            path: path.to_owned(),
            source,
        };
        let mut connection = Connection::open(path).map_err(fail)?;
        connection
            .busy_timeout(Duration::from_secs(10))
            .map_err(fail)?;
        connection
            .execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;")
            .map_err(fail)?;
        migrate(&mut connection, path)?;
        Ok(Self {
            connection,
            log: log_of(path),
            waiting: false,
        })
    }

    /// Opens for reading; none when there is no store yet.
    pub fn open_read_only(path: &Path) -> Result<Option<Self>, StoreError> {
        if !path.exists() {
            return Ok(None);
        }
        let fail = |source| StoreError::Open {
            path: path.to_owned(),
            source,
        };
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags).map_err(fail)?;
        connection
            .busy_timeout(Duration::from_secs(10))
            .map_err(fail)?;
        connection
            .execute_batch("PRAGMA query_only = ON;")
            .map_err(fail)?;
        let version = schema(&connection).map_err(fail)?;
        if version > MIGRATIONS.len() {
            return Err(StoreError::Newer {
                path: path.to_owned(),
                found: version,
                known: MIGRATIONS.len(),
            });
        }
        // A store whose maker died before its first migration holds nothing yet.
        Ok((version > 0).then_some(Self {
            connection,
            log: log_of(path),
            waiting: false,
        }))
    }

    /// Records several facts of one task in one transaction. On disk when it returns, with all that was recorded
    /// before, if one of them must be; otherwise with the next one, or with [`Self::flush`].
    pub fn append(
        &mut self,
        at: u64,
        task: &TaskId,
        events: Vec<Event>,
    ) -> Result<Vec<Record>, StoreError> {
        let fail = |source| StoreError::Append {
            task: task.clone(),
            source,
        };
        let lasting = events.iter().any(Event::must_last);
        let level = if lasting { "FULL" } else { "NORMAL" };
        self.connection
            .pragma_update(None, "synchronous", level)
            .map_err(fail)?;
        let transaction = self.connection.transaction().map_err(fail)?;
        let mut records = Vec::with_capacity(events.len());
        for event in events {
            let body = serde_json::to_string(&event).expect("events hold nothing that JSON cannot");
            let seq = transaction
                .prepare_cached("INSERT INTO event (at, task, kind, body) VALUES (?1, ?2, ?3, ?4)")
                .and_then(|mut insert| {
                    insert.insert(params![at.cast_signed(), task.as_str(), event.kind(), body])
                })
                .map_err(fail)?;
            records.push(Record {
                seq: seq.cast_unsigned(),
                at,
                task: task.clone(),
                event,
            });
        }
        transaction.commit().map_err(fail)?;
        self.waiting = !lasting;
        Ok(records)
    }

    /// Brings to the disk whatever has been recorded.
    pub fn flush(&mut self) -> Result<(), StoreError> {
        if !self.waiting {
            return Ok(());
        }
        let synced = File::open(&self.log).and_then(|log| log.sync_all());
        synced.map_err(|source| StoreError::Flush {
            path: self.log.clone(),
            source,
        })?;
        self.waiting = false;
        Ok(())
    }

    /// The events of one task after a position, oldest first.
    pub fn of_task(&self, task: &TaskId, after: u64) -> Result<Vec<Record>, StoreError> {
        self.select(
            "SELECT seq, at, task, body FROM event WHERE task = ?1 AND seq > ?2 ORDER BY seq",
            params![task.as_str(), after.cast_signed()],
        )
    }

    /// All events after a position, oldest first.
    pub fn all(&self, after: u64) -> Result<Vec<Record>, StoreError> {
        self.select(
            "SELECT seq, at, task, body FROM event WHERE seq > ?1 ORDER BY seq",
            params![after.cast_signed()],
        )
    }

    /// The tasks whose id starts with `prefix`, oldest first.
    pub fn tasks(&self, prefix: &str) -> Result<Vec<TaskId>, StoreError> {
        let mut statement = self
            .connection
            .prepare_cached("SELECT task FROM event WHERE kind = 'queued' AND substr(task, 1, length(?1)) = ?1 ORDER BY seq")
            .map_err(StoreError::Read)?;
        let rows = statement
            .query_map(params![prefix], |row| row.get::<_, String>(0))
            .map_err(StoreError::Read)?;
        let mut tasks = Vec::new();
        for row in rows {
            tasks.extend(TaskId::try_from(row.map_err(StoreError::Read)?));
        }
        Ok(tasks)
    }

    fn select(
        &self,
        sql: &str,
        values: &[&dyn rusqlite::ToSql],
    ) -> Result<Vec<Record>, StoreError> {
        let mut statement = self
            .connection
            .prepare_cached(sql)
            .map_err(StoreError::Read)?;
        let mut rows = statement.query(values).map_err(StoreError::Read)?;
        let mut records = Vec::new();
        while let Some(row) = rows.next().map_err(StoreError::Read)? {
            let seq = row
                .get::<_, i64>(0)
                .map_err(StoreError::Read)?
                .cast_unsigned();
            let at = row
                .get::<_, i64>(1)
                .map_err(StoreError::Read)?
                .cast_unsigned();
            let task: String = row.get(2).map_err(StoreError::Read)?;
            let body: String = row.get(3).map_err(StoreError::Read)?;
            let bad = |source| StoreError::Row { seq, source };
            records.push(Record {
                seq,
                at,
                task: serde_json::from_value(task.into()).map_err(bad)?,
                event: serde_json::from_str(&body).map_err(bad)?,
            });
        }
        Ok(records)
    }
}

/// The write-ahead log of a database.
fn log_of(database: &Path) -> PathBuf {
    let mut log = database.as_os_str().to_owned();
    log.push("-wal");
    PathBuf::from(log)
}

fn schema(connection: &Connection) -> rusqlite::Result<usize> {
    let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    Ok(usize::try_from(version).unwrap_or(usize::MAX))
}

fn migrate(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let fail = |source| StoreError::Open {
        path: path.to_owned(),
        source,
    };
    let transaction = connection
        .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)
        .map_err(fail)?;
    let found = schema(&transaction).map_err(fail)?;
    let known = MIGRATIONS.len();
    if found > known {
        return Err(StoreError::Newer {
            path: path.to_owned(),
            found,
            known,
        });
    }
    for migration in MIGRATIONS.iter().skip(found) {
        transaction.execute_batch(migration).map_err(fail)?;
    }
    transaction
        .pragma_update(
            None,
            "user_version",
            i64::try_from(known).unwrap_or(i64::MAX),
        )
        .map_err(fail)?;
    transaction.commit().map_err(fail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> TaskId {
        TaskId::try_from(text.to_owned()).unwrap()
    }

    #[test]
    fn what_is_recorded_is_read_back_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.db");
        assert!(Store::open_read_only(&path).unwrap().is_none());
        let mut store = Store::open(&path).unwrap();
        let first = store
            .append(7, &id("a"), vec![Event::Preparing, Event::Sealing])
            .unwrap();
        store.append(8, &id("b"), vec![Event::Empty]).unwrap();
        let reader = Store::open_read_only(&path).unwrap().unwrap();
        let kinds = |records: Vec<Record>| -> Vec<(u64, &'static str)> {
            records
                .iter()
                .map(|record| (record.at, record.event.kind()))
                .collect()
        };
        assert_eq!(
            kinds(reader.of_task(&id("a"), 0).unwrap()),
            [(7, "preparing"), (7, "sealing")]
        );
        assert_eq!(
            kinds(reader.of_task(&id("a"), first[0].seq).unwrap()),
            [(7, "sealing")]
        );
        assert_eq!(reader.all(0).unwrap().len(), 3);
    }

    #[test]
    fn a_store_of_a_newer_program_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.db");
        drop(Store::open(&path).unwrap());
        let connection = Connection::open(&path).unwrap();
        connection.pragma_update(None, "user_version", 99).unwrap();
        assert!(matches!(
            Store::open(&path),
            Err(StoreError::Newer { found: 99, .. })
        ));
        assert!(matches!(
            Store::open_read_only(&path),
            Err(StoreError::Newer { found: 99, .. })
        ));
    }

    #[test]
    fn a_row_that_is_no_event_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.db");
        let mut store = Store::open(&path).unwrap();
        let row = store.append(1, &id("a"), vec![Event::Preparing]).unwrap();
        let connection = Connection::open(&path).unwrap();
        connection
            .execute("UPDATE event SET body = '{'", [])
            .unwrap();
        let found = store.of_task(&id("a"), 0);
        assert!(matches!(found, Err(StoreError::Row { seq, .. }) if seq == row[0].seq));
    }
}
