//! `gdr-agent metrics`: what monitoring reads, in the text format of Prometheus.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Serialize;

use super::status::last;
use super::topology::policy_or_default;
use super::{CliError, Context, Exit};
use crate::acs::repairs::{self, Repairs};
use crate::apply::boot_id;
use crate::checks::{self, Check, Outcome, Severity};
use crate::machine::State;
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
    /// Whether all that the policy requires is met; unknown as well where nothing could be asked.
    verdict: Outcome,
    /// The policy's checks, or those of the default policy where there is none; one for each group, id and severity.
    checks: Vec<Answered>,
    /// Where the last transaction stands; null if the journal could not be read.
    transaction: Option<Transaction>,
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
        quarantined,
        errors,
        acs_repairs: ports.collect(),
    };
    match &args.textfile {
        Some(path) => write::replace(&context.root, path, text(&output).as_bytes(), None)?,
        None => context.out.result(&output, || text(&output))?,
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

/// The policy's checks. No program is run and no process is looked at: this is asked every minute.
fn look(context: &Context) -> Result<(Versions, Vec<Check>), CliError> {
    let policy = policy_or_default(context)?;
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

const STATES: [State; 12] = [
    State::Idle,
    State::Staged,
    State::RebootRequested,
    State::Granted,
    State::Armed,
    State::TrialBooted,
    State::Verified,
    State::Committing,
    State::Committed,
    State::RollingBack,
    State::RolledBack,
    State::Quarantined,
];

/// A label's value.
fn label(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

fn text(output: &Output) -> String {
    let mut text = String::new();
    let mut family = |name: &str, kind: &str, help: &str, samples: Vec<String>| {
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for sample in samples {
            let _ = writeln!(text, "{name}{sample}");
        }
    };
    let version = vec![format!("{{version=\"{}\"}} 1", output.version)];
    family("gdr_agent_info", "gauge", "The agent.", version);
    let of = |value: &Option<String>| label(value.as_deref().unwrap_or("unknown"));
    let node = vec![format!(
        "{{kernel=\"{}\",driver=\"{}\"}} 1",
        of(&output.node.kernel),
        of(&output.node.driver)
    )];
    family(
        "gdr_agent_node_info",
        "gauge",
        "The kernel that runs and the NVIDIA driver that is loaded.",
        node,
    );
    let is = |outcome: Outcome, wanted| format!(" {}", u8::from(outcome == wanted));
    family(
        "gdr_agent_verdict",
        "gauge",
        "1 if all that the policy requires is met, 0 if it is not or that is not known.",
        vec![is(output.verdict, Outcome::Met)],
    );
    family(
        "gdr_agent_verdict_unknown",
        "gauge",
        "1 if what was read does not tell.",
        vec![is(output.verdict, Outcome::Unknown)],
    );
    let checks = |wanted| {
        let sample = |check: &Answered| {
            let severity = match check.severity {
                Severity::Required => "required",
                Severity::Warning => "warning",
                Severity::Note => "note",
            };
            format!(
                "{{group=\"{}\",id=\"{}\",severity=\"{severity}\"}}{}",
                label(&check.group),
                label(&check.id),
                is(check.outcome, wanted)
            )
        };
        output.checks.iter().map(sample).collect()
    };
    family(
        "gdr_agent_check",
        "gauge",
        "1 if every answer to a check is met, 0 if one is not or is not known.",
        checks(Outcome::Met),
    );
    family(
        "gdr_agent_check_unknown",
        "gauge",
        "1 if a check has no answer that failed and one that is not known.",
        checks(Outcome::Unknown),
    );
    let transaction = output.transaction.as_ref();
    family(
        "gdr_agent_transaction_state",
        "gauge",
        "1 for the state in which the last transaction is.",
        transaction.map_or_else(Vec::new, |now| {
            let sample =
                |state: State| format!("{{state=\"{state}\"}} {}", u8::from(state == now.state));
            STATES.into_iter().map(sample).collect()
        }),
    );
    family(
        "gdr_agent_transaction_timestamp_seconds",
        "gauge",
        "When that was recorded.",
        transaction
            .and_then(|t| t.time)
            .map(|time| format!(" {time}"))
            .into_iter()
            .collect(),
    );
    family(
        "gdr_agent_transaction_reboots",
        "gauge",
        "Reboots that were granted to the last transaction.",
        transaction
            .map(|t| format!(" {}", t.reboots))
            .into_iter()
            .collect(),
    );
    family(
        "gdr_agent_transaction",
        "gauge",
        "The state of the last transaction, and the digest of its policy.",
        transaction
            .and_then(|t| Some((t, t.policy.as_ref()?)))
            .map(|(t, policy)| format!("{{state=\"{}\",policy=\"{policy}\"}} 1", t.state))
            .into_iter()
            .collect(),
    );
    family(
        "gdr_agent_waiting_since_timestamp_seconds",
        "gauge",
        "Since when a reboot or the end of one is asked for and refused.",
        transaction
            .and_then(|t| Some((t.waiting_since?, t.waiting_for.as_ref()?)))
            .map(|(since, kind)| format!("{{kind=\"{kind}\"}} {since}"))
            .into_iter()
            .collect(),
    );
    family(
        "gdr_agent_slot_held",
        "gauge",
        "Whether the node holds a slot of its FleetLock group.",
        transaction
            .map(|t| format!(" {}", u8::from(t.slot)))
            .into_iter()
            .collect(),
    );
    family(
        "gdr_agent_quarantined_policies",
        "gauge",
        "Policies that failed on this node and are not tried again by themselves.",
        output
            .quarantined
            .map(|number| format!(" {number}"))
            .into_iter()
            .collect(),
    );
    family(
        "gdr_agent_read_errors",
        "gauge",
        "Parts of this output that could not be read; `gdr-agent metrics --format json` names them.",
        vec![format!(" {}", output.errors.len())],
    );
    let ports = &output.acs_repairs;
    family(
        "gdr_agent_acs_repairs_total",
        "counter",
        "How often ACS redirection came back on a port within a boot and was cleared again.",
        ports
            .iter()
            .map(|p| format!("{{port=\"{}\"}} {}", p.port, p.repairs.repairs))
            .collect(),
    );
    family(
        "gdr_agent_acs_last_repair_timestamp_seconds",
        "gauge",
        "When that last happened.",
        ports
            .iter()
            .filter_map(|p| Some(format!("{{port=\"{}\"}} {}", p.port, p.repairs.last?)))
            .collect(),
    );
    text
}
