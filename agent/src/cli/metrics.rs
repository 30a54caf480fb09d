//! `gdr-agent metrics`: what monitoring reads, in the text format of Prometheus.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Serialize;

use super::{CliError, Context, Exit};
use crate::acs::repairs::{self, Repairs};
use crate::pci::Bdf;
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
    };
    match &args.textfile {
        Some(path) => write::replace(&context.root, path, text(&output).as_bytes(), None)?,
        None => context.out.result(&output, || text(&output))?,
    }
    Ok(Exit::Done)
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
    text
}
