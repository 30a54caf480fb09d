//! What a log says besides its channels, in bounded memory.

use std::collections::BTreeMap;

use crate::bytes::text;
use crate::evidence::Evidence;
use crate::needles::Trouble;

/// Evidence that is kept for one thing.
const KEPT: usize = 3;
/// Distinct names that are kept of one kind.
const NAMES: usize = 4096;

/// How often, and the first places.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    /// All.
    pub count: u64,
    /// The first three.
    pub first: Vec<Evidence>,
}

impl Seen {
    /// Once more; `evidence` is made only if it is kept.
    pub(crate) fn add(&mut self, evidence: impl FnOnce() -> Evidence) {
        self.count += 1;
        if self.first.len() < KEPT {
            self.first.push(evidence());
        }
    }
}

/// What was said about one HCA of a net.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hca {
    /// The device number in channel records; none if lines differ.
    pub index: Option<u32>,
    /// Lines that say Enabled.
    pub enabled: u64,
    /// Lines that say Disabled.
    pub disabled: u64,
    /// Of the lines that decide what it is shown as.
    pub seen: Seen,
}

/// GPU-NIC pairs whose distance was judged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Distances {
    /// Pairs that are near enough.
    pub enabled: u64,
    /// Pairs that are too far apart.
    pub disabled: Seen,
    /// The largest distance that was too far, with the level that it was held against.
    pub farthest: Option<(u32, u32)>,
    /// All levels were 0: nothing is near enough for that.
    pub level_zero: bool,
}

/// A variable's value, as printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Env {
    /// Up to the next blank, without the full stop behind it.
    pub value: String,
    /// The lines that say so.
    pub seen: Seen,
}

/// What ended an RDMA work request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Completions {
    /// By `ibv_wc_status`.
    pub by_status: BTreeMap<u32, u64>,
    /// The lines that say so.
    pub seen: Seen,
}

/// Everything.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Gathered {
    /// In the order of the log.
    pub versions: Vec<String>,
    /// vLLM's word for it.
    pub python_version: Option<String>,
    /// `Using network NAME`.
    pub networks: BTreeMap<String, Seen>,
    /// `NET/Socket : Using [0]eth0`.
    pub socket_using: Seen,
    /// `NET/IB : No device found`.
    pub no_device: Seen,
    /// By net and name.
    pub hcas: BTreeMap<(String, String), Hca>,
    /// `NET/IB : Using [0]mlx5_0:1/IB`: names by device, none where hosts differ.
    pub devices: BTreeMap<u32, Option<String>>,
    /// GPU-NIC pairs.
    pub distances: Distances,
    /// By name; the last value counts, the first is kept when they differ.
    pub env: BTreeMap<&'static str, Vec<Env>>,
    /// The most nodes of a communicator.
    pub max_nodes: Option<u32>,
    /// A communicator goes over NVLink between nodes.
    pub mnnvl: bool,
    /// RDMA work requests that failed.
    pub completions: Completions,
    /// Messages that are a finding as they stand.
    pub troubles: BTreeMap<Trouble, Seen>,
    /// Lines that say that DMA-BUF is available.
    pub dma_buf: u64,
    /// Anything that NCCL printed.
    pub any: bool,
}

impl Gathered {
    pub(crate) fn version(&mut self, version: &[u8]) {
        let version = text(version);
        if self.versions.len() < 16 && !self.versions.contains(&version) {
            self.versions.push(version);
        }
    }

    pub(crate) fn network(&mut self, name: &[u8], evidence: impl FnOnce() -> Evidence) {
        let name = text(name);
        if self.networks.len() < 64 || self.networks.contains_key(&name) {
            self.networks.entry(name).or_default().add(evidence);
        }
    }

    pub(crate) fn hca(
        &mut self,
        net: &[u8],
        name: &[u8],
        index: u32,
        enabled: bool,
        evidence: impl FnOnce() -> Evidence,
    ) {
        let key = (text(net), text(name));
        if self.hcas.len() >= NAMES && !self.hcas.contains_key(&key) {
            return;
        }
        let hca = self.hcas.entry(key).or_insert_with(|| Hca {
            index: Some(index),
            ..Hca::default()
        });
        if hca.index != Some(index) {
            hca.index = None;
        }
        if enabled {
            hca.enabled += 1;
        } else {
            hca.disabled += 1;
            hca.seen.add(evidence);
        }
    }

    pub(crate) fn device(&mut self, index: u32, name: &[u8]) {
        if self.devices.len() >= NAMES {
            return;
        }
        let name = text(name);
        let known = self
            .devices
            .entry(index)
            .or_insert_with(|| Some(name.clone()));
        if known.as_ref().is_some_and(|known| *known != name) {
            *known = None;
        }
    }

    pub(crate) fn env(
        &mut self,
        name: &'static str,
        value: &[u8],
        evidence: impl FnOnce() -> Evidence,
    ) {
        let value = text(value);
        let values = self.env.entry(name).or_default();
        if let Some(known) = values.iter_mut().find(|known| known.value == value) {
            known.seen.add(evidence);
        } else if values.len() < 8 {
            let mut seen = Seen::default();
            seen.add(evidence);
            values.push(Env { value, seen });
        }
    }

    /// The values of a variable.
    pub fn values(&self, name: &str) -> &[Env] {
        self.env.get(name).map_or(&[], Vec::as_slice)
    }
}
