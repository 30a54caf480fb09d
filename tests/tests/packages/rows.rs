//! Every row of the table that says `synthetic` is planned from a repository that has its packages, on a node that is as
//! the row says.

use gdr_tests::node::drivers::Flavour;
use gdr_tests::node::{Family, NodeSpec};
use toml::Table;

use super::deb::{AptNode, Deb};
use super::rpm::{Rpm, RpmNode};
use super::support::Node;
use super::{KERNEL, have, plan, spec, step};

const TABLE: &str = include_str!("../../../agent/src/package/table.toml");

fn rows(manager: Option<&str>) -> Vec<Table> {
    let table: Table = TABLE.parse().unwrap();
    let rows = table["row"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row.as_table().unwrap().clone());
    let rows: Vec<Table> = rows
        .filter(|row| row["tested"].as_str() == Some("synthetic"))
        .filter(|row| row.get("manager").and_then(|m| m.as_str()) == manager)
        .collect();
    assert!(!rows.is_empty());
    rows
}

fn list(row: &Table, key: &str) -> Vec<String> {
    let all = row
        .get(key)
        .and_then(|value| value.as_array())
        .cloned()
        .unwrap_or_default();
    let fill = |text: &str| text.replace("{kernel}", KERNEL).replace("{branch}", "570");
    all.iter()
        .map(|value| fill(value.as_str().unwrap()))
        .collect()
}

fn node_spec(row: &Table, family: Family) -> NodeSpec {
    let mut spec = spec(family);
    spec.drivers.debian_names = false;
    if row["flavour"].as_str() == Some("open") {
        spec.drivers.flavour = Flavour::Open;
        spec.policy = Some(format!("{}[gdr]\npath = \"peermem\"\n", super::POLICY));
    }
    spec
}

fn os_release(node: &Node, row: &Table, like: &str) {
    let version = list(row, "releases")[0].replace('*', "99");
    for id in list(row, "distribution") {
        let text = format!("ID={id}\nID_LIKE=\"{like}\"\nVERSION_ID=\"{version}\"\n");
        node.write("usr/lib/os-release", text.as_bytes());
    }
}

fn check(node: &Node, row: &Table, expected: &str) {
    let shown = plan(node);
    let id = row["id"].as_str().unwrap();
    let step = step(&shown).unwrap_or_else(|| panic!("{id}: {shown:#}"));
    assert_eq!(step["diff"], format!("+{expected}\n"), "{id}");
}

#[test]
fn apt() {
    if !have(&["apt-get", "dpkg-deb", "busybox"]) {
        return;
    }
    for row in rows(Some("apt")) {
        let name = list(&row, "packages")[0].clone();
        let deb = match row["pin"].as_str().unwrap() {
            "dependency" => {
                let on = row["driver_package"]
                    .as_str()
                    .unwrap()
                    .replace("{branch}", "570");
                Deb::new(&name, "6.1.0-37.37").control(&format!(
                    "Depends: {on} (<= 570.148.08-1), {on} (>= 570.148.08)"
                ))
            }
            _ => Deb::new(&name, "570.148.08-0ubuntu1"),
        };
        let version = deb.version.clone();
        let newer = Deb::new(&name, "999.1-1");
        let apt = AptNode::on(&node_spec(&row, Family::Debian), &[deb, newer]);
        os_release(&apt.node, &row, "debian");
        if row["source"].as_str() == Some("nvidia-repository") {
            let line = b"# deb https://developer.download.nvidia.com/compute/cuda/repos/debian12/x86_64 /\n";
            apt.node.write("etc/apt/sources.list.d/cuda.list", line);
        }
        // A package that DKMS builds from is there in an older version.
        let when = list(&row, "when");
        let there: Vec<(&str, &str, &str)> = when
            .iter()
            .map(|when| {
                (
                    when.as_str(),
                    if *when == name {
                        "570.1-1"
                    } else {
                        "570.148.08-0ubuntu1"
                    },
                    "install ok installed",
                )
            })
            .collect();
        apt.status(&there);
        let shown = plan(&apt.node);
        let id = row["id"].as_str().unwrap();
        if when.contains(&name) {
            // Moving that is moving the driver, which is not for this step to do.
            let refusals = shown["refusals"].to_string();
            assert!(
                refusals.contains("package.would-upgrade"),
                "{id}: {refusals}"
            );
            assert!(
                refusals.contains(&format!("{name} 570.1-1 -> {version}")),
                "{id}: {refusals}"
            );
        } else {
            check(&apt.node, &row, &format!("{name} {version}"));
        }
    }
}

#[test]
fn dnf() {
    if !have(&["dnf", "rpm", "rpmbuild", "createrepo_c", "busybox"]) {
        return;
    }
    for row in rows(Some("dnf")) {
        let name = list(&row, "packages")[0].clone();
        let fits = Rpm::new(&name, "570.148.08", "1.el9").epoch(3);
        let newer = Rpm::new(&name, "580.65.06", "1.el9").epoch(3);
        let dnf = RpmNode::on(&node_spec(&row, Family::El9), &[fits, newer], &[]);
        os_release(&dnf.node, &row, "fedora");
        let repo = b"[cuda]\nbaseurl=https://developer.download.nvidia.com/compute/cuda/repos/rhel9/x86_64\nenabled=0\n";
        dnf.node.write("etc/yum.repos.d/cuda.repo", repo);
        check(&dnf.node, &row, &format!("{name} 3:570.148.08-1.el9"));
    }
}

#[test]
fn zypper() {
    if !have(&["zypper", "rpm", "rpmbuild", "createrepo_c", "busybox"]) {
        return;
    }
    for row in rows(Some("zypper")) {
        let name = list(&row, "packages")[0].clone();
        let kmp = |driver: &str| Rpm::new(&name, &format!("{driver}_k6.4.0_150600.21"), "1");
        let packages = [kmp("570.148.08"), kmp("580.65.06")];
        let zypper = RpmNode::on(&node_spec(&row, Family::Suse), &packages, &[]);
        os_release(&zypper.node, &row, "suse");
        if row["source"].as_str() == Some("nvidia-repository") {
            let repo = b"[cuda]\nbaseurl=https://developer.download.nvidia.com/compute/cuda/repos/sles15/x86_64\nenabled=0\n";
            zypper.node.write("etc/zypp/repos.d/cuda.repo", repo);
        }
        check(
            &zypper.node,
            &row,
            &format!("{name} 570.148.08_k6.4.0_150600.21-1"),
        );
    }
}

#[test]
fn no_package_at_all() {
    for row in rows(None) {
        let node = Node::new(&node_spec(&row, Family::Debian));
        if row["source"].as_str() == Some("runfile") {
            node.write("usr/bin/nvidia-uninstall", b"");
        } else {
            // The driver is in the container's root, and its modules are loaded from there.
            let dep = format!("usr/lib/modules/{KERNEL}/modules.dep");
            for kernel in [KERNEL, "6.1.0-35-amd64"] {
                let dep = dep.replace(KERNEL, kernel);
                let text = String::from_utf8(node.read(&dep)).unwrap();
                let rest: String = text
                    .lines()
                    .filter(|l| !l.contains("nvidia"))
                    .map(|l| format!("{l}\n"))
                    .collect();
                node.write(&dep, rest.as_bytes());
            }
            std::fs::create_dir_all(node.path().join("run/nvidia/driver/lib")).unwrap();
        }
        let shown = plan(&node);
        let notes = shown["notes"].to_string();
        let advice = row["advice"]
            .as_str()
            .unwrap()
            .split(['{', '`'])
            .next()
            .unwrap();
        assert!(
            notes.contains("package.not-packaged: ") && notes.contains(advice),
            "{notes}"
        );
        assert_eq!(shown["refusals"], serde_json::json!([]));
    }
}
