//! The sample nodes on which the commands of a page run.

use std::path::Path;
use std::process::Command;

use gdr_tests::node::config_space::ACS_CONTROL;
use gdr_tests::node::drivers::{Drivers, Flavour, Peermem, Rdma};
use gdr_tests::node::{self, Cpu, Family, NodeSpec, Reboot, Tree};

use crate::support::{Node, binary};

/// A node, and the directory in which commands that name files of the reader's run.
pub struct Stage {
    node: Node,
    desk: tempfile::TempDir,
    dies: bool,
}

impl Stage {
    pub fn new(kind: &str, policy: Option<&str>) -> Self {
        let spec = NodeSpec {
            tools: Some(env!("CARGO_BIN_EXE_sample-node").into()),
            ..spec(kind)
        };
        let node = Node::new(&spec);
        if let Some(policy) = policy {
            node.write("etc/gdr-agent/policy.toml", policy.as_bytes());
        }
        Self {
            node,
            desk: tempfile::tempdir().unwrap(),
            dies: false,
        }
    }

    /// Runs a line of a page: the agent on the node, or a reboot of it.
    pub fn run(&mut self, line: &str) -> String {
        if line == "reboot" {
            let how = Reboot {
                dies: std::mem::take(&mut self.dies),
                ..Reboot::default()
            };
            self.node.reboot(how);
            return String::new();
        }
        let mut words = line.split_whitespace().peekable();
        assert_eq!(words.next(), Some("gdr-agent"), "{line}");
        let mut args = Vec::new();
        while let Some(word) = words.next() {
            // Whatever directory the page names, it is the node's.
            if word == "--root" {
                words.next();
            } else {
                args.push(word);
            }
        }
        let output = Command::new(binary())
            .arg("--root")
            .arg(self.node.path())
            .args(args)
            .current_dir(self.desk.path())
            .output()
            .unwrap();
        let mut said = String::from_utf8_lossy(&output.stdout).into_owned();
        said.push_str(&String::from_utf8_lossy(&output.stderr));
        match output.status.code() {
            Some(0) => {}
            code => said.push_str(&format!("(exit code {})\n", code.unwrap_or(-1))),
        }
        let root = self.node.path().display().to_string();
        said.replace(&root, "")
    }

    /// What a reader's node has that a sample node has not, or has done to it.
    pub fn set_up(&mut self, word: &str) {
        let node = &self.node;
        match word {
            // A script with setpci has cleared the whole control word of every port.
            "setpci" => clear_all(&node.path().join("sys/bus/pci/devices")),
            "line:override" => default_line(
                node,
                "quiet iommu=pt pcie_acs_override=downstream,multifunction",
            ),
            "line:contradiction" => {
                default_line(node, "quiet iommu=pt intel_iommu=on intel_iommu=off");
            }
            "line:good" => default_line(node, "quiet intel_iommu=on iommu=pt"),
            "edited" => edit_defaults(node, "quiet hugepages=16"),
            "update-grub" => node::regenerate(&Tree::new(node.path()), None).unwrap(),
            "tuned" => tuned(node, "skew_tick=1 iommu=off"),
            "image" => {
                for path in ["proc/cmdline", "proc/sys/kernel/random/boot_id"] {
                    std::fs::remove_file(node.path().join(path)).unwrap();
                }
            }
            "peermem.conf" => node.write(
                "etc/modules-load.d/nvidia-peermem.conf",
                b"nvidia-peermem\n",
            ),
            "remove:override" => {
                let text = "[kernel]\nremove = [\"pcie_acs_override\"]\n";
                node.write("etc/gdr-agent/policy.d/50-override.toml", text.as_bytes());
            }
            "dies" => self.dies = true,
            // No unit arms anything in an image: it is armed already.
            "first-boot" => node.reboot_without_arming(),
            "job-log" => std::fs::write(self.desk.path().join("job.log"), JOB_LOG).unwrap(),
            other => panic!("there is no setup named {other}"),
        }
    }
}

fn spec(kind: &str) -> NodeSpec {
    let spec = NodeSpec::default();
    match kind {
        "hgx8" => spec,
        "hgx8-amd" => NodeSpec {
            cpu: Cpu::Amd,
            ..spec
        },
        "el9" => NodeSpec {
            family: Family::El9,
            ..spec
        },
        "suse" => NodeSpec {
            family: Family::Suse,
            ..spec
        },
        "vm" => NodeSpec {
            hypervisor: true,
            ..spec
        },
        "peermem" => NodeSpec {
            drivers: Drivers {
                flavour: Flavour::Proprietary,
                rdma: Rdma::Ofed,
                peermem: Peermem::Good,
                ..Drivers::default()
            },
            ..spec
        },
        other => panic!("there is no node named {other}"),
    }
}

fn clear_all(devices: &Path) {
    for entry in std::fs::read_dir(devices).unwrap() {
        let path = entry.unwrap().path().join("config");
        let mut bytes = std::fs::read(&path).unwrap();
        // The sample node has each capability at the same place; its id is 0x000d.
        let head = ACS_CONTROL - 6;
        if bytes.get(head..head + 2) == Some(&[0x0d, 0x00]) {
            bytes[ACS_CONTROL..ACS_CONTROL + 2].fill(0);
            std::fs::write(&path, bytes).unwrap();
        }
    }
}

fn edit_defaults(node: &Node, line: &str) {
    let path = "etc/default/grub";
    let text = String::from_utf8(node.read(path)).unwrap();
    let name = "GRUB_CMDLINE_LINUX_DEFAULT=";
    assert!(text.contains(name), "{text}");
    let edited: Vec<String> = text
        .lines()
        .map(|old| match old.starts_with(name) {
            true => format!("{name}\"{line}\""),
            false => old.to_owned(),
        })
        .collect();
    node.write(path, format!("{}\n", edited.join("\n")).as_bytes());
}

/// Edited by hand, the menu made anew, and booted.
fn default_line(node: &Node, line: &str) {
    edit_defaults(node, line);
    node::regenerate(&Tree::new(node.path()), None).unwrap();
    node::reboot(node.path(), Reboot::default()).unwrap();
}

/// What tuned's bootloader plugin leaves where entries are files: its variable in each, and the value in grubenv.
fn tuned(node: &Node, params: &str) {
    let dir = "boot/loader/entries";
    for name in Tree::new(node.path()).names(dir).unwrap() {
        let path = format!("{dir}/{name}");
        let text = String::from_utf8(node.read(&path)).unwrap();
        if !name.contains("rescue") {
            let edited: Vec<String> = text
                .lines()
                .map(|line| match line.starts_with("options ") {
                    true => format!("{line} $tuned_params"),
                    false => line.to_owned(),
                })
                .collect();
            node.write(&path, format!("{}\n", edited.join("\n")).as_bytes());
        }
    }
    let path = "boot/grub2/grubenv";
    let text = String::from_utf8(node.read(path)).unwrap();
    let (variables, fill) = text.split_at(text.find("\n###").unwrap() + 1);
    let mut edited = format!("{variables}tuned_params={params}\n{fill}");
    edited.truncate(text.len());
    node.write(path, edited.as_bytes());
    node::reboot(node.path(), Reboot::default()).unwrap();
}

/// A job of an NCCL that looks for nvidia-peermem in one place only.
const JOB_LOG: &str = "\
node0:101:101 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>
node0:101:101 [0] NCCL INFO NCCL version 2.22.3+cuda12.5
node0:101:140 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB ; OOB eth0:10.0.0.1<0>
node0:101:140 [0] NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'
node0:101:140 [0] NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 1 'mlx5_1'
node0:101:150 [0] NCCL INFO Channel 00/0 : 1[0] -> 0[0] [receive] via NET/IB/0
node0:101:150 [0] NCCL INFO Channel 01/0 : 1[0] -> 0[0] [receive] via NET/IB/1
";
