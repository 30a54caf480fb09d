//! What perftest measured, as answers.

use super::Seen;
use crate::bandwidth::judge;
use crate::checks::bandwidth::line;
use crate::checks::{Answer, Outcome};

const LOW: &str = "bandwidth.low";

pub(super) fn ask(seen: &Seen) -> Vec<Answer> {
    if seen.runs.is_empty() {
        return Vec::new();
    }
    let min = seen.node.policy.verify.bandwidth.as_ref();
    let link = link(seen);
    let ceiling = link.as_ref().map(|(gbps, from)| (*gbps, from.as_str()));
    let judged = judge(seen.runs, min.map(|b| b.min_gbps), ceiling);
    let mut answers: Vec<Answer> = judged.findings.into_iter().filter_map(Answer::of).collect();
    if judged.verdict == Outcome::Met {
        let mut met = Answer::met(LOW, "perftest", "");
        met.evidence = seen.runs.iter().filter_map(line).collect();
        met.evidence
            .extend(link.map(|(gbps, from)| format!("{from} is {gbps:.0} Gb/s")));
        answers.push(met);
    }
    answers
}

/// What the link of the NIC can carry that all outputs name; of several ports the slowest that is up.
fn link(seen: &Seen) -> Option<(f64, String)> {
    let mut names = seen.runs.iter().map(|run| run.about.device.as_deref());
    let name = names.next()??;
    if names.any(|other| other != Some(name)) {
        return None;
    }
    let devices = seen.node.more.known().devices?;
    let device = devices.iter().find(|device| device.name == name)?;
    let ports = device.ports.iter().filter(|port| port.active == Some(true));
    let rates = ports.filter_map(|port| Some((port.gbps?, port.number)));
    let (gbps, port) = rates.min_by(|a, b| a.0.total_cmp(&b.0))?;
    Some((
        gbps,
        format!("/sys/class/infiniband/{name}/ports/{port}/rate"),
    ))
}
