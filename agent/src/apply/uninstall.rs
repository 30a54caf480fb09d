//! The package goes: nothing stays armed, and after a purge nothing of the agent's stays at all.

use grub_config_parser::grubenv::EnvBlock;

use super::engine::{Engine, EngineError};
use crate::facts::{Facts, grub_dir};
use crate::journal::{DIR, Record};
use crate::machine::{Event, State};
use crate::plan;
use crate::state::{self, Committed};
use crate::sys::{Root, SysError, boot_write, write};

/// What every file that the agent makes for itself says in its first line.
const OURS: &str = "# From the policy of gdr-agent";

impl Engine<'_> {
    /// Ends a transaction that is not final: it is undone, and no reboot is asked for. What is committed
    /// stays. Returns what a person should know.
    ///
    /// # Errors
    /// Something could not be put back; what could be is back, and doing it again goes on from there.
    pub fn end_unfinished(&mut self) -> Result<Vec<String>, EngineError> {
        match self.last() {
            Some(record) if !record.txn.state.is_final() => self.take_back(),
            _ => Ok(Vec::new()),
        }
    }

    /// Undoes every transaction that is remembered, newest first, and removes all that the agent has left.
    /// It can be interrupted anywhere and done again. Returns what a person should know.
    ///
    /// # Errors
    /// Something could not be put back. The journal is still there then, from that transaction on.
    pub fn purge(&mut self) -> Result<Vec<String>, EngineError> {
        let mut said = Vec::new();
        while let Some(record) = self.last() {
            if !matches!(
                record.txn.state,
                State::Idle | State::RolledBack | State::Quarantined
            ) {
                said.extend(self.take_back()?);
            }
            self.journal.forget_last()?;
        }
        strip_boot_files(self.root)?;
        if let Some(committed) = state::committed(self.root)? {
            said.extend(still_in_force(&committed));
        }
        for path in [plan::DROP_IN, plan::MODULES_FILE] {
            said.extend(self.remove_own(path)?);
        }
        write::remove_tree(self.root, DIR)?;
        Ok(said)
    }

    fn take_back(&mut self) -> Result<Vec<String>, EngineError> {
        // A package manager is at work: nobody expects it to reboot the node.
        self.amend("uninstalled", |txn, _| {
            txn.budget.allowed = false;
            txn.denial = None;
        })?;
        self.send(Event::RollbackAsked)?;
        let record = self.record()?;
        if !is_back(record) {
            let why = record.txn.denial.clone().unwrap_or_default();
            return Err(self
                .refused(DIR, &format!("transaction {}: {why}", record.txn.id))
                .into());
        }
        let mut said = record.txn.conflicts.clone();
        if record.txn.on_trial {
            said.push(
                "the command line that runs now is the policy's until the next reboot".to_owned(),
            );
        }
        Ok(said)
    }

    /// A file of ours that no transaction remembers. Only as the agent writes it: what somebody has added
    /// may be what the node boots by.
    fn remove_own(&self, path: &str) -> Result<Option<String>, EngineError> {
        let Some(bytes) = self.root.read_if_there(path)? else {
            return Ok(None);
        };
        let text = String::from_utf8_lossy(&bytes);
        if !as_we_write(path, &text) {
            return Ok(Some(format!(
                "{path} was changed by somebody else and was left alone"
            )));
        }
        write::remove(self.root, path)?;
        if path != plan::DROP_IN {
            return Ok(None);
        }
        let facts = Facts::read(self.root);
        match facts.boot.in_grub_dir("grub.cfg") {
            Some(menu) if self.root.stat(&menu)?.is_some() => self.regenerate_old(&menu),
            _ => Ok(None),
        }
    }
}

/// Takes the hook and its variables away without a journal: GRUB then knows nothing of a trial.
///
/// # Errors
/// A file cannot be read or written.
pub fn strip_boot_files(root: &Root) -> Result<(), SysError> {
    let Some(dir) = grub_dir(root)? else {
        return Ok(());
    };
    // Disarmed first: a hook that is still there has nothing to boot then.
    let path = format!("{dir}/grubenv");
    if let Some(old) = super::arm::env_bytes(root, &path)?
        && EnvBlock::parse(&old).is_ok()
        && let Ok(clean) = plan::env_without(&old)
        && clean != old
    {
        boot_write::amend(root, &path, &old, &clean)?;
    }
    let path = format!("{dir}/custom.cfg");
    let Some(text) = root.read_if_there(&path)? else {
        return Ok(());
    };
    match plan::without_hook(&text) {
        Some(rest) if rest == text => Ok(()),
        Some(rest) => boot_write::replace(root, &path, &rest, None),
        None => boot_write::remove(root, &path),
    }
}

fn is_back(record: &Record) -> bool {
    let txn = &record.txn;
    match txn.state {
        State::RolledBack | State::Quarantined => true,
        // Its files are back; only the reboot to the old line is left.
        State::RollingBack => txn.on_trial && !txn.ready && txn.denial.is_none(),
        _ => false,
    }
}

fn as_we_write(path: &str, text: &str) -> bool {
    let mut lines = text.lines();
    let first = lines.next().is_some_and(|line| line.starts_with(OURS));
    let body = |line: &str| {
        path != plan::DROP_IN
            || line.starts_with("GRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT ")
    };
    first && lines.next().is_some_and(body) && lines.next().is_none()
}

/// The journal keeps a number of transactions; what an older one has put there is known by name only.
fn still_in_force(committed: &Committed) -> Option<String> {
    if committed.added.is_empty() {
        return None;
    }
    Some(format!(
        "an earlier policy's arguments, whose transaction is not remembered any more, may still be in the boot configuration: {}",
        committed.added.join(" ")
    ))
}
