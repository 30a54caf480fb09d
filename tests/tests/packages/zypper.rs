//! zypper on rpm.

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::Command;

use gdr_tests::node::drivers::{Flavour, Peermem};
use gdr_tests::node::{Family, NodeSpec};

use super::mirror::dying;
use super::rpm::{Rpm, RpmNode};
use super::{KERNEL, assert_refused, assert_undone, have, log, plan, spec, step};

const TOOLS: [&str; 5] = ["zypper", "rpm", "rpmbuild", "createrepo_c", "busybox"];
const NAME: &str = "nvidia-open-driver-G06-signed-kmp-default";
const VERSION: &str = "570.148.08_k6.4.0_150600.21";

/// SUSE's packages are of the open driver, which needs nvidia-peermem only where the policy says so.
fn suse() -> NodeSpec {
    let mut spec = spec(Family::Suse);
    spec.drivers.flavour = Flavour::Open;
    spec.policy = Some(format!("{}[gdr]\npath = \"peermem\"\n", super::POLICY));
    spec
}

fn node(packages: &[Rpm], installed: &[&str]) -> RpmNode {
    RpmNode::on(&suse(), packages, installed)
}

fn good() -> Rpm {
    Rpm::new(NAME, VERSION, "150600.3.1").with_module(&suse(), Peermem::Good)
}

#[test]
fn the_version_of_the_driver_is_installed_though_a_newer_one_is_there() {
    if !have(&TOOLS) {
        return;
    }
    let newer = Rpm::new(NAME, "580.65.06_k6.4.0_150600.21", "150600.3.2");
    // Of another driver, though its version begins alike.
    let alike = Rpm::new(NAME, "570.148.081_k6.4.0_150600.21", "150600.3.2");
    let zypper = node(&[good(), newer, alike], &[]);
    let shown = plan(&zypper.node);
    let step = step(&shown).unwrap_or_else(|| panic!("{shown:#}"));
    assert_eq!(
        step["summary"],
        format!("install {NAME}={VERSION}-150600.3.1 with zypper for kernel {KERNEL}")
    );
    assert_eq!(step["diff"], format!("+{NAME} {VERSION}-150600.3.1\n"));
    assert!(
        shown["notes"]
            .to_string()
            .contains("leave nvidia-peermem out"),
        "{shown:#}"
    );
    zypper.node.json(&["apply"], 0);
    assert_eq!(zypper.state(NAME), format!("0:{VERSION}-150600.3.1"));
    assert!(
        log(&zypper.node).contains("install-summary"),
        "{}",
        log(&zypper.node)
    );
    assert_eq!(zypper.node.json(&["apply"], 0)["changed"], false);
}

#[test]
fn a_driver_that_no_package_fits_is_told_which_there_are() {
    if !have(&TOOLS) {
        return;
    }
    let zypper = node(&[Rpm::new(NAME, "580.65.06_k6.4.0_150600.21", "1")], &[]);
    assert_refused(
        &zypper.node,
        "package.no-candidate",
        "for driver 570.148.08: there is 580.65.06_k6.4.0_150600.21-1",
    );
}

#[test]
fn nothing_is_removed_and_neither_driver_nor_kernel_is_moved() {
    if !have(&TOOLS) {
        return;
    }
    let removes = node(
        &[
            good().preamble("Obsoletes: libx"),
            Rpm::new("libx", "1", "1"),
        ],
        &["libx-1"],
    );
    assert_refused(&removes.node, "package.would-remove", "libx 1-1 removed");

    let driver = "nvidia-compute-G06";
    let moves = node(
        &[
            good().preamble("Requires: nvidia-compute-G06 >= 570.172"),
            Rpm::new(driver, "570.148.08", "1"),
            Rpm::new(driver, "570.172.08", "1"),
        ],
        &["nvidia-compute-G06-570.148"],
    );
    assert_refused(
        &moves.node,
        "package.would-upgrade",
        "nvidia-compute-G06 570.148.08-1 -> 570.172.08-1",
    );

    let kernel = node(
        &[
            good().preamble("Requires: kernel-default"),
            Rpm::new("kernel-default", "6.4.0", "150600.23"),
        ],
        &[],
    );
    assert_refused(
        &kernel.node,
        "package.would-upgrade",
        "kernel-default 6.4.0-150600.23",
    );
}

#[test]
fn locks_stay() {
    if !have(&TOOLS) {
        return;
    }
    let zypper = node(&[good()], &[]);
    zypper.node.write(
        "etc/zypp/locks",
        b"\ntype: package\nmatch_type: glob\ncase_sensitive: on\nsolvable_name: nvidia-open-driver-*\n",
    );
    assert_refused(
        &zypper.node,
        "package.held",
        "is locked by `nvidia-open-driver-*`",
    );
    let needs = good().preamble("Requires: libx >= 2");
    let zypper = node(
        &[
            needs,
            Rpm::new("libx", "1", "1"),
            Rpm::new("libx", "2", "1"),
        ],
        &["libx-1"],
    );
    zypper.node.write(
        "etc/zypp/locks",
        b"\ntype: package\nmatch_type: glob\ncase_sensitive: on\nsolvable_name: libx\n",
    );
    assert_refused(&zypper.node, "package.held", "libx");
}

#[test]
fn what_nobody_provides_is_named() {
    if !have(&TOOLS) {
        return;
    }
    let zypper = node(&[good().preamble("Requires: nowhere")], &[]);
    assert_refused(
        &zypper.node,
        "package.unmet-dependencies",
        "nothing provides",
    );
}

#[test]
fn no_repository_at_all() {
    if !have(&TOOLS) {
        return;
    }
    let zypper = node(&[good()], &[]);
    fs::remove_file(zypper.node.path().join("etc/zypp/repos.d/test.repo")).unwrap();
    assert_refused(
        &zypper.node,
        "package.no-repository",
        "no repository is configured",
    );
}

#[test]
fn a_mirror_that_dies_half_way_changes_nothing() {
    if !have(&TOOLS) {
        return;
    }
    let zypper = node(&[good()], &[]);
    let port = dying(zypper.repository.clone(), &[".rpm"]);
    // It would try for minutes.
    zypper.node.write(
        "etc/zypp/zypp.conf",
        b"[main]\ndownload.transfer_timeout = 3\ndownload.max_silent_tries = 1\n",
    );
    zypper.source(&format!("http://127.0.0.1:{port}"), "gpgcheck=0\n");
    assert!(
        step(&plan(&zypper.node)).is_some(),
        "{:#}",
        plan(&zypper.node)
    );
    let said = assert_undone(&zypper.node, "package.download-failed");
    assert!(said.contains("is not installed"), "{said}");
}

#[test]
fn a_package_that_brings_a_stub_is_no_success() {
    if !have(&TOOLS) {
        return;
    }
    let stub = Rpm::new(NAME, VERSION, "150600.3.1").with_module(&suse(), Peermem::Stub);
    let zypper = node(&[stub], &[]);
    let said = assert_undone(&zypper.node, "package.no-module");
    assert!(said.contains("peermem.stub"), "{said}");
    // As newer packages of SUSE are: without the module.
    let none = Rpm::new(NAME, VERSION, "150600.3.1");
    let zypper = node(&[none], &[]);
    let said = assert_undone(&zypper.node, "package.no-module");
    assert!(said.contains("peermem.not-installed"), "{said}");
}

#[test]
fn a_package_that_nobody_signed_is_not_installed() {
    if !have(&TOOLS) {
        return;
    }
    let zypper = node(&[good()], &[]);
    zypper.source(
        &format!("file://{}", zypper.repository.display()),
        "gpgcheck=1\npkg_gpgcheck=1\n",
    );
    assert_refused(
        &zypper.node,
        "package.untrusted",
        "could not use all repositories",
    );
    assert_eq!(zypper.state(NAME), "");
}

#[test]
fn a_lock_is_waited_for() {
    if !have(&TOOLS) {
        return;
    }
    let zypper = node(&[good()], &[]);
    // It asks whether the program of that number is a zypper: one that sleeps under that name.
    let fake = zypper.repository.join("zypper");
    fs::copy("/bin/busybox", &fake).unwrap();
    let mut holder = Command::new(&fake);
    holder.arg0("sleep").arg("3");
    let mut holder = holder.spawn().unwrap();
    let pid = holder.id();
    // As long as nobody has waited for it, it is there.
    let reaper = std::thread::spawn(move || holder.wait().unwrap());
    zypper
        .node
        .write("run/zypp.pid", format!("{pid}\n").as_bytes());
    zypper.node.json(&["apply"], 0);
    reaper.join().unwrap();
    assert_eq!(zypper.state(NAME), format!("0:{VERSION}-150600.3.1"));
}
