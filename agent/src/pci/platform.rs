//! Ports whose ACS must stay as it is, because GPUDirect works *through* it there, or because guests
//! rely on it.

use std::collections::{BTreeMap, HashSet};

use super::Bdf;
use super::config::Found;
use super::tree::{Node, NodeId, Role, Tree};

const NVIDIA: u16 = 0x10de;
const MELLANOX: u16 = 0x15b3;
/// The second PCI Express function of a ConnectX-8, through which Data Direct reaches GPU memory.
const DATA_DIRECT: u16 = 0x2100;
/// Device ids of ConnectX adapters; BlueFields are 0xa2xx.
const CONNECTX: std::ops::RangeInclusive<u16> = 0x1000..=0x10ff;

/// Why a port is left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Need {
    /// The switch of a ConnectX adapter with Data Direct needs a mixture of bits, different per port.
    DataDirect,
    /// Below the root ports of NVIDIA CPUs (Grace and its successors) peer traffic has to go through
    /// the SMMU.
    NvidiaCpu,
    /// A ConnectX NIC offers ATS, which its firmware does only when somebody has switched it on: the
    /// host hands devices to guests, and their translated requests pass ACS that is on.
    Virtualised,
}

impl Need {
    /// The finding's id; stays the same for ever.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Self::DataDirect => "acs.data-direct",
            Self::NvidiaCpu => "acs.nvidia-cpu",
            Self::Virtualised => "acs.virtualised",
        }
    }

    /// What is the matter, of one port.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::DataDirect => {
                "a ConnectX Data Direct function shares this root port and needs ACS"
            }
            Self::NvidiaCpu => {
                "it is below a root port of an NVIDIA CPU, where GPUDirect needs ACS"
            }
            Self::Virtualised => {
                "a NIC offers ATS, as on hosts of virtual machines: ACS isolates the guests, and translated requests pass it"
            }
        }
    }

    /// What to do instead.
    #[must_use]
    pub const fn fix(self) -> &'static str {
        match self {
            Self::DataDirect | Self::NvidiaCpu => {
                "compare with `rdma_topo check` of rdma-core, which knows the bits that each port needs here; once it is content, \
                 `acs.scope = \"keep\"` says that they are right"
            }
            Self::Virtualised => {
                "for guests, set ACS Direct Translated P2P on the port above the NIC (`rdma_topo check` of rdma-core shows which \
                 bits); on a node without guests, switch ATS off (mlxconfig set ATS_ENABLED=false) and reset the NIC"
            }
        }
    }
}

/// For each function that must be left alone, the reason. `nics` are the selected NICs.
///
/// The classes are those of `rdma_topo` of rdma-core, which sets redirect bits there. Guests are a
/// matter of the whole machine, the other two of what shares a root port.
#[must_use]
pub fn functions_that_need_acs(tree: &Tree<'_>, nics: &[NodeId]) -> BTreeMap<Bdf, Need> {
    let id = |node: NodeId| {
        let function = tree.node(node).and_then(|node| node.function)?;
        Some((function.vendor?, function.device?))
    };
    let top = |from: NodeId| tree.upward(from).last().map(|(top, _)| top);
    let data_direct: HashSet<NodeId> = tree
        .nodes()
        .filter(|(node, _)| id(*node) == Some((MELLANOX, DATA_DIRECT)))
        .filter_map(|(node, _)| top(node))
        .collect();
    let virtualised = nics
        .iter()
        .filter_map(|nic| tree.node(*nic))
        .any(offers_translation);
    let need = |node: NodeId| {
        let root = top(node)?;
        let is_root_port = tree
            .node(root)
            .is_some_and(|node| node.role == Role::RootPort);
        if data_direct.contains(&root) {
            return Some(Need::DataDirect);
        }
        if is_root_port && id(root).is_some_and(|(vendor, _)| vendor == NVIDIA) {
            return Some(Need::NvidiaCpu);
        }
        virtualised.then_some(Need::Virtualised)
    };
    tree.nodes()
        .filter_map(|(id, node)| need(id).map(|need| (node.bdf, need)))
        .collect()
}

/// BlueFields and other vendors' NICs may have the capability whether it is used or not, so it says
/// nothing there.
fn offers_translation(nic: &Node<'_>) -> bool {
    let connectx = nic.function.is_some_and(|function| {
        function.vendor == Some(MELLANOX)
            && function.device.is_some_and(|id| CONNECTX.contains(&id))
    });
    connectx && matches!(nic.decoded.ats, Found::Present(_))
}
