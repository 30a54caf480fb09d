//! `gdr-agent metrics`: what monitoring reads, in the text format of Prometheus.

mod text;

use schemars::JsonSchema;
use serde::Serialize;

use super::status::last;
use super::topology::policy_or_default;
use super::{CliError, Context, Exit};
use crate::acs::repairs::{self, Repairs};
use crate::apply::boot_id;
use crate::checks::{self, Check, Outcome, Severity};
use crate::journal;
use crate::machine::{State, TxnId};
use crate::nccl_log::harmless;
use crate::pci::Bdf;
use crate::state;
use crate::sys::write;
use crate::world::World;

/// Where the metrics go.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Write them to this file in one step, for the textfile collector of node_exporter.
    #[arg(long, value_name = "PATH")]
    textfile: Option<String>,
}

/// The JSON of `metrics`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// `gdr-agent/metrics/v1`
    schema: &'static str,
    /// The agent's version.
    version: &'static str,
    /// What runs.
    node: Versions,
    /// Whether all that the policy requires is met, bandwidth aside; unknown as well where nothing could be asked.
    verdict: Outcome,
    /// The policy's checks, or those of the default policy where there is none; one for each group, id and severity.
    checks: Vec<Answered>,
    /// Where the last transaction stands; null if the journal could not be read.
    transaction: Option<Transaction>,
    /// The policy that every boot keeps; null if there is none, or if that could not be read.
    committed: Option<Committed>,
    /// How many policies failed here and are not tried again by themselves; null if that could not be read.
    quarantined: Option<usize>,
    /// What could not be read: its metrics are missing, or unknown.
    errors: Vec<String>,
    /// Every port that the agent has cleared, in order of addresses.
    acs_repairs: Vec<Port>,
}

/// Versions of what GPUDirect RDMA is made of.
#[derive(Debug, Default, Serialize, JsonSchema)]
struct Versions {
    /// The kernel that runs.
    kernel: Option<String>,
    /// The NVIDIA driver that is loaded.
    driver: Option<String>,
}

/// A check, over all that it is about.
#[derive(Debug, Serialize, JsonSchema)]
struct Answered {
    /// The group that the policy names it by.
    group: String,
    /// The question, by the id of the finding that "no" would be.
    id: String,
    /// How much it matters here.
    severity: Severity,
    /// The worst of its answers: failed before unknown before met.
    outcome: Outcome,
    /// Answers that are met.
    met: u64,
    /// Answers that are not.
    failed: u64,
    /// Questions without an answer.
    unknown: u64,
}

/// Where a transaction stands.
#[derive(Debug, Serialize, JsonSchema)]
struct Transaction {
    /// The state.
    state: State,
    /// When it was recorded, seconds since 1970.
    time: Option<u64>,
    /// Reboots that were granted to it.
    reboots: u32,
    /// The digest of its policy: what a rollout is counted by. Null where there was none.
    policy: Option<String>,
    /// Since when something is asked for and refused, seconds since 1970.
    waiting_since: Option<u64>,
    /// The kind of that refusal.
    waiting_for: Option<String>,
    /// Whether the node holds a slot of a FleetLock server, or may hold one.
    slot: bool,
}

/// The policy that was proven here last.
#[derive(Debug, Serialize, JsonSchema)]
struct Committed {
    /// Its digest.
    policy: String,
    /// When it was committed, seconds since 1970; null once the journal has forgotten that transaction.
    time: Option<u64>,
}

/// A port on which ACS redirection was cleared.
#[derive(Debug, Serialize, JsonSchema)]
struct Port {
    /// Its address.
    port: Bdf,
    /// How often redirection came back within a boot and was cleared again.
    #[serde(flatten)]
    repairs: Repairs,
}

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, CliError> {
    let ports = repairs::read(&context.root)
        .map_err(|e| CliError::new(Exit::Person, "acs-repairs", e.to_string()))?;
    let ports = ports
        .into_iter()
        .map(|(port, repairs)| Port { port, repairs });
    let mut errors = Vec::new();
    // One of these that cannot be read takes none of the others with it.
    let (node, checks) = match look(context) {
        Ok(seen) => seen,
        Err(e) => {
            errors.push(harmless(e.message.as_bytes()));
            (Versions::default(), Vec::new())
        }
    };
    let transaction = match transaction(context) {
        Ok(now) => Some(now),
        Err(e) => {
            errors.push(harmless(e.message.as_bytes()));
            None
        }
    };
    let committed = match committed(context) {
        Ok(committed) => committed,
        Err(e) => {
            errors.push(harmless(e.message.as_bytes()));
            None
        }
    };
    let quarantined = match state::quarantine(&context.root) {
        Ok(list) => Some(list.policies.len()),
        Err(e) => {
            errors.push(harmless(e.to_string().as_bytes()));
            None
        }
    };
    let verdict = match checks.is_empty() {
        true => Outcome::Unknown,
        false => checks::verdict(&checks),
    };
    let output = Output {
        schema: "gdr-agent/metrics/v1",
        version: env!("CARGO_PKG_VERSION"),
        node,
        verdict,
        checks: answered(&checks),
        transaction,
        committed,
        quarantined,
        errors,
        acs_repairs: ports.collect(),
    };
    match &args.textfile {
        Some(path) => write::replace(&context.root, path, text::of(&output).as_bytes(), None)?,
        None => context.out.result(&output, || text::of(&output))?,
    }
    Ok(Exit::Done)
}

fn transaction(context: &Context) -> Result<Transaction, CliError> {
    let Some(record) = last(&context.root)? else {
        return Ok(Transaction {
            state: State::Idle,
            time: None,
            reboots: 0,
            policy: None,
            waiting_since: None,
            waiting_for: None,
            slot: false,
        });
    };
    let waiting = state::waiting(&context.root)?;
    let waiting = waiting.filter(|w| w.concerns(&record, &boot_id(&context.root)));
    Ok(Transaction {
        state: record.txn.state,
        time: Some(record.time),
        reboots: record.txn.budget.used,
        policy: Some(record.txn.digest),
        waiting_since: waiting.as_ref().map(|w| w.since),
        waiting_for: waiting.map(|w| w.kind),
        slot: record.work.lock.is_some(),
    })
}

fn committed(context: &Context) -> Result<Option<Committed>, CliError> {
    let Some(committed) = state::committed(&context.root)? else {
        return Ok(None);
    };
    let id = committed.txn.parse::<TxnId>().ok();
    let record = id.map(|id| journal::last_of(&context.root, &id));
    Ok(Some(Committed {
        policy: committed.digest,
        time: record.transpose()?.flatten().map(|record| record.time),
    }))
}

/// The policy's checks. No program is run and no process is looked at: this is asked every minute.
fn look(context: &Context) -> Result<(Versions, Vec<Check>), CliError> {
    let mut policy = policy_or_default(context)?;
    // nothing is measured here, and "unknown" each minute would be no news
    let group = gdr_policy::CheckGroup::Bandwidth;
    policy.verify.require.retain(|g| *g != group);
    policy.verify.warn.retain(|g| *g != group);
    policy.verify.bandwidth = None;
    let world = World::read(&context.root, &policy)?;
    let word = |text: &String| harmless(text.as_bytes());
    let node = Versions {
        kernel: world.facts.running.release.get().map(word),
        driver: world.facts.gdr.driver.get().map(|d| word(&d.version)),
    };
    Ok((node, world.checks(&policy)))
}

/// A sample for each address would be a series for each, for ever.
fn answered(checks: &[Check]) -> Vec<Answered> {
    let mut all: Vec<Answered> = Vec::new();
    for check in checks {
        let same = |a: &Answered| {
            (a.group.as_str(), a.id.as_str(), a.severity)
                == (check.group.as_str(), check.id.as_str(), check.severity)
        };
        let at = all.iter().position(same).unwrap_or_else(|| {
            all.push(Answered {
                group: check.group.clone(),
                id: check.id.clone(),
                severity: check.severity,
                outcome: Outcome::Met,
                met: 0,
                failed: 0,
                unknown: 0,
            });
            all.len() - 1
        });
        let Some(of_it) = all.get_mut(at) else {
            continue;
        };
        match check.outcome {
            Outcome::Met => of_it.met += 1,
            Outcome::Failed => of_it.failed += 1,
            Outcome::Unknown => of_it.unknown += 1,
        }
        of_it.outcome = match of_it {
            Answered { failed: 1.., .. } => Outcome::Failed,
            Answered { unknown: 1.., .. } => Outcome::Unknown,
            _ => Outcome::Met,
        };
    }
    all
}
