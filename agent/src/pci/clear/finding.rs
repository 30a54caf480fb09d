//! What is worth knowing about ACS on a machine, and what to do about it. Refuses nothing.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Action, Conditions, PortDecision};
use crate::pci::Bdf;
use crate::pci::platform::Need;
use crate::pci::topology::Topology;

/// Something that a person should know, with a stable id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// `acs.data-direct`, `acs.nvidia-cpu`, `acs.virtualised`, `acs.iommu-off` or `acs.no-devices`.
    pub id: String,
    /// The ports that it is about; empty when it is about the machine.
    pub ports: Vec<Bdf>,
    /// What is the matter.
    pub text: String,
    /// What to do.
    pub fix: String,
}

impl Finding {
    fn of_machine(id: &str, text: String, fix: &str) -> Self {
        Self {
            id: id.to_owned(),
            ports: Vec::new(),
            text,
            fix: fix.to_owned(),
        }
    }
}

pub(super) fn findings(
    topology: &Topology,
    ports: &[PortDecision],
    conditions: Conditions,
) -> Vec<Finding> {
    let mut findings: Vec<Finding> = left_alone(topology, ports).collect();
    let redirecting = |port: &&PortDecision| matches!(port.action, Action::Clear | Action::Refused);
    if conditions.iommu == Some(false) && ports.iter().any(|port| redirecting(&port)) {
        let text = "no IOMMU is in use (/sys/class/iommu is empty), so the kernel sets no ACS bits: those that are set are the firmware's";
        let fix = "clearing them helps all the same; turn ACS off in the firmware setup to be rid of them for good";
        findings.push(Finding::of_machine("acs.iommu-off", text.to_owned(), fix));
    }
    let missing = match (topology.gpus.is_empty(), topology.nics.is_empty()) {
        (true, true) => Some("no GPU and no NIC match"),
        (true, false) => Some("no GPU matches"),
        (false, true) => Some("no NIC matches"),
        (false, false) => None,
    };
    findings.extend(missing.map(|missing| {
        let text = format!("{missing} the selectors, so there are no paths");
        let fix = "compare `[devices]` in the policy with `lspci -Dnn`";
        Finding::of_machine("acs.no-devices", text, fix)
    }));
    findings
}

/// One finding for each reason, however many ports it is the reason for.
fn left_alone(topology: &Topology, ports: &[PortDecision]) -> impl Iterator<Item = Finding> {
    let mut by_need: BTreeMap<Need, Vec<Bdf>> = BTreeMap::new();
    let left = ports
        .iter()
        .filter(|port| port.action == Action::LeftAlone)
        .filter_map(|port| Some((port.bdf, *topology.needs_acs.get(&port.bdf)?)));
    for (bdf, need) in left {
        by_need.entry(need).or_default().push(bdf);
    }
    by_need.into_iter().map(|(need, ports)| Finding {
        id: need.id().to_owned(),
        text: format!(
            "of the ports that redirect, {} stay as they are: {}",
            ports.len(),
            need.reason()
        ),
        ports,
        fix: need.fix().to_owned(),
    })
}
