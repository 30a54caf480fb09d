//! What interrupted work has left among the agent's own files: it is of no use to anybody, and a transaction that never
//! had a record holds space back.

use super::store::DIR;
use crate::machine::TxnId;
use crate::sys::{Entry, EntryKind, Root, SysError, write};

/// Where the agent keeps files besides those of transactions.
const DIRS: [&str; 3] = ["", "/acs", "/tx"];

/// Whether there is anything for [`clear`] to do. Changes nothing.
///
/// # Errors
/// A directory cannot be listed.
pub fn any(root: &Root) -> Result<bool, SysError> {
    for dir in DIRS {
        if root
            .list(&format!("{DIR}{dir}"))?
            .iter()
            .any(write::is_leftover)
        {
            return Ok(true);
        }
    }
    for dir in transactions(root)? {
        let entries = root.list(&dir)?;
        if !has_record(&entries) || entries.iter().any(write::is_leftover) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Removes it. Only under the agent's lock, when nobody else writes there.
///
/// # Errors
/// Something cannot be removed.
pub fn clear(root: &Root) -> Result<(), SysError> {
    for dir in DIRS {
        write::sweep(root, &format!("{DIR}{dir}"))?;
    }
    for dir in transactions(root)? {
        if has_record(&root.list(&dir)?) {
            write::sweep(root, &dir)?;
        } else {
            write::remove_tree(root, &dir)?;
        }
    }
    Ok(())
}

fn transactions(root: &Root) -> Result<Vec<String>, SysError> {
    let entries = root.list(&format!("{DIR}/tx"))?.into_iter();
    let named = entries.filter(|e| e.kind == EntryKind::Dir && e.name.parse::<TxnId>().is_ok());
    Ok(named.map(|e| format!("{DIR}/tx/{}", e.name)).collect())
}

fn has_record(entries: &[Entry]) -> bool {
    entries
        .iter()
        .any(|e| !e.name.starts_with('.') && e.name.ends_with(".rec"))
}
