//! Ports that lie, hang in loops, ignore what is written or go away: each has a clear result, and none
//! is ever called fine.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test looks at the machine from outside"
)]

mod support;

use std::process::Command;

use gdr_tests::node::NodeSpec;
use gdr_tests::node::config_space::ACS_OFFSET;
use serde_json::Value;
use support::{Node, binary, config};

const PORT: &str = "0000:17:00.0";
const GPU: &str = "0000:18:00.0";

fn node() -> Node {
    Node::new(&NodeSpec::default())
}

fn port<'a>(output: &'a Value, bdf: &str) -> &'a Value {
    let ports = output["ports"].as_array().unwrap();
    ports.iter().find(|port| port["bdf"] == bdf).unwrap()
}

/// Every way in which a port's configuration space can fail to say what its ACS is.
#[test]
fn a_port_that_cannot_be_read_is_unknown_everywhere() {
    type Spoil = fn(&mut Vec<u8>);
    let cases: [(&str, &str, Spoil); 7] = [
        ("all ones", "all ones", |bytes| bytes.fill(0xff)),
        (
            "a chain that leads back to its start",
            "loops back",
            |bytes| bytes[0x102..0x104].copy_from_slice(&[0x02, 0x10]),
        ),
        (
            "a chain that leads into the header",
            "below 0x100",
            |bytes| bytes[0x102..0x104].copy_from_slice(&[0x02, 0x04]),
        ),
        ("all ones in the chain", "all ones at 0x148", |bytes| {
            bytes[ACS_OFFSET..ACS_OFFSET + 4].fill(0xff);
        }),
        ("only the registers gone", "all ones", |bytes| {
            bytes[ACS_OFFSET + 4..ACS_OFFSET + 8].fill(0xff);
        }),
        ("no extended space", "ends at byte 256", |bytes| {
            bytes.truncate(256);
        }),
        ("cut inside the capability", "ends at byte 332", |bytes| {
            bytes.truncate(ACS_OFFSET + 4);
        }),
    ];
    for (what, words, spoil) in cases {
        let node = node();
        let mut bytes = node.read(&config(PORT));
        spoil(&mut bytes);
        node.write(&config(PORT), &bytes);

        let output = node.json(&["acs", "clear"], 7);
        let seen = port(&output, PORT);
        assert_eq!(seen["action"], "unknown", "{what}");
        assert!(
            seen["reason"].as_str().unwrap().contains(words),
            "{what}: {seen}"
        );
        assert_eq!(
            node.read(&config(PORT)),
            bytes,
            "{what}: nothing is written"
        );
        node.json(&["acs", "show", "--check"], 7);

        let topology = node.json(&["topology"], 0);
        for path in topology["paths"].as_array().unwrap() {
            let through = path["bridges"]
                .as_array()
                .unwrap()
                .iter()
                .any(|bridge| bridge == PORT);
            assert_eq!(through, path["gpu"] == GPU, "{what}: {path}");
            let wanted = if through { Value::Null } else { false.into() };
            assert_eq!(path["redirected"], wanted, "{what}: {path}");
        }
        let checks = node.acs_checks(3);
        let of_port: Vec<&str> = checks
            .iter()
            .filter(|(subject, _)| subject == PORT)
            .map(|(_, outcome)| outcome.as_str())
            .collect();
        assert_eq!(of_port, ["unknown"], "{what}: {checks:?}");
    }
}

/// Runs `acs clear` while writes to configuration space, and to no other file, go as `inject` says.
fn clear_with(node: &Node, inject: &str) -> Option<(i32, Value)> {
    let devices = std::fs::read_dir(node.path().join("sys/bus/pci/devices")).unwrap();
    let spaces = devices.map(|device| device.unwrap().path().join("config"));
    let strace = Command::new("strace")
        .args(spaces.flat_map(|space| ["-P".into(), space.canonicalize().unwrap()]))
        .args([
            "-f",
            "-qq",
            "-o",
            "/dev/null",
            "-e",
            "trace=pwrite64",
            "-e",
            inject,
        ])
        .arg(binary())
        .arg("--root")
        .arg(node.path())
        .args(["acs", "clear", "--format", "json"])
        .output();
    let output = match strace {
        Ok(output) => output,
        Err(error) => {
            assert!(std::env::var_os("CI").is_none(), "strace: {error}");
            println!("SKIPPED: strace is not installed: {error}");
            return None;
        }
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    let value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}{errors}"));
    Some((output.status.code().unwrap(), value))
}

#[test]
fn a_write_that_does_not_stick_is_told_and_is_no_success() {
    let node = node();
    // The kernel says that two bytes were written, and the register stays what it was.
    let Some((code, output)) = clear_with(&node, "inject=pwrite64:retval=2") else {
        return;
    };
    assert_eq!((code, &output["changed"]), (7, &false.into()));
    let seen = port(&output, PORT);
    assert_eq!(seen["error"]["kind"], "did-not-stick");
    assert!(
        seen["error"]["message"]
            .as_str()
            .unwrap()
            .contains("read back 0x001d"),
        "{seen}"
    );
    assert_eq!(
        (&seen["written"], &seen["new"]),
        (&false.into(), &seen["ctl"])
    );
    node.json(&["acs", "show", "--check"], 3);
    assert!(
        node.acs_checks(3)
            .iter()
            .all(|(_, outcome)| outcome == "failed")
    );
}

#[test]
fn a_device_that_goes_away_before_the_write_stops_no_other() {
    let node = node();
    let Some((code, output)) = clear_with(&node, "inject=pwrite64:error=ENODEV:when=1") else {
        return;
    };
    assert_eq!((code, &output["changed"]), (7, &true.into()));
    let ports = output["ports"].as_array().unwrap();
    let failed: Vec<&Value> = ports
        .iter()
        .filter(|port| !port["error"].is_null())
        .collect();
    assert_eq!(failed.len(), 1, "{failed:#?}");
    let bdf = failed[0]["bdf"].as_str().unwrap();
    assert_eq!(node.acs_control(bdf), 0x1d);
    let written = ports.iter().filter(|port| port["written"] == true).count();
    assert_eq!(written, 19);
    // The next run does what is left.
    assert_eq!(node.json(&["acs", "clear"], 0)["changed"], true);
    assert_eq!(node.acs_control(bdf), 0x11);
}

#[test]
fn lockdown_that_only_the_write_meets_is_a_refusal() {
    let node = node();
    let Some((code, output)) = clear_with(&node, "inject=pwrite64:error=EPERM") else {
        return;
    };
    assert_eq!((code, &output["changed"]), (9, &false.into()));
    assert_eq!(output["refusals"][0]["id"], "acs.lockdown");
}
