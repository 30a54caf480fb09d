//! Repairs of ACS are counted for each port, over reboots, and written for the textfile collector of
//! node_exporter.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test looks at the machine from outside"
)]

mod support;

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;

use gdr_tests::node::config_space::ACS_CONTROL;
use gdr_tests::node::{NodeSpec, Reboot};
use support::{Node, config};

const PORT: &str = "0000:17:00.0";
const FILE: &str = "run/gdr-agent/metrics.prom";

/// A node on which the policy is in force.
fn node() -> Node {
    let node = Node::new(&NodeSpec {
        // Nothing but ACS, so nothing has to be tried by a reboot.
        policy: Some(
            "version = 1\n[devices]\ngpu = [\"10de:*/0302\"]\nnic = [\"15b3:*/0207\"]\n\
             [kernel]\niommu = \"keep\"\n[peermem]\nload = false\n[acs]\nscope = \"paths\"\n\
             [verify]\nrequire = [\"acs\"]\n"
                .into(),
        ),
        ..NodeSpec::default()
    });
    node.json(&["apply"], 0);
    node
}

/// What the kernel does after a reset of what is below the port.
fn set_again(node: &Node) {
    let mut bytes = node.read(&config(PORT));
    bytes[ACS_CONTROL] = 0x1d;
    node.write(&config(PORT), &bytes);
}

fn boot(node: &Node, verb: &str) -> String {
    let output = node.run(&["boot", verb]);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// The counters in the textfile, by port.
fn counters(node: &Node) -> BTreeMap<String, u64> {
    let output = node.run(&["metrics", "--textfile", &format!("/{FILE}")]);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(node.read(FILE)).unwrap();
    let printed = String::from_utf8(node.run(&["metrics"]).stdout).unwrap();
    assert_eq!(text, printed);
    assert!(text.ends_with('\n') && text.contains("# TYPE gdr_agent_acs_repairs_total counter\n"));
    let samples = text
        .lines()
        .filter_map(|line| line.strip_prefix("gdr_agent_acs_repairs_total{port=\""));
    samples
        .map(|sample| {
            let (port, value) = sample.split_once("\"} ").unwrap();
            (port.to_owned(), value.parse().unwrap())
        })
        .collect()
}

#[test]
fn only_what_came_back_is_a_repair_and_the_count_outlives_reboots() {
    let node = node();
    std::fs::create_dir(node.path().join("run/gdr-agent")).unwrap();
    node.reboot(Reboot::default());
    let first = counters(&node);
    assert_eq!(
        first.len(),
        20,
        "every port on a path has its counter from the start: {first:?}"
    );
    assert!(first.values().all(|count| *count == 0), "{first:?}");

    for round in 1..=2 {
        set_again(&node);
        let said = boot(&node, "reconcile");
        assert!(
            said.contains("had come back") && said.contains(PORT),
            "{said}"
        );
        assert_eq!(node.acs_control(PORT), 0x11);
        assert_eq!(boot(&node, "reconcile"), "", "once is enough");
        let now = counters(&node);
        assert_eq!(now[PORT], round);
        assert_eq!(now.values().sum::<u64>(), round, "{now:?}");
    }
    // The kernel sets the bits at every boot; that they are cleared then is no repair.
    node.reboot(Reboot::default());
    assert_eq!(node.acs_control(PORT), 0x11);
    assert_eq!(counters(&node)[PORT], 2);

    let metrics = node.json(&["metrics"], 0);
    let port = metrics["acs_repairs"]
        .as_array()
        .unwrap()
        .iter()
        .find(|port| port["port"] == PORT);
    assert!(
        port.unwrap()["last"].as_u64().unwrap() > 1_700_000_000,
        "{metrics:#}"
    );
    let mode = std::fs::metadata(node.path().join(FILE))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o644, "node_exporter is not root");
    let left = std::fs::read_dir(node.path().join("run/gdr-agent"))
        .unwrap()
        .count();
    assert_eq!(left, 1, "no temporary file stays");
}

#[test]
fn counts_that_cannot_be_read_stop_no_repair_and_are_not_lost() {
    let node = node();
    node.reboot(Reboot::default());
    let counts = "var/lib/gdr-agent/acs/repairs.json";
    for damaged in [
        "",
        "{\"version\":9,\"ports\":{}}",
        "{\"version\":1,\"ports\":{\"x\":{\"repairs\":1,\"last\":null}}}",
    ] {
        node.write(counts, damaged.as_bytes());
        set_again(&node);
        let said = boot(&node, "acs");
        assert!(
            said.contains("not counted") && said.contains("repairs.json"),
            "{said}"
        );
        assert_eq!(node.acs_control(PORT), 0x11);
        assert_eq!(node.read(counts), damaged.as_bytes());
        assert_eq!(node.run(&["metrics"]).status.code(), Some(7));
    }
}
