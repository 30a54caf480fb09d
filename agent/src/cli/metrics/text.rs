//! The text format of Prometheus: a family after the other, each with what it is.

use std::fmt::Write as _;

use super::{Answered, Output, Transaction};
use crate::checks::{Outcome, Severity};
use crate::machine::State;

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
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

/// The families so far.
struct Text(String);

impl Text {
    /// A family without a sample is explained all the same: whoever reads the file sees what could be there.
    fn family(
        &mut self,
        name: &str,
        kind: &str,
        help: &str,
        samples: impl IntoIterator<Item = String>,
    ) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for sample in samples {
            let _ = writeln!(self.0, "{name}{sample}");
        }
    }

    fn gauge(&mut self, name: &str, help: &str, samples: impl IntoIterator<Item = String>) {
        self.family(name, "gauge", help, samples);
    }
}

fn plain(value: impl std::fmt::Display) -> String {
    format!(" {value}")
}

/// All of it.
pub(super) fn of(output: &Output) -> String {
    let mut text = Text(String::new());
    versions(&mut text, output);
    checks(&mut text, output);
    transaction(&mut text, output.transaction.as_ref());
    text.gauge(
        "gdr_agent_committed",
        "1; the digest of the policy that every boot keeps.",
        output
            .committed
            .iter()
            .map(|c| format!("{{policy=\"{}\"}} 1", label(&c.policy))),
    );
    text.gauge(
        "gdr_agent_last_success_timestamp_seconds",
        "When that policy was proven in a trial, or without one, and committed.",
        output.committed.iter().filter_map(|c| c.time).map(plain),
    );
    text.gauge(
        "gdr_agent_quarantined_policies",
        "Policies that failed on this node and are not tried again by themselves.",
        output.quarantined.map(plain),
    );
    text.gauge(
        "gdr_agent_read_errors",
        "Parts of this output that could not be read; `gdr-agent metrics --format json` names them.",
        [plain(output.errors.len())],
    );
    ports(&mut text, output);
    text.0
}

fn versions(text: &mut Text, output: &Output) {
    text.gauge(
        "gdr_agent_info",
        "1; the agent's version, and what it was built for.",
        [format!(
            "{{version=\"{}\",arch=\"{}\"}} 1",
            output.version,
            std::env::consts::ARCH
        )],
    );
    let of = |value: &Option<String>| label(value.as_deref().unwrap_or("unknown"));
    text.gauge(
        "gdr_agent_node_info",
        "The kernel that runs and the NVIDIA driver that is loaded.",
        [format!(
            "{{kernel=\"{}\",driver=\"{}\"}} 1",
            of(&output.node.kernel),
            of(&output.node.driver)
        )],
    );
}

fn checks(text: &mut Text, output: &Output) {
    let is = |outcome: Outcome, wanted| plain(u8::from(outcome == wanted));
    text.gauge(
        "gdr_agent_verdict",
        "1 if all that the policy requires is met, 0 if it is not or that is not known.",
        [is(output.verdict, Outcome::Met)],
    );
    text.gauge(
        "gdr_agent_verdict_unknown",
        "1 if what was read does not tell.",
        [is(output.verdict, Outcome::Unknown)],
    );
    let sample = |check: &Answered, wanted| {
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
    text.gauge(
        "gdr_agent_check",
        "1 if every answer to a check is met, 0 if one is not or is not known.",
        output.checks.iter().map(|c| sample(c, Outcome::Met)),
    );
    text.gauge(
        "gdr_agent_check_unknown",
        "1 if a check has no answer that failed and one that is not known.",
        output.checks.iter().map(|c| sample(c, Outcome::Unknown)),
    );
}

fn transaction(text: &mut Text, transaction: Option<&Transaction>) {
    let states = transaction.into_iter().flat_map(|now| {
        STATES.map(|state| format!("{{state=\"{state}\"}} {}", u8::from(state == now.state)))
    });
    text.gauge(
        "gdr_agent_transaction_state",
        "1 for the state in which the last transaction is.",
        states,
    );
    text.gauge(
        "gdr_agent_transaction_timestamp_seconds",
        "When that was recorded.",
        transaction.and_then(|t| t.time).map(plain),
    );
    text.gauge(
        "gdr_agent_transaction_reboots",
        "Reboots that were granted to the last transaction.",
        transaction.map(|t| plain(t.reboots)),
    );
    text.gauge(
        "gdr_agent_transaction",
        "The state of the last transaction, and the digest of its policy.",
        transaction
            .and_then(|t| Some((t, t.policy.as_ref()?)))
            .map(|(t, policy)| format!("{{state=\"{}\",policy=\"{}\"}} 1", t.state, label(policy))),
    );
    text.gauge(
        "gdr_agent_waiting_since_timestamp_seconds",
        "Since when a reboot or the end of one is asked for and refused.",
        transaction
            .and_then(|t| Some((t.waiting_since?, t.waiting_for.as_ref()?)))
            .map(|(since, kind)| format!("{{kind=\"{}\"}} {since}", label(kind))),
    );
    text.gauge(
        "gdr_agent_slot_held",
        "Whether the node holds a slot of its FleetLock group.",
        transaction.map(|t| plain(u8::from(t.slot))),
    );
}

fn ports(text: &mut Text, output: &Output) {
    let ports = &output.acs_repairs;
    text.family(
        "gdr_agent_acs_repairs_total",
        "counter",
        "How often ACS redirection came back on a port within a boot and was cleared again.",
        ports
            .iter()
            .map(|p| format!("{{port=\"{}\"}} {}", p.port, p.repairs.repairs)),
    );
    text.gauge(
        "gdr_agent_acs_last_repair_timestamp_seconds",
        "When that last happened.",
        ports
            .iter()
            .filter_map(|p| Some(format!("{{port=\"{}\"}} {}", p.port, p.repairs.last?))),
    );
}
