//! What the records add up to.

use std::collections::BTreeSet;

use nccl_log_parser::{Count, Gathered, Kind, Tally, Trouble};
use schemars::JsonSchema;
use serde::Serialize;

/// Whether GPUDirect RDMA is engaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Every network channel has it.
    Engaged,
    /// Some network channels have it, some do not.
    Partial,
    /// No network channel has it, or the log says that none can.
    NotEngaged,
    /// Nothing leaves the node.
    NotApplicable,
    /// The log does not tell.
    Unknown,
}

impl Verdict {
    /// The word, as in JSON.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Engaged => "engaged",
            Self::Partial => "partial",
            Self::NotEngaged => "not-engaged",
            Self::NotApplicable => "not-applicable",
            Self::Unknown => "unknown",
        }
    }

    /// Of network records alone; none if there are none.
    pub(super) fn of(count: Count) -> Option<Self> {
        match (count.total, count.gdr) {
            (0, _) => None,
            (total, gdr) if total == gdr => Some(Self::Engaged),
            (_, 0) => Some(Self::NotEngaged),
            _ => Some(Self::Partial),
        }
    }
}

/// Several logs of one job: what is unknown in one is not made up for by the others being well.
#[must_use]
pub fn combine(verdicts: impl IntoIterator<Item = Verdict>) -> Verdict {
    let all: BTreeSet<Verdict> = verdicts.into_iter().collect();
    let has = |verdict| all.contains(&verdict);
    if has(Verdict::Partial) || has(Verdict::Engaged) && has(Verdict::NotEngaged) {
        Verdict::Partial
    } else if has(Verdict::NotEngaged) {
        Verdict::NotEngaged
    } else if has(Verdict::Unknown) || all.is_empty() {
        Verdict::Unknown
    } else if has(Verdict::Engaged) {
        Verdict::Engaged
    } else {
        Verdict::NotApplicable
    }
}

/// Of a whole log.
pub(super) fn judge(tally: &Tally, gathered: &Gathered) -> Verdict {
    if let Some(verdict) = Verdict::of(tally.net) {
        return verdict;
    }
    if stays_inside(tally, gathered) {
        return Verdict::NotApplicable;
    }
    if socket_chosen(gathered) || none_can(gathered) {
        return Verdict::NotEngaged;
    }
    Verdict::Unknown
}

/// Only P2P and SHM records, and only of one host or of one NVLink domain.
fn stays_inside(tally: &Tally, gathered: &Gathered) -> bool {
    let inside = |kind| matches!(kind, Kind::P2p | Kind::Shm);
    let any = tally.transports.iter().any(|t| inside(t.kind));
    let hosts: BTreeSet<&[u8]> = tally.processes.iter().map(|p| &*p.host).collect();
    let one = hosts.len() <= 1 && gathered.max_nodes.is_none_or(|nodes| nodes <= 1);
    any && (one || gathered.mnnvl)
}

/// Sockets were chosen, and no other net by anybody.
pub(super) fn socket_chosen(gathered: &Gathered) -> bool {
    if gathered.networks.is_empty() {
        // before 2.7 only the device line tells
        return gathered.socket_using.count > 0 && gathered.devices.is_empty();
    }
    gathered.networks.keys().all(|name| name == "Socket")
}

/// Every HCA, or every pair of GPU and NIC, or the plugin as a whole.
fn none_can(gathered: &Gathered) -> bool {
    let hcas = &gathered.hcas;
    let no_hca = !hcas.is_empty() && hcas.values().all(|hca| hca.enabled == 0);
    let distances = &gathered.distances;
    let no_pair = distances.disabled.count > 0 && distances.enabled == 0;
    let some_can = hcas.values().any(|hca| hca.enabled > 0) || distances.enabled > 0;
    let said = |trouble| gathered.troubles.contains_key(&trouble);
    // libfabric asks its providers more than once; who chose another net after that had an answer
    let no_efa = said(Trouble::EfaEmpty) && gathered.networks.keys().all(|name| name == "Socket");
    let plugin = said(Trouble::OfiDisabled) || no_efa;
    no_hca || no_pair || plugin && !some_can
}
