//! The machine as GPUDirect sees it: GPUs, NICs, the bridges, and every GPU-NIC path.
//!
//! This is the object that `gdr-agent topology --format json` prints; keys are never renamed.

use std::collections::{BTreeMap, HashMap};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::acs::{self, AcsRegisters};
use super::config::{ExpressLink, Found};
use super::path::{PathKind, Route, route};
use super::platform::{Need, functions_that_need_acs};
use super::select::{Selectors, select};
use super::tree::{Node, NodeId, Role, Tree};
use super::{Bdf, Link, RawFunction};

/// GPUs, NICs, bridges and paths.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Topology {
    /// GPUs in order of addresses.
    pub gpus: Vec<Device>,
    /// NICs in order of addresses; virtual functions only where their physical function is not here.
    pub nics: Vec<Device>,
    /// All bridges of the machine, on a path or not.
    pub bridges: Vec<Bridge>,
    /// One entry per GPU and NIC.
    pub paths: Vec<Path>,
    /// Functions whose ACS must stay as it is. In JSON, each bridge's `needs_acs` says it.
    #[serde(skip)]
    pub needs_acs: BTreeMap<Bdf, Need>,
}

/// A GPU or a NIC.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Device {
    /// Its address.
    pub bdf: Bdf,
    /// `vendor:device` in hexadecimal.
    pub id: String,
    /// Class and subclass in hexadecimal.
    pub class: String,
    /// NUMA node; null when the firmware does not say.
    pub numa_node: Option<i32>,
    /// Bound driver.
    pub driver: Option<String>,
    /// IOMMU group.
    pub iommu_group: Option<u32>,
    /// Link speed and width.
    pub link: Link,
    /// The bridge above; null right below the host bridge.
    pub parent: Option<Bdf>,
    /// Host bridge, as sysfs names it.
    pub host: String,
    /// The nearest devices of the other sort.
    pub nearest: Vec<Bdf>,
    /// Virtual functions that this one stands for.
    pub virtual_functions: Vec<Bdf>,
    /// Why the ports between this and `parent` are not all known. In JSON, `paths` say it.
    #[serde(skip)]
    pub gap: Option<String>,
}

/// A bridge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Bridge {
    /// Its address.
    pub bdf: Bdf,
    /// What kind of port.
    pub role: Role,
    /// True when configuration space did not say the role and its place in the tree did.
    pub role_inferred: bool,
    /// `vendor:device` in hexadecimal; null for a port that is only named in a path.
    pub id: Option<String>,
    /// ACS registers; null when it has none, or when that is not known (`acs_unknown` says why).
    pub acs: Option<Acs>,
    /// Why ACS is not known.
    pub acs_unknown: Option<String>,
    /// On how many GPU-NIC paths this port decides.
    pub on_paths: u32,
    /// GPUs and NICs below.
    pub devices_below: u32,
    /// Functions below that are handed to virtual machines.
    pub passthrough_below: Vec<Bdf>,
    /// Why ACS must stay as it is on this port, if it must.
    pub needs_acs: Option<String>,
    /// Link speed and width.
    pub link: Link,
    /// The bridge above; null right below the host bridge.
    pub parent: Option<Bdf>,
    /// Host bridge, as sysfs names it.
    pub host: String,
    /// Why the ports between this and `parent` are not all known. In JSON, `paths` say it.
    #[serde(skip)]
    pub gap: Option<String>,
}

/// ACS registers as JSON has them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Acs {
    /// Offset of the capability.
    pub offset: u16,
    /// Capability word.
    pub cap: u16,
    /// Control word.
    pub ctl: u16,
    /// The control word has RR, CR or EC.
    pub redirect: bool,
    /// The control word as lspci prints it.
    pub text: String,
}

impl From<AcsRegisters> for Acs {
    fn from(registers: AcsRegisters) -> Self {
        let AcsRegisters { offset, cap, ctl } = registers;
        Self {
            offset,
            cap,
            ctl,
            redirect: acs::redirects(ctl),
            text: acs::long_names(ctl),
        }
    }
}

/// One GPU-NIC path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Path {
    /// The GPU.
    pub gpu: Bdf,
    /// The NIC.
    pub nic: Bdf,
    /// How far.
    pub kind: PathKind,
    /// The ports whose ACS decides, from the GPU to the NIC.
    pub bridges: Vec<Bdf>,
    /// True if one of them redirects; null if none does but one is not known.
    pub redirected: Option<bool>,
    /// Why `redirected` is null.
    pub unknown: Option<String>,
}

impl Topology {
    /// Works out the topology of a tree with these selectors.
    #[must_use]
    pub fn of(tree: &Tree<'_>, selectors: Selectors<'_>) -> Self {
        let selected = select(tree, selectors);
        let mut routes: Vec<(NodeId, NodeId, Route)> = Vec::new();
        for gpu in &selected.gpus {
            for nic in &selected.nics {
                routes.extend(route(tree, *gpu, *nic).map(|route| (*gpu, *nic, route)));
            }
        }
        let mut on_paths: HashMap<NodeId, u32> = HashMap::new();
        for port in routes.iter().flat_map(|(_, _, route)| &route.ports) {
            *on_paths.entry(*port).or_default() += 1;
        }
        let nearest = nearest(tree, &routes);
        let mut virtual_functions: HashMap<Bdf, Vec<Bdf>> = HashMap::new();
        for (function, owner) in &selected.virtual_functions {
            virtual_functions.entry(*owner).or_default().push(*function);
        }
        let device = |id: &NodeId| -> Option<Device> {
            let node = tree.node(*id)?;
            let mut device = describe(tree, node)?;
            device.nearest = nearest
                .get(id)
                .map_or_else(Vec::new, |(_, others)| others.clone());
            device.virtual_functions = virtual_functions
                .get(&node.bdf)
                .cloned()
                .unwrap_or_default();
            Some(device)
        };
        let devices = selected.gpus.iter().chain(&selected.nics);
        let below = below(tree, devices.copied());
        let needs_acs = functions_that_need_acs(tree, &selected.nics);
        Self {
            gpus: selected.gpus.iter().filter_map(device).collect(),
            nics: selected.nics.iter().filter_map(device).collect(),
            bridges: bridges(tree, &on_paths, &below, &needs_acs),
            paths: routes
                .into_iter()
                .filter_map(|(g, n, route)| path(tree, g, n, route))
                .collect(),
            needs_acs,
        }
    }

    /// The bridge with this address.
    #[must_use]
    pub fn bridge(&self, bdf: Bdf) -> Option<&Bridge> {
        let at = self
            .bridges
            .binary_search_by_key(&bdf, |bridge| bridge.bdf)
            .ok()?;
        self.bridges.get(at)
    }
}

fn address(tree: &Tree<'_>, id: NodeId) -> Option<Bdf> {
    tree.node(id).map(|node| node.bdf)
}

fn id_text(function: &RawFunction) -> Option<String> {
    Some(format!("{:04x}:{:04x}", function.vendor?, function.device?))
}

fn describe(tree: &Tree<'_>, node: &Node<'_>) -> Option<Device> {
    let function = node.function?;
    Some(Device {
        bdf: node.bdf,
        id: id_text(function)?,
        class: format!("{:04x}", function.class16()?),
        numa_node: function.numa_node.filter(|node| *node >= 0),
        driver: function.driver.clone(),
        iommu_group: function.iommu_group,
        link: link(node),
        parent: node.parent.and_then(|parent| address(tree, parent)),
        host: node.host.to_string(),
        nearest: Vec::new(),
        virtual_functions: Vec::new(),
        gap: node.gap.clone(),
    })
}

/// The link as sysfs says it; where that was not read, as configuration space does.
fn link(node: &Node<'_>) -> Link {
    let said = node.function.map(|function| &function.link);
    match said.filter(|link| link.current_speed.is_some() || link.current_width.is_some()) {
        Some(link) => link.clone(),
        None => {
            let express = node
                .decoded
                .express
                .present()
                .and_then(|express| express.link);
            express.map(ExpressLink::describe).unwrap_or_default()
        }
    }
}

/// Kind first, then the number of bridges passed.
type Distance = (PathKind, usize);

/// For each GPU and NIC the shortest distance and the devices of the other sort at that distance.
fn nearest(
    tree: &Tree<'_>,
    routes: &[(NodeId, NodeId, Route)],
) -> HashMap<NodeId, (Distance, Vec<Bdf>)> {
    let mut best: HashMap<NodeId, (Distance, Vec<Bdf>)> = HashMap::new();
    for (gpu, nic, route) in routes {
        let distance = (route.kind, route.hops);
        for (own, other) in [(gpu, nic), (nic, gpu)] {
            let Some(other) = address(tree, *other) else {
                continue;
            };
            let (shortest, others) = best.entry(*own).or_insert((distance, Vec::new()));
            if distance < *shortest {
                *shortest = distance;
                others.clear();
            }
            if distance == *shortest {
                others.push(other);
            }
        }
    }
    best
}

/// What hangs below a bridge.
#[derive(Default)]
struct Below {
    devices: u32,
    passthrough: Vec<Bdf>,
}

fn below(tree: &Tree<'_>, devices: impl Iterator<Item = NodeId>) -> HashMap<NodeId, Below> {
    let mut below: HashMap<NodeId, Below> = HashMap::new();
    for (above, _) in devices.flat_map(|device| tree.upward(device).skip(1)) {
        below.entry(above).or_default().devices += 1;
    }
    for (id, node) in tree.nodes() {
        if node.function.is_some_and(handed_to_a_guest) {
            for (above, _) in tree.upward(id).skip(1) {
                below.entry(above).or_default().passthrough.push(node.bdf);
            }
        }
    }
    below
}

/// Drivers that hand a device to a virtual machine: `vfio-pci`, its vendor variants such as
/// `mlx5_vfio_pci`, and Xen's.
#[must_use]
pub fn handed_to_a_guest(function: &RawFunction) -> bool {
    let driver = function.driver.as_deref().unwrap_or_default();
    driver.contains("vfio") || matches!(driver, "pciback" | "xen-pciback")
}

fn bridges(
    tree: &Tree<'_>,
    on_paths: &HashMap<NodeId, u32>,
    below: &HashMap<NodeId, Below>,
    needs_acs: &BTreeMap<Bdf, Need>,
) -> Vec<Bridge> {
    let listed = |id: NodeId, node: &Node<'_>| node.role.is_bridge() || on_paths.contains_key(&id);
    tree.nodes()
        .filter(|(id, node)| listed(*id, node))
        .map(|(id, node)| {
            let (acs, acs_unknown) = match &node.decoded.acs {
                Found::Present(registers) => (Some((*registers).into()), None),
                Found::Absent => (None, None),
                Found::Unknown(why) => (None, Some(why.to_string())),
            };
            let below = below.get(&id);
            Bridge {
                bdf: node.bdf,
                role: node.role,
                role_inferred: node.role_inferred,
                id: node.function.and_then(id_text),
                acs,
                acs_unknown,
                on_paths: on_paths.get(&id).copied().unwrap_or(0),
                devices_below: below.map_or(0, |below| below.devices),
                passthrough_below: below.map_or_else(Vec::new, |b| b.passthrough.clone()),
                needs_acs: needs_acs
                    .get(&node.bdf)
                    .map(|need| need.reason().to_owned()),
                link: link(node),
                parent: node.parent.and_then(|parent| address(tree, parent)),
                host: node.host.to_string(),
                gap: node.gap.clone(),
            }
        })
        .collect()
}

fn path(tree: &Tree<'_>, gpu: NodeId, nic: NodeId, route: Route) -> Option<Path> {
    Some(Path {
        gpu: address(tree, gpu)?,
        nic: address(tree, nic)?,
        kind: route.kind,
        bridges: route
            .ports
            .iter()
            .filter_map(|port| address(tree, *port))
            .collect(),
        redirected: route.redirected,
        unknown: route.unknown,
    })
}
