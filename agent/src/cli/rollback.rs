//! `gdr-agent rollback`

use schemars::JsonSchema;
use serde::Serialize;

use super::status::{self, Status};
use super::{CliError, Context, Exit, apply};
use crate::machine::{Event, State};

/// The JSON of `rollback`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// `gdr-agent/rollback/v1`
    schema: &'static str,
    /// Whether this run changed anything.
    changed: bool,
    /// Whether the command line that runs is still the one that was taken back.
    reboot_required: bool,
    /// Where the transaction stands.
    status: Status,
}

pub(super) fn run(context: &Context) -> Result<Exit, CliError> {
    apply::needs_root(context, "rollback")?;
    let nothing = || {
        CliError::new(
            Exit::Done,
            "nothing",
            "there is no transaction to roll back",
        )
    };
    // Looking first keeps a run with nothing to do from leaving a lock file behind.
    let before = status::last(&context.root)?.ok_or_else(nothing)?;
    let over = matches!(before.txn.state, State::RolledBack | State::Quarantined);
    let mut record = before.clone();
    if !over {
        let mut engine = context.engine("rollback")?;
        engine.send(Event::RollbackAsked)?;
        record = engine.last().cloned().ok_or_else(nothing)?;
    }
    // A slot that a failed trial holds is a person's to let go.
    if over && record.work.lock.is_some() {
        let mut engine = context.engine("rollback")?;
        engine.free()?;
        record = engine.last().cloned().ok_or_else(nothing)?;
    }
    let exit = match record.txn.state {
        State::RolledBack | State::Quarantined if record.txn.conflicts.is_empty() => Exit::Done,
        State::RollingBack if record.txn.on_trial => Exit::Outstanding,
        _ => Exit::Person,
    };
    let output = Output {
        schema: "gdr-agent/rollback/v1",
        changed: !over,
        reboot_required: record.txn.on_trial && record.txn.state == State::RollingBack,
        status: Status::of(&context.root, &record),
    };
    context
        .out
        .result(&output, || status::text(&output.status))?;
    Ok(exit)
}
