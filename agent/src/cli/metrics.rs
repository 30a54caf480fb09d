//! `gdr-agent metrics`: what monitoring reads, in the text format of Prometheus.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Serialize;

use super::{CliError, Context, Exit, status};
use crate::acs::repairs::{self, Repairs};
use crate::machine::State;
use crate::pci::Bdf;
use crate::state;
use crate::sys::write;

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
    /// Every port that the agent has cleared, in order of addresses.
    acs_repairs: Vec<Port>,
    /// The last transaction, if there was one.
    transaction: Option<Transaction>,
    /// How many policies failed here and are not tried again by themselves.
    quarantined: usize,
}

/// Where the last transaction stands, for a rollout's failure budget.
#[derive(Debug, Serialize, JsonSchema)]
struct Transaction {
    /// Its state.
    state: State,
    /// The digest of its policy: what a rollout is counted by.
    policy: String,
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
    let output = Output {
        schema: "gdr-agent/metrics/v1",
        version: env!("CARGO_PKG_VERSION"),
        acs_repairs: ports.collect(),
        transaction: transaction(context)?,
        quarantined: state::quarantine(&context.root)?.policies.len(),
    };
    match &args.textfile {
        Some(path) => write::replace(&context.root, path, text(&output).as_bytes(), None)?,
        None => context.out.result(&output, || text(&output))?,
    }
    Ok(Exit::Done)
}

fn transaction(context: &Context) -> Result<Option<Transaction>, CliError> {
    let Some(record) = status::last(&context.root)? else {
        return Ok(None);
    };
    let waiting = state::waiting(&context.root)?;
    let waiting = waiting.filter(|w| w.concerns(&record));
    Ok(Some(Transaction {
        state: record.txn.state,
        policy: record.txn.digest,
        waiting_since: waiting.as_ref().map(|w| w.since),
        waiting_for: waiting.map(|w| w.kind),
        slot: record.work.lock.is_some(),
    }))
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
    let transaction = output.transaction.as_ref();
    family(
        "gdr_agent_transaction",
        "gauge",
        "The state of the last transaction, and the digest of its policy.",
        transaction
            .iter()
            .map(|t| format!("{{state=\"{}\",policy=\"{}\"}} 1", t.state, t.policy))
            .collect(),
    );
    family(
        "gdr_agent_waiting_since_timestamp_seconds",
        "gauge",
        "Since when a reboot or the end of one is asked for and refused.",
        transaction
            .iter()
            .filter_map(|t| {
                let (since, kind) = (t.waiting_since?, t.waiting_for.as_ref()?);
                Some(format!("{{kind=\"{kind}\"}} {since}"))
            })
            .collect(),
    );
    family(
        "gdr_agent_slot_held",
        "gauge",
        "Whether the node holds a slot of its FleetLock group.",
        transaction
            .iter()
            .map(|t| format!(" {}", u8::from(t.slot)))
            .collect(),
    );
    family(
        "gdr_agent_quarantined_policies",
        "gauge",
        "Policies that failed on this node and are not tried again by themselves.",
        vec![format!(" {}", output.quarantined)],
    );
    text
}
