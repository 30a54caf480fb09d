//! Packages, with the real package managers on repositories that are made here: apt in the root of a made-up node, dnf
//! and zypper in an RPM root.
//!
//! It takes apt, dnf, zypper, rpmbuild, createrepo_c, gpg and a static busybox, all of Debian; in CI they have to be there.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test looks at the machine from outside"
)]

mod apt;
mod deb;
mod dnf;
mod mirror;
mod rows;
mod rpm;
#[path = "../support/mod.rs"]
mod support;
mod ways;
mod zypper;

use std::path::Path;
use std::process::Command;

use gdr_tests::node::drivers::{Drivers, Flavour, Peermem, Rdma};
use gdr_tests::node::{Family, NodeSpec};
use serde_json::Value;
use support::Node;

/// The made-up node's kernel and driver.
pub(crate) const KERNEL: &str = "6.1.0-37-amd64";
pub(crate) const DRIVER: &str = "570.148.08";

/// Nothing but the module: no command line, no ports, no reboot.
pub(crate) const POLICY: &str = "version = 1\n[kernel]\niommu = \"keep\"\n[acs]\nscope = \"keep\"\n[reboot]\ncoordinator = \"none\"\n[verify]\nrequire = []\nwarn = []\n";

/// A node whose driver has everything but nvidia-peermem, and whose RDMA core has the peer-memory interface.
pub(crate) fn spec(family: Family) -> NodeSpec {
    NodeSpec {
        family,
        drivers: Drivers {
            flavour: Flavour::Proprietary,
            rdma: Rdma::Ofed,
            peermem: Peermem::None,
            debian_names: family == Family::Debian,
            ..Drivers::default()
        },
        policy: Some(POLICY.to_owned()),
        ..NodeSpec::default()
    }
}

/// The module's bytes and its path below `/lib/modules/KERNEL`, as on a node that has it.
pub(crate) fn module(spec: &NodeSpec, state: Peermem) -> (String, Vec<u8>) {
    let mut spec = spec.clone();
    spec.drivers.peermem = state;
    let node = Node::new(&spec);
    let dir = format!("usr/lib/modules/{}", spec.kernel);
    let dep = String::from_utf8(node.read(&format!("{dir}/modules.dep"))).unwrap();
    let mut paths = dep.lines().filter_map(|line| line.split(':').next());
    let path = paths.find(|path| path.contains("peermem")).unwrap();
    (path.to_owned(), node.read(&format!("{dir}/{path}")))
}

/// Whether the tools of a test are here; where not, says so, and in CI that is a failure.
pub(crate) fn have(tools: &[&str]) -> bool {
    let lacks: Vec<&&str> = tools
        .iter()
        .filter(|tool| {
            !["/usr/bin", "/bin", "/usr/sbin"]
                .iter()
                .any(|dir| Path::new(dir).join(tool).exists())
        })
        .collect();
    let root = Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
    if lacks.is_empty() && root {
        return true;
    }
    let why = format!("not tested: it takes root and {lacks:?}, which scripts/test installs");
    assert!(
        std::env::var_os("CI").is_none_or(|ci| ci != "true"),
        "{why}"
    );
    println!("SKIPPED: {why}");
    false
}

/// Runs a tool of the test's own, which has to succeed.
pub(crate) fn tool(program: &str, args: &[&str], dir: &Path) -> String {
    let output = Command::new(program)
        .args(args)
        .current_dir(dir)
        .env("LC_ALL", "C.UTF-8")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{program} {args:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// The shell that maintainer scripts run in, since the made-up node's is none.
pub(crate) fn shell(root: &Path) {
    let sh = root.join("usr/bin/sh");
    let _ = std::fs::remove_file(&sh);
    std::fs::copy("/bin/busybox", &sh).unwrap();
}

/// `plan` as JSON, whatever it ends with.
pub(crate) fn plan(node: &Node) -> Value {
    let output = node.run(&["--format", "json", "plan"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    serde_json::from_str(&text)
        .unwrap_or_else(|e| panic!("{e}: {text}{}", String::from_utf8_lossy(&output.stderr)))
}

/// The one step that installs.
pub(crate) fn step(plan: &Value) -> Option<Value> {
    let steps = plan["steps"].as_array().unwrap();
    steps.iter().find(|step| step["kind"] == "package").cloned()
}

/// Expects `plan` and `apply` to refuse with a finding, and the node to be as it was.
#[track_caller]
pub(crate) fn assert_refused(node: &Node, id: &str, because: &str) {
    let before = support::fingerprint(node.path());
    for verb in ["plan", "apply"] {
        let said = node.json(&[verb], 9);
        let refusals = said["refusals"].as_array().unwrap();
        let found = refusals.iter().find(|refusal| refusal["id"] == id);
        let found = found.unwrap_or_else(|| panic!("{verb}: no {id} in {refusals:#?}"));
        let message = found["message"].as_str().unwrap();
        assert!(message.contains(because), "{verb}: {because}: {message}");
        assert!(!found["fix"].as_str().unwrap().is_empty());
    }
    let after = support::fingerprint(node.path());
    // Caches of the manager and its own logs aside, nothing is different.
    let own = |path: &Path| {
        [
            "var/cache",
            "var/log",
            "var/lib/apt",
            "var/lib/dnf",
            "root/.rpmdb",
            "var/tmp",
            "tmp",
        ]
        .iter()
        .any(|skip| path.starts_with(skip))
    };
    for (path, was) in &before {
        assert!(
            own(path) || after.get(path) == Some(was),
            "{} changed",
            path.display()
        );
    }
    for path in after.keys() {
        assert!(
            own(path) || before.contains_key(path),
            "{} is new",
            path.display()
        );
    }
}

/// Expects `apply` to fail while it installs, with everything undone; returns what it says.
#[track_caller]
pub(crate) fn assert_undone(node: &Node, id: &str) -> String {
    let said = node.json(&["apply"], 5);
    let text = said["status"].to_string();
    assert!(text.contains(id), "no {id} in {said:#}");
    // Nothing of the agent's own stays behind.
    assert!(!node.has("etc/modules-load.d/gdr-agent.conf"));
    text
}

/// The log of a package manager in the last transaction.
pub(crate) fn log(node: &Node) -> String {
    let tx = node.path().join("var/lib/gdr-agent/tx");
    let mut found = String::new();
    for dir in std::fs::read_dir(tx).unwrap().flatten() {
        for file in std::fs::read_dir(dir.path()).unwrap().flatten() {
            if file.file_name().to_string_lossy().starts_with("packages-") {
                found += &std::fs::read_to_string(file.path()).unwrap();
            }
        }
    }
    found
}
