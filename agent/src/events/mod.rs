//! What happens, told to systemd's journal with an id that does not change and fields that programs can read.
//!
//! `docs/events.md` has the list. Only a running system has a journal of its own, and one that does not take an event
//! has lost nothing but that: the agent's own journal is the record.

mod table;
#[cfg(test)]
mod tests;

pub use table::{EVENTS, Entry, Kind, Priority, find};

use crate::checks::{Check, Outcome, Severity};
use crate::journal::Record;
use crate::machine::State;
use crate::nccl_log::harmless;
use crate::pci::Bdf;
use crate::sys::{Root, journald};

/// Checks of one verification that are told of; the agent's journal has all of them.
const CHECKS: usize = 32;
/// Bytes of one value. With the fields that an event has, it stays far below what one datagram holds.
const VALUE: usize = 2 << 10;

/// One event: names and values, `MESSAGE` first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    fields: Vec<(&'static str, String)>,
}

impl Event {
    fn new(kind: Kind, message: &str) -> Option<Self> {
        let entry = find(kind)?;
        let mut event = Self { fields: Vec::new() };
        event.put("MESSAGE", &harmless(message.as_bytes()));
        event.put("MESSAGE_ID", entry.id);
        event.put("PRIORITY", &(entry.priority as u8).to_string());
        event.put("SYSLOG_IDENTIFIER", "gdr-agent");
        Some(event)
    }

    fn put(&mut self, name: &'static str, value: &str) {
        if value.is_empty() {
            return;
        }
        let cut = (0..=VALUE.min(value.len())).rev();
        let whole = cut.into_iter().find_map(|end| value.get(..end));
        self.fields
            .push((name, whole.unwrap_or_default().to_owned()));
    }

    fn transaction(&mut self, record: &Record) {
        let txn = &record.txn;
        self.put("GDR_TRANSACTION", txn.id.as_str());
        self.put("GDR_STATE", txn.state.name());
        self.put("GDR_POLICY", &txn.digest);
        self.put("GDR_BOOT_ID", &txn.boot_id);
    }

    /// The fields in the order in which they are sent.
    #[must_use]
    pub fn fields(&self) -> &[(&'static str, String)] {
        &self.fields
    }
}

/// A transaction entered the state of its last record, from `before`.
#[must_use]
pub fn entered(record: &Record, before: State) -> Option<Event> {
    let txn = &record.txn;
    let failure = txn.failure.as_ref();
    let why = failure.map_or(String::new(), |f| format!(": {}", f.text));
    let message = format!("transaction {} is {}{why}", txn.id, txn.state);
    let mut event = Event::new(Kind::Entered(txn.state), &message)?;
    event.transaction(record);
    event.put("GDR_STATE_BEFORE", before.name());
    event.put("GDR_EVENT", &record.event);
    if let Some(failure) = failure {
        event.put("GDR_REASON", &failure.text);
    }
    Some(event)
}

/// The required checks that are not met, as many as are told of.
#[must_use]
pub fn not_met(record: &Record, checks: &[Check]) -> Vec<Event> {
    let bad = checks
        .iter()
        .filter(|c| c.severity == Severity::Required && c.outcome != Outcome::Met);
    bad.take(CHECKS)
        .filter_map(|check| {
            let (word, outcome) = match check.outcome {
                Outcome::Unknown => ("is not known", "unknown"),
                _ => ("is not met", "failed"),
            };
            let message = format!("{} {word} on {}", check.id, check.subject);
            let mut event = Event::new(Kind::CheckNotMet, &message)?;
            event.transaction(record);
            event.put("GDR_FINDING", &check.id);
            event.put("GDR_CHECK", &check.group);
            event.put("GDR_OUTCOME", outcome);
            event.put("GDR_SUBJECT", &check.subject);
            event.put("GDR_EVIDENCE", &check.evidence.join("\n"));
            event.put("GDR_FIX", check.fix.as_deref().unwrap_or_default());
            Some(event)
        })
        .collect()
}

/// ACS redirection came back on a port and was cleared again.
#[must_use]
pub fn acs_came_back(port: Bdf, boot_id: &str) -> Option<Event> {
    let message = format!("ACS redirection had come back on {port} and was cleared again");
    let mut event = Event::new(Kind::AcsCameBack, &message)?;
    event.put("GDR_PORT", &port.to_string());
    event.put("GDR_BOOT_ID", boot_id);
    Some(event)
}

/// Tells the journal of the running system. Another root has none, and none is waited for.
pub fn tell(root: &Root, events: impl IntoIterator<Item = Event>) {
    if !root.is_live() {
        return;
    }
    for event in events {
        if let Err(e) = journald::send(journald::SOCKET.as_ref(), event.fields()) {
            tracing::debug!("the journal was not told: {e}");
            return;
        }
    }
}
