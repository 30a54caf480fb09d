//! ACS redirection turned off by the kernel's command line, where registers may not be written or the
//! policy says so.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test looks at the machine from outside"
)]

mod support;

use gdr_tests::node::{Family, Lockdown, NodeSpec, POLICY, Reboot};
use support::Node;

fn policy(method: &str) -> Option<String> {
    Some(POLICY.replace(
        "scope = \"paths\"",
        &format!("scope = \"paths\"\nmethod = \"{method}\""),
    ))
}

fn redirected(node: &Node) -> Vec<bool> {
    let topology = node.json(&["topology"], 0);
    let paths = topology["paths"].as_array().unwrap();
    paths
        .iter()
        .map(|p| p["redirected"].as_bool().unwrap())
        .collect()
}

fn steps(plan: &serde_json::Value) -> Vec<&str> {
    let steps = plan["steps"].as_array().unwrap();
    steps.iter().map(|s| s["id"].as_str().unwrap()).collect()
}

#[test]
fn the_kernel_turns_it_off_at_every_boot_and_no_register_is_written() {
    for spec in [
        NodeSpec {
            policy: policy("cmdline"),
            ..NodeSpec::default()
        },
        // Lockdown leaves no other way, so `auto` takes this one.
        NodeSpec {
            lockdown: Lockdown::Integrity,
            ..NodeSpec::default()
        },
    ] {
        let node = Node::new(&spec);
        assert!(redirected(&node).iter().all(|r| *r));
        let plan = node.json(&["plan"], 3);
        assert!(!steps(&plan).contains(&"acs.clear"), "{plan:#}");
        assert_eq!(plan["refusals"], serde_json::json!([]));
        node.json(&["apply", "--reboot"], 8);
        node.reboot(Reboot::default());
        let status = node.json(&["status"], 0);
        assert_eq!(status["state"], "COMMITTED", "{status:#}");
        let kept = String::from_utf8(node.read("etc/default/grub.d/99-gdr-agent.cfg")).unwrap();
        assert!(
            kept.contains("'pci=disable_acs_redir="),
            "quoted for GRUB: {kept}"
        );

        node.reboot(Reboot::default());
        // Each port by its way from the root bus.
        assert!(
            node.cmdline()
                .contains("0000:15:01.0;0000:15:01.0/00.0/00.0;"),
            "{}",
            node.cmdline()
        );
        assert!(redirected(&node).iter().all(|r| !*r));
        assert!(
            !node.has("var/lib/gdr-agent/acs/saved.json"),
            "nothing was written"
        );
        assert_eq!(node.json(&["apply"], 0)["changed"], false);
        assert_eq!(node.json(&["verify"], 0)["verdict"], "met");
    }
}

#[test]
fn a_kernel_that_does_it_wrong_is_refused_by_name() {
    for (kernel, refused) in [("6.11.0-29-generic", true), ("6.12.117-amd64", false)] {
        let node = Node::new(&NodeSpec {
            kernel: kernel.into(),
            policy: policy("cmdline"),
            ..NodeSpec::default()
        });
        let plan = node.json(&["plan"], if refused { 9 } else { 3 });
        let ids: Vec<&str> = plan["refusals"]
            .as_array()
            .unwrap()
            .iter()
            .map(|r| r["id"].as_str().unwrap())
            .collect();
        assert_eq!(ids.contains(&"acs.kernel-bug"), refused, "{plan:#}");
    }
}

#[test]
fn bits_that_the_parameter_cannot_tell_apart_are_refused() {
    let text = policy("cmdline").unwrap();
    let node = Node::new(&NodeSpec {
        policy: Some(text.replace("scope =", "clear = [\"RR\"]\nscope =")),
        ..NodeSpec::default()
    });
    let plan = node.json(&["plan"], 9);
    assert_eq!(plan["refusals"][0]["id"], "acs.cmdline-bits", "{plan:#}");
}

#[test]
fn a_register_that_redirects_although_the_kernel_was_told_is_a_failed_check() {
    let node = Node::new(&NodeSpec {
        policy: policy("cmdline"),
        ..NodeSpec::default()
    });
    node.json(&["apply", "--reboot"], 8);
    node.reboot(Reboot::default());
    node.reboot(Reboot::default());
    let port = "sys/bus/pci/devices/0000:17:00.0/config";
    let mut config = node.read(port);
    let at = config
        .windows(2)
        .enumerate()
        .skip(0x100)
        .find(|(_, w)| *w == [0x0d, 0x00])
        .unwrap()
        .0;
    config[at + 6] |= 0x04;
    node.write(port, &config);
    let verify = node.json(&["verify"], 3);
    let checks = verify["checks"].as_array().unwrap();
    let failed = checks
        .iter()
        .find(|c| c["id"] == "acs.redirect" && c["outcome"] == "failed")
        .unwrap();
    assert_eq!(failed["subject"], "0000:17:00.0");
    assert!(
        failed["fix"].as_str().unwrap().contains("Fix Extend ACS"),
        "{failed:#}"
    );
}

#[test]
fn entries_in_files_cannot_hold_the_semicolons_and_say_so() {
    let node = Node::new(&NodeSpec {
        family: Family::El9,
        cmdline_default: String::new(),
        policy: policy("cmdline"),
        ..NodeSpec::default()
    });
    let plan = node.json(&["plan"], 9);
    assert_eq!(
        plan["refusals"][0]["id"], "boot.entry-uneditable",
        "{plan:#}"
    );
}
