//! What one unit has measured, for the one that judges it: the unit that may write under /boot has no devices and no network.

use serde::{Deserialize, Serialize};

use super::Measured;
use crate::sys::{Root, SysError, write};

/// On no disk: it says nothing about another boot.
const FILE: &str = "/run/gdr-agent/measured.json";

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Recorded {
    /// The file's format, 1.
    format: u32,
    /// The transaction whose trial runs.
    txn: String,
    /// The boot.
    boot_id: String,
    measured: Vec<Measured>,
}

/// Writes what was measured in this boot for this transaction.
///
/// # Errors
/// The file cannot be written.
pub fn write_record(
    root: &Root,
    txn: &str,
    boot_id: &str,
    measured: &[Measured],
) -> Result<(), SysError> {
    let recorded = Recorded {
        format: 1,
        txn: txn.to_owned(),
        boot_id: boot_id.to_owned(),
        measured: measured.to_vec(),
    };
    let text = serde_json::to_vec(&recorded).map_err(|e| SysError::Refused {
        action: "write",
        path: FILE.into(),
        why: e.to_string(),
    })?;
    write::replace(root, FILE, &text, None)
}

/// What was measured in this boot for this transaction; none if nothing was, or if it cannot be read.
#[must_use]
pub fn recorded(root: &Root, txn: &str, boot_id: &str) -> Option<Vec<Measured>> {
    let bytes = root.read_if_there(FILE).ok().flatten()?;
    let recorded: Recorded = serde_json::from_slice(&bytes).ok()?;
    let now = recorded.format == 1 && recorded.txn == txn && recorded.boot_id == boot_id;
    now.then_some(recorded.measured)
}
