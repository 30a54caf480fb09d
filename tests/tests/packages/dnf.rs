//! dnf 4 on rpm.

use std::fs;

use gdr_tests::node::Family;
use gdr_tests::node::drivers::Peermem;

use super::mirror::dying;
use super::rpm::{Rpm, RpmNode};
use super::{KERNEL, assert_refused, assert_undone, have, log, plan, spec, step, tool};

const TOOLS: [&str; 5] = ["dnf", "rpm", "rpmbuild", "createrepo_c", "busybox"];
const NAME: &str = "kmod-nvidia-latest-dkms";

/// A node that has NVIDIA's repository among its sources.
fn node(packages: &[Rpm], installed: &[&str]) -> RpmNode {
    let node = RpmNode::new(Family::El9, packages, installed);
    node.node.write(
        "etc/yum.repos.d/cuda.repo",
        b"[cuda]\nname=cuda\nbaseurl=https://developer.download.nvidia.com/compute/cuda/repos/rhel9/x86_64\nenabled=0\n",
    );
    node
}

/// The package that fits.
fn good() -> Rpm {
    Rpm::new(NAME, "570.148.08", "1.el9")
        .epoch(3)
        .with_module(&spec(Family::El9), Peermem::Good)
}

#[test]
fn the_version_of_the_driver_is_installed_though_a_newer_one_is_there() {
    if !have(&TOOLS) {
        return;
    }
    let dnf = node(
        &[good(), Rpm::new(NAME, "580.65.06", "1.el9").epoch(3)],
        &[],
    );
    let shown = plan(&dnf.node);
    let step = step(&shown).unwrap_or_else(|| panic!("{shown:#}"));
    assert_eq!(
        step["summary"],
        format!("install {NAME}-3:570.148.08-1.el9 with dnf for kernel {KERNEL}")
    );
    assert_eq!(step["diff"], format!("+{NAME} 3:570.148.08-1.el9\n"));
    assert_eq!(dnf.state(NAME), "");
    dnf.node.json(&["apply"], 0);
    assert_eq!(dnf.state(NAME), "3:570.148.08-1.el9");
    assert!(log(&dnf.node).contains("Complete!"), "{}", log(&dnf.node));
    assert_eq!(dnf.node.json(&["apply"], 0)["changed"], false);
}

#[test]
fn a_driver_that_no_package_fits_is_told_which_there_are() {
    if !have(&TOOLS) {
        return;
    }
    let dnf = node(&[Rpm::new(NAME, "580.65.06", "1.el9").epoch(3)], &[]);
    assert_refused(
        &dnf.node,
        "package.no-candidate",
        "no kmod-nvidia-latest-dkms for driver 570.148.08: there is 3:580.65.06-1.el9",
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

    let driver = "nvidia-kmod-common";
    let moves = node(
        &[
            good().preamble("Requires: nvidia-kmod-common >= 3:570.172"),
            Rpm::new(driver, "570.148.08", "1.el9").epoch(3),
            Rpm::new(driver, "570.172.08", "1.el9").epoch(3),
        ],
        &["nvidia-kmod-common-570.148"],
    );
    assert_refused(
        &moves.node,
        "package.would-upgrade",
        "nvidia-kmod-common 3:570.148.08-1.el9 -> 3:570.172.08-1.el9",
    );

    let kernel = node(
        &[
            good().preamble("Requires: kernel-core"),
            Rpm::new("kernel-core", "5.14.0", "600.el9"),
        ],
        &[],
    );
    assert_refused(
        &kernel.node,
        "package.would-upgrade",
        "kernel-core 5.14.0-600.el9",
    );

    let library = node(
        &[
            good().preamble("Requires: libx >= 2"),
            Rpm::new("libx", "1", "1"),
            Rpm::new("libx", "2", "1"),
        ],
        &["libx-1"],
    );
    let shown = plan(&library.node);
    let step = step(&shown).unwrap_or_else(|| panic!("{shown:#}"));
    assert_eq!(
        step["diff"],
        format!("+{NAME} 3:570.148.08-1.el9\n-libx 1-1\n+libx 2-1\n")
    );
}

#[test]
fn conflicts_and_what_nobody_provides() {
    if !have(&TOOLS) {
        return;
    }
    let dnf = node(&[good().preamble("Requires: nowhere")], &[]);
    assert_refused(
        &dnf.node,
        "package.unmet-dependencies",
        "nothing provides nowhere",
    );
    let dnf = node(
        &[
            good().preamble("Conflicts: libx"),
            Rpm::new("libx", "1", "1"),
        ],
        &["libx-1"],
    );
    assert_refused(
        &dnf.node,
        "package.unmet-dependencies",
        "conflicts with libx",
    );
}

#[test]
fn what_the_node_excludes_is_held() {
    if !have(&TOOLS) {
        return;
    }
    let dnf = node(&[good()], &[]);
    dnf.node
        .write("etc/dnf/dnf.conf", b"[main]\nexclude=kmod-nvidia*\n");
    assert_refused(
        &dnf.node,
        "package.held",
        "the node's own configuration excludes it",
    );
}

#[test]
fn a_kernel_without_headers_is_refused() {
    if !have(&TOOLS) {
        return;
    }
    let dnf = node(&[good()], &[]);
    fs::remove_dir(
        dnf.node
            .path()
            .join(format!("usr/lib/modules/{KERNEL}/build")),
    )
    .unwrap();
    assert_refused(
        &dnf.node,
        "package.no-headers",
        &format!("kernel-devel-{KERNEL}"),
    );
}

#[test]
fn a_database_that_cannot_be_read_is_left_alone() {
    if !have(&TOOLS) {
        return;
    }
    let dnf = node(&[good()], &[]);
    let path = tool("rpm", &["--eval", "%{_dbpath}"], dnf.node.path());
    let path = path.trim().trim_start_matches('/').to_owned();
    for entry in fs::read_dir(dnf.node.path().join(&path)).unwrap().flatten() {
        fs::write(entry.path(), vec![0x5a; 8192]).unwrap();
    }
    assert_refused(
        &dnf.node,
        "package.broken-database",
        "rpm's database cannot be read",
    );
}

#[test]
fn two_drivers_are_one_too_many() {
    if !have(&TOOLS) {
        return;
    }
    let other = "kmod-nvidia-open-dkms";
    let dnf = node(
        &[
            Rpm::new(other, "570.148.08", "1"),
            Rpm::new(NAME, "560.35.05", "1"),
        ],
        &[other, NAME],
    );
    assert_refused(
        &dnf.node,
        "package.two-drivers",
        "kmod-nvidia-latest-dkms, kmod-nvidia-open-dkms",
    );
}

#[test]
fn no_repository_at_all() {
    if !have(&TOOLS) {
        return;
    }
    let dnf = node(&[good()], &[]);
    fs::remove_file(dnf.node.path().join("etc/yum.repos.d/test.repo")).unwrap();
    // NVIDIA's is there, and switched off.
    assert_refused(&dnf.node, "package.no-repository", "enabled");
}

#[test]
fn a_script_that_fails_is_named_with_the_state_it_leaves() {
    if !have(&TOOLS) {
        return;
    }
    // rpm installs a package whose %post fails, and dnf calls that a success: what tells is that there is no module.
    let dnf = node(&[good().post("echo no compiler >&2; exit 1")], &[]);
    let said = assert_undone(&dnf.node, "package.no-module");
    assert!(said.contains("peermem.not-installed"), "{said}");
    assert!(
        log(&dnf.node).contains("scriptlet failed"),
        "{}",
        log(&dnf.node)
    );
    assert_eq!(dnf.state(NAME), "3:570.148.08-1.el9");
}

#[test]
fn a_mirror_that_dies_half_way_changes_nothing() {
    if !have(&TOOLS) {
        return;
    }
    let dnf = node(&[good()], &[]);
    let port = dying(dnf.repository.clone(), &[".rpm"]);
    dnf.source(
        &format!("http://127.0.0.1:{port}"),
        "gpgcheck=0\nretries=1\n",
    );
    assert!(step(&plan(&dnf.node)).is_some(), "{:#}", plan(&dnf.node));
    let said = assert_undone(&dnf.node, "package.download-failed");
    assert!(
        said.contains("kmod-nvidia-latest-dkms is not installed"),
        "{said}"
    );

    // And one whose index does not come.
    let dnf = node(&[good()], &[]);
    let port = dying(dnf.repository.clone(), &[".xml"]);
    dnf.source(
        &format!("http://127.0.0.1:{port}"),
        "gpgcheck=0\nretries=1\n",
    );
    assert_refused(&dnf.node, "package.download-failed", "could not");
}

#[test]
fn a_package_that_nobody_signed_is_not_installed() {
    if !have(&TOOLS) {
        return;
    }
    let dnf = node(&[good()], &[]);
    dnf.source(
        &format!("file://{}", dnf.repository.display()),
        "gpgcheck=1\n",
    );
    let said = assert_undone(&dnf.node, "package.untrusted");
    assert!(
        said.contains("kmod-nvidia-latest-dkms is not installed"),
        "{said}"
    );
}

#[test]
fn a_repository_with_another_key_is_not_believed() {
    if !have(&TOOLS) || !have(&["gpg", "gpgconf"]) {
        return;
    }
    let dnf = node(&[good()], &[]);
    let home = tempfile::tempdir().unwrap();
    let at = home.path().to_str().unwrap();
    for who in ["good@example.org", "other@example.org"] {
        tool(
            "gpg",
            &[
                "--homedir",
                at,
                "--batch",
                "--passphrase",
                "",
                "--quick-gen-key",
                who,
                "rsa2048",
                "sign",
                "never",
            ],
            home.path(),
        );
    }
    let key = home.path().join("good.asc");
    tool(
        "gpg",
        &[
            "--homedir",
            at,
            "--batch",
            "--armor",
            "-o",
            key.to_str().unwrap(),
            "--export",
            "good@example.org",
        ],
        home.path(),
    );
    let metadata = dnf.repository.join("noarch/repodata");
    let sign = |who: &str| {
        let args = [
            "--homedir",
            at,
            "--batch",
            "--yes",
            "-u",
            who,
            "--armor",
            "--detach-sign",
            "-o",
            "repomd.xml.asc",
            "repomd.xml",
        ];
        tool("gpg", &args, &metadata);
    };
    let more = format!(
        "gpgcheck=0\nrepo_gpgcheck=1\ngpgkey=file://{}\n",
        key.display()
    );
    dnf.source(&format!("file://{}", dnf.repository.display()), &more);
    sign("other@example.org");
    assert_refused(&dnf.node, "package.untrusted", "GPG");
    sign("good@example.org");
    tool("gpgconf", &["--homedir", at, "--kill", "all"], home.path());
    // Its key is not imported yet, and that is for a person to do.
    assert_refused(&dnf.node, "package.untrusted", "GPG");
    let root = format!("--installroot={}", dnf.node.path().display());
    tool("dnf", &[&root, "-y", "makecache"], dnf.node.path());
    assert!(step(&plan(&dnf.node)).is_some(), "{:#}", plan(&dnf.node));
}
