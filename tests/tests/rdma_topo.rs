//! `rdma_topo` of rdma-core on the platforms that it knows: the same ports and the same bits, or a
//! difference that docs/topology.md argues for. Each of those is asserted too, so that it stays the
//! only one.
//!
//! The program is not part of this repository: `scripts/test` fetches it, and `GDR_RDMA_TOPO` names it.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test looks at the machine from outside"
)]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;

use gdr_tests::node::config_space::ACS_CONTROL;
use gdr_tests::node::layout::Function;
use gdr_tests::node::model::{GPU, INTEL_ROOT_PORT, Model, NIC, NVME, Port};
use gdr_tests::node::{NodeSpec, POLICY};
use support::{Node, config};

/// The upstream port of the switch in a ConnectX-8.
const CX_UP: Model = Model {
    id: (0x15b3, 0x197c),
    subsystem: (0x15b3, 0x197c),
    class: 0x06_0400,
    driver: Some("pcieport"),
    port: Port::Upstream,
    ..NIC
};
const CX_DOWN: Model = Model {
    port: Port::Downstream,
    ..CX_UP
};
/// A ConnectX-8.
const CX_NIC: Model = Model {
    id: (0x15b3, 0x1023),
    ..NIC
};
/// The function of a ConnectX-8 that reaches GPU memory by itself.
const CX_DMA: Model = Model {
    id: (0x15b3, 0x2100),
    class: 0x08_0100,
    driver: None,
    ..NIC
};
const GRACE: Model = Model {
    id: (0x10de, 0x22b2),
    subsystem: (0x10de, 0),
    ..INTEL_ROOT_PORT
};
/// The ports of a Broadcom switch.
const PEX_UP: Model = Model {
    id: (0x1000, 0xc030),
    subsystem: (0x1000, 0x100b),
    ..CX_UP
};
const PEX_DOWN: Model = Model {
    port: Port::Downstream,
    ..PEX_UP
};

/// Functions, made one below the other.
#[derive(Default)]
struct Tree {
    functions: Vec<Function>,
}

impl Tree {
    /// Adds a function at `bdf` below another one, or below a host bridge `pciDDDD:BB`.
    fn add(&mut self, above: &str, bdf: &str, model: Model, numa: i32) {
        let parent = self.functions.iter().find(|f| f.bdf == above);
        let dir = parent.map_or(format!("sys/devices/{above}"), |f| f.dir.clone());
        let bus = |bdf: &str| u8::from_str_radix(&bdf[bdf.len() - 7..bdf.len() - 5], 16).unwrap();
        let buses = model
            .port
            .is_bridge()
            .then(|| [bus(bdf), bus(bdf) + 1, bus(bdf) + 1]);
        self.functions.push(Function {
            bdf: bdf.into(),
            dir: format!("{dir}/{bdf}"),
            model,
            numa,
            buses,
            regions: Vec::new(),
            memory: None,
            prefetch: None,
        });
    }

    /// A root port with a ConnectX-8's switch: the NIC on one port, on the other one the GPU behind a
    /// switch of its own.
    fn inline(&mut self, domain: &str, nic: Model, numa: i32) {
        let at = |rest: &str| format!("{domain}:{rest}");
        self.add(
            &format!("pci{domain}:00"),
            &at("00:01.0"),
            INTEL_ROOT_PORT,
            numa,
        );
        self.add(&at("00:01.0"), &at("01:00.0"), CX_UP, numa);
        self.add(&at("01:00.0"), &at("02:00.0"), CX_DOWN, numa);
        self.add(&at("02:00.0"), &at("03:00.0"), nic, numa);
        self.add(&at("01:00.0"), &at("02:01.0"), CX_DOWN, numa);
        self.add(&at("02:01.0"), &at("04:00.0"), CX_UP, numa);
        self.add(&at("04:00.0"), &at("05:00.0"), CX_DOWN, numa);
        self.add(&at("05:00.0"), &at("06:00.0"), GPU, numa);
    }

    /// A GPU and the DMA function of a ConnectX-8 below one root port of a Grace, the NIC itself and a
    /// drive below another.
    fn data_direct(&mut self, near: &str, far: &str, numa: i32) {
        let at = |domain: &str, rest: &str| format!("{domain}:{rest}");
        self.add(&format!("pci{near}:00"), &at(near, "00:00.0"), GRACE, numa);
        self.add(&at(near, "00:00.0"), &at(near, "01:00.0"), CX_UP, numa);
        self.add(&at(near, "01:00.0"), &at(near, "02:00.0"), CX_DOWN, numa);
        self.add(&at(near, "02:00.0"), &at(near, "03:00.0"), CX_DMA, numa);
        self.add(&at(near, "01:00.0"), &at(near, "02:01.0"), CX_DOWN, numa);
        self.add(&at(near, "02:01.0"), &at(near, "04:00.0"), CX_UP, numa);
        self.add(&at(near, "04:00.0"), &at(near, "05:00.0"), CX_DOWN, numa);
        self.add(&at(near, "05:00.0"), &at(near, "06:00.0"), GPU, numa);
        self.add(&format!("pci{far}:00"), &at(far, "00:00.0"), GRACE, numa);
        self.add(&at(far, "00:00.0"), &at(far, "01:00.0"), CX_UP, numa);
        self.add(&at(far, "01:00.0"), &at(far, "02:00.0"), CX_DOWN, numa);
        self.add(&at(far, "02:00.0"), &at(far, "03:00.0"), CX_NIC, numa);
        self.add(&at(far, "01:00.0"), &at(far, "02:01.0"), CX_DOWN, numa);
        self.add(&at(far, "02:01.0"), &at(far, "04:00.0"), NVME, numa);
    }

    fn node(self) -> Node {
        Node::new(&NodeSpec {
            functions: Some(self.functions),
            policy: Some(POLICY.replace("scope", "method = \"config-space\"\nscope")),
            ..NodeSpec::default()
        })
    }
}

/// Where the program is. In CI it has to be there.
fn rdma_topo() -> Option<PathBuf> {
    let named = std::env::var_os("GDR_RDMA_TOPO").map(PathBuf::from);
    let found = named
        .or_else(|| Some(PathBuf::from("/usr/sbin/rdma_topo")))
        .filter(|path| path.is_file());
    if found.is_none() {
        assert!(
            std::env::var_os("CI").is_none(),
            "GDR_RDMA_TOPO names no rdma_topo: run scripts/test"
        );
        println!(
            "SKIPPED: there is no rdma_topo here; scripts/test fetches it and sets GDR_RDMA_TOPO"
        );
    }
    found
}

/// Exit code and output of its check, the one command that only reads.
fn check(node: &Node) -> Option<(i32, String)> {
    let output = Command::new("python3")
        .arg(rdma_topo()?)
        .arg("check")
        .env("RDMA_TOPO_DEVDIR", node.path().join("sys/bus/pci/devices/"))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!errors.contains("Traceback"), "{text}{errors}");
    Some((output.status.code().unwrap(), text))
}

/// What it wants of each port, from the most significant bit (DT) to the least (SV): `xx000x0`.
fn wanted(node: &Node) -> Option<BTreeMap<String, String>> {
    let (_, text) = check(node)?;
    let lines = text.lines().filter_map(|line| line.split_once("ACS for "));
    let masks = lines.map(|(_, line)| {
        let words: Vec<&str> = line.split([' ', ',']).collect();
        let mask = words
            .iter()
            .find(|word| word.contains('x') && word.len() == 7)
            .unwrap();
        (words[1].to_owned(), (*mask).to_owned())
    });
    let masks: BTreeMap<String, String> = masks.collect();
    assert!(!masks.is_empty(), "{text}");
    Some(masks)
}

/// `1`, `0` or `x` for a bit by its number.
fn bit(mask: &str, number: usize) -> char {
    mask.chars().rev().nth(number).unwrap()
}

const RR: usize = 2;
const CR: usize = 3;

/// Control words before and after, and what the agent does with each port.
fn ours(node: &Node) -> BTreeMap<String, (u64, u64, String)> {
    let said = node.json(&["acs", "show"], 0);
    let ports = said["ports"].as_array().unwrap().iter();
    ports
        .filter(|port| port["ctl"].is_u64())
        .map(|port| {
            let action = port["action"].as_str().unwrap().to_owned();
            let ctl = port["ctl"].as_u64().unwrap();
            let new = if action == "clear" {
                port["new"].as_u64().unwrap()
            } else {
                ctl
            };
            (port["bdf"].as_str().unwrap().to_owned(), (ctl, new, action))
        })
        .collect()
}

fn findings(node: &Node) -> Vec<String> {
    let said = node.json(&["acs", "show"], 0);
    let findings = said["findings"].as_array().unwrap().iter();
    findings
        .map(|finding| finding["id"].as_str().unwrap().to_owned())
        .collect()
}

/// Their ports whose redirection is to be off, and ours.
fn off(
    theirs: &BTreeMap<String, String>,
    ours: &BTreeMap<String, (u64, u64, String)>,
) -> [BTreeSet<String>; 2] {
    let theirs = theirs
        .iter()
        .filter(|(_, mask)| bit(mask, RR) == '0' && bit(mask, CR) == '0');
    let ours = ours.iter().filter(|(_, (.., action))| action == "clear");
    [
        theirs.map(|(bdf, _)| bdf.clone()).collect(),
        ours.map(|(bdf, _)| bdf.clone()).collect(),
    ]
}

fn set(list: &[&str]) -> BTreeSet<String> {
    list.iter().map(|bdf| (*bdf).to_owned()).collect()
}

/// The bits that both sides decide about are the same on the ports that both name, and ours touches
/// none that theirs wants to keep, but for SV and UF: they redirect nothing, so they stay.
fn same_bits(theirs: &BTreeMap<String, String>, ours: &BTreeMap<String, (u64, u64, String)>) {
    for (bdf, (ctl, new, action)) in ours.iter().filter(|(_, (.., action))| action == "clear") {
        assert_eq!(
            ctl & !new,
            ctl & 0x2c,
            "{bdf} {action}: RR, CR and EC, and nothing else"
        );
        let mask = &theirs[bdf];
        for number in 0..7 {
            let after = (new >> number) & 1 == 1;
            let agreed = match bit(mask, number) {
                'x' => ((ctl >> number) & 1 == 1) == after,
                '1' => after,
                _ => !after || matches!(number, 0 | 4),
            };
            assert!(
                agreed,
                "{bdf}: bit {number} of {mask}, {ctl:#x} -> {new:#x}"
            );
        }
    }
}

#[test]
fn one_gpu_and_one_nic_behind_a_connectx_8_on_metal() {
    let mut tree = Tree::default();
    tree.inline("0000", CX_NIC, 0);
    let node = tree.node();
    let (Some(theirs), ours) = (wanted(&node), ours(&node)) else {
        return;
    };
    let [off_theirs, off_ours] = off(&theirs, &ours);
    assert_eq!(
        off_ours,
        set(&["0000:02:00.0", "0000:02:01.0", "0000:05:00.0"])
    );
    // The path turns below the root port, so what that does to peer traffic does not matter to it.
    let more: BTreeSet<String> = off_theirs.difference(&off_ours).cloned().collect();
    assert_eq!(more, set(&["0000:00:01.0"]));
    assert!(off_ours.is_subset(&off_theirs));
    same_bits(&theirs, &ours);
}

#[test]
fn two_of_them_name_the_same_ports() {
    let mut tree = Tree::default();
    tree.inline("0000", CX_NIC, 0);
    tree.inline("0001", CX_NIC, 1);
    let node = tree.node();
    let (Some(theirs), ours) = (wanted(&node), ours(&node)) else {
        return;
    };
    let [off_theirs, off_ours] = off(&theirs, &ours);
    assert_eq!(off_ours.len(), 8);
    assert_eq!(off_ours, off_theirs);
    same_bits(&theirs, &ours);
    // After our clearing, all that is left to it are SV and UF.
    node.json(&["acs", "clear"], 0);
    let (_, lines) = check(&node).unwrap();
    assert!(lines.contains("0010001 != xx000x0"), "{lines}");
    assert!(!lines.contains("0011101"), "{lines}");
}

#[test]
fn guests_keep_their_acs() {
    let mut tree = Tree::default();
    for (domain, numa) in [("0000", 0), ("0001", 1)] {
        tree.inline(
            domain,
            Model {
                ats: true,
                ..CX_NIC
            },
            numa,
        );
    }
    let node = tree.node();
    let (Some(theirs), ours) = (wanted(&node), ours(&node)) else {
        return;
    };
    for (bdf, mask) in &theirs {
        assert_eq!((bit(mask, RR), bit(mask, CR)), ('1', '1'), "{bdf}");
        let (ctl, new, action) = &ours[bdf];
        assert_eq!((ctl, action.as_str()), (new, "left-alone"), "{bdf}");
    }
    // It also switches Direct Translated on above the NIC; the agent clears bits and sets none.
    assert_eq!(bit(&theirs["0000:02:00.0"], 6), '1');
    assert_eq!(findings(&node), ["acs.virtualised"]);

    // What is not judged is unknown, and what translated requests pass is met.
    let before: BTreeMap<_, _> = node.acs_checks(3).into_iter().collect();
    for bdf in theirs.keys() {
        assert_eq!(
            before.get(bdf).map(String::as_str),
            Some("unknown"),
            "{bdf}"
        );
    }
    let path = &config("0000:02:00.0");
    let mut config = node.read(path);
    config[ACS_CONTROL] |= 0x40;
    node.write(path, &config);
    let mut wanted = before;
    wanted.insert("0000:02:00.0".to_owned(), "met".to_owned());
    assert_eq!(BTreeMap::from_iter(node.acs_checks(3)), wanted);
}

#[test]
fn data_direct_and_grace_are_left_to_it() {
    let mut tree = Tree::default();
    tree.data_direct("0000", "0002", 0);
    tree.data_direct("0010", "0012", 1);
    let node = tree.node();
    for (near, far) in [("0000", "0002"), ("0010", "0012")] {
        // The two functions of a board know each other by a word in their vital product data.
        for bdf in [format!("{near}:03:00.0"), format!("{far}:03:00.0")] {
            let word = format!("board-{near}");
            let mut vpd = vec![0x90, 3 + word.len() as u8, 0, b'V', b'3', word.len() as u8];
            vpd.extend(word.bytes());
            vpd.push(0x78);
            node.write(&format!("sys/bus/pci/devices/{bdf}/vpd"), &vpd);
        }
    }
    let (Some(theirs), ours) = (wanted(&node), ours(&node)) else {
        return;
    };
    let mixed = theirs
        .values()
        .filter(|mask| bit(mask, RR) != bit(mask, CR))
        .count();
    assert_eq!(
        mixed, 4,
        "a mixture above each DMA function and each GPU: {theirs:?}"
    );
    assert!(theirs.len() == 14, "{theirs:?}");
    for bdf in theirs.keys() {
        let (ctl, new, action) = &ours[bdf];
        assert_eq!(ctl, new, "{bdf}: {action}");
    }
    assert_eq!(findings(&node), ["acs.data-direct", "acs.nvidia-cpu"]);
    let judged: BTreeMap<_, _> = node.acs_checks(3).into_iter().collect();
    assert!(
        !judged.is_empty() && judged.values().all(|o| o == "unknown"),
        "{judged:?}"
    );
}

#[test]
fn gpus_at_the_root_ports_of_a_grace() {
    let mut tree = Tree::default();
    for (domain, model) in [("0000", GPU), ("0002", CX_NIC)] {
        tree.add(
            &format!("pci{domain}:00"),
            &format!("{domain}:00:00.0"),
            GRACE,
            0,
        );
        tree.add(
            &format!("{domain}:00:00.0"),
            &format!("{domain}:01:00.0"),
            model,
            0,
        );
    }
    let node = tree.node();
    let (Some(theirs), ours) = (wanted(&node), ours(&node)) else {
        return;
    };
    for (bdf, mask) in &theirs {
        assert_eq!((bit(mask, RR), bit(mask, CR)), ('1', '1'), "{bdf}");
        assert_eq!(ours[bdf].2, "left-alone", "{bdf}");
    }
    assert_eq!(theirs.len(), 2);
    assert_eq!(findings(&node), ["acs.nvidia-cpu"]);
}

#[test]
fn it_says_nothing_about_root_ports_of_other_processors_and_other_switches() {
    // GPU and NIC at root ports of their own: it knows the class, and looks at no port.
    let mut tree = Tree::default();
    for (bus, model) in [("10", GPU), ("20", CX_NIC)] {
        let port = format!("0000:{bus}:01.0");
        tree.add(&format!("pci0000:{bus}"), &port, INTEL_ROOT_PORT, 0);
        tree.add(&port, &format!("0000:{}1:00.0", &bus[..1]), model, 0);
    }
    let node = tree.node();
    let Some((_, said)) = check(&node) else {
        return;
    };
    assert!(
        said.contains("NUMA-based") && !said.contains("ACS for"),
        "{said}"
    );
    let ours = ours(&node);
    assert!(
        ours.values().all(|(.., action)| action == "clear") && ours.len() == 2,
        "{ours:?}"
    );

    // The common x86 server: it knows no such topology.
    let mut tree = Tree::default();
    tree.add("pci0000:15", "0000:15:01.0", INTEL_ROOT_PORT, 0);
    tree.add("0000:15:01.0", "0000:16:00.0", PEX_UP, 0);
    for (port, device, model) in [("17:00.0", "18:00.0", GPU), ("17:01.0", "19:00.0", NIC)] {
        let port = format!("0000:{port}");
        tree.add("0000:16:00.0", &port, PEX_DOWN, 0);
        tree.add(&port, &format!("0000:{device}"), model, 0);
    }
    let node = tree.node();
    let (code, said) = check(&node).unwrap();
    assert_eq!(code, 100);
    assert!(said.contains("No supported topology"), "{said}");
    let ours = ours_cleared(&node);
    assert_eq!(ours, set(&["0000:17:00.0", "0000:17:01.0"]));
}

fn ours_cleared(node: &Node) -> BTreeSet<String> {
    let ports = ours(node);
    let cleared = ports
        .into_iter()
        .filter(|(_, (.., action))| action == "clear");
    cleared.map(|(bdf, _)| bdf).collect()
}
