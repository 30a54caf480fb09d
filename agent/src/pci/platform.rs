//! Ports whose ACS must stay as it is, because GPUDirect works *through* it there.

use std::collections::{HashMap, HashSet};

use super::tree::{NodeId, Role, Tree};

const NVIDIA: u16 = 0x10de;
const MELLANOX: u16 = 0x15b3;
/// The second PCI Express function of a ConnectX-8, through which Data Direct reaches GPU memory.
const DATA_DIRECT: u16 = 0x2100;

/// For each bridge that must be left alone, the reason.
///
/// - Below the root ports of NVIDIA CPUs (Grace and its successors) peer traffic has to go through
///   the SMMU: `rdma_topo` of rdma-core sets redirect bits there.
/// - The switch of a ConnectX adapter with Data Direct needs a mixture of bits, different per port.
#[must_use]
pub fn bridges_that_need_acs(tree: &Tree<'_>) -> HashMap<NodeId, String> {
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
    let reason = |node: NodeId| {
        let root = top(node)?;
        let is_root_port = tree
            .node(root)
            .is_some_and(|node| node.role == Role::RootPort);
        if data_direct.contains(&root) {
            return Some("a ConnectX Data Direct function shares this root port and needs ACS");
        }
        (is_root_port && id(root).is_some_and(|(vendor, _)| vendor == NVIDIA))
            .then_some("it is below a root port of an NVIDIA CPU, where GPUDirect needs ACS")
    };
    tree.nodes()
        .filter(|(_, node)| node.role.is_bridge())
        .filter_map(|(node, _)| reason(node).map(|why| (node, why.to_owned())))
        .collect()
}
