//! The topology as rows: NUMA nodes, their host bridges, the bridges below and the devices at the
//! end, each exactly once and in an order that depends on nothing but addresses.

use std::collections::{BTreeMap, BTreeSet};

use crate::pci::Bdf;
use crate::pci::topology::{Bridge, Device, Topology};

/// What a box stands for.
#[derive(Debug, Clone, Copy)]
pub(super) enum What<'a> {
    Host(&'a str),
    Bridge(&'a Bridge),
    Gpu(usize, &'a Device),
    Nic(usize, &'a Device),
}

/// One box.
#[derive(Debug)]
pub(super) struct Item<'a> {
    pub what: What<'a>,
    /// Index of the item above; a host has none.
    pub parent: Option<usize>,
    /// Bridges above.
    pub depth: usize,
    /// The rows that it and everything below it take.
    pub first_row: usize,
    pub last_row: usize,
}

/// Hosts of the same NUMA node.
#[derive(Debug)]
pub(super) struct Group {
    /// `None` when the firmware does not say.
    pub numa: Option<String>,
    pub rows: std::ops::Range<usize>,
}

/// Parents before children, rows counted from the top.
#[derive(Debug, Default)]
pub(super) struct Outline<'a> {
    pub groups: Vec<Group>,
    pub items: Vec<Item<'a>>,
    pub rows: usize,
}

/// NUMA nodes that a host's devices name; empty sorts last.
type Nodes = (bool, Vec<i32>);

/// A host's name so that domains of five digits come after those of four.
type HostKey<'a> = (usize, &'a str);

impl What<'_> {
    pub(super) fn is_device(self) -> bool {
        matches!(self, Self::Gpu(..) | Self::Nic(..))
    }
}

struct Place<'a> {
    what: What<'a>,
    parent: Option<Bdf>,
    host: &'a str,
}

impl<'a> Outline<'a> {
    pub(super) fn of(topology: &'a Topology) -> Self {
        let places = places(topology);
        let mut children: BTreeMap<Bdf, Vec<Bdf>> = BTreeMap::new();
        let mut roots: BTreeMap<HostKey<'a>, Vec<Bdf>> = BTreeMap::new();
        for (bdf, place) in &places {
            match place.parent {
                Some(parent) => children.entry(parent).or_default().push(*bdf),
                None => {
                    let host = (place.host.len(), place.host);
                    roots.entry(host).or_default().push(*bdf);
                }
            }
        }
        let mut groups: BTreeMap<Nodes, Vec<HostKey<'a>>> = BTreeMap::new();
        for host in roots.keys() {
            groups
                .entry(nodes_of(topology, host.1))
                .or_default()
                .push(*host);
        }
        let mut outline = Self::default();
        for ((_, nodes), hosts) in groups {
            let first = outline.rows;
            for host in hosts {
                let below = roots.get(&host).map(Vec::as_slice).unwrap_or_default();
                outline.host(host.1, below, &places, &children);
            }
            let nodes: Vec<String> = nodes.iter().map(i32::to_string).collect();
            outline.groups.push(Group {
                numa: (!nodes.is_empty()).then(|| nodes.join(", ")),
                rows: first..outline.rows,
            });
        }
        outline.spans();
        outline
    }

    fn host(
        &mut self,
        name: &'a str,
        roots: &[Bdf],
        places: &BTreeMap<Bdf, Place<'a>>,
        children: &BTreeMap<Bdf, Vec<Bdf>>,
    ) {
        let host = self.items.len();
        self.push(What::Host(name), None, 0);
        // An explicit stack: the depth of a damaged tree is not ours to trust.
        let mut stack: Vec<(Bdf, usize, usize)> =
            roots.iter().rev().map(|bdf| (*bdf, host, 0)).collect();
        while let Some((bdf, parent, depth)) = stack.pop() {
            let Some(place) = places.get(&bdf) else {
                continue;
            };
            let at = self.items.len();
            self.push(place.what, Some(parent), depth);
            let below = children.get(&bdf).map(Vec::as_slice).unwrap_or_default();
            if below.is_empty() {
                self.rows += 1;
            }
            stack.extend(below.iter().rev().map(|child| (*child, at, depth + 1)));
        }
    }

    fn push(&mut self, what: What<'a>, parent: Option<usize>, depth: usize) {
        self.items.push(Item {
            what,
            parent,
            depth,
            first_row: self.rows,
            last_row: self.rows,
        });
    }

    /// Children come after their parents, so one walk from the end finishes every span.
    fn spans(&mut self) {
        for at in (0..self.items.len()).rev() {
            let Some((parent, last)) = self
                .items
                .get(at)
                .and_then(|item| Some((item.parent?, item.last_row)))
            else {
                continue;
            };
            if let Some(above) = self.items.get_mut(parent) {
                above.last_row = above.last_row.max(last);
            }
        }
    }
}

/// Devices, and the bridges above them, with parents that are bridges of this list or nothing.
fn places(topology: &Topology) -> BTreeMap<Bdf, Place<'_>> {
    let mut places: BTreeMap<Bdf, Place<'_>> = BTreeMap::new();
    for bridge in &topology.bridges {
        if bridge.devices_below > 0 || bridge.on_paths > 0 {
            let what = What::Bridge(bridge);
            places.insert(
                bridge.bdf,
                Place {
                    what,
                    parent: bridge.parent,
                    host: &bridge.host,
                },
            );
        }
    }
    let nics = topology.nics.iter().enumerate();
    let nics = nics.map(|(index, nic)| (What::Nic(index, nic), nic));
    let gpus = topology.gpus.iter().enumerate();
    let gpus = gpus.map(|(index, gpu)| (What::Gpu(index, gpu), gpu));
    for (what, device) in nics.chain(gpus) {
        let place = Place {
            what,
            parent: device.parent,
            host: &device.host,
        };
        places.insert(device.bdf, place);
    }
    let bridges: BTreeSet<Bdf> = places
        .iter()
        .filter(|(_, place)| !place.what.is_device())
        .map(|(bdf, _)| *bdf)
        .collect();
    for place in places.values_mut() {
        place.parent = place.parent.filter(|parent| bridges.contains(parent));
    }
    cut_circles(&mut places);
    places
}

/// Hangs whatever leads back to itself from its host, so that everything is drawn.
fn cut_circles(places: &mut BTreeMap<Bdf, Place<'_>>) {
    let mut sound: BTreeSet<Bdf> = BTreeSet::new();
    for start in places.keys().copied().collect::<Vec<_>>() {
        let mut walked: BTreeSet<Bdf> = BTreeSet::new();
        let mut at = start;
        while !sound.contains(&at) && walked.insert(at) {
            match places.get(&at).and_then(|place| place.parent) {
                Some(parent) if walked.contains(&parent) => {
                    if let Some(place) = places.get_mut(&at) {
                        place.parent = None;
                    }
                }
                Some(parent) => at = parent,
                None => {}
            }
        }
        sound.extend(walked);
    }
}

fn nodes_of(topology: &Topology, host: &str) -> Nodes {
    let devices = topology.gpus.iter().chain(&topology.nics);
    let nodes: BTreeSet<i32> = devices
        .filter(|device| device.host == host)
        .filter_map(|device| device.numa_node)
        .collect();
    (nodes.is_empty(), nodes.into_iter().collect())
}
