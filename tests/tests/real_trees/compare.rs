//! Builds a machine and holds the agent's answers against what its file implies.

use std::collections::{BTreeMap, BTreeSet};

use gdr_tests::node::config_space::ACS_CONTROL;
use gdr_tests::node::{Cpu, NodeSpec};
use serde_json::Value;

use crate::expected::Machine;
use crate::support::Node;

/// Where the machine runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Where {
    /// By itself.
    Metal,
    /// In a hypervisor, which shows it made-up ports.
    Guest,
}

const POLICY: &str = r#"version = 1

[devices]
gpu = ["*:*/0300", "*:*/0302", "*:*/0380", "*:*/1200"]
nic = ["*:*/0200", "*:*/0207", "*:*/0280", "10de:1ac2/0680"]

[acs]
scope = "paths"
method = "config-space"
"#;

pub fn compare(name: &str, machine: &Machine, place: Where) {
    let spec = NodeSpec {
        functions: Some(machine.functions.clone()),
        cpu: if machine.amd { Cpu::Amd } else { Cpu::Intel },
        hypervisor: place == Where::Guest,
        policy: Some(POLICY.into()),
        ..NodeSpec::default()
    };
    let node = Node::new(&spec);
    topology(name, machine, &node.json(&["topology"], 0), Some(true));
    let plan = node.json(&["plan"], 3);
    let before = controls(&node, machine);
    if place == Where::Guest {
        assert_eq!(written_by(&plan), BTreeSet::new(), "{name}");
        assert!(
            plan["notes"].to_string().contains("acs.in-vm"),
            "{name}: {plan:#}"
        );
        let clear = node.json(&["acs", "clear"], 9);
        assert_eq!(clear["refusals"][0]["id"], "acs.in-vm", "{name}");
        assert_eq!(
            controls(&node, machine),
            before,
            "{name}: nothing is written in a guest"
        );
        return;
    }
    let ports = machine.expected.ports();
    assert_eq!(
        written_by(&plan),
        ports,
        "{name}: the ports that the plan clears"
    );
    node.json(&["acs", "clear"], 0);
    for (bdf, control) in controls(&node, machine) {
        let (old, cleared) = (before[&bdf], ports.contains(&bdf));
        assert_eq!(old, KERNEL, "{name}: what the kernel sets");
        let wanted = if cleared { old & !0x2c } else { old };
        assert_eq!(control, wanted, "{name}: {bdf}, on a path: {cleared}");
    }
    topology(name, machine, &node.json(&["topology"], 0), Some(false));
    assert_eq!(
        written_by(&node.json(&["plan"], 3)),
        BTreeSet::new(),
        "{name}: once is enough"
    );
}

/// SV, RR, CR and UF.
const KERNEL: u16 = 0x1d;

fn topology(name: &str, machine: &Machine, said: &Value, redirected: Option<bool>) {
    let expected = &machine.expected;
    for (list, wanted) in [("gpus", &expected.gpus), ("nics", &expected.nics)] {
        let found: BTreeMap<String, i32> = said[list]
            .as_array()
            .unwrap()
            .iter()
            .map(|device| {
                (
                    text(&device["bdf"]),
                    device["numa_node"].as_i64().unwrap() as i32,
                )
            })
            .collect();
        assert_eq!(&found, wanted, "{name}: {list} and their NUMA nodes");
        for device in said[list].as_array().unwrap() {
            let nearest: BTreeSet<String> = strings(&device["nearest"]);
            let best = expected.nearest(device["bdf"].as_str().unwrap());
            // Among those of the best kind, the fewest bridges decide.
            assert!(
                !nearest.is_empty() && nearest.is_subset(&best),
                "{name}: {device}, {best:?}"
            );
        }
    }
    let paths = said["paths"].as_array().unwrap();
    assert_eq!(paths.len(), expected.pairs.len(), "{name}");
    for path in paths {
        let pair = (text(&path["gpu"]), text(&path["nic"]));
        let (kind, ports) = &expected.pairs[&pair];
        assert_eq!(path["kind"], *kind, "{name}: {pair:?}");
        assert_eq!(&strings(&path["bridges"]), ports, "{name}: {pair:?}");
        assert_eq!(path["redirected"].as_bool(), redirected, "{name}: {pair:?}");
    }
}

/// The ports of the `setpci` lines that a plan prints, each of which clears RR, CR and EC.
fn written_by(plan: &Value) -> BTreeSet<String> {
    let steps = plan["steps"].as_array().unwrap();
    let Some(step) = steps.iter().find(|step| step["id"] == "acs.clear") else {
        return BTreeSet::new();
    };
    let lines = step["diff"].as_str().unwrap().lines();
    lines
        .map(|line| {
            let (bdf, rest) = line
                .strip_prefix("setpci -s ")
                .unwrap()
                .split_once(' ')
                .unwrap();
            assert_eq!(rest, "ECAP_ACS+0x6.w=0000:002c");
            bdf.to_owned()
        })
        .collect()
}

/// The control word of every port that has one.
fn controls(node: &Node, machine: &Machine) -> BTreeMap<String, u16> {
    let ports = machine
        .functions
        .iter()
        .filter(|function| function.model.port.has_acs());
    ports
        .map(|port| {
            let config = node.read(&format!("{}/config", port.dir));
            let control = u16::from_le_bytes([config[ACS_CONTROL], config[ACS_CONTROL + 1]]);
            (port.bdf.clone(), control)
        })
        .collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

fn strings(value: &Value) -> BTreeSet<String> {
    value.as_array().unwrap().iter().map(text).collect()
}
