//! Where records lie and how they are added.

use super::record::{self, DecodeError, FORMAT, Record, Work};
use crate::machine::{Txn, TxnId};
use crate::sys::{EntryKind, Root, SysError, write};

/// The agent's state directory.
pub const DIR: &str = "/var/lib/gdr-agent";

/// Transactions that are kept for people to look at.
const KEEP: usize = 8;

/// Held back at the beginning, given up when the disk is full: the end of a transaction must
/// always fit.
const RESERVE: usize = 256 << 10;

/// The journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Reading or writing failed.
    #[error(transparent)]
    Sys(#[from] SysError),
    /// A record is damaged.
    #[error("the journal record {path} cannot be used: {why}")]
    Damaged {
        /// Which one.
        path: String,
        /// Why.
        why: DecodeError,
    },
    /// A record could not be put into bytes.
    #[error("a journal record cannot be written: {0}")]
    Encode(#[from] serde_json::Error),
    /// There is no transaction to add to.
    #[error("there is no transaction")]
    Empty,
}

/// The journal of a root, open at its last transaction.
#[derive(Debug)]
pub struct Journal<'r> {
    root: &'r Root,
    last: Option<Record>,
}

impl<'r> Journal<'r> {
    /// Opens the journal and reads the last record of the last transaction.
    ///
    /// # Errors
    /// It cannot be read, or the last record is damaged.
    pub fn open(root: &'r Root) -> Result<Self, JournalError> {
        for dir in transactions(root)?.iter().rev() {
            // A crash between making the directory and the first record leaves it empty.
            if let Some(last) = last_record(root, dir)? {
                return Ok(Self {
                    root,
                    last: Some(last),
                });
            }
        }
        Ok(Self { root, last: None })
    }

    /// The last record, if there ever was a transaction.
    #[must_use]
    pub fn last(&self) -> Option<&Record> {
        self.last.as_ref()
    }

    /// A fresh transaction's name.
    ///
    /// # Errors
    /// The directory cannot be listed, or the kernel gave no random bytes.
    pub fn new_id(&self) -> Result<TxnId, JournalError> {
        let last = transactions(self.root)?
            .last()
            .and_then(|d| d.parse::<TxnId>().ok())
            .map_or(0, |id| id.seq());
        let random = self
            .root
            .random::<4>()
            .map_err(|e| self.error("name a transaction in", DIR, e))?;
        Ok(TxnId::new(last.saturating_add(1), random))
    }

    /// Begins a transaction with its first record.
    ///
    /// # Errors
    /// Nothing of it can be written.
    pub fn begin(&mut self, txn: Txn, work: Work) -> Result<(), JournalError> {
        write::make_private_dir(self.root, DIR)?;
        write::make_private_dir(self.root, &format!("{DIR}/tx"))?;
        self.forget_old()?;
        let dir = dir_of(&txn.id);
        let before = self.last.take();
        let begun = write::make_private_dir(self.root, &dir)
            .and_then(|()| {
                write::replace(
                    self.root,
                    &format!("{dir}/reserve"),
                    &vec![0; RESERVE],
                    None,
                )
            })
            .map_err(JournalError::from)
            .and_then(|()| self.put(txn, work, "begin"));
        if begun.is_err() {
            self.last = before;
            // The first error is the one to tell; an empty directory is ignored when it stays.
            let _ = self.forget(&dir);
        }
        begun
    }

    /// Adds a record; when this returns, it is durable.
    ///
    /// # Errors
    /// It cannot be written; the last record is then still the one before.
    pub fn append(&mut self, txn: Txn, work: Work, event: &str) -> Result<(), JournalError> {
        if self.last.is_none() {
            return Err(JournalError::Empty);
        }
        self.put(txn, work, event)
    }

    fn put(&mut self, txn: Txn, work: Work, event: &str) -> Result<(), JournalError> {
        let seq = self.last.as_ref().map_or(0, |r| r.seq) + 1;
        let dir = dir_of(&txn.id);
        let agent = env!("CARGO_PKG_VERSION").to_owned();
        let event = event.chars().take(200).collect();
        let record = Record {
            format: FORMAT,
            seq,
            time: self.root.unix_now(),
            agent,
            event,
            txn,
            work,
        };
        self.write(
            &dir,
            &format!("{dir}/{seq:06}.rec"),
            &record::encode(&record)?,
        )?;
        self.last = Some(record);
        Ok(())
    }

    /// Stores a pre-image and returns the name under which [`Journal::blob`] finds it.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn save_blob(&self, bytes: &[u8]) -> Result<String, JournalError> {
        let last = self.last.as_ref().ok_or(JournalError::Empty)?;
        let dir = dir_of(&last.txn.id);
        let name = format!("pre-{:06}-{:04}", last.seq, last.work.intents.len());
        self.write(&dir, &format!("{dir}/{name}"), bytes)?;
        Ok(name)
    }

    /// Keeps what a program has said; returns where.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn save_log(&self, name: &str, bytes: &[u8]) -> Result<String, JournalError> {
        let last = self.last.as_ref().ok_or(JournalError::Empty)?;
        let dir = dir_of(&last.txn.id);
        let path = format!("{dir}/{name}-{:06}.log", last.seq);
        self.write(&dir, &path, bytes)?;
        Ok(path)
    }

    /// Reads a pre-image back.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn blob(&self, name: &str) -> Result<Vec<u8>, JournalError> {
        let last = self.last.as_ref().ok_or(JournalError::Empty)?;
        Ok(self
            .root
            .read(&format!("{}/{name}", dir_of(&last.txn.id)))?)
    }

    fn write(&self, dir: &str, path: &str, bytes: &[u8]) -> Result<(), JournalError> {
        let private = write::Attributes {
            mode: 0o600,
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
        };
        match write::replace(self.root, path, bytes, Some(private)) {
            Err(e) if e.kind() == "disk-full" => {
                write::remove(self.root, &format!("{dir}/reserve"))?;
                Ok(write::replace(self.root, path, bytes, Some(private))?)
            }
            result => Ok(result?),
        }
    }

    /// Old transactions go, and the space that ended ones still hold back.
    fn forget_old(&self) -> Result<(), JournalError> {
        let all = transactions(self.root)?;
        let old = all.len().saturating_sub(KEEP - 1);
        for (at, name) in all.iter().enumerate() {
            let dir = format!("{DIR}/tx/{name}");
            if at >= old {
                write::remove(self.root, &format!("{dir}/reserve"))?;
                continue;
            }
            self.forget(&dir)?;
        }
        Ok(())
    }

    /// Removes the last transaction; the one before it is then the last.
    ///
    /// # Errors
    /// It cannot be removed, or the one before cannot be read.
    pub fn forget_last(&mut self) -> Result<(), JournalError> {
        if let Some(last) = &self.last {
            self.forget(&dir_of(&last.txn.id))?;
        }
        self.last = Self::open(self.root)?.last;
        Ok(())
    }

    fn forget(&self, dir: &str) -> Result<(), JournalError> {
        for entry in self.root.list(dir)? {
            write::remove(self.root, &format!("{dir}/{}", entry.name))?;
        }
        Ok(write::remove_dir(self.root, dir)?)
    }

    fn error(&self, action: &'static str, path: &str, source: std::io::Error) -> JournalError {
        SysError::File {
            action,
            path: self.root.outside(path),
            source,
        }
        .into()
    }
}

/// The last record of a transaction that need not be the last one; none once it is forgotten.
///
/// # Errors
/// It cannot be read, or is damaged.
pub fn last_of(root: &Root, id: &TxnId) -> Result<Option<Record>, JournalError> {
    last_record(root, id.as_str())
}

fn dir_of(id: &TxnId) -> String {
    format!("{DIR}/tx/{id}")
}

fn transactions(root: &Root) -> Result<Vec<String>, SysError> {
    let entries = root.list(&format!("{DIR}/tx"))?;
    let named = entries
        .into_iter()
        .filter(|e| e.kind == EntryKind::Dir && e.name.parse::<TxnId>().is_ok());
    Ok(named.map(|e| e.name).collect())
}

fn last_record(root: &Root, name: &str) -> Result<Option<Record>, JournalError> {
    let dir = format!("{DIR}/tx/{name}");
    let entries = root.list(&dir)?;
    // Names sort as numbers do: they are padded. Temporary files do not end in `.rec`.
    let last = entries
        .iter()
        .rfind(|e| !e.name.starts_with('.') && e.name.ends_with(".rec"));
    let Some(entry) = last else { return Ok(None) };
    let path = format!("{dir}/{}", entry.name);
    let bytes = root.read(&path)?;
    match record::decode(&bytes) {
        Ok(record) => Ok(Some(record)),
        Err(why) => Err(JournalError::Damaged { path, why }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::record::tests::sample;

    fn txn(id: TxnId) -> Txn {
        Txn { id, ..sample().txn }
    }

    fn work() -> Work {
        sample().work
    }

    #[test]
    fn the_last_record_of_the_last_transaction_counts() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(dir.path()).unwrap();
        let mut journal = Journal::open(&root).unwrap();
        assert!(journal.last().is_none());
        for n in 1..=10_u32 {
            let id = journal.new_id().unwrap();
            assert_eq!(id.seq(), n);
            journal.begin(txn(id.clone()), work()).unwrap();
            let mut next = txn(id);
            next.ready = true;
            journal.append(next, work(), "staged").unwrap();
        }
        let again = Journal::open(&root).unwrap();
        let last = again.last().unwrap();
        assert_eq!((last.txn.id.seq(), last.seq, last.txn.ready), (10, 2, true));
        assert_eq!(transactions(&root).unwrap().len(), 8);
    }

    #[test]
    fn damage_is_an_error_and_leftovers_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(dir.path()).unwrap();
        let mut journal = Journal::open(&root).unwrap();
        let id = journal.new_id().unwrap();
        journal.begin(txn(id.clone()), work()).unwrap();
        let tx = format!("{DIR}/tx/{id}");
        write::replace(
            &root,
            &format!("{tx}/.gdr-agent-tmp.1.000002.rec"),
            b"half",
            None,
        )
        .unwrap();
        write::make_private_dir(&root, &format!("{DIR}/tx/ffffffff00000001")).unwrap();
        assert_eq!(Journal::open(&root).unwrap().last().unwrap().seq, 1);
        write::replace(
            &root,
            &format!("{tx}/000002.rec"),
            b"gdr-agent-journal crc32c=0 len=2\n{}",
            None,
        )
        .unwrap();
        let error = Journal::open(&root).unwrap_err().to_string();
        assert!(
            error.contains("000002.rec") && error.contains("checksum"),
            "{error}"
        );
    }

    #[test]
    fn blobs_come_back() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(dir.path()).unwrap();
        let mut journal = Journal::open(&root).unwrap();
        assert!(matches!(journal.save_blob(b"x"), Err(JournalError::Empty)));
        let id = journal.new_id().unwrap();
        journal.begin(txn(id), work()).unwrap();
        let name = journal.save_blob(b"old bytes\0").unwrap();
        assert_eq!(journal.blob(&name).unwrap(), b"old bytes\0");
    }
}
