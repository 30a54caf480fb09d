//! Exports of hwloc. They have every bridge, ports of switches too, and the host bridges.

use std::collections::BTreeSet;

use gdr_tests::node::layout::Function;
use gdr_tests::node::model::Port;
use roxmltree::{Document, Node, ParsingOptions};

use crate::expected::{Expected, Machine};
use crate::place::{Address, function, generation, model};

/// Reads an export; `None` where it has no GPU and NIC.
pub fn read(text: &str) -> Option<Machine> {
    let options = ParsingOptions {
        allow_dtd: true,
        ..ParsingOptions::default()
    };
    let document = Document::parse_with_options(text, options).unwrap();
    let all: Vec<Node<'_, '_>> = document
        .descendants()
        .filter(|node| node.attribute("pci_busid").is_some())
        .collect();
    let functions = all.iter().map(|node| build(*node)).collect();
    let expected = expected(&all);
    (!expected.pairs.is_empty()).then_some(Machine {
        functions,
        expected,
        amd: false,
    })
}

fn is_bridge(node: Node<'_, '_>, kind: &str) -> bool {
    node.attribute("type") == Some("Bridge") && node.attribute("bridge_type") == Some(kind)
}

/// The PCI bridges above, innermost first, without the host bridge.
fn bridges<'a, 'i>(node: Node<'a, 'i>) -> Vec<Node<'a, 'i>> {
    node.ancestors()
        .skip(1)
        .filter(|above| is_bridge(*above, "1-1"))
        .collect()
}

fn host<'a, 'i>(node: Node<'a, 'i>) -> Node<'a, 'i> {
    node.ancestors()
        .find(|above| is_bridge(*above, "0-1"))
        .unwrap()
}

/// hwloc hangs I/O from the object whose memory is near: the NUMA node is a child of one above.
fn numa(node: Node<'_, '_>) -> i32 {
    let of_nodes = node.ancestors().flat_map(|above| above.children());
    let mut nodes = of_nodes.filter(|child| child.attribute("type") == Some("NUMANode"));
    nodes
        .next()
        .and_then(|near| near.attribute("os_index"))
        .unwrap()
        .parse()
        .unwrap()
}

fn address(node: Node<'_, '_>) -> Address {
    Address::parse(node.attribute("pci_busid").unwrap())
}

/// `0604 [8086:2030] [8086:0000] 04 00`
fn numbers(node: Node<'_, '_>) -> Vec<u16> {
    let text = node.attribute("pci_type").unwrap();
    let words = text
        .split([' ', '[', ']', ':'])
        .filter(|word| !word.is_empty());
    words
        .map(|word| u16::from_str_radix(word, 16).unwrap())
        .collect()
}

/// Ports alternate below a root port: down to the upstream port of a switch, and on to its downstream
/// ports.
fn port(node: Node<'_, '_>) -> Port {
    if !is_bridge(node, "1-1") {
        return Port::Endpoint;
    }
    match bridges(node).len() {
        0 => Port::Root,
        odd if odd % 2 == 1 => Port::Upstream,
        _ => Port::Downstream,
    }
}

fn build(node: Node<'_, '_>) -> Function {
    let own = address(node);
    let range = host(node).attribute("bridge_pci").unwrap();
    let (domain, buses) = range.split_once(":[").unwrap();
    let mut dir = format!(
        "sys/devices/pci{domain}:{}",
        buses.split('-').next().unwrap()
    );
    for bridge in bridges(node).iter().rev() {
        dir = format!("{dir}/{}", address(*bridge));
    }
    let ids = numbers(node);
    // The export gives GB/s, which does not say speed and width apart.
    let link = (generation("8").unwrap(), 16);
    let model = model(
        (ids[1], ids[2]),
        (ids[3], ids[4]),
        u32::from(ids[0]) << 8,
        link,
        port(node),
    );
    let below = node.attribute("bridge_pci").map(|range| {
        let bus = range
            .split(":[")
            .nth(1)
            .unwrap()
            .split('-')
            .next()
            .unwrap()
            .to_owned();
        Address(own.0, u8::from_str_radix(&bus, 16).unwrap(), 0, 0)
    });
    function(own, &dir, model, numa(node), below)
}

fn expected(all: &[Node<'_, '_>]) -> Expected {
    let of_class = |wanted: &[u16]| -> Vec<Node<'_, '_>> {
        all.iter()
            .copied()
            .filter(|node| wanted.contains(&numbers(*node)[0]))
            .collect()
    };
    // The export of the DGX-2 leaves its NICs out; the NVSwitches stand in for them.
    let (gpus, nics) = (of_class(&[0x0302]), of_class(&[0x0200, 0x0207, 0x0680]));
    let mut expected = Expected::default();
    let place = |node: &Node<'_, '_>| (address(*node).to_string(), numa(*node));
    expected.gpus = gpus.iter().map(place).collect();
    expected.nics = nics.iter().map(place).collect();
    for gpu in &gpus {
        for nic in &nics {
            let (from_gpu, from_nic) = (bridges(*gpu), bridges(*nic));
            let common = from_gpu.iter().find(|bridge| from_nic.contains(bridge));
            let until = |bridges: &[Node<'_, '_>]| -> Vec<(Port, String)> {
                let below = bridges.iter().take_while(|bridge| Some(*bridge) != common);
                below
                    .map(|bridge| (port(*bridge), address(*bridge).to_string()))
                    .collect()
            };
            let passed = [until(&from_gpu), until(&from_nic)].concat();
            let top = common.map(|bridge| port(*bridge));
            let switches = passed
                .iter()
                .map(|(port, _)| *port)
                .chain(top)
                .filter(|port| *port == Port::Upstream);
            let kind = match common {
                Some(_) if switches.count() <= 1 => "PIX",
                Some(_) => "PXB",
                None if host(*gpu) == host(*nic) => "PHB",
                None if numa(*gpu) == numa(*nic) => "NODE",
                None => "SYS",
            };
            let ports: BTreeSet<String> = passed
                .into_iter()
                .filter(|(port, _)| port.has_acs())
                .map(|(_, address)| address)
                .collect();
            let pair = (address(*gpu).to_string(), address(*nic).to_string());
            expected.pairs.insert(pair, (kind, ports));
        }
    }
    expected
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use crate::compare::{Where, compare};

    #[test]
    fn dgx_2() {
        let Some(text) = crate::text("hwloc", "nvidiaDGX2.xml") else {
            return;
        };
        let machine = super::read(&text).unwrap();
        assert_eq!(
            (machine.expected.gpus.len(), machine.expected.nics.len()),
            (16, 11)
        );
        assert!(
            machine
                .expected
                .kinds()
                .is_superset(&BTreeSet::from(["PXB", "NODE", "SYS"]))
        );
        compare("nvidiaDGX2.xml", &machine, Where::Metal);
    }
}
