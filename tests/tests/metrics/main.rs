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

mod exporter;
mod monitoring;
#[path = "../support/mod.rs"]
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

fn sample<'t>(text: &'t str, start: &str) -> Option<&'t str> {
    text.lines()
        .find_map(|line| line.strip_prefix(start))
        .map(str::trim)
}

/// Every line is a comment or `name{labels} value`, and each name is explained before it is used.
fn well_formed(text: &str) {
    let mut known = std::collections::BTreeSet::new();
    let line = regex::Regex::new(
        r#"^([a-z_]+)(\{[a-z_]+="(?:[^"\\]|\\.)*"(?:,[a-z_]+="(?:[^"\\]|\\.)*")*\})? [0-9]+$"#,
    )
    .unwrap();
    let mut seen = std::collections::BTreeSet::new();
    for each in text.lines() {
        if let Some(rest) = each.strip_prefix("# TYPE ") {
            assert!(
                known.insert(rest.split(' ').next().unwrap().to_owned()),
                "{each}"
            );
        } else if !each.starts_with("# HELP ") {
            let found = line.captures(each).unwrap_or_else(|| panic!("{each}"));
            assert!(known.contains(&found[1]), "{each}");
            assert!(
                seen.insert(each.rsplit_once(' ').unwrap().0.to_owned()),
                "twice: {each}"
            );
        }
    }
}

#[test]
fn checks_the_verdict_and_the_transaction() {
    let node = node();
    node.reboot(Reboot::default());
    let text = || {
        let output = node.run(&["metrics"]);
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        well_formed(&text);
        text
    };
    let acs = "{group=\"acs\",id=\"acs.redirect\",severity=\"required\"} ";
    let of = |text: &str| {
        let one = |name: &str| sample(text, name).map(str::to_owned);
        [
            one("gdr_agent_verdict "),
            one("gdr_agent_verdict_unknown "),
            one(&format!("gdr_agent_check{acs}")),
            one(&format!("gdr_agent_check_unknown{acs}")),
        ]
        .map(Option::unwrap)
    };
    let good = text();
    assert_eq!(of(&good), ["1", "0", "1", "0"], "{good}");
    assert_eq!(
        sample(&good, "gdr_agent_transaction_state{state=\"COMMITTED\"} "),
        Some("1")
    );
    let states = good.matches("gdr_agent_transaction_state{").count();
    assert_eq!((states, good.matches("\"} 1\n").count() > 0), (12, true));
    assert!(
        sample(
            &good,
            "gdr_agent_node_info{kernel=\"6.1.0-37-amd64\",driver=\""
        )
        .is_some(),
        "{good}"
    );
    set_again(&node);
    assert_eq!(of(&text()), ["0", "0", "0", "0"]);
    // What cannot be read is neither fine nor failed.
    let bytes = node.read(&config(PORT));
    node.write(&config(PORT), &bytes[..64]);
    assert_eq!(of(&text()), ["0", "1", "0", "1"]);
    let json = node.json(&["metrics"], 0);
    assert_eq!(
        (&json["verdict"], &json["errors"]),
        (&"unknown".into(), &serde_json::json!([]))
    );
    let schema = std::process::Command::new(support::binary())
        .args(["schema", "metrics"])
        .output()
        .unwrap();
    let schema = serde_json::from_slice(&schema.stdout).unwrap();
    assert!(
        jsonschema::validator_for(&schema).unwrap().is_valid(&json),
        "{json:#}"
    );
    // A policy that cannot be read takes the checks with it, and nothing else.
    node.write("etc/gdr-agent/policy.toml", b"version = \x1b[2J");
    let broken = text();
    assert_eq!(sample(&broken, "gdr_agent_read_errors "), Some("1"));
    assert_eq!(sample(&broken, "gdr_agent_verdict_unknown "), Some("1"));
    assert!(sample(&broken, "gdr_agent_check{").is_none());
    assert!(sample(&broken, "gdr_agent_acs_repairs_total{").is_some());
}
