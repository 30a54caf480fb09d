//! The texts that a line must hold to be looked at. Everything else in a log is skipped at memory speed.

use aho_corasick::packed;
use memchr::{memchr, memmem};

use crate::record::Kind;

/// What was found, by the text that it begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needle {
    /// A channel's transport.
    Via,
    /// One that stays inside a node; the text is all that a record says about it.
    Inside(Kind),
    /// The word without a record around it.
    Gdrdma,
    /// What an HCA, or a GPU-NIC pair, can do.
    Capability,
    /// `Using network NAME`
    Network,
    /// `NET/Socket : Using [0]eth0`
    SocketUsing,
    /// `NET/IB : ...`: the devices, or that there are none.
    Ib,
    /// `NAME set by environment to VALUE`
    Env,
    /// `NCCL version 2.26.2+cuda12.8`, RCCL's too.
    Version,
    /// vLLM's `nccl==2.20.5`
    PythonVersion,
    /// The number of nodes of a communicator.
    Nodes,
    /// An RDMA work request that failed.
    Completion,
    /// Where NCCL says that something else is wrong.
    Trouble(Trouble),
    /// `DMA-BUF is available on GPU device 0`
    DmaBuf,
}

/// Messages that are a finding as they stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trouble {
    /// The verbs library is not there.
    NoVerbs,
    /// The OFI plugin gave GPUDirect up.
    OfiDisabled,
    /// libfabric's EFA provider found no device.
    EfaEmpty,
    /// Memory could not be registered with the NIC.
    Registration,
    /// The topology file does not fit the node.
    TopologyFile,
    /// RCCL missed `iommu=pt`.
    IommuPt,
    /// RCCL found neither kernel interface.
    NoPeerMemory,
}

/// Longer texts come before those that they begin with. Each is looked for by its first four bytes, so these had better be
/// rare in what NCCL prints: `CCL ` alone is on every line.
const TEXTS: &[(&str, Needle)] = &[
    ("via NET/", Needle::Via),
    ("via COLLNET/", Needle::Via),
    ("via P2P/", Needle::Inside(Kind::P2p)),
    ("via SHM", Needle::Inside(Kind::Shm)),
    ("via direct ", Needle::Via),
    ("GDRDMA", Needle::Gdrdma),
    ("Direct RDMA ", Needle::Capability),
    ("Using network ", Needle::Network),
    ("Using internal Network ", Needle::Network),
    ("NET/Socket : Using [", Needle::SocketUsing),
    ("NET/IB : ", Needle::Ib),
    ("set by environment to ", Needle::Env),
    ("L version ", Needle::Version),
    ("nccl==", Needle::PythonVersion),
    (" nNodes ", Needle::Nodes),
    ("Got completion ", Needle::Completion),
    ("to open libibverbs", Needle::Trouble(Trouble::NoVerbs)),
    ("disabling GDR", Needle::Trouble(Trouble::OfiDisabled)),
    (
        "provider efa output empty list",
        Needle::Trouble(Trouble::EfaEmpty),
    ),
    ("Call to ibv_reg_", Needle::Trouble(Trouble::Registration)),
    (
        "Unable to register memory",
        Needle::Trouble(Trouble::Registration),
    ),
    (
        "busid of node nic not found",
        Needle::Trouble(Trouble::TopologyFile),
    ),
    ("Missing \"iommu=pt\"", Needle::Trouble(Trouble::IommuPt)),
    ("DMA-BUF is available", Needle::DmaBuf),
];

/// Searches for all of them at once.
pub(crate) struct Needles {
    // none where the processor has no vector instructions for it
    packed: Option<packed::Searcher>,
}

impl std::fmt::Debug for Needles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Needles").finish_non_exhaustive()
    }
}

/// One place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hit {
    pub needle: Needle,
    pub start: usize,
    pub end: usize,
}

impl Needles {
    pub(crate) fn new() -> Self {
        let texts = || TEXTS.iter().map(|(text, _)| *text);
        let packed = packed::Config::new()
            .match_kind(packed::MatchKind::LeftmostFirst)
            .builder()
            .extend(texts())
            .build();
        Self { packed }
    }

    /// The first one in `bytes` that begins at `from` or later.
    pub(crate) fn find(&self, bytes: &[u8], from: usize) -> Option<Hit> {
        let Some(packed) = &self.packed else {
            return one_by_one(bytes, from);
        };
        let hit = packed.find_in(bytes, (from..bytes.len()).into())?;
        let (_, needle) = TEXTS.get(hit.pattern().as_usize())?;
        Some(Hit {
            needle: *needle,
            start: hit.start(),
            end: hit.end(),
        })
    }
}

/// The same, slowly: line by line, text by text.
fn one_by_one(bytes: &[u8], mut from: usize) -> Option<Hit> {
    while let Some(rest) = bytes.get(from..).filter(|rest| !rest.is_empty()) {
        let length = memchr(b'\n', rest).map_or(rest.len(), |i| i + 1);
        let line = rest.get(..length)?;
        let hits = TEXTS.iter().filter_map(|(text, needle)| {
            let start = from + memmem::find(line, text.as_bytes())?;
            let end = start + text.len();
            Some(Hit {
                needle: *needle,
                start,
                end,
            })
        });
        // of several that begin at one place, the first in the list
        let first = hits.min_by_key(|hit| hit.start);
        if first.is_some() {
            return first;
        }
        from += length;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A processor without vector instructions must find the same.
    #[test]
    fn both_searchers_find_the_same() {
        let mut text = Vec::new();
        for (i, (needle, _)) in TEXTS.iter().enumerate() {
            text.extend_from_slice(needle.as_bytes());
            text.extend_from_slice(&b"xyz \n"[..i % 5]);
        }
        let fast = Needles::new();
        let slow = Needles { packed: None };
        let all = |needles: &Needles| {
            let mut at = 0;
            let mut found = Vec::new();
            while let Some(hit) = needles.find(&text, at) {
                found.push((hit.start, hit.end, hit.needle));
                at = hit.end;
            }
            found
        };
        assert!(all(&fast).len() >= TEXTS.len());
        assert_eq!(all(&fast), all(&slow));
    }
}
