//! `doctor` on made-up nodes: each check met, failed and unknown, and the causes in the right order.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::semicolon_if_nothing_returned,
    dead_code,
    reason = "a test looks at the machine from outside"
)]

mod support;

use std::collections::BTreeSet;
use std::process::Command;

use gdr_tests::node::drivers::{Drivers, Flavour, Peermem, Rdma};
use gdr_tests::node::{Lockdown, NodeSpec};
use serde_json::Value;
use support::{Node, binary, config};

/// A way to one outcome of a check.
struct Way {
    args: &'static [&'static str],
    spec: fn(&mut NodeSpec),
    change: fn(&Node),
}

const fn way(spec: fn(&mut NodeSpec), change: fn(&Node)) -> Way {
    Way {
        args: &["doctor"],
        spec,
        change,
    }
}

const fn with(args: &'static [&'static str], spec: fn(&mut NodeSpec), change: fn(&Node)) -> Way {
    Way { args, spec, change }
}

/// A check met, failed and unknown.
struct Case {
    id: &'static str,
    met: Way,
    failed: Way,
    unknown: Way,
}

const fn same(_: &mut NodeSpec) {}
const fn untouched(_: &Node) {}

/// A file that is there and cannot be read: a directory has its name.
fn unreadable(node: &Node, path: &str) {
    let path = node.path().join(path);
    if path.is_file() {
        std::fs::remove_file(&path).unwrap();
    }
    std::fs::create_dir_all(&path).unwrap();
}

fn put(node: &Node, path: &str, text: &str) {
    let full = node.path().join(path);
    std::fs::create_dir_all(full.parent().unwrap()).unwrap();
    node.write(path, text.as_bytes());
}

fn peermem(spec: &mut NodeSpec) {
    spec.drivers = Drivers {
        flavour: Flavour::Proprietary,
        rdma: Rdma::Ofed,
        peermem: Peermem::Good,
        ..Drivers::default()
    };
}

fn load(node: &Node, module: &str) {
    let mut text = String::from_utf8(node.read("proc/modules")).unwrap();
    text.push_str(&format!("{module} 16384 0 - Live 0x0000000000000000\n"));
    node.write("proc/modules", text.as_bytes());
}

fn booted_with(node: &Node, more: &str) {
    let line = node.cmdline();
    node.write(
        "proc/cmdline",
        format!("{} {more}\n", line.trim()).as_bytes(),
    );
}

const NIC: &str = "0000:19:00.0";
const GPU: &str = "0000:18:00.0";

fn nic(node: &Node, file: &str, text: &str) {
    put(node, &format!("sys/bus/pci/devices/{NIC}/{file}"), text);
}

/// Every NIC's Device Control: MaxReadReq 4096 bytes and relaxed ordering, or neither.
fn device_control(node: &Node, word: u16) {
    for entry in std::fs::read_dir(node.path().join("sys/bus/pci/devices")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let mut bytes = node.read(&config(&name));
        if bytes[..2] == 0x15b3_u16.to_le_bytes() && bytes[0x60] == 0x10 {
            bytes[0x68..0x6a].copy_from_slice(&word.to_le_bytes());
            node.write(&config(&name), &bytes);
        }
    }
}

fn clear_acs(node: &Node) {
    assert!(node.run(&["acs", "clear"]).status.success());
}

fn no_config(spec: &mut NodeSpec) {
    spec.config_len = 64;
}

fn log(line: &'static str) -> impl Fn(&Node) {
    move |node| {
        put(
            node,
            "dev/kmsg",
            &format!("6,1,1,-;Linux version 6.1\n4,2,2,-;{line}\n"),
        )
    }
}

/// The three ways of a check of the kernel log.
macro_rules! of_the_log {
    ($id:literal, $line:literal) => {
        Case {
            id: $id,
            met: way(same, |node| {
                log("iommu: Default domain type: Passthrough")(node)
            }),
            failed: way(same, |node| log($line)(node)),
            unknown: way(same, |node| unreadable(node, "dev/kmsg")),
        }
    };
}

fn maps(node: &Node, devices: &[&str]) {
    let line =
        |device: &&str| format!("7f0000000000-7f0000001000 rw-s 00000000 00:05 9 {device}\n");
    let text: String = devices.iter().map(line).collect();
    put(node, "proc/4242/maps", &text);
    put(
        node,
        "proc/4242/limits",
        "Max locked memory         unlimited            unlimited            bytes     \n",
    );
}

fn policy(spec: &mut NodeSpec, more: &str) {
    spec.policy = spec.policy.take().map(|text| format!("{text}\n{more}\n"));
}

const ENGAGED: &str =
    "n1:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0/GDRDMA\n";
const WITHOUT: &str = "n1:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0\n";

/// The sample node's GPUs.
const GPUS: [&str; 8] = ["18", "1a", "3a", "3c", "9a", "9c", "ca", "cc"];

/// What a capture has of nvidia-smi: it cannot be run without a GPU.
fn said(node: &Node, answer: &str) {
    put(
        node,
        "run/gdr-agent/said/nvidia-smi_-q_-x",
        &format!("ended\n{answer}"),
    );
}

fn smi(buses: &[&str]) -> String {
    let gpu = |bus: &&str| {
        format!(
            "<gpu id=\"00000000:{bus}:00.0\">\n<product_name>H100</product_name>\n<serial>1652</serial>\n\
             <persistence_mode>Enabled</persistence_mode>\n<fb_memory_usage>\n<total>81559 MiB</total>\n</fb_memory_usage>\n</gpu>\n"
        )
    };
    let gpus: String = buses.iter().map(gpu).collect();
    format!(
        "<?xml version=\"1.0\" ?>\n<nvidia_smi_log>\n<driver_version>570.1</driver_version>\n{gpus}</nvidia_smi_log>\n"
    )
}

fn cases() -> Vec<Case> {
    vec![
        Case {
            id: "gpu.missing",
            met: way(same, |node| said(node, &smi(&GPUS))),
            failed: way(same, |node| said(node, &smi(&GPUS[1..]))),
            unknown: way(same, |node| said(node, &smi(&[]))),
        },
        Case {
            id: "dma-buf.unavailable",
            met: way(same, untouched),
            failed: with(
                &["verify"],
                |spec| {
                    peermem(spec);
                    policy(spec, "[gdr]\npath = \"dma-buf\"");
                },
                untouched,
            ),
            unknown: with(
                &["verify"],
                |spec| policy(spec, "[gdr]\npath = \"dma-buf\""),
                |node| {
                    unreadable(node, "boot/config-6.1.0-37-amd64");
                },
            ),
        },
        Case {
            id: "peermem.not-loaded",
            met: way(peermem, |node| load(node, "nvidia_peermem")),
            failed: way(peermem, untouched),
            unknown: way(peermem, |node| unreadable(node, "proc/modules")),
        },
        of_the_log!(
            "dma-buf.topology",
            "NVRM: dma-buf attach failed: topology not supported for mapping type FORCE_PCIE"
        ),
        Case {
            id: "modules.loaded",
            met: way(same, untouched),
            failed: way(same, |node| {
                node.write("proc/modules", b"ext4 1 0 - Live 0x0\n")
            }),
            unknown: way(same, |node| unreadable(node, "proc/modules")),
        },
        Case {
            id: "platform.fabric-manager",
            met: way(same, |node| {
                put(
                    node,
                    "sys/fs/cgroup/system.slice/nvidia-fabricmanager.service/cgroup.procs",
                    "1234\n",
                )
            }),
            failed: way(same, |node| {
                put(
                    node,
                    "sys/fs/cgroup/system.slice/ssh.service/cgroup.procs",
                    "1\n",
                )
            }),
            unknown: way(same, untouched),
        },
        Case {
            id: "bar1.small",
            met: way(same, untouched),
            failed: way(|spec| spec.bar1 = 256 << 20, untouched),
            unknown: way(same, |node| {
                unreadable(node, &format!("sys/bus/pci/devices/{GPU}/resource"))
            }),
        },
        Case {
            id: "acs.redirect",
            met: way(same, clear_acs),
            failed: way(same, untouched),
            unknown: way(no_config, untouched),
        },
        of_the_log!(
            "acs.parameter-rejected",
            "PCI: Can't parse ACS command line parameter"
        ),
        Case {
            id: "acs.override-param",
            met: way(same, untouched),
            failed: way(same, |node| {
                booted_with(node, "pcie_acs_override=downstream,multifunction")
            }),
            unknown: way(same, |node| unreadable(node, "proc/cmdline")),
        },
        Case {
            id: "iommu.translated",
            met: way(
                |spec| spec.cmdline.push_str(" intel_iommu=on iommu=pt"),
                untouched,
            ),
            failed: way(same, untouched),
            unknown: way(same, |node| {
                unreadable(node, "sys/kernel/iommu_groups/12/type")
            }),
        },
        Case {
            id: "iommu.cmdline-overridden",
            met: way(same, |node| booted_with(node, "iommu=pt")),
            failed: way(same, |node| {
                booted_with(node, "iommu=pt iommu.passthrough=0")
            }),
            unknown: way(same, |node| unreadable(node, "proc/cmdline")),
        },
        Case {
            id: "iommu.invalid-param",
            met: way(same, |node| booted_with(node, "amd_iommu=fullflush")),
            failed: way(same, |node| booted_with(node, "amd_iommu=on")),
            unknown: way(same, |node| unreadable(node, "proc/cmdline")),
        },
        of_the_log!(
            "iommu.fault",
            "nvidia 0000:07:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x0003 address=0x80000040 flags=0x0020]"
        ),
        Case {
            id: "path.far",
            met: way(same, untouched),
            failed: way(same, |node| {
                // The GPU's own NIC and its neighbour's are gone: the next one hangs from another root port.
                let nics = std::fs::read_dir(node.path().join("sys/bus/pci/devices")).unwrap();
                for entry in nics {
                    let entry = entry.unwrap();
                    let name = entry.file_name().into_string().unwrap();
                    if name.starts_with("0000:19") || name.starts_with("0000:1b") {
                        std::fs::remove_file(entry.path()).unwrap();
                    }
                }
            }),
            unknown: way(|spec| spec.nics = false, untouched),
        },
        Case {
            id: "link.degraded",
            met: way(same, untouched),
            failed: way(same, |node| {
                nic(node, "current_link_speed", "16.0 GT/s PCIe\n")
            }),
            unknown: way(same, |node| {
                unreadable(
                    node,
                    &format!("sys/bus/pci/devices/{NIC}/current_link_width"),
                )
            }),
        },
        of_the_log!(
            "link.errors",
            "pcieport 0000:15:01.0: AER: Uncorrected (Fatal) error received: 0000:16:00.0"
        ),
        of_the_log!(
            "link.limited",
            "mlx5_core 0000:19:00.0: 126.024 Gb/s available PCIe bandwidth, limited by 16.0 GT/s PCIe x8 link at 0000:15:01.0"
        ),
        Case {
            id: "link.read-request",
            met: way(same, |node| device_control(node, 0x5930)),
            failed: way(same, |node| device_control(node, 0x2930)),
            unknown: way(no_config, |node| unreadable(node, &config(NIC))),
        },
        Case {
            id: "link.relaxed-ordering",
            met: way(same, |node| device_control(node, 0x5930)),
            failed: way(same, |node| device_control(node, 0x5920)),
            unknown: way(same, |node| unreadable(node, &config(NIC))),
        },
        Case {
            id: "nccl.env-net-disabled",
            met: way(same, |node| put(node, "etc/nccl.conf", "NCCL_DEBUG=WARN\n")),
            failed: way(same, |node| {
                put(node, "etc/nccl.conf", "NCCL_IB_DISABLE=1\n")
            }),
            unknown: way(same, |node| unreadable(node, "etc/nccl.conf")),
        },
        Case {
            id: "cmdline.argument",
            met: with(
                &["verify"],
                |spec| spec.cmdline.push_str(" intel_iommu=on iommu=pt"),
                untouched,
            ),
            failed: with(&["verify"], same, untouched),
            unknown: with(&["verify"], same, |node| unreadable(node, "proc/cmdline")),
        },
        Case {
            id: "cmdline.pending-reboot",
            met: way(same, untouched),
            failed: way(same, |node| booted_with(node, "pci=realloc=off")),
            unknown: way(same, |node| {
                std::fs::remove_dir_all(node.path().join("boot/grub")).unwrap()
            }),
        },
        Case {
            id: "host.memlock",
            met: way(same, |node| {
                put(
                    node,
                    "etc/security/limits.d/90-rdma.conf",
                    "* - memlock unlimited\n",
                )
            }),
            failed: way(same, |node| {
                put(
                    node,
                    "etc/security/limits.conf",
                    "# none\n* soft memlock 64 # KiB\n* hard memlock unlimited\n",
                )
            }),
            unknown: way(same, |node| unreadable(node, "etc/security/limits.conf")),
        },
        of_the_log!(
            "kernel.xid",
            "NVRM: Xid (PCI:0000:9b:00): 79, pid='<unknown>', GPU has fallen off the bus."
        ),
        of_the_log!(
            "kernel.rdma-error",
            "infiniband mlx5_0: dump_cqe:272:(pid 0): dump error cqe"
        ),
        Case {
            id: "process.devices",
            met: with(&["doctor", "--pid", "4242"], same, |node| {
                maps(node, &["/dev/nvidia0", "/dev/infiniband/uverbs0"])
            }),
            failed: with(&["doctor", "--pid", "4242"], same, |node| {
                maps(node, &["/dev/nvidia0"])
            }),
            unknown: with(&["doctor", "--pid", "4242"], same, untouched),
        },
        Case {
            id: "nccl.not-engaged",
            met: with(&["doctor", "--nccl-log", "job.log"], same, |node| {
                put(node, "job.log", ENGAGED)
            }),
            failed: with(&["doctor", "--nccl-log", "job.log"], same, |node| {
                put(node, "job.log", WITHOUT)
            }),
            unknown: with(&["doctor", "--nccl-log", "job.log"], same, |node| {
                put(node, "job.log", "nothing\n")
            }),
        },
    ]
}

/// Runs a verb on a node, logs from the node's own directory.
fn json(node: &Node, args: &[&str]) -> (Option<i32>, Value) {
    let output = Command::new(binary())
        .args(["--format", "json", "--root", "."])
        .args(args)
        .current_dir(node.path())
        .output()
        .unwrap();
    let value = serde_json::from_slice(&output.stdout).unwrap_or_else(|e| {
        let errors = String::from_utf8_lossy(&output.stderr);
        panic!("{args:?}: {e}\n{errors}")
    });
    (output.status.code(), value)
}

fn outcomes(way: &Way, id: &str) -> (Vec<String>, Value) {
    let mut spec = NodeSpec::default();
    (way.spec)(&mut spec);
    let node = Node::new(&spec);
    (way.change)(&node);
    let (_, value) = json(&node, way.args);
    let of_id: Vec<Value> = value["checks"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|check| check["id"] == id)
        .cloned()
        .collect();
    let outcomes = of_id
        .iter()
        .map(|check| check["outcome"].as_str().unwrap().to_owned());
    (outcomes.collect(), Value::Array(of_id))
}

/// Fails for a check that is in the registry and has no line in the table, and for one that does not show all three.
#[test]
fn each_check_met_failed_and_unknown() {
    let list = Command::new(binary())
        .args(["doctor", "--list", "--format", "json"])
        .output()
        .unwrap();
    let list: Value = serde_json::from_slice(&list.stdout).unwrap();
    let entries = list["entries"].as_array().unwrap().iter();
    let asked: BTreeSet<&str> = entries
        .filter(|entry| entry["asked"] == true)
        .map(|entry| entry["id"].as_str().unwrap())
        .collect();
    let cases = cases();
    let shown: BTreeSet<&str> = cases.iter().map(|case| case.id).collect();
    assert_eq!(
        asked, shown,
        "the registry and the table do not have the same checks"
    );
    let mut wrong = Vec::new();
    for case in &cases {
        for (outcome, way) in [
            ("met", &case.met),
            ("failed", &case.failed),
            ("unknown", &case.unknown),
        ] {
            let (seen, checks) = outcomes(way, case.id);
            let right = match outcome {
                "met" => !seen.is_empty() && seen.iter().all(|o| o == "met"),
                _ => seen.iter().any(|o| o == outcome),
            };
            if !right {
                wrong.push(format!("{} {outcome}: {checks:#}", case.id));
            }
            for check in checks.as_array().unwrap() {
                assert!(!check["question"].as_str().unwrap().is_empty(), "{check:#}");
                let evidence = check["evidence"].as_array().unwrap();
                assert!(
                    !evidence.is_empty() && evidence.iter().all(|line| line != ""),
                    "{check:#}"
                );
                if check["outcome"] != "met" {
                    assert!(
                        check["fix"].as_str().is_some_and(|fix| !fix.is_empty()),
                        "{check:#}"
                    );
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn causes(report: &Value) -> Vec<&str> {
    let causes = report["causes"].as_array().unwrap().iter();
    causes.map(|cause| cause["id"].as_str().unwrap()).collect()
}

fn failed_first(report: &Value) -> (&str, Vec<&str>) {
    let first = &report["causes"][0];
    let explains = first["explains"].as_array().unwrap().iter();
    (
        first["id"].as_str().unwrap(),
        explains
            .map(|symptom| symptom["id"].as_str().unwrap())
            .collect(),
    )
}

/// A node on which everything is right but what a test bends.
fn healthy() -> Node {
    let node = Node::new(&NodeSpec {
        cmdline: "console=tty0 intel_iommu=on iommu=pt".into(),
        ..NodeSpec::default()
    });
    clear_acs(&node);
    node
}

#[test]
fn nothing_wrong_is_exit_0_and_the_rest_is_3() {
    let node = healthy();
    let (exit, report) = json(&node, &["doctor"]);
    assert_eq!(
        (exit, &report["verdict"]),
        (Some(0), &"met".into()),
        "{:#}",
        report["causes"]
    );
    assert_eq!(report["schema"], "gdr-agent/doctor/v1");
    unreadable(&node, "proc/modules");
    let (exit, report) = json(&node, &["doctor"]);
    assert_eq!((exit, &report["verdict"]), (Some(3), &"unknown".into()));
    put(&node, "etc/nccl.conf", "NCCL_NET_GDR_LEVEL=LOC\n");
    let (exit, report) = json(&node, &["doctor"]);
    assert_eq!((exit, &report["verdict"]), (Some(3), &"failed".into()));
    assert_eq!(causes(&report)[0], "nccl.env-gdr-level");
    let (exit, _) = json(&node, &["doctor", "--nccl-log", "not-there.log"]);
    assert_eq!(exit, Some(1));
}

/// No policy is there, and none is asked for.
#[test]
fn no_policy_is_needed() {
    let node = Node::new(&NodeSpec {
        policy: None,
        ..NodeSpec::default()
    });
    let (exit, report) = json(&node, &["doctor"]);
    assert_eq!(exit, Some(3));
    assert_eq!(
        (&report["node"]["gpus"], &report["node"]["nics"]),
        (&8.into(), &8.into())
    );
}

#[test]
fn the_node_explains_the_log() {
    let node = healthy();
    put(&node, "etc/nccl.conf", "NCCL_NET_GDR_LEVEL=0\n");
    let disabled =
        "n1:1:2 [0] NCCL INFO GPU Direct RDMA Disabled for GPU 0 / HCA 0 (distance 4 > 0)\n";
    put(&node, "job.log", &format!("{disabled}{WITHOUT}"));
    let (_, report) = json(&node, &["doctor", "--nccl-log", "job.log"]);
    let (first, explains) = failed_first(&report);
    assert_eq!(first, "nccl.env-gdr-level", "{:#}", report["causes"]);
    assert!(explains.contains(&"nccl.not-engaged"), "{explains:?}");

    let node = Node::new(&NodeSpec {
        drivers: Drivers {
            flavour: Flavour::Proprietary,
            peermem: Peermem::Stub,
            ..Drivers::default()
        },
        ..NodeSpec::default()
    });
    let hca = "n1:1:2 [0] NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'\n";
    put(
        &node,
        "job.log",
        &format!("n1:1:2 [0] NCCL INFO NCCL version 2.26.2+cuda12.8\n{hca}{WITHOUT}"),
    );
    let (_, report) = json(&node, &["doctor", "--nccl-log", "job.log"]);
    let (first, explains) = failed_first(&report);
    assert_eq!(
        (first, explains),
        (
            "peermem.stub",
            vec!["nccl.no-kernel-path", "nccl.not-engaged"]
        ),
        "{:#}",
        report["causes"]
    );

    let node = Node::new(&NodeSpec {
        cmdline: "intel_iommu=on iommu=pt".into(),
        ..NodeSpec::default()
    });
    let error = "n1:1:2 [0] net_ib.cc:1295 NCCL WARN NET/IB: Got completion from peer 10.0.0.2<4791> with status=4 opcode=1 len=0 vendor err 81 (Recv) localGid none remoteGids none hca mlx5_0\n";
    put(&node, "job.log", &format!("{ENGAGED}{error}"));
    let (_, report) = json(&node, &["doctor", "--nccl-log", "job.log"]);
    assert_eq!(
        failed_first(&report),
        ("acs.redirect", vec!["nccl.completion-error"]),
        "{:#}",
        report["causes"]
    );
}

/// What a file holds is shown, and never obeyed.
#[test]
fn escape_sequences_are_shown_as_text() {
    let node = healthy();
    put(&node, "etc/nccl.conf", "NCCL_IB_DISABLE=1\n");
    log("NVRM: Xid (PCI:0000:9b:00): 79, name=\u{1b}]0;x\u{7}\u{202e}")(&node);
    for format in ["text", "json"] {
        let output = node.run(&["--format", format, "doctor"]);
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("Xid"), "{text}");
        assert!(!text.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{text:?}");
    }
}

/// A report speaks of the node's paths, whatever directory it was read from.
#[test]
fn paths_are_the_nodes_own() {
    let node = healthy();
    unreadable(&node, "proc/modules");
    unreadable(&node, "etc/nccl.conf");
    let output = node.run(&["--format", "json", "doctor"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("/proc/modules"), "{text}");
    assert!(!text.contains(&node.path().display().to_string()), "{text}");
}

#[test]
fn wrong_usage() {
    for args in [
        &["doctor", "--pid", "0"][..],
        &["doctor", "--list", "--pid", "1"],
        &["doctor", "--nccl-log", "-", "--nccl-log", "-"],
        &["doctor", "--format", "svg"],
    ] {
        let output = Command::new(binary()).args(args).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}");
    }
}

#[test]
fn lockdown_and_guests_are_said() {
    for (spec, word) in [
        (
            NodeSpec {
                lockdown: Lockdown::Integrity,
                ..NodeSpec::default()
            },
            "plan",
        ),
        (
            NodeSpec {
                hypervisor: true,
                ..NodeSpec::default()
            },
            "on the host",
        ),
    ] {
        let node = Node::new(&spec);
        let (_, report) = json(&node, &["doctor"]);
        let cause = report["causes"]
            .as_array()
            .unwrap()
            .iter()
            .find(|c| c["id"] == "acs.redirect");
        let fixes = cause.unwrap()["fixes"].to_string();
        assert!(fixes.contains(word), "{fixes}");
    }
}

#[test]
fn the_json_is_as_its_schema_says() {
    let node = healthy();
    put(&node, "job.log", WITHOUT);
    for (name, args) in [
        (
            "doctor",
            &["doctor", "--nccl-log", "job.log", "--pid", "1"][..],
        ),
        ("doctor-list", &["doctor", "--list"]),
    ] {
        let schema = Command::new(binary())
            .args(["schema", name])
            .output()
            .unwrap();
        let schema: Value = serde_json::from_slice(&schema.stdout).unwrap();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let (_, output) = json(&node, args);
        let problems: Vec<String> = validator
            .iter_errors(&output)
            .map(|e| e.to_string())
            .collect();
        assert!(problems.is_empty(), "{name}: {problems:?}");
    }
}

fn check<'v>(report: &'v Value, id: &str) -> &'v Value {
    let mut checks = report["checks"].as_array().unwrap().iter();
    checks
        .find(|check| check["id"] == id)
        .unwrap_or(&Value::Null)
}

#[test]
fn nvidia_smi_is_heard_and_never_run_in_a_directory() {
    let node = healthy();
    // A directory is somebody else's: what is in it is not run.
    put(&node, "usr/bin/nvidia-smi", "#!/bin/sh\ntouch /ran\n");
    let (exit, report) = json(&node, &["doctor"]);
    assert_eq!(
        (exit, check(&report, "gpu.missing")),
        (Some(0), &Value::Null)
    );
    assert!(!node.path().join("ran").exists());

    put(&node, "run/gdr-agent/said/nvidia-smi_-q_-x", "stopped 20\n");
    let (exit, report) = json(&node, &["doctor"]);
    assert_eq!((exit, failed_first(&report).0), (Some(3), "gpu.smi-hung"));

    said(
        &node,
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
    );
    let (exit, report) = json(&node, &["doctor"]);
    assert_eq!(
        (exit, check(&report, "gpu.smi-failed")["outcome"].as_str()),
        (Some(0), Some("unknown"))
    );

    // Its own idea of the links belongs to the check of the links, and of the windows to that of the windows.
    let narrow = smi(&GPUS).replacen(
        "<product_name>",
        "<pci><pci_gpu_link_info><link_widths><max_link_width>16x</max_link_width><current_link_width>8x</current_link_width></link_widths></pci_gpu_link_info></pci><product_name>",
        1,
    );
    said(&node, &narrow);
    let (_, report) = json(&node, &["doctor"]);
    let of_links: Vec<&Value> = report["checks"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|c| c["id"] == "link.degraded" && c["subject"] == GPU)
        .collect();
    assert_eq!(
        of_links.len(),
        1,
        "one answer for each device: {of_links:?}"
    );
    assert_eq!(of_links[0]["outcome"], "failed");
    assert!(
        of_links[0]["evidence"]
            .to_string()
            .contains("nvidia-smi: x8 of x16")
    );
}

const MEASURED: &str = "                    RDMA_Write BW Test\n Dual-port       : OFF\t\tDevice         : mlx5_0\n Number of qps   : 1\t\tTransport type : IB\n initializing CUDA\n Picking GPU number 0\n #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n 65536      5000             GBPS             GBPS             0.2\n";

fn measured(node: &Node, file: &str, gbps: &str, gpu: bool) {
    let text = MEASURED.replace("GBPS", gbps);
    let of_host = |line: &&str| gpu || !(line.contains("CUDA") || line.contains("GPU"));
    let text: Vec<&str> = text.lines().filter(of_host).collect();
    put(node, file, &format!("{}\n", text.join("\n")));
}

/// The ratio of GPU memory to host memory is the evidence, and what the node has is its cause.
#[test]
fn what_was_measured_is_explained() {
    let args = &["doctor", "--perftest", "gpu.txt", "--perftest", "host.txt"];
    let node = healthy();
    measured(&node, "gpu.txt", "380.10", true);
    measured(&node, "host.txt", "391.20", false);
    let (exit, report) = json(&node, args);
    assert_eq!(exit, Some(0), "{:#}", report["causes"]);
    assert_eq!(check(&report, "bandwidth.low")["outcome"], "met");

    measured(&node, "gpu.txt", "98.70", true);
    let (exit, report) = json(&node, args);
    assert_eq!(
        (exit, failed_first(&report).0),
        (Some(3), "bandwidth.gpu-slower")
    );
    type Bend = fn(&mut NodeSpec);
    let bent: [(&str, Bend); 3] = [
        ("acs.redirect", |spec| {
            spec.cmdline.push_str(" intel_iommu=on iommu=pt")
        }),
        ("bar1.small", |spec| {
            spec.cmdline.push_str(" intel_iommu=on iommu=pt");
            spec.bar1 = 256 << 20;
        }),
        ("iommu.translated", |_| {}),
    ];
    for (cause, bend) in bent {
        let mut spec = NodeSpec::default();
        bend(&mut spec);
        let node = Node::new(&spec);
        if cause != "acs.redirect" {
            clear_acs(&node);
        }
        measured(&node, "gpu.txt", "98.70", true);
        measured(&node, "host.txt", "391.20", false);
        let (_, report) = json(&node, args);
        assert_eq!(
            failed_first(&report),
            (cause, vec!["bandwidth.gpu-slower", "bandwidth.low"]),
            "{:#}",
            report["causes"]
        );
    }
    let node = healthy();
    nic(&node, "current_link_speed", "16.0 GT/s PCIe\n");
    measured(&node, "gpu.txt", "98.70", true);
    measured(&node, "host.txt", "391.20", false);
    let (_, report) = json(&node, args);
    // A warning that has brought about what is required is as grave.
    assert_eq!(
        failed_first(&report),
        (
            "link.degraded",
            vec!["bandwidth.gpu-slower", "bandwidth.low"]
        )
    );
    assert_eq!(report["causes"][0]["severity"], "required");
    let (exit, _) = json(&node, &["doctor", "--perftest", "host.txt"]);
    assert_eq!(exit, Some(0), "host memory alone says nothing of the GPU");
}

#[test]
fn the_environment_of_a_running_job_counts_and_its_library_tells_the_version() {
    let node = healthy();
    put(
        &node,
        "proc/4242/environ",
        "HOME=/root\0NCCL_NET_GDR_LEVEL=LOC\0NCCL_IB_DATA_DIRECT=0\0",
    );
    put(&node, "proc/4242/comm", "python3\n");
    put(
        &node,
        "proc/4242/maps",
        "7f0000000000-7f0000001000 r-xp 00000000 00:05 9 /usr/lib/x86_64-linux-gnu/libnccl.so.2.19.3\n",
    );
    let (_, report) = json(&node, &["doctor"]);
    assert_eq!(failed_first(&report).0, "nccl.env-gdr-level");
    let evidence = report["causes"][0]["evidence"].to_string();
    assert!(evidence.contains("pid 4242 (python3)"), "{evidence}");
    let unknown = check(&report, "nccl.env-unknown-name")["evidence"].to_string();
    assert!(
        unknown.contains("from NCCL 2.27 on, and this is 2.19"),
        "{unknown}"
    );
    // A log speaks of what ran.
    put(
        &node,
        "job.log",
        &format!("n1:1:2 [0] NCCL INFO NCCL version 2.28.3+cuda12.8\n{ENGAGED}"),
    );
    let (_, report) = json(&node, &["doctor", "--nccl-log", "job.log"]);
    assert_eq!(check(&report, "nccl.env-unknown-name"), &Value::Null);
}
