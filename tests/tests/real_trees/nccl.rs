//! Topology files of NCCL and RCCL. A `pci` element with class 0604 is the upstream port of a switch:
//! NCCL goes up two directories at a time (src/graph/xml.cc, `ncclTopoGetXmlFromSys`).

use std::collections::{BTreeMap, BTreeSet};

use gdr_tests::node::model::{AMD_ROOT_PORT, INTEL_ROOT_PORT, Model, Port, SWITCH_DOWNSTREAM};
use roxmltree::{Document, Node};

use crate::expected::{Expected, Machine};
use crate::place::{Address, Addresses, function, generation, model};

/// Host bridges are not in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hosts {
    /// One for each NUMA node: what meets at the CPU is at distance PHB.
    Shared,
    /// One for each root port, as on Intel's Xeons: it is at distance NODE.
    Own,
}

/// Reads a file. `None` where it describes no GPU and NIC, or the same address twice.
pub fn read(text: &str, hosts: Hosts) -> Option<Machine> {
    let document = Document::parse(text).unwrap();
    let root = document.root_element();
    let all: Vec<Node<'_, '_>> = root
        .descendants()
        .filter(|node| node.has_tag_name("pci"))
        .collect();
    let mut addresses = Addresses::default();
    for node in &all {
        if !addresses.0.insert(address(*node)) {
            return None;
        }
    }
    let amd = root
        .descendants()
        .any(|node| node.attribute("vendor") == Some("AuthenticAMD"));
    let mut builder = Builder {
        addresses,
        hosts,
        root_port: if amd { AMD_ROOT_PORT } else { INTEL_ROOT_PORT },
        used_hosts: BTreeSet::new(),
        functions: Vec::new(),
        port_above: BTreeMap::new(),
    };
    for cpu in root.children().filter(|node| node.has_tag_name("cpu")) {
        builder.cpu(cpu);
    }
    let Builder {
        functions,
        port_above,
        ..
    } = builder;
    let expected = expected(&all, &port_above, hosts);
    (!expected.pairs.is_empty()).then_some(Machine {
        functions,
        expected,
        amd,
    })
}

fn address(node: Node<'_, '_>) -> Address {
    Address::parse(node.attribute("busid").unwrap())
}

fn hex(node: Node<'_, '_>, name: &str) -> u32 {
    let text = node.attribute(name).unwrap_or("0x0");
    u32::from_str_radix(text.trim_start_matches("0x"), 16).unwrap()
}

fn class(node: Node<'_, '_>) -> u32 {
    let has = |name| node.children().any(|child| child.has_tag_name(name));
    match hex(node, "class") {
        0 if has("gpu") => 0x03_0200,
        0 if has("nic") => 0x02_0000,
        // Some files have 16 bits.
        short @ 1..=0xffff => short << 8,
        class => class,
    }
}

fn is_switch(node: Node<'_, '_>) -> bool {
    class(node) >> 8 == 0x0604
}

fn numa(cpu: Node<'_, '_>) -> i32 {
    cpu.attribute("numaid").unwrap().parse().unwrap()
}

fn model_of(node: Node<'_, '_>) -> Model {
    let word = |name| u16::try_from(hex(node, name)).unwrap();
    let speed = node
        .attribute("link_speed")
        .and_then(generation)
        .unwrap_or(4);
    let width = node
        .attribute("link_width")
        .map_or(16, |text| text.parse().unwrap());
    let port = if is_switch(node) {
        Port::Upstream
    } else {
        Port::Endpoint
    };
    let subsystem = (word("subsystem_vendor"), word("subsystem_device"));
    model(
        (word("vendor"), word("device")),
        subsystem,
        class(node),
        (speed, width),
        port,
    )
}

fn children<'a, 'i>(node: Node<'a, 'i>) -> Vec<Node<'a, 'i>> {
    node.children()
        .filter(|child| child.has_tag_name("pci"))
        .collect()
}

struct Builder {
    addresses: Addresses,
    hosts: Hosts,
    root_port: Model,
    used_hosts: BTreeSet<(u32, u8)>,
    functions: Vec<gdr_tests::node::layout::Function>,
    port_above: BTreeMap<String, String>,
}

impl Builder {
    fn cpu(&mut self, cpu: Node<'_, '_>) {
        let mut host = None;
        let mut ports = BTreeMap::new();
        for top in children(cpu) {
            let Address(domain, bus, ..) = address(top);
            let dir = match (&host, self.hosts) {
                (Some(dir), Hosts::Shared) => String::clone(dir),
                _ => self.host(domain, bus.wrapping_sub(1)),
            };
            host = Some(dir.clone());
            if self.hosts == Hosts::Own {
                ports.clear();
            }
            let bus = u8::from_str_radix(dir.rsplit(':').next().unwrap(), 16).unwrap();
            self.below_port(top, bus, self.root_port, &dir, numa(cpu), &mut ports);
        }
    }

    /// A host bridge that no other element has.
    fn host(&mut self, domain: u32, bus: u8) -> String {
        let buses = (0..=u8::MAX).map(|add| bus.wrapping_sub(add));
        let bus = buses
            .into_iter()
            .find(|bus| self.used_hosts.insert((domain, *bus)))
            .unwrap();
        format!("sys/devices/pci{domain:04x}:{bus:02x}")
    }

    /// Puts an element below a port of its own; functions of one device share theirs.
    fn below_port(
        &mut self,
        node: Node<'_, '_>,
        bus: u8,
        port: Model,
        dir: &str,
        numa: i32,
        ports: &mut BTreeMap<(u32, u8, u8), (Address, String)>,
    ) {
        let own = address(node);
        let device = (own.0, own.1, own.2);
        let (port, below) = match ports.get(&device) {
            Some(known) => known.clone(),
            None => {
                let address = self.addresses.free(own.0, bus);
                let port = function(address, dir, port, numa, Some(own));
                let made = (address, port.dir.clone());
                self.functions.push(port);
                ports.insert(device, made.clone());
                made
            }
        };
        self.port_above.insert(own.to_string(), port.to_string());
        let model = model_of(node);
        let inner = own.1.wrapping_add(1);
        let made = function(own, &below, model, numa, Some(Address(own.0, inner, 0, 0)));
        let dir = made.dir.clone();
        self.functions.push(made);
        let downstream = Model {
            id: model.id,
            subsystem: model.subsystem,
            link: model.link,
            ..SWITCH_DOWNSTREAM
        };
        let mut ports = BTreeMap::new();
        for child in children(node) {
            self.below_port(child, inner, downstream, &dir, numa, &mut ports);
        }
    }
}

/// The element itself and the `pci` elements above it, then the `cpu`.
fn upward<'a, 'i>(node: Node<'a, 'i>) -> (Vec<Node<'a, 'i>>, Node<'a, 'i>) {
    let way: Vec<Node<'a, 'i>> = node
        .ancestors()
        .take_while(|above| above.has_tag_name("pci"))
        .collect();
    let cpu = node
        .ancestors()
        .find(|above| above.has_tag_name("cpu"))
        .unwrap();
    (way, cpu)
}

fn expected(all: &[Node<'_, '_>], port_above: &BTreeMap<String, String>, hosts: Hosts) -> Expected {
    let of_class = |wanted: &dyn Fn(u32) -> bool| -> Vec<Node<'_, '_>> {
        all.iter()
            .copied()
            .filter(|node| wanted(class(*node) >> 8))
            .collect()
    };
    let gpus = of_class(&|class| matches!(class, 0x0300 | 0x0302 | 0x0380 | 0x1200));
    let nics = of_class(&|class| matches!(class, 0x0200 | 0x0207 | 0x0280));
    let mut expected = Expected::default();
    let place = |node: &Node<'_, '_>| (address(*node).to_string(), numa(upward(*node).1));
    expected.gpus = gpus.iter().map(place).collect();
    expected.nics = nics.iter().map(place).collect();
    for gpu in &gpus {
        for nic in &nics {
            let (from_gpu, gpu_cpu) = upward(*gpu);
            let (from_nic, nic_cpu) = upward(*nic);
            let below = |own: &[Node<'_, '_>], other: &[Node<'_, '_>]| -> Vec<String> {
                let own = own.iter().take_while(|node| !other.contains(node));
                own.map(|node| address(*node).to_string()).collect()
            };
            let (gpu_side, nic_side) = (below(&from_gpu, &from_nic), below(&from_nic, &from_gpu));
            let meet = from_gpu.iter().any(|node| from_nic.contains(node));
            // NCCL: one switch between them is PIX, more are PXB, the CPU's host bridge is PHB.
            let kind = if meet {
                let switches = gpu_side.len() - 1 + nic_side.len() - 1 + 1;
                if switches == 1 { "PIX" } else { "PXB" }
            } else if gpu_cpu == nic_cpu {
                if hosts == Hosts::Shared {
                    "PHB"
                } else {
                    "NODE"
                }
            } else {
                "SYS"
            };
            let ports = gpu_side
                .iter()
                .chain(&nic_side)
                .map(|node| port_above[node].clone());
            let pair = (address(*gpu).to_string(), address(*nic).to_string());
            expected.pairs.insert(pair, (kind, ports.collect()));
        }
    }
    expected
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{Hosts, read};
    use crate::compare::{Where, compare};

    fn file(name: &str, place: Where) -> Option<BTreeSet<&'static str>> {
        let text = crate::text("nccl-topo-xml", name)?;
        let mut kinds = BTreeSet::new();
        for hosts in [Hosts::Shared, Hosts::Own] {
            let machine = read(&text, hosts).unwrap();
            kinds.extend(machine.expected.kinds());
            compare(name, &machine, place);
        }
        Some(kinds)
    }

    #[test]
    fn oci_h100() {
        let Some(kinds) = file("10-oci-hpc-H100-topology.xml", Where::Metal) else {
            return;
        };
        assert_eq!(kinds, BTreeSet::from(["PXB", "PHB", "NODE", "SYS"]));
    }

    #[test]
    fn azure_h100_as_its_virtual_machine_shows_it() {
        let Some(kinds) = file("05-azhpc-images-ndv5-topo.xml", Where::Guest) else {
            return;
        };
        assert_eq!(kinds, BTreeSet::from(["PIX", "PHB", "NODE", "SYS"]));
    }

    #[test]
    fn the_same_arrangement_on_metal() {
        file("05-azhpc-images-ndv5-topo.xml", Where::Metal);
    }

    #[test]
    fn amd_rome_with_eight_gpus_and_four_nics() {
        let Some(kinds) = file("65-rccl-topo_8p_rome_4nics.xml", Where::Metal) else {
            return;
        };
        assert_eq!(kinds, BTreeSet::from(["PXB", "SYS"]));
    }

    #[test]
    fn amd_mi200_with_switches_inside_the_gpus() {
        let Some(kinds) = file("44-rccl-topo_8p1h_4.xml", Where::Metal) else {
            return;
        };
        assert!(kinds.contains("PXB") && kinds.contains("SYS"), "{kinds:?}");
    }

    #[test]
    fn every_collected_file() {
        let Some(folder) = crate::corpus("nccl-topo-xml") else {
            return;
        };
        let mut names: Vec<_> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        names.sort();
        let (mut files, mut pairs, mut left_out) = (0, 0, Vec::new());
        for path in names {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let text = std::fs::read_to_string(&path).unwrap();
            match read(&text, Hosts::Own) {
                Some(machine) => {
                    compare(&name, &machine, Where::Metal);
                    files += 1;
                    pairs += machine.expected.pairs.len();
                }
                None => left_out.push(name),
            }
        }
        println!(
            "{files} files, {pairs} paths; without a GPU and a NIC, or impossible: {left_out:?}"
        );
        assert!(files >= 45 && pairs >= 1000, "{files} files, {pairs} paths");
    }
}
