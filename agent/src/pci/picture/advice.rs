//! What to do about what the picture shows, in sentences.

use std::collections::BTreeSet;

use super::state::State;
use crate::pci::Bdf;
use crate::pci::path::PathKind;
use crate::pci::topology::{Bridge, Topology};

/// A paragraph with the commands that go with it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Advice {
    pub state: State,
    pub text: String,
    /// Each with what it does.
    pub commands: Vec<(&'static str, &'static str)>,
    /// Ports or devices, each with a reason where there is one.
    pub list: Vec<String>,
}

/// All of it, worst first; never empty.
pub(super) fn advice(topology: &Topology) -> Vec<Advice> {
    let mut all = Vec::new();
    all.extend(redirecting(topology));
    all.extend(left_alone(topology));
    all.extend(unknown(topology));
    all.extend(far(topology));
    if all.is_empty() {
        let paths = topology.paths.len();
        all.push(if paths == 0 {
            plain(
                State::Unknown,
                "There is no GPU-NIC path to judge. If there should be one, look at the selectors in the policy's [devices] table.",
            )
        } else {
            plain(
                State::Direct,
                "Nothing: no port redirects, and everything that decides was read.",
            )
        });
    }
    all
}

fn plain(state: State, text: &str) -> Advice {
    Advice {
        state,
        text: text.to_owned(),
        commands: Vec::new(),
        list: Vec::new(),
    }
}

fn on_paths(topology: &Topology, state: State) -> impl Iterator<Item = &Bridge> {
    let bridges = topology.bridges.iter();
    bridges.filter(move |bridge| bridge.on_paths > 0 && State::of_port(bridge) == state)
}

/// Why a port is not to be cleared.
fn keep(bridge: &Bridge) -> Option<String> {
    if let Some(why) = &bridge.needs_acs {
        return Some(why.clone());
    }
    let guests: Vec<String> = bridge
        .passthrough_below
        .iter()
        .map(Bdf::to_string)
        .collect();
    (!guests.is_empty()).then(|| format!("handed to a virtual machine: {}", guests.join(", ")))
}

fn redirecting(topology: &Topology) -> Option<Advice> {
    let ports: Vec<String> = on_paths(topology, State::Redirected)
        .filter(|bridge| keep(bridge).is_none())
        .map(|bridge| format!("{} {}", bridge.bdf, bridge.role.words()))
        .collect();
    (!ports.is_empty()).then(|| Advice {
        state: State::Redirected,
        text: format!(
            "Ports on GPU-NIC paths that redirect: {}. RR, CR or EC is set in their ACS control word, so peer traffic \
             goes up to the root complex instead of straight through. Clearing these bits also ends the isolation \
             between what is below these ports: right for bare metal, wrong where devices are handed to virtual machines.",
            ports.len()
        ),
        commands: vec![
            ("gdr-agent acs show", "each port, its bits, and what would be done"),
            ("gdr-agent acs clear", "clears only these bits, only on these ports, until the next reboot; old values are saved"),
            ("gdr-agent acs restore", "puts the old values back"),
            ("gdr-agent apply", "with `[acs] scope = \"paths\"` in the policy: clears them again at every boot"),
        ],
        list: ports,
    })
}

fn left_alone(topology: &Topology) -> Option<Advice> {
    let list: Vec<String> = on_paths(topology, State::Redirected)
        .filter_map(|bridge| Some(format!("{}: {}", bridge.bdf, keep(bridge)?)))
        .collect();
    (!list.is_empty()).then(|| Advice {
        list,
        ..plain(
            State::Redirected,
            "These ports redirect, and their ACS is to stay as it is:",
        )
    })
}

fn unknown(topology: &Topology) -> Option<Advice> {
    let paths = topology.paths.iter();
    let list: BTreeSet<String> = paths.filter_map(|path| path.unknown.clone()).collect();
    (!list.is_empty()).then(|| Advice {
        commands: vec![("sudo gdr-agent topology", "on the node itself, as root")],
        list: list.into_iter().collect(),
        ..plain(
            State::Unknown,
            "Whether some paths are redirected is unknown, which is not the same as fine. Configuration space that ends \
             at byte 64 was not read as root; at byte 256, this kernel does not reach extended configuration space: look \
             for MMCONFIG or ECAM in its log and in the firmware's settings. What stands in the way first:",
        )
    })
}

/// NCCL's default limit for GPUDirect RDMA is PXB.
fn far(topology: &Topology) -> Option<Advice> {
    let near = |gpu: Bdf| {
        let mut paths = topology.paths.iter().filter(|path| path.gpu == gpu);
        paths.any(|path| path.kind <= PathKind::Pxb)
    };
    let list: Vec<String> = topology
        .gpus
        .iter()
        .filter(|gpu| !topology.nics.is_empty() && !near(gpu.bdf))
        .map(|gpu| gpu.bdf.to_string())
        .collect();
    (!list.is_empty()).then(|| Advice {
        list,
        ..plain(
            State::Aside,
            "No NIC shares a switch with these GPUs, and beyond PXB NCCL does not use GPUDirect RDMA unless \
             NCCL_NET_GDR_LEVEL says so. Moving a card helps; a setting rarely does.",
        )
    })
}
