//! Building the tree: parents first, then depth and roles from the top down.

use std::collections::HashMap;

use super::{Host, Node, NodeId, Role, Tree, own_role, role_below};
use crate::pci::config::Decoded;
use crate::pci::{Bdf, ConfigBytes, RawFunction};

/// Where a function hangs, before indices are known.
struct Place {
    parent: Option<Bdf>,
    host: Host,
    gap: Option<String>,
}

pub(super) fn build(functions: &[RawFunction]) -> Tree<'_> {
    let mut listed: HashMap<Bdf, &RawFunction> = HashMap::with_capacity(functions.len());
    for function in functions {
        listed.entry(function.bdf).or_insert(function);
    }
    let places = places(functions, &listed);

    let mut addresses: Vec<Bdf> = places.keys().copied().collect();
    addresses.sort_unstable();
    let by_bdf: HashMap<Bdf, NodeId> = addresses.iter().copied().zip((0..).map(NodeId)).collect();
    let mut nodes = Vec::with_capacity(addresses.len());
    for bdf in addresses {
        let function = listed.get(&bdf).copied();
        let decoded = match function {
            Some(function) => Decoded::of(&function.config),
            None => Decoded::of(&ConfigBytes::failed(
                "the port is named in a path but not listed",
            )),
        };
        let Some(Place { parent, host, gap }) = places.get(&bdf) else {
            continue;
        };
        nodes.push(Node {
            bdf,
            function,
            role: Role::Endpoint,
            role_inferred: false,
            decoded,
            parent: parent.and_then(|parent| by_bdf.get(&parent).copied()),
            host: *host,
            depth: 0,
            gap: gap.clone(),
        });
    }
    let numa_known = functions
        .iter()
        .any(|f| f.numa_node.is_some_and(|node| node >= 0));
    let mut tree = Tree {
        nodes,
        by_bdf,
        numa_known,
    };
    settle(&mut tree);
    tree
}

fn places(functions: &[RawFunction], listed: &HashMap<Bdf, &RawFunction>) -> HashMap<Bdf, Place> {
    let mut places: HashMap<Bdf, Place> = HashMap::with_capacity(listed.len());
    let mut plain = Vec::new();
    let first = |f: &&RawFunction| {
        listed
            .get(&f.bdf)
            .is_some_and(|kept| std::ptr::eq(*kept, *f))
    };
    for function in functions.iter().filter(first) {
        match function
            .sysfs_path
            .as_deref()
            .and_then(|path| lineage(path, function.bdf))
        {
            Some((host, chain)) => {
                // A function's own path decides about it; its ancestors' entries are provisional
                // until their own path is met, and stay when they are not listed.
                let mut parent = None;
                for bdf in chain {
                    let place = Place {
                        parent,
                        host,
                        gap: None,
                    };
                    if bdf == function.bdf {
                        places.insert(bdf, place);
                    } else if !listed.contains_key(&bdf) {
                        places.entry(bdf).or_insert(place);
                    }
                    parent = Some(bdf);
                }
            }
            None => plain.push(function),
        }
    }
    if !plain.is_empty() {
        by_bus_numbers(listed, &plain, &mut places);
    }
    places
}

/// Splits `devices/pci0000:16/0000:16:01.0/0000:17:00.0` into its host bridge and its functions, top
/// down. The last `pciDDDD:BB` counts: behind Intel VMD a host bridge hangs from a PCI function.
fn lineage(path: &str, own: Bdf) -> Option<(Host, Vec<Bdf>)> {
    let mut host = None;
    let mut chain: Vec<Bdf> = Vec::new();
    for part in path.split('/') {
        if let Some(found) = host_component(part) {
            host = Some(found);
            chain.clear();
        } else if let Ok(bdf) = part.parse() {
            chain.push(bdf);
        }
    }
    let first = chain.first()?;
    let host = host.unwrap_or(Host {
        domain: first.domain,
        bus: first.bus,
    });
    (chain.last() == Some(&own)).then_some((host, chain))
}

fn host_component(part: &str) -> Option<Host> {
    // `pci0000:16` is the address of a function on that bus without its device and function.
    let bus = part.strip_prefix("pci")?;
    let bdf: Bdf = format!("{bus}:00.0").parse().ok()?;
    bus.contains(':').then_some(Host {
        domain: bdf.domain,
        bus: bdf.bus,
    })
}

/// The bridges of one domain by bus number.
struct Buses {
    /// The bridge whose secondary bus this is.
    exact: Vec<Option<Bdf>>,
    /// The innermost bridge whose range covers the bus.
    covering: Vec<Option<Bdf>>,
}

fn by_bus_numbers(
    listed: &HashMap<Bdf, &RawFunction>,
    plain: &[&RawFunction],
    places: &mut HashMap<Bdf, Place>,
) {
    let mut bridges: Vec<(Bdf, u8, u8)> = listed
        .values()
        .filter_map(|function| {
            let header = crate::pci::config::header(&mut &function.config).ok()?;
            let buses = header.buses.filter(|_| header.kind == 1)?;
            // Numbers grow downwards on a configured bus; anything else is not configured, and
            // believing it could tie the tree into a knot.
            let sane = buses.secondary > function.bdf.bus && buses.subordinate >= buses.secondary;
            sane.then_some((function.bdf, buses.secondary, buses.subordinate))
        })
        .collect();
    bridges.sort_unstable_by_key(|(bdf, secondary, _)| (bdf.domain, *secondary, *bdf));
    let mut domains: HashMap<u32, Buses> = HashMap::new();
    for (bdf, secondary, subordinate) in bridges {
        let buses = domains.entry(bdf.domain).or_insert_with(|| Buses {
            exact: vec![None; 256],
            covering: vec![None; 256],
        });
        match buses.exact.get_mut(usize::from(secondary)) {
            Some(owner @ None) => *owner = Some(bdf),
            _ => continue,
        }
        for bus in secondary..=subordinate {
            if let Some(slot) = buses.covering.get_mut(usize::from(bus)) {
                *slot = Some(bdf);
            }
        }
    }
    let on_bus = |bdf: Bdf| -> (Option<Bdf>, Option<String>) {
        let Some(buses) = domains.get(&bdf.domain) else {
            return (None, None);
        };
        let at = |table: &[Option<Bdf>]| table.get(usize::from(bdf.bus)).copied().flatten();
        if let Some(owner) = at(&buses.exact) {
            return (Some(owner), None);
        }
        match at(&buses.covering).filter(|bridge| bridge.bus < bdf.bus) {
            Some(bridge) => {
                let gap = format!(
                    "no bridge with secondary bus {:02x} below {bridge}",
                    bdf.bus
                );
                (Some(bridge), Some(gap))
            }
            None => (None, None),
        }
    };
    for function in plain {
        // A virtual function may sit on a bus number of its own without a bridge in between.
        let seat = function
            .physfn
            .filter(|physical| listed.contains_key(physical));
        let (parent, mut gap) = on_bus(seat.unwrap_or(function.bdf));
        if parent.is_none() && hangs_from_a_port(function) {
            gap = Some(format!(
                "no bridge with secondary bus {:02x}",
                function.bdf.bus
            ));
        }
        let mut top = seat.unwrap_or(function.bdf);
        let mut above = parent;
        while let Some(bridge) = above {
            top = bridge;
            above = on_bus(bridge).0;
        }
        let host = Host {
            domain: top.domain,
            bus: top.bus,
        };
        places.insert(function.bdf, Place { parent, host, gap });
    }
}

/// True for functions that have a link to a port, or a bus of a switch, above them: such a function
/// without a bridge above was separated from it.
fn hangs_from_a_port(function: &RawFunction) -> bool {
    use crate::pci::config::PortType;
    let express = crate::pci::config::express(&mut &function.config)
        .ok()
        .flatten();
    express.is_some_and(|express| {
        matches!(
            express.port,
            PortType::Endpoint
                | PortType::LegacyEndpoint
                | PortType::UpstreamPort
                | PortType::DownstreamPort
        )
    })
}

/// Fills in depth and role from the top down and cuts loops, which only a damaged tree can have.
fn settle(tree: &mut Tree<'_>) {
    let count = tree.nodes.len();
    let mut has_children = vec![false; count];
    for node in &tree.nodes {
        if let Some(flag) = node
            .parent
            .and_then(|parent| has_children.get_mut(parent.index()))
        {
            *flag = true;
        }
    }
    let mut settled = vec![false; count];
    let mut on_way = vec![false; count];
    for start in 0..count {
        let mut way = Vec::new();
        let mut at = Some(start);
        while let Some(index) = at.filter(|index| settled.get(*index) == Some(&false)) {
            let Some(node) = tree.nodes.get_mut(index) else {
                break;
            };
            match on_way.get_mut(index) {
                Some(seen @ false) => *seen = true,
                _ => break,
            }
            way.push(index);
            let parent = node.parent.map(NodeId::index);
            if parent.is_some_and(|parent| on_way.get(parent) == Some(&true)) {
                node.parent = None;
                node.gap = Some("its ancestors lead back to itself".to_owned());
            }
            at = node.parent.map(NodeId::index);
        }
        for index in way.into_iter().rev() {
            if let Some(flag) = on_way.get_mut(index) {
                *flag = false;
            }
            if let Some(flag) = settled.get_mut(index) {
                *flag = true;
            }
            let parent = tree.nodes.get(index).and_then(|node| node.parent);
            let above = parent.and_then(|parent| tree.node(parent));
            let above = above.map(|node| (node.depth, node.role, node.host));
            let is_parent = has_children.get(index) == Some(&true);
            if let Some(node) = tree.nodes.get_mut(index) {
                let own = own_role(node.function, &node.decoded, is_parent);
                if let Some((depth, _, host)) = above {
                    node.depth = depth.saturating_add(1);
                    node.host = host;
                }
                node.role_inferred = own.is_none();
                node.role = own.unwrap_or_else(|| role_below(above.map(|(_, role, _)| role)));
            }
        }
    }
}
