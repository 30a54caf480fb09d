//! `topology` and `acs` as commands: exit codes, JSON, and what lies in the directory afterwards.

use std::path::Path;
use std::process::Output;

use crate::support::{Space, port, sysfs};
use serde_json::Value;

const ROOT_PORT: &str = "0000:15:01.0";
const GPU_PORT: &str = "0000:17:00.0";
const NIC_PORT: &str = "0000:17:01.0";

/// A GPU and a NIC behind one switch, a drive behind another root port, all ports redirecting.
struct Node(tempfile::TempDir);

impl Node {
    fn new() -> Self {
        let node = Self(tempfile::tempdir().unwrap());
        let port = |code, bus, below, last| {
            Space::new(0x1000, 0xc030, 0x06_0400, code)
                .bridge(bus, below, last)
                .aer()
                .acs(0x5f, 0x1d)
        };
        let device =
            |vendor, device, class| Space::new(vendor, device, class, port::ENDPOINT).aer();
        let root = "devices/pci0000:15/0000:15:01.0";
        let up = &format!("{root}/0000:16:00.0");
        node.put(root, port(port::ROOT, 0x15, 0x16, 0x19));
        let switch = Space::new(0x1000, 0xc030, 0x06_0400, port::UPSTREAM).bridge(0x16, 0x17, 0x19);
        node.put(up, switch);
        node.put(
            &format!("{up}/{GPU_PORT}"),
            port(port::DOWNSTREAM, 0x17, 0x18, 0x18),
        );
        node.put(
            &format!("{up}/{NIC_PORT}"),
            port(port::DOWNSTREAM, 0x17, 0x19, 0x19),
        );
        let gpu = device(0x10de, 0x2330, 0x03_0200);
        node.put(&format!("{up}/{GPU_PORT}/0000:18:00.0"), gpu);
        let nic = device(0x15b3, 0x1021, 0x02_0700);
        node.put(&format!("{up}/{NIC_PORT}/0000:19:00.0"), nic);
        node.put(
            "devices/pci0000:15/0000:15:02.0",
            port(port::ROOT, 0x15, 0x1a, 0x1a),
        );
        let drive = device(0x144d, 0xa80a, 0x01_0802);
        node.put("devices/pci0000:15/0000:15:02.0/0000:1a:00.0", drive);
        node.write(
            "proc/cpuinfo",
            "processor\t: 0\nflags\t\t: fpu vme de pse\n",
        );
        node
    }

    fn put(&self, path: &str, space: Space) {
        let bdf = path.rsplit('/').next().unwrap().parse().unwrap();
        sysfs::write(self.0.path(), bdf, Some(path), &space.bytes());
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn device_dir(&self, bdf: &str) -> std::path::PathBuf {
        self.0.path().join("sys/bus/pci/devices").join(bdf)
    }

    fn control(&self, bdf: &str) -> u16 {
        let config = std::fs::read(self.device_dir(bdf).join("config")).unwrap();
        u16::from_le_bytes([config[0x14e], config[0x14f]])
    }

    /// Runs the agent on the node.
    fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        let Output {
            status,
            stdout,
            stderr,
        } = std::process::Command::new(env!("CARGO_BIN_EXE_gdr-agent"))
            .arg("--root")
            .arg(self.0.path())
            .args(arguments)
            .output()
            .unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (status.code().unwrap(), text(stdout), text(stderr))
    }

    fn json(&self, arguments: &[&str]) -> (i32, Value) {
        let (code, text, errors) = self.run(&[arguments, &["--format", "json"]].concat());
        let value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}{errors}"));
        (code, value)
    }
}

fn port_of<'a>(output: &'a Value, bdf: &str) -> &'a Value {
    let ports = output["ports"].as_array().unwrap();
    ports.iter().find(|port| port["bdf"] == bdf).unwrap()
}

#[test]
fn topology_names_the_path() {
    let node = Node::new();
    let (code, topology) = node.json(&["topology"]);
    assert_eq!(code, 0);
    assert_eq!(topology["schema"], "gdr-agent/topology/v1");
    let path = &topology["paths"][0];
    assert_eq!(
        (&path["gpu"], &path["nic"]),
        (&"0000:18:00.0".into(), &"0000:19:00.0".into())
    );
    assert_eq!(
        (&path["kind"], &path["redirected"]),
        (&"PIX".into(), &true.into())
    );
    assert_eq!(path["bridges"], serde_json::json!([GPU_PORT, NIC_PORT]));
    let bridges = topology["bridges"].as_array().unwrap();
    let acs_of = |bdf: &str| &bridges.iter().find(|b| b["bdf"] == bdf).unwrap()["acs"];
    assert_eq!(acs_of("0000:16:00.0"), &Value::Null);
    assert_eq!(acs_of(GPU_PORT)["offset"], 0x148);
    assert_eq!(acs_of(GPU_PORT)["ctl"], 0x1d);
    assert_eq!(acs_of(GPU_PORT)["redirect"], true);
    let (code, text, _) = node.run(&["topology"]);
    assert_eq!(code, 0);
    assert!(text.contains("PIX!") && !text.contains('\u{1b}'), "{text}");
}

#[test]
fn clear_check_restore() {
    let node = Node::new();
    assert_eq!(node.run(&["acs", "show"]).0, 0);
    assert_eq!(node.run(&["acs", "show", "--check"]).0, 3);

    let (code, output) = node.json(&["acs", "clear"]);
    assert_eq!((code, &output["changed"]), (0, &true.into()));
    assert_eq!(output["schema"], "gdr-agent/acs/v1");
    assert_eq!(port_of(&output, GPU_PORT)["new"], 0x11);
    assert_eq!(port_of(&output, ROOT_PORT)["action"], "off-path");
    let controls = [ROOT_PORT, GPU_PORT, NIC_PORT, "0000:15:02.0"].map(|bdf| node.control(bdf));
    assert_eq!(controls, [0x1d, 0x11, 0x11, 0x1d]);
    assert_eq!(node.run(&["acs", "show", "--check"]).0, 0);

    let (code, output) = node.json(&["acs", "clear"]);
    assert_eq!((code, &output["changed"]), (0, &false.into()));

    let (code, output) = node.json(&["acs", "restore"]);
    assert_eq!((code, &output["changed"]), (0, &true.into()));
    assert_eq!(
        [GPU_PORT, NIC_PORT].map(|bdf| node.control(bdf)),
        [0x1d, 0x1d]
    );
    assert_eq!(node.json(&["acs", "restore"]).1["changed"], false);
}

#[test]
fn a_virtual_machine_is_refused_and_told_what_helps() {
    let node = Node::new();
    node.write(
        "proc/cpuinfo",
        "processor\t: 0\nflags\t\t: fpu hypervisor\n",
    );
    let (code, output) = node.json(&["acs", "clear"]);
    assert_eq!((code, &output["changed"]), (9, &false.into()));
    assert_eq!(output["refusals"][0]["id"], "acs.in-vm");
    assert_eq!(node.control(GPU_PORT), 0x1d);
    let (_, text, _) = node.run(&["acs", "clear"]);
    assert!(text.contains("ATS_ENABLED"), "{text}");
}

#[test]
fn lockdown_is_refused_for_clear_and_restore() {
    let node = Node::new();
    assert_eq!(node.run(&["acs", "clear"]).0, 0);
    node.write(
        "sys/kernel/security/lockdown",
        "none [integrity] confidentiality\n",
    );
    let (code, output) = node.json(&["acs", "restore"]);
    assert_eq!(
        (code, &output["refusals"][0]["id"]),
        (9, &"acs.lockdown".into())
    );
    assert_eq!(node.control(GPU_PORT), 0x11);
    let node = Node::new();
    node.write(
        "sys/kernel/security/lockdown",
        "none [integrity] confidentiality\n",
    );
    let (code, output) = node.json(&["acs", "clear"]);
    assert_eq!(
        (code, &output["refusals"][0]["id"]),
        (9, &"acs.lockdown".into())
    );
    assert!(
        output["refusals"][0]["fix"]
            .as_str()
            .unwrap()
            .contains("disable_acs_redir")
    );
}

#[test]
fn only_the_port_above_a_passthrough_device_is_refused() {
    let node = Node::new();
    let driver = node.device_dir("0000:19:00.0").join("driver");
    std::os::unix::fs::symlink("../../../../bus/pci/drivers/vfio-pci", driver).unwrap();
    let (code, output) = node.json(&["acs", "clear"]);
    assert_eq!((code, &output["changed"]), (9, &true.into()));
    assert_eq!(output["refusals"][0]["id"], "acs.vfio");
    assert_eq!(
        [GPU_PORT, NIC_PORT].map(|bdf| node.control(bdf)),
        [0x11, 0x1d]
    );
}

#[test]
fn an_unreadable_port_is_unknown_and_not_met() {
    let node = Node::new();
    let config = node.device_dir(GPU_PORT).join("config");
    let bytes = std::fs::read(&config).unwrap();
    std::fs::write(&config, &bytes[..256]).unwrap();
    let (code, output) = node.json(&["acs", "clear"]);
    assert_eq!((code, &output["changed"]), (7, &true.into()));
    assert_eq!(port_of(&output, GPU_PORT)["action"], "unknown");
    assert_eq!(node.control(NIC_PORT), 0x11);
    assert_eq!(node.run(&["acs", "show", "--check"]).0, 7);
    let path = &node.json(&["topology"]).1["paths"][0];
    assert_eq!(path["redirected"], Value::Null);
    assert!(
        path["unknown"]
            .as_str()
            .unwrap()
            .contains("ends at byte 256")
    );
}

#[test]
fn the_policy_chooses_devices_scope_and_bits() {
    let node = Node::new();
    let policy = "version = 1\n[devices]\nnic = [\"144d:a80a/0108\"]\n[acs]\nclear = [\"RR\"]\n";
    node.write("etc/gdr-agent/policy.toml", policy);
    let (code, output) = node.json(&["acs", "clear"]);
    assert_eq!(code, 0);
    assert_eq!(port_of(&output, NIC_PORT)["action"], "off-path");
    let controls = [ROOT_PORT, GPU_PORT, NIC_PORT, "0000:15:02.0"].map(|bdf| node.control(bdf));
    assert_eq!(controls, [0x19, 0x19, 0x1d, 0x19]);
    // Completions are still redirected, which the policy wants and a check of paths still says.
    assert_eq!(node.run(&["acs", "show", "--check"]).0, 3);

    node.write(
        "etc/gdr-agent/policy.toml",
        "version = 1\n[acs]\nscope = \"keep\"\n",
    );
    let (code, output) = node.json(&["acs", "clear"]);
    assert_eq!((code, &output["changed"]), (0, &false.into()));
    assert!(output["notes"][0].as_str().unwrap().contains("keeps ACS"));

    node.write(
        "etc/gdr-agent/policy.toml",
        "version = 1\n[acs]\nscop = \"keep\"\n",
    );
    assert_eq!(node.run(&["acs", "clear"]).0, 4);
}

#[test]
fn a_root_that_does_not_say_what_it_is_of_is_taken_for_metal_with_a_note() {
    let node = Node::new();
    std::fs::remove_file(node.0.path().join("proc/cpuinfo")).unwrap();
    let (code, output) = node.json(&["acs", "clear"]);
    assert_eq!((code, &output["changed"]), (0, &true.into()));
    assert!(output["notes"][0].as_str().unwrap().contains("physical"));
}

#[test]
fn a_tree_without_devices_says_so() {
    let empty = tempfile::tempdir().unwrap();
    let node = Node(empty);
    let (code, topology) = node.json(&["topology"]);
    assert_eq!((code, &topology["paths"]), (0, &serde_json::json!([])));
    let (code, output) = node.json(&["acs", "clear"]);
    assert_eq!(code, 0);
    assert_eq!(output["findings"][0]["id"], "acs.no-devices");
    assert!(!Path::new(&node.0.path().join("var/lib/gdr-agent/acs")).exists());
}

#[test]
fn a_write_that_cannot_be_saved_is_not_made() {
    let node = Node::new();
    // Somebody else could swap files in this directory.
    node.write("var/lib/gdr-agent/lock", "");
    let folder = node.0.path().join("var/lib/gdr-agent/acs");
    std::fs::create_dir_all(&folder).unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(&folder, open).unwrap();
    let (code, _, errors) = node.run(&["acs", "clear"]);
    assert_eq!(code, 9, "{errors}");
    assert_eq!(node.control(GPU_PORT), 0x1d);
}
