//! Nodes on which somebody has been at work before: what `docs/migration.md` says the agent does with it.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test looks at the machine from outside"
)]

mod support;

use gdr_tests::node::config_space::ACS_CONTROL;
use gdr_tests::node::drivers::{Drivers, Flavour, Peermem, Rdma};
use gdr_tests::node::{self, NodeSpec, Reboot, Tree};
use support::{Node, config, fingerprint};

fn node_with(line: &str, drivers: Drivers) -> Node {
    Node::new(&NodeSpec {
        tools: Some(env!("CARGO_BIN_EXE_sample-node").into()),
        cmdline_default: line.to_owned(),
        drivers,
        ..NodeSpec::default()
    })
}

fn node_of(line: &str) -> Node {
    node_with(line, Drivers::default())
}

fn commit(node: &Node) {
    node.json(&["apply", "--reboot"], 8);
    node.reboot(Reboot::default());
    assert_eq!(node.json(&["status"], 0)["state"], "COMMITTED");
}

fn steps(plan: &serde_json::Value) -> Vec<String> {
    let all = plan["steps"].as_array().unwrap().iter();
    all.map(|step| step["id"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn hand_written_arguments_that_hold_need_no_trial_and_stay_whose_they_are() {
    let node = node_of("quiet intel_iommu=on iommu=pt");
    let before = fingerprint(node.path());
    let plan = node.json(&["plan"], 3);
    assert_eq!(plan["reboot_required"], false, "{plan:#}");
    assert_eq!(steps(&plan), ["acs.clear", "policy.record"]);
    let apply = node.json(&["apply"], 0);
    assert_eq!(apply["status"]["state"], "COMMITTED", "{apply:#}");
    assert_eq!(fingerprint(node.path()), before, "no boot file is touched");
    // They were there before the agent, so they outlive it.
    node.json(&["rollback"], 0);
    assert_eq!(fingerprint(node.path()), before);
    node.reboot(Reboot::default());
    assert!(node.cmdline().contains("iommu=pt"), "{}", node.cmdline());
}

#[test]
fn a_contradiction_on_the_line_is_settled_at_its_end_and_nothing_is_dropped() {
    let node = node_of("quiet iommu=pt intel_iommu=on intel_iommu=off");
    let before = fingerprint(node.path());
    commit(&node);
    node.reboot(Reboot::default());
    let line = node.cmdline();
    let at = |arg: &str| line.rfind(arg).unwrap_or_else(|| panic!("{arg}: {line}"));
    assert!(at("intel_iommu=on") > at("intel_iommu=off"), "{line}");
    assert_eq!(line.matches("iommu=pt").count(), 1, "{line}");
    assert_eq!(node.json(&["verify"], 0)["verdict"], "met");
    node.json(&["rollback"], 8);
    node.reboot(Reboot::default());
    assert_eq!(fingerprint(node.path()), before);
}

#[test]
fn pcie_acs_override_is_told_beforehand_and_fails_no_trial() {
    let node = node_of("quiet pcie_acs_override=downstream,multifunction");
    let plan = node.json(&["plan"], 3);
    let notes = plan["notes"].to_string();
    assert!(notes.contains("acs.override-param"), "{plan:#}");
    commit(&node);
    let verify = node.json(&["verify"], 0);
    let checks = verify["checks"].as_array().unwrap();
    let check = checks
        .iter()
        .find(|c| c["id"] == "acs.override-param")
        .unwrap();
    assert_eq!(
        (&check["outcome"], &check["severity"]),
        (&"failed".into(), &"warning".into())
    );

    let remove = b"[kernel]\nremove = [\"pcie_acs_override\"]\n";
    node.write("etc/gdr-agent/policy.d/50-override.toml", remove);
    let plan = node.json(&["plan"], 3);
    assert!(!plan["notes"].to_string().contains("acs.override-param"));
    commit(&node);
    node.reboot(Reboot::default());
    assert!(
        !node.cmdline().contains("pcie_acs_override"),
        "{}",
        node.cmdline()
    );
    let text = String::from_utf8(node.read("etc/default/grub")).unwrap();
    assert!(
        text.contains("GRUB_CMDLINE_LINUX_DEFAULT=\"quiet\""),
        "{text}"
    );
}

#[test]
fn what_is_edited_and_not_yet_booted_is_asked_to_be_booted_first() {
    let node = node_of("quiet");
    let path = "etc/default/grub";
    let text = String::from_utf8(node.read(path)).unwrap();
    node.write(
        path,
        text.replace("\"quiet\"", "\"quiet hugepages=16\"")
            .as_bytes(),
    );
    let refused = |id: &str| {
        let apply = node.json(&["apply", "--reboot"], 9);
        assert_eq!(apply["refusals"][0]["id"], id, "{apply:#}");
    };
    refused("boot.stale-menu");
    node::regenerate(&Tree::new(node.path()), None).unwrap();
    refused("boot.default-not-proven");
    node::reboot(node.path(), Reboot::default()).unwrap();
    commit(&node);
    node.reboot(Reboot::default());
    for arg in ["hugepages=16", "iommu=pt"] {
        assert!(node.cmdline().contains(arg), "{}", node.cmdline());
    }
}

#[test]
fn ports_that_a_script_has_cleared_are_direct_and_not_written() {
    let node = node_of("quiet intel_iommu=on iommu=pt");
    let port = "0000:15:01.0";
    for entry in std::fs::read_dir(node.path().join("sys/bus/pci/devices")).unwrap() {
        let bdf = entry.unwrap().file_name().into_string().unwrap();
        let mut bytes = node.read(&config(&bdf));
        if bytes.len() > ACS_CONTROL + 1 && bytes[ACS_CONTROL - 6..ACS_CONTROL - 4] == [0x0d, 0] {
            bytes[ACS_CONTROL..ACS_CONTROL + 2].fill(0);
            node.write(&config(&bdf), &bytes);
        }
    }
    let plan = node.json(&["plan"], 3);
    assert_eq!(steps(&plan), ["policy.record"], "{plan:#}");
    node.json(&["apply"], 0);
    // The script cleared source validation, too; that is not the agent's to bring back.
    assert_eq!(node.acs_control(port), 0);
    // The next boot has the kernel's bits again, and now the agent clears the redirects alone.
    node.reboot(Reboot::default());
    assert_eq!(node.acs_control(port), 0x0011);
}

#[test]
fn a_modules_load_file_of_somebody_else_is_enough_and_stays() {
    let drivers = Drivers {
        flavour: Flavour::Proprietary,
        rdma: Rdma::Ofed,
        peermem: Peermem::Good,
        ..Drivers::default()
    };
    let file = "etc/modules-load.d/nvidia-peermem.conf";
    let node = node_with("quiet", drivers);
    assert!(steps(&node.json(&["plan"], 3)).contains(&"modules.load-at-boot".to_owned()));
    node.write(file, b"nvidia-peermem\n");
    assert!(!steps(&node.json(&["plan"], 3)).contains(&"modules.load-at-boot".to_owned()));
    // Once it goes, the agent's own takes its place.
    std::fs::remove_file(node.path().join(file)).unwrap();
    assert!(steps(&node.json(&["plan"], 3)).contains(&"modules.load-at-boot".to_owned()));
}
