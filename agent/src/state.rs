//! What outlives transactions: the policy that every boot keeps, and the policies that failed.

use gdr_policy::Policy;
use serde::{Deserialize, Serialize};

use crate::journal::Record;
use crate::sys::{Root, SysError, write};

/// The policy that boots keep.
pub const COMMITTED: &str = "/var/lib/gdr-agent/committed.json";

/// The policies that are not tried again by themselves.
pub const QUARANTINE: &str = "/var/lib/gdr-agent/quarantine.json";

/// What the transaction waits for.
pub const WAITING: &str = "/var/lib/gdr-agent/waiting.json";

/// What a transaction waits for, and since when. Only a courtesy: without it, it is asked at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Waiting {
    /// The file's format, 1.
    pub format: u32,
    /// The transaction.
    pub txn: String,
    /// What was asked for: `reboot` or `release`.
    pub wants: String,
    /// The refusal's kind, such as `busy`.
    pub kind: String,
    /// The refusal in words.
    pub text: String,
    /// When it was first refused, seconds since 1970.
    pub since: u64,
    /// How often it was refused since then.
    pub tries: u32,
    /// Not asked again before this, seconds since 1970.
    pub next: u64,
}

impl Waiting {
    /// Whether it still says something about the last record: what a rollback has ended is not waited for.
    #[must_use]
    pub fn concerns(&self, record: &Record, boot_id: &str) -> bool {
        let over = record.txn.state.is_final();
        let outstanding = if self.wants == Self::RELEASE {
            over && (record.work.lock.is_some() || record.txn.awaits_reboot(boot_id))
        } else {
            !over
        };
        outstanding && self.txn == record.txn.id.as_str()
    }

    /// What [`Waiting::wants`] is for a reboot.
    pub const REBOOT: &str = "reboot";
    /// What it is for giving back what a coordinator holds, and for calling a reboot back.
    pub const RELEASE: &str = "release";
}

/// The policy that was proven and that every boot keeps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Committed {
    /// The file's format, 1.
    pub format: u32,
    /// The policy's digest.
    pub digest: String,
    /// The transaction that proved it.
    pub txn: String,
    /// The policy.
    pub policy: Policy,
    /// The kernel arguments that were not there before this agent put them there.
    #[serde(default)]
    pub added: Vec<String>,
}

/// One policy that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quarantined {
    /// Its digest.
    pub digest: String,
    /// The transaction that tried it.
    pub txn: String,
    /// What happened.
    pub reason: String,
    /// When, seconds since 1970.
    pub time: u64,
}

/// The quarantine list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quarantine {
    /// The file's format, 1.
    pub format: u32,
    /// The policies, oldest first.
    pub policies: Vec<Quarantined>,
}

impl Default for Quarantine {
    fn default() -> Self {
        Self {
            format: 1,
            policies: Vec::new(),
        }
    }
}

/// A state file that is there and cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// It cannot be read or written.
    #[error(transparent)]
    Sys(#[from] SysError),
    /// Its content is not what this agent writes.
    #[error("{path} cannot be used: {why}; it was damaged, or written by another version")]
    Content {
        /// The file.
        path: &'static str,
        /// Why.
        why: String,
    },
}

/// The policy that boots keep, if there is one.
///
/// # Errors
/// The file is there and cannot be used.
pub fn committed(root: &Root) -> Result<Option<Committed>, StateError> {
    read(root, COMMITTED)
}

/// The file's bytes.
#[must_use]
pub fn committed_bytes(committed: &Committed) -> Vec<u8> {
    bytes(committed)
}

/// The quarantine list.
///
/// # Errors
/// The file is there and cannot be used.
pub fn quarantine(root: &Root) -> Result<Quarantine, StateError> {
    Ok(read(root, QUARANTINE)?.unwrap_or_default())
}

/// Writes the quarantine list.
///
/// # Errors
/// It cannot be written; the old one is still there then.
pub fn write_quarantine(root: &Root, list: &Quarantine) -> Result<(), SysError> {
    write::replace(root, QUARANTINE, &bytes(list), None)
}

/// What is waited for, if anything.
///
/// # Errors
/// The file is there and cannot be used.
pub fn waiting(root: &Root) -> Result<Option<Waiting>, StateError> {
    read(root, WAITING)
}

/// Writes down what is waited for, or that nothing is.
///
/// # Errors
/// It cannot be written; the old one is still there then.
pub fn write_waiting(root: &Root, waiting: Option<&Waiting>) -> Result<(), SysError> {
    match waiting {
        Some(waiting) => write::replace(root, WAITING, &bytes(waiting), None),
        None => write::remove(root, WAITING),
    }
}

fn read<T: for<'de> Deserialize<'de>>(
    root: &Root,
    path: &'static str,
) -> Result<Option<T>, StateError> {
    let Some(bytes) = root.read_if_there(path)? else {
        return Ok(None);
    };
    serde_json::from_slice(&bytes)
        .map(Some)
        .map_err(|e| StateError::Content {
            path,
            why: e.to_string(),
        })
}

fn bytes(value: &impl Serialize) -> Vec<u8> {
    // These types have no map with keys that are not strings, the one thing that cannot be written.
    let mut bytes = serde_json::to_vec_pretty(value).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}
