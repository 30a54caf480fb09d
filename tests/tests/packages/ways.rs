//! Where no package brings the module, that is said, and nothing is asked.

use gdr_tests::node::Family;
use gdr_tests::node::drivers::Rdma;

use super::deb::{AptNode, Deb};
use super::support::Node;
use super::{have, plan, spec, step};

fn notes(node: &Node) -> String {
    let plan = plan(node);
    assert!(step(&plan).is_none(), "{plan:#}");
    assert_eq!(plan["refusals"], serde_json::json!([]), "{plan:#}");
    plan["notes"].to_string()
}

#[test]
fn the_installer_has_to_run_again() {
    let node = Node::new(&spec(Family::Debian));
    std::fs::create_dir_all(node.path().join("usr/bin")).unwrap();
    node.write("usr/bin/nvidia-uninstall", b"");
    let notes = notes(&node);
    assert!(notes.contains("package.not-packaged: "), "{notes}");
    assert!(
        notes.contains("NVIDIA-Linux-x86_64-570.148.08.run --silent --kernel-name=6.1.0-37-amd64"),
        "{notes}"
    );
}

#[test]
fn a_node_without_a_package_database_is_told_so() {
    let node = Node::new(&spec(Family::Debian));
    let notes = notes(&node);
    assert!(notes.contains("package.no-manager"), "{notes}");
}

#[test]
fn no_package_makes_up_for_an_rdma_core_without_the_interface() {
    let mut spec = spec(Family::Debian);
    spec.drivers.rdma = Rdma::Inbox;
    let node = Node::new(&spec);
    let notes = notes(&node);
    assert!(notes.contains("package.no-use"), "{notes}");
}

#[test]
fn a_release_that_the_table_does_not_have() {
    if !have(&["apt-get", "dpkg-deb", "busybox"]) {
        return;
    }
    let apt = AptNode::new(&[Deb::new("nvidia-kernel-dkms", "570.148.08-1")]);
    apt.node
        .write("usr/lib/os-release", b"ID=debian\nVERSION_ID=\"9\"\n");
    let notes = notes(&apt.node);
    assert!(notes.contains("package.no-row"), "{notes}");
}

#[test]
fn image_based_systems_have_a_command_of_their_own() {
    for (family, sign, command) in [
        (Family::El9, "ostree/repo", "rpm-ostree install"),
        (
            Family::Suse,
            "usr/sbin/transactional-update",
            "transactional-update pkg install",
        ),
    ] {
        let node = Node::new(&spec(family));
        std::fs::create_dir_all(node.path().join("var/lib/rpm")).unwrap();
        std::fs::create_dir_all(node.path().join(sign)).unwrap();
        let plan = node.json(&["plan"], 9);
        let refusal = &plan["refusals"][0];
        assert_eq!(refusal["id"], "package.image-based", "{plan:#}");
        assert!(
            refusal["fix"].as_str().unwrap().contains(command),
            "{refusal}"
        );
    }
}
