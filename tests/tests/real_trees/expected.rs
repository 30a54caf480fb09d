//! What a file says about the machine that it was written on, without any of the agent's code.

use std::collections::{BTreeMap, BTreeSet};

use gdr_tests::node::layout::Function;

/// The answers that a file implies.
#[derive(Debug, Default)]
pub struct Expected {
    /// NUMA node of each GPU.
    pub gpus: BTreeMap<String, i32>,
    /// NUMA node of each NIC.
    pub nics: BTreeMap<String, i32>,
    /// For each GPU and NIC: how far, and the ports whose ACS decides.
    pub pairs: BTreeMap<(String, String), (&'static str, BTreeSet<String>)>,
}

impl Expected {
    /// Ports that decide on at least one path.
    pub fn ports(&self) -> BTreeSet<String> {
        self.pairs
            .values()
            .flat_map(|(_, ports)| ports.clone())
            .collect()
    }

    /// The distances that occur.
    pub fn kinds(&self) -> BTreeSet<&'static str> {
        self.pairs.values().map(|(kind, _)| *kind).collect()
    }

    /// The devices of the other sort at the best distance.
    pub fn nearest(&self, device: &str) -> BTreeSet<String> {
        let of = |(gpu, nic): &(String, String)| match (gpu == device, nic == device) {
            (true, _) => Some(nic.clone()),
            (_, true) => Some(gpu.clone()),
            _ => None,
        };
        let rank = |kind: &str| {
            ["PIX", "PXB", "PHB", "NODE", "SYS"]
                .iter()
                .position(|k| *k == kind)
        };
        let others: Vec<(String, Option<usize>)> = self
            .pairs
            .iter()
            .filter_map(|(pair, (kind, _))| Some((of(pair)?, rank(kind))))
            .collect();
        let best = others.iter().map(|(_, rank)| *rank).min();
        others
            .into_iter()
            .filter(|(_, rank)| Some(*rank) == best)
            .map(|(other, _)| other)
            .collect()
    }
}

/// A machine to build, and what must be found on it.
#[derive(Debug)]
pub struct Machine {
    pub functions: Vec<Function>,
    pub expected: Expected,
    pub amd: bool,
}
