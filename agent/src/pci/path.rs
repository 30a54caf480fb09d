//! The way between a GPU and a NIC: how far it is, and through which ports peer traffic must pass
//! unredirected.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::config::Found;
use super::tree::{Node, NodeId, Tree};

/// Distance in the words of NCCL and `nvidia-smi topo`, nearest first.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum PathKind {
    /// One switch at most.
    #[serde(rename = "PIX")]
    Pix,
    /// Several switches, not leaving the tree below one root port.
    #[serde(rename = "PXB")]
    Pxb,
    /// Through one host bridge.
    #[serde(rename = "PHB")]
    Phb,
    /// Between host bridges of one NUMA node.
    #[serde(rename = "NODE")]
    Node,
    /// Between NUMA nodes.
    #[serde(rename = "SYS")]
    Sys,
}

impl std::fmt::Display for PathKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Pix => "PIX",
            Self::Pxb => "PXB",
            Self::Phb => "PHB",
            Self::Node => "NODE",
            Self::Sys => "SYS",
        })
    }
}

/// One GPU-NIC path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// How far.
    pub kind: PathKind,
    /// The ports that decide, from the GPU up to the common ancestor and down to the NIC.
    pub ports: Vec<NodeId>,
    /// Bridges of any kind strictly below the common ancestor, on both branches.
    pub hops: usize,
    /// True if one port redirects, `None` if none does but one cannot be read.
    pub redirected: Option<bool>,
    /// Why `redirected` is `None`.
    pub unknown: Option<String>,
}

/// What one port does to peer traffic: `None` when that cannot be read.
#[must_use]
pub fn port_redirects(node: &Node<'_>) -> Option<bool> {
    match &node.decoded.acs {
        Found::Present(acs) => Some(acs.redirects()),
        // Without the capability there is nothing that could redirect.
        Found::Absent => Some(false),
        Found::Unknown(_) => None,
    }
}

/// The way between two functions.
///
/// The ports that matter are root ports and switch downstream ports strictly below the closest
/// common ancestor. Upstream ports forward everything, and the ancestor itself is where the traffic
/// turns: its own redirect bits concern traffic that passes *it*. Functions of one device are the
/// exception: there the device's own ACS decides, so the two functions take the ports' place.
#[must_use]
pub fn route(tree: &Tree<'_>, gpu: NodeId, nic: NodeId) -> Option<Route> {
    let up_from_gpu: Vec<(NodeId, &Node<'_>)> = tree.upward(gpu).collect();
    let up_from_nic: Vec<(NodeId, &Node<'_>)> = tree.upward(nic).collect();
    let (_, gpu_node) = up_from_gpu.first()?;
    let (_, nic_node) = up_from_nic.first()?;
    let shared = up_from_gpu
        .iter()
        .rev()
        .zip(up_from_nic.iter().rev())
        .take_while(|((a, _), (b, _))| a == b)
        .count();
    let one_host = gpu_node.host == nic_node.host;

    // The branches, each with its endpoint first and the common ancestor left out.
    let gpu_branch = up_from_gpu.get(..up_from_gpu.len().checked_sub(shared)?)?;
    let nic_branch = up_from_nic.get(..up_from_nic.len().checked_sub(shared)?)?;
    let gpu_bridges = gpu_branch.get(1..).unwrap_or_default();
    let nic_bridges = nic_branch.get(1..).unwrap_or_default();
    let kind = if shared > 0 {
        if gpu_bridges.len() <= 1 && nic_bridges.len() <= 1 {
            PathKind::Pix
        } else {
            PathKind::Pxb
        }
    } else if one_host {
        PathKind::Phb
    } else if same_numa_node(tree, gpu_node, nic_node) {
        PathKind::Node
    } else {
        PathKind::Sys
    };

    let mut ports: Vec<(NodeId, &Node<'_>)> = gpu_bridges
        .iter()
        .chain(nic_bridges.iter().rev())
        .filter(|(_, node)| node.role.redirects_peers())
        .copied()
        .collect();
    if gpu_node.parent == nic_node.parent && gpu_node.bdf.same_device(nic_node.bdf) {
        ports.extend([(gpu, *gpu_node), (nic, *nic_node)]);
    }
    let gaps = gpu_branch
        .iter()
        .chain(nic_branch)
        .filter_map(|(_, node)| node.gap.clone());
    let unread = ports
        .iter()
        .filter_map(|(_, node)| match &node.decoded.acs {
            Found::Unknown(why) => Some(format!("{}: {why}", node.bdf)),
            Found::Present(_) | Found::Absent => None,
        });
    let unknown = gaps.chain(unread).next();
    let redirects = ports
        .iter()
        .any(|(_, node)| port_redirects(node) == Some(true));
    Some(Route {
        kind,
        hops: gpu_bridges.len() + nic_bridges.len(),
        ports: ports.into_iter().map(|(id, _)| id).collect(),
        redirected: match (redirects, &unknown) {
            (true, _) => Some(true),
            (false, None) => Some(false),
            (false, Some(_)) => None,
        },
        unknown: unknown.filter(|_| !redirects),
    })
}

/// Firmware that says nothing (-1 everywhere, or no file) means one node; a machine where some
/// functions have a node and these do not is not guessed to be near.
fn same_numa_node(tree: &Tree<'_>, gpu: &Node<'_>, nic: &Node<'_>) -> bool {
    let said = |node: &Node<'_>| node.function.and_then(|f| f.numa_node).filter(|n| *n >= 0);
    match (said(gpu), said(nic)) {
        (Some(a), Some(b)) => a == b,
        (None, None) => !tree.numa_known(),
        _ => false,
    }
}
