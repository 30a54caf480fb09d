//! A device that is handed to a guest while the node runs: the ports above it isolate again.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test looks at the machine from outside"
)]

mod support;

use std::path::PathBuf;

use gdr_tests::node::{NodeSpec, POLICY, Reboot};
use support::Node;

/// The port above the GPU, the one beside it, and the root port above both.
const PORTS: [&str; 3] = ["0000:17:00.0", "0000:17:01.0", "0000:15:01.0"];
const GPU: &str = "0000:18:00.0";

fn controls(node: &Node) -> [u16; 3] {
    PORTS.map(|port| node.acs_control(port))
}

fn bind(node: &Node, driver: &str) {
    let dir: PathBuf = node.path().join("sys/bus/pci/devices").join(GPU);
    let uevent = std::fs::read_to_string(dir.join("uevent")).unwrap();
    let rest: Vec<&str> = uevent
        .lines()
        .filter(|line| !line.starts_with("DRIVER="))
        .collect();
    std::fs::write(
        dir.join("uevent"),
        format!("DRIVER={driver}\n{}\n", rest.join("\n")),
    )
    .unwrap();
    std::fs::remove_file(dir.join("driver")).unwrap();
    std::os::unix::fs::symlink(format!("/sys/bus/pci/drivers/{driver}"), dir.join("driver"))
        .unwrap();
}

fn boot_acs(node: &Node) -> String {
    let output = node.run(&["boot", "acs"]);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn the_ports_above_isolate_again_until_the_host_has_the_device_back() {
    let node = Node::new(&NodeSpec {
        policy: Some(POLICY.replace("\"passthrough\"", "\"keep\"")),
        ..NodeSpec::default()
    });
    node.json(&["apply", "--no-reboot"], 0);
    node.reboot(Reboot::default());
    assert_eq!(controls(&node), [0x11, 0x11, 0x11]);

    bind(&node, "vfio-pci");
    let said = boot_acs(&node);
    assert!(
        said.contains(&format!("put back on {}", PORTS[0])),
        "{said}"
    );
    // The NIC's port is not above the GPU, so traffic of the others still passes it.
    assert_eq!(controls(&node), [0x1d, 0x11, 0x1d]);
    let again = boot_acs(&node);
    assert!(
        again.contains("acs.vfio") && !again.contains("put back"),
        "{again}"
    );
    assert_eq!(controls(&node), [0x1d, 0x11, 0x1d]);

    bind(&node, "nvidia");
    boot_acs(&node);
    assert_eq!(controls(&node), [0x11, 0x11, 0x11]);
}
