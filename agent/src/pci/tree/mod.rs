//! The tree of PCI functions: which bridge each hangs from, up to its host bridge.
//!
//! A function's resolved sysfs path names all its ancestors. Where the directory is a plain one (a
//! copied or made-up tree), the bus numbers in the bridges' configuration space tell instead.
//! Whatever is missing in between is kept as missing: a path through a gap is never called clean.

use std::collections::HashMap;

use super::config::{Decoded, Found, Header, PortType};
use super::{Bdf, RawFunction};

mod build;

/// Index of a node in its [`Tree`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(u32);

impl NodeId {
    fn index(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

/// A host bridge, by the root bus below it: `pci0000:16` in sysfs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Host {
    /// PCI domain.
    pub domain: u32,
    /// Number of the root bus.
    pub bus: u8,
}

impl std::fmt::Display for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "pci{:04x}:{:02x}", self.domain, self.bus)
    }
}

/// What a function is to the traffic that passes it.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// A device function.
    Endpoint,
    /// Root port.
    RootPort,
    /// Upstream port of a switch.
    UpstreamPort,
    /// Downstream port of a switch.
    DownstreamPort,
    /// A bridge to or from conventional PCI.
    PciBridge,
}

impl Role {
    /// True for the ports whose ACS decides about peer traffic.
    #[must_use]
    pub const fn redirects_peers(self) -> bool {
        matches!(self, Self::RootPort | Self::DownstreamPort)
    }

    /// True for everything that has a bus below it.
    #[must_use]
    pub const fn is_bridge(self) -> bool {
        !matches!(self, Self::Endpoint)
    }

    /// In words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Endpoint => "endpoint",
            Self::RootPort => "root port",
            Self::UpstreamPort => "switch upstream port",
            Self::DownstreamPort => "switch downstream port",
            Self::PciBridge => "PCI bridge",
        }
    }
}

/// One function, or a port that a path names but that was not listed.
#[derive(Debug)]
pub struct Node<'a> {
    /// Its address.
    pub bdf: Bdf,
    /// What was read; `None` when only a path mentions it.
    pub function: Option<&'a RawFunction>,
    /// Its decoded configuration space.
    pub decoded: Decoded,
    /// What it is.
    pub role: Role,
    /// True when configuration space did not say the role and the place in the tree did.
    pub role_inferred: bool,
    /// The bridge above; `None` right below the host bridge.
    pub parent: Option<NodeId>,
    /// The host bridge at the top.
    pub host: Host,
    /// Bridges above.
    pub depth: u32,
    /// Why the ports between this function and `parent` are not all known.
    pub gap: Option<String>,
}

/// All functions of a machine.
#[derive(Debug)]
pub struct Tree<'a> {
    nodes: Vec<Node<'a>>,
    by_bdf: HashMap<Bdf, NodeId>,
    numa_known: bool,
}

impl<'a> Tree<'a> {
    /// Builds the tree. Takes time linear in the number of functions; duplicates of an address are
    /// ignored after the first.
    #[must_use]
    pub fn build(functions: &'a [RawFunction]) -> Self {
        build::build(functions)
    }

    /// The node with this address.
    #[must_use]
    pub fn find(&self, bdf: Bdf) -> Option<NodeId> {
        self.by_bdf.get(&bdf).copied()
    }

    /// A node.
    ///
    /// An id of another tree gives `None`.
    #[must_use]
    pub fn node(&self, id: NodeId) -> Option<&Node<'a>> {
        self.nodes.get(id.index())
    }

    /// All nodes in order of their addresses.
    pub fn nodes(&self) -> impl Iterator<Item = (NodeId, &Node<'a>)> {
        (0_u32..).map(NodeId).zip(&self.nodes)
    }

    /// True if the firmware gave at least one function a NUMA node.
    #[must_use]
    pub const fn numa_known(&self) -> bool {
        self.numa_known
    }

    /// A node and its ancestors, bottom up.
    pub fn upward(&self, from: NodeId) -> impl Iterator<Item = (NodeId, &Node<'a>)> {
        let first = self.node(from).map(|node| (from, node));
        std::iter::successors(first, |(_, node)| {
            node.parent
                .and_then(|parent| self.node(parent).map(|above| (parent, above)))
        })
    }
}

/// What configuration space, or failing that the class, says about a function's role.
///
/// `None` is a bridge of a kind that its place must tell.
fn own_role(function: Option<&RawFunction>, decoded: &Decoded, has_children: bool) -> Option<Role> {
    if let Found::Present(express) = &decoded.express {
        return match express.port {
            PortType::RootPort => Some(Role::RootPort),
            PortType::UpstreamPort => Some(Role::UpstreamPort),
            PortType::DownstreamPort => Some(Role::DownstreamPort),
            PortType::PciBridge | PortType::ReverseBridge => Some(Role::PciBridge),
            PortType::Reserved => None,
            PortType::Endpoint
            | PortType::LegacyEndpoint
            | PortType::IntegratedEndpoint
            | PortType::EventCollector => Some(Role::Endpoint),
        };
    }
    let bridge = match (&decoded.header, function.and_then(RawFunction::class16)) {
        (_, Some(0x0604 | 0x0609)) => true,
        (_, Some(0x0607)) => return Some(Role::PciBridge),
        (_, Some(_)) => false,
        (Ok(Header { kind, .. }), None) => *kind == 1,
        (Err(_), None) => has_children,
    };
    match (bridge, &decoded.express, &decoded.acs) {
        (false, ..) => Some(Role::Endpoint),
        // Without either capability it is a conventional bridge.
        (true, Found::Absent, Found::Absent) => Some(Role::PciBridge),
        // Which kind of port, its place in the tree must tell.
        (true, ..) => None,
    }
}

/// The role that a bridge's place implies: root ports hang from the root bus, links lead from
/// downstream ports to upstream ports, and inside a switch it is the other way round.
const fn role_below(parent: Option<Role>) -> Role {
    match parent {
        None => Role::RootPort,
        Some(Role::RootPort | Role::DownstreamPort) => Role::UpstreamPort,
        Some(Role::UpstreamPort) => Role::DownstreamPort,
        Some(Role::PciBridge | Role::Endpoint) => Role::PciBridge,
    }
}

#[cfg(test)]
mod tests;
