//! `gdr-agent status`

use gdr_policy::AfterFailure;
use schemars::JsonSchema;
use serde::Serialize;

use super::output::{paint, style};
use super::{CliError, Context, Exit};
use crate::apply::boot_id;
use crate::journal::{Journal, Record};
use crate::machine::{Budget, Failure, State};
use crate::plain::counted;
use crate::state;
use crate::sys::{Root, clock};

/// The JSON of `status`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// `gdr-agent/status/v1`
    schema: &'static str,
    /// Where the last transaction stands.
    #[serde(flatten)]
    status: Status,
}

/// Where a transaction stands.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct Status {
    /// The state.
    state: State,
    /// The transaction.
    txn: Option<String>,
    /// The digest of its policy.
    digest: Option<String>,
    /// How it ended, in a word: `committed`, `rolled-back`, `quarantined`; none while it runs.
    outcome: Option<String>,
    /// What happens next, in words.
    next: String,
    /// Why it was rolled back.
    failure: Option<Failure>,
    /// The same in words.
    reason: Option<String>,
    /// What the coordinator last said against a reboot.
    denial: Option<String>,
    /// What is waited for, since when, and when it is asked again.
    waiting: Option<Waiting>,
    /// The slot of a FleetLock server that this node holds, or may hold.
    slot: Option<Slot>,
    /// The required checks that were not met.
    unmet: Vec<String>,
    /// Files that somebody else changed and that were left alone.
    conflicts: Vec<String>,
    /// Packages that it has installed, or begun to. No rollback takes them out.
    packages: Vec<String>,
    /// Reboots.
    reboots: Option<Budget>,
    /// When the last step was recorded, seconds since 1970.
    time: Option<u64>,
}

/// Something that was asked for and refused.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct Waiting {
    /// What was asked for: `reboot` or `release`.
    wants: String,
    /// The kind of the refusal: `denied`, `busy`, `unreachable`, `not-permitted`, `protocol` or `record`.
    kind: String,
    /// The refusal in words.
    text: String,
    /// When it was first refused, seconds since 1970.
    since: u64,
    /// How often since then.
    tries: u32,
    /// Not asked again before this, seconds since 1970.
    next: u64,
}

/// A slot of a FleetLock server.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct Slot {
    /// The server's base URL.
    url: String,
    /// The group.
    group: String,
    /// Who this node is to the server.
    id: String,
    /// Whether the server said yes; else it was only asked.
    held: bool,
    /// Since when, seconds since 1970.
    since: u64,
}

impl Status {
    /// The status of a record, with what its root says it waits for.
    pub(super) fn of(root: &Root, record: &Record) -> Self {
        let mut status = Self::of_record(record);
        let waiting = state::waiting(root).ok().flatten();
        let ours = waiting.filter(|w| w.concerns(record, &boot_id(root)));
        status.waiting = ours.map(|w| Waiting {
            wants: w.wants,
            kind: w.kind,
            text: w.text,
            since: w.since,
            tries: w.tries,
            next: w.next,
        });
        status
    }

    fn of_record(record: &Record) -> Self {
        let txn = &record.txn;
        let outcome = match txn.state {
            State::Committed => Some("committed"),
            State::RolledBack => Some("rolled-back"),
            State::Quarantined => Some("quarantined"),
            _ => None,
        };
        Self {
            state: txn.state,
            txn: Some(txn.id.to_string()),
            digest: Some(txn.digest.clone()),
            outcome: outcome.map(str::to_owned),
            next: next(record),
            failure: txn.failure.clone(),
            reason: txn.failure.as_ref().map(|f| f.text.clone()),
            denial: txn.denial.clone(),
            waiting: None,
            slot: record.work.lock.as_ref().map(|lock| Slot {
                url: lock.url.to_string(),
                group: lock.group.to_string(),
                id: lock.id.clone(),
                held: lock.held,
                since: lock.since,
            }),
            unmet: record.work.unmet.clone(),
            conflicts: txn.conflicts.clone(),
            packages: record.work.packages.clone(),
            reboots: Some(txn.budget),
            time: Some(record.time),
        }
    }

    fn idle() -> Self {
        Self {
            state: State::Idle,
            txn: None,
            digest: None,
            outcome: None,
            next: "nothing; no policy was applied yet".to_owned(),
            failure: None,
            reason: None,
            denial: None,
            waiting: None,
            slot: None,
            unmet: Vec::new(),
            conflicts: Vec::new(),
            packages: Vec::new(),
            reboots: None,
            time: None,
        }
    }
}

fn output(root: &Root, record: Option<&Record>) -> Output {
    Output {
        schema: "gdr-agent/status/v1",
        status: record.map_or_else(Status::idle, |record| Status::of(root, record)),
    }
}

/// The JSON for everybody on the machine: without the words of programs and servers, and without what was read from
/// files. The state directory is root's alone, and a name and a password for a repository may be in an error's text.
pub(super) fn public(root: &Root) -> Result<String, CliError> {
    const ROOT: &str = "`gdr-agent status` says more to root";
    let mut output = output(root, last(root)?.as_ref());
    let status = &mut output.status;
    let reason = status.reason.take();
    status.reason = reason.map(|_| ROOT.to_owned());
    if let Some(failure) = &mut status.failure {
        ROOT.clone_into(&mut failure.text);
    }
    if let Some(waiting) = &mut status.waiting {
        ROOT.clone_into(&mut waiting.text);
    }
    status.denial = None;
    status.slot = None;
    for list in [
        &mut status.unmet,
        &mut status.conflicts,
        &mut status.packages,
    ] {
        list.clear();
    }
    serde_json::to_string(&output).map_err(|e| CliError::new(Exit::Internal, "json", e.to_string()))
}

pub(super) fn run(context: &Context) -> Result<Exit, CliError> {
    let record = last(&context.root)?;
    let exit = record.as_ref().map_or(Exit::Done, exit);
    let output = output(&context.root, record.as_ref());
    context.out.result(&output, || text(&output.status))?;
    Ok(exit)
}

/// Whether a failed trial holds its slot until a person lets it go.
fn held(record: &Record) -> bool {
    let server = record.work.policy.reboot.fleetlock.as_ref();
    record.work.lock.is_some() && server.is_some_and(|s| s.failed == AfterFailure::Hold)
}

/// A span of time, as exact as people want it.
fn span(secs: u64) -> String {
    match (secs / 86_400, secs / 3600 % 24, secs / 60 % 60, secs % 60) {
        (0, 0, 0, s) => format!("{s} s"),
        (0, 0, m, _) => format!("{m} min"),
        (0, h, m, _) => format!("{h} h {m} min"),
        (d, h, ..) => format!("{d} d {h} h"),
    }
}

/// The last record of a root's journal.
pub(super) fn last(root: &Root) -> Result<Option<Record>, CliError> {
    Ok(Journal::open(root)?.last().cloned())
}

/// The exit code for where a transaction stands.
pub(super) fn exit(record: &Record) -> Exit {
    let txn = &record.txn;
    match txn.state {
        State::Idle | State::Committed => Exit::Done,
        State::Staged | State::RebootRequested
            if txn.trial && txn.budget.allowed && !txn.budget.open() =>
        {
            Exit::Person
        }
        State::Staged | State::RebootRequested | State::Granted | State::Armed => Exit::Outstanding,
        State::TrialBooted | State::Verified | State::Committing => Exit::Outstanding,
        State::RollingBack if txn.on_trial && !txn.granted && !txn.budget.open() => Exit::Person,
        State::RollingBack | State::Quarantined => Exit::RolledBack,
        State::RolledBack => Exit::Done,
    }
}

fn next(record: &Record) -> String {
    let txn = &record.txn;
    let budget = txn.budget;
    let text = match txn.state {
        State::Idle => "nothing",
        State::Staged if !txn.ready => {
            "the changes are being made; after an interruption they are taken back at the next boot"
        }
        State::Staged | State::RebootRequested if budget.allowed && !budget.open() => {
            return format!(
                "of the policy's reboots ({}) none is left: raise `reboot.max` or reboot by hand",
                budget.max
            );
        }
        State::Staged if txn.trial => {
            "nothing until a reboot is asked for: `gdr-agent apply --reboot`"
        }
        State::Staged => "the changes are judged",
        State::RebootRequested => "the reboot is asked for again until it is granted",
        State::Granted => "at the coming reboot GRUB is told to boot the new command line once",
        State::Armed => "the next boot is the trial",
        State::TrialBooted => "the trial is verified, then committed or rolled back",
        State::Verified | State::Committing => "the new command line becomes the default",
        State::Committed => "nothing; the policy is in force at every boot",
        State::RollingBack if txn.on_trial && txn.granted => {
            "the granted reboot boots the known-good entry"
        }
        State::RollingBack if txn.on_trial && budget.open() => {
            "a reboot into the known-good entry is asked for every minute"
        }
        State::RollingBack if txn.on_trial => {
            "the files are as before; reboot to leave the trial's command line"
        }
        State::RollingBack => "the changes are taken back",
        State::RolledBack if !record.work.packages.is_empty() => {
            "nothing; everything is as before but for the packages, which stay"
        }
        State::RolledBack => "nothing; everything is as before",
        State::Quarantined if held(record) => {
            "nothing; the slot is held so that the rollout stops: `gdr-agent rollback` gives it back"
        }
        State::Quarantined => {
            "nothing; this policy is not tried again until it changes or `apply --retry`"
        }
    };
    text.to_owned()
}

pub(super) fn text(status: &Status) -> String {
    let colour = match status.state {
        State::Committed | State::Idle => style::GOOD,
        State::Quarantined | State::RollingBack => style::BAD,
        _ => style::WARN,
    };
    let mut rows = vec![("state", paint(colour, status.state.name()))];
    let mut row = |name, value: &Option<String>| {
        if let Some(value) = value {
            rows.push((name, crate::plan::printable(value.as_bytes())));
        }
    };
    row("transaction", &status.txn);
    row("policy", &status.digest);
    row("because", &status.reason);
    row("refused", &status.denial);
    row(
        "reboots",
        &status.reboots.map(|b| format!("{} of {}", b.used, b.max)),
    );
    row("next", &Some(status.next.clone()));
    let now = clock::unix_now();
    row(
        "waiting",
        &status.waiting.as_ref().map(|w| {
            let again = match w.next.saturating_sub(now) {
                0 => "asked again within a minute".to_owned(),
                left => format!("asked again in {}", span(left)),
            };
            let times = counted(w.tries as usize, "time");
            format!(
                "for {} (`{}`, refused {times}), {again}",
                span(now.saturating_sub(w.since)),
                w.kind
            )
        }),
    );
    row(
        "slot",
        &status.slot.as_ref().map(|slot| {
            let held = if slot.held { "held" } else { "asked for" };
            format!(
                "{held} since {}, group `{}` of {}, as {}",
                span(now.saturating_sub(slot.since)),
                slot.group,
                slot.url,
                slot.id
            )
        }),
    );
    let mut text: String = rows
        .iter()
        .map(|(name, value)| format!("{name:12} {value}\n"))
        .collect();
    for (name, lines) in [
        ("not met", &status.unmet),
        ("left alone", &status.conflicts),
        ("packages", &status.packages),
    ] {
        for line in lines {
            text.push_str(&format!(
                "{name:12} {}\n",
                crate::plan::printable(line.as_bytes())
            ));
        }
    }
    text
}
