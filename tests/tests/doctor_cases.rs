//! Cases as people bring them: a node and often a log, both made anew, go through a capture and come out with the right
//! first cause.
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

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use gdr_tests::node::drivers::{Drivers, Flavour, Peermem, Rdma};
use gdr_tests::node::{Cpu, NodeSpec};
use serde_json::Value;
use support::{Node, binary, config};

/// What somebody brings.
struct Case {
    said: &'static str,
    spec: fn(&mut NodeSpec),
    change: fn(&Node),
    log: Option<&'static str>,
    /// The first cause.
    first: &'static str,
    /// What it has to explain, of what the log shows.
    explains: &'static [&'static str],
}

fn same(_: &mut NodeSpec) {}

/// A node in order: pass-through, and ports that do not redirect.
fn good(spec: &mut NodeSpec) {
    spec.cmdline = "console=tty0 intel_iommu=on iommu=pt".into();
}

fn clear(node: &Node) {
    assert!(node.run(&["acs", "clear"]).status.success());
}

fn put(node: &Node, path: &str, text: &str) {
    let full = node.path().join(path);
    std::fs::create_dir_all(full.parent().unwrap()).unwrap();
    node.write(path, text.as_bytes());
}

fn kmsg(node: &Node, line: &str) {
    clear(node);
    put(node, "dev/kmsg", &format!("4,9,9,-;{line}\n"));
}

fn load(node: &Node, module: &str) {
    let mut text = String::from_utf8(node.read("proc/modules")).unwrap();
    text.push_str(&format!("{module} 16384 0 - Live 0x0000000000000000\n"));
    node.write("proc/modules", text.as_bytes());
}

fn drivers(spec: &mut NodeSpec, rdma: Rdma, peermem: Peermem) {
    good(spec);
    spec.drivers = Drivers {
        flavour: Flavour::Proprietary,
        rdma,
        peermem,
        ..Drivers::default()
    };
}

const NOT_CAPABLE: &str = "n1:7:9 [0] NCCL INFO NCCL version 2.26.2+cuda12.8
n1:7:9 [0] NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'
n1:7:9 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0
";
const SOCKET: &str = "n1:7:9 [0] NCCL INFO NCCL_IB_DISABLE set by environment to 1.
n1:7:9 [0] NCCL INFO Using network Socket
n1:7:9 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/Socket/0
";
const STATUS_4: &str = "n1:7:9 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0/GDRDMA
n1:7:9 [0] net_ib.cc:1295 NCCL WARN NET/IB: Got completion from peer 10.0.0.2<4791> with status=4 opcode=1 len=0 vendor err 81 (Recv) hca mlx5_0
";
const STATUS_12: &str = "n1:7:9 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0/GDRDMA
n1:7:9 [0] net_ib.cc:1295 NCCL WARN NET/IB: Got completion from peer 10.0.0.2<4791> with status=12 opcode=0 len=0 vendor err 129 (Send) hca mlx5_0
";
const FAR: &str = "n1:7:9 [0] NCCL INFO GPU Direct RDMA Disabled for GPU 0 / HCA 1 (distance 8 > 5)
n1:7:9 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/1
";
const LEVEL_0: &str = "n1:7:9 [0] NCCL INFO NCCL_NET_GDR_LEVEL set by environment to LOC
n1:7:9 [0] NCCL INFO GPU Direct RDMA Disabled for GPU 0 / HCA 0 (distance 4 > 0)
n1:7:9 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0
";
const READ_0: &str = "n1:7:9 [0] NCCL INFO NCCL_NET_GDR_READ set by environment to 0.
n1:7:9 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [receive] via NET/IB/0/GDRDMA
n1:7:9 [0] NCCL INFO Channel 00/0 : 8[0] -> 0[0] [send] via NET/IB/0
";
const OLD: &str = "n1:7:9 [0] NCCL INFO NCCL version 2.19.3+cuda12.3
n1:7:9 [0] NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'
n1:7:9 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0
";
const NO_DEVICE: &str = "n1:7:9 [0] NCCL INFO NET/IB : No device found.
n1:7:9 [0] NCCL INFO Using network Socket
n1:7:9 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/Socket/0
";

fn cases() -> Vec<Case> {
    vec![
        Case {
            said: "lsmod | grep peermem prints nothing",
            spec: |spec| drivers(spec, Rdma::Ofed, Peermem::Good),
            change: clear,
            log: Some(NOT_CAPABLE),
            first: "peermem.not-loaded",
            explains: &["nccl.no-kernel-path", "nccl.not-engaged"],
        },
        Case {
            said: "modprobe: Invalid argument, and dmesg is silent",
            spec: |spec| drivers(spec, Rdma::Ofed, Peermem::Stub),
            change: clear,
            log: Some(NOT_CAPABLE),
            first: "peermem.stub",
            explains: &["nccl.no-kernel-path", "nccl.not-engaged"],
        },
        Case {
            said: "since the OFED upgrade: disagrees about version of symbol",
            spec: |spec| drivers(spec, Rdma::Ofed, Peermem::OtherInterface),
            change: clear,
            log: Some(NOT_CAPABLE),
            first: "peermem.abi-mismatch",
            explains: &["nccl.not-engaged"],
        },
        Case {
            said: "Unknown symbol ib_register_peer_memory_client on Debian",
            spec: |spec| drivers(spec, Rdma::Inbox, Peermem::Good),
            change: clear,
            log: None,
            first: "peermem.no-api",
            explains: &[],
        },
        Case {
            said: "Module nvidia-peermem not found",
            spec: |spec| drivers(spec, Rdma::Ofed, Peermem::None),
            change: clear,
            log: Some(NOT_CAPABLE),
            first: "peermem.not-installed",
            explains: &["nccl.no-kernel-path"],
        },
        Case {
            said: "modprobe: Exec format error after a kernel update",
            spec: |spec| drivers(spec, Rdma::Ofed, Peermem::OtherKernel),
            change: clear,
            log: None,
            first: "peermem.wrong-kernel",
            explains: &[],
        },
        Case {
            said: "nv_peer_mem from the old installation is still loaded",
            spec: |spec| drivers(spec, Rdma::Ofed, Peermem::Good),
            change: |node| {
                clear(node);
                load(node, "nv_peer_mem");
            },
            log: None,
            first: "peermem.name-taken",
            explains: &[],
        },
        Case {
            said: "a hardening guide blacklisted it",
            spec: |spec| drivers(spec, Rdma::Ofed, Peermem::Good),
            change: |node| {
                clear(node);
                put(
                    node,
                    "etc/modprobe.d/hardening.conf",
                    "install nvidia-peermem /bin/false\n",
                );
            },
            log: None,
            first: "peermem.blocked",
            explains: &[],
        },
        Case {
            said: "GDR is engaged, bandwidth is a third",
            spec: good,
            change: |_| {},
            log: None,
            first: "acs.redirect",
            explains: &[],
        },
        Case {
            said: "local protection errors after minutes",
            spec: good,
            change: |_| {},
            log: Some(STATUS_4),
            first: "acs.redirect",
            explains: &["nccl.completion-error"],
        },
        Case {
            said: "retry counter exceeded: it is the fabric",
            spec: good,
            change: clear,
            log: Some(STATUS_12),
            first: "nccl.completion-error",
            explains: &[],
        },
        Case {
            said: "IO_PAGE_FAULT in dmesg, the IOMMU translates",
            spec: |spec| spec.cpu = Cpu::Amd,
            change: |node| {
                kmsg(
                    node,
                    "nvidia 0000:18:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x0003 address=0x80000040 flags=0x0020]",
                )
            },
            log: Some(STATUS_4),
            first: "iommu.translated",
            explains: &["iommu.fault", "nccl.completion-error"],
        },
        Case {
            said: "iommu=pt is there, and so is something behind it",
            spec: |spec| spec.cmdline = "intel_iommu=on iommu=pt iommu.passthrough=0".into(),
            change: clear,
            log: None,
            first: "iommu.cmdline-overridden",
            explains: &["iommu.translated"],
        },
        Case {
            said: "amd_iommu=on was copied from the web",
            spec: |spec| {
                spec.cpu = Cpu::Amd;
                spec.cmdline = "amd_iommu=on".into();
            },
            change: clear,
            log: None,
            first: "iommu.invalid-param",
            explains: &["iommu.translated"],
        },
        Case {
            said: "nvidia-smi says BAR1 256 MiB",
            spec: |spec| {
                good(spec);
                spec.bar1 = 256 << 20;
            },
            change: clear,
            log: None,
            first: "bar1.small",
            explains: &[],
        },
        Case {
            said: "one GB/s: somebody left NCCL_IB_DISABLE in nccl.conf",
            spec: good,
            change: |node| {
                clear(node);
                put(node, "etc/nccl.conf", "NCCL_IB_DISABLE=1\n");
            },
            log: Some(SOCKET),
            first: "nccl.env-net-disabled",
            explains: &["nccl.socket-fallback", "nccl.not-engaged"],
        },
        Case {
            said: "NCCL_NET_GDR_LEVEL=0 in the job script",
            spec: good,
            change: clear,
            log: Some(LEVEL_0),
            first: "nccl.env-gdr-level",
            explains: &["nccl.not-engaged"],
        },
        Case {
            said: "only receives use GDR",
            spec: good,
            change: clear,
            log: Some(READ_0),
            first: "nccl.env-gdr-read",
            explains: &["nccl.not-engaged"],
        },
        Case {
            said: "old NCCL in the container, new kernel on the node",
            spec: good,
            change: clear,
            log: Some(OLD),
            first: "nccl.too-old-for-peermem",
            explains: &["nccl.not-engaged"],
        },
        Case {
            said: "no /dev/infiniband in the container",
            spec: good,
            change: clear,
            log: Some(NO_DEVICE),
            first: "nccl.no-rdma-device",
            explains: &["nccl.socket-fallback", "nccl.not-engaged"],
        },
        Case {
            said: "the scheduler pairs GPUs with far NICs",
            spec: good,
            change: clear,
            log: Some(FAR),
            first: "path.far",
            explains: &["nccl.not-engaged"],
        },
        Case {
            said: "one NIC is half as fast as the others",
            spec: good,
            change: |node| {
                clear(node);
                put(
                    node,
                    "sys/bus/pci/devices/0000:19:00.0/current_link_width",
                    "8\n",
                );
            },
            log: None,
            first: "link.degraded",
            explains: &[],
        },
        Case {
            said: "the driver is not loaded at all",
            spec: good,
            change: |node| {
                clear(node);
                let text = String::from_utf8(node.read("proc/modules")).unwrap();
                let kept: String = text
                    .split_inclusive('\n')
                    .filter(|line| !line.starts_with("nvidia"))
                    .collect();
                node.write("proc/modules", kept.as_bytes());
            },
            log: None,
            first: "modules.loaded",
            explains: &[],
        },
        Case {
            said: "configured yesterday, not rebooted since",
            spec: good,
            change: |node| {
                clear(node);
                let mut grub = String::from_utf8(node.read("boot/grub/grub.cfg")).unwrap();
                grub = grub.replace("iommu=pt", "iommu=pt pci=realloc=off");
                node.write("boot/grub/grub.cfg", grub.as_bytes());
            },
            log: None,
            first: "cmdline.pending-reboot",
            explains: &[],
        },
        Case {
            said: "jobs die on one GPU",
            spec: good,
            change: |node| {
                kmsg(
                    node,
                    "NVRM: Xid (PCI:0000:9a:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
                )
            },
            log: None,
            first: "kernel.xid",
            explains: &[],
        },
        Case {
            said: "as an ordinary user: what cannot be read is not known",
            spec: |spec| {
                good(spec);
                spec.config_len = 64;
            },
            change: |_| {},
            log: None,
            first: "acs.redirect",
            explains: &[],
        },
        Case {
            said: "the configuration space of one port cannot be read",
            spec: good,
            change: |node| {
                clear(node);
                let path = node.path().join(config("0000:17:00.0"));
                std::fs::remove_file(&path).unwrap();
                std::fs::create_dir(&path).unwrap();
            },
            log: None,
            first: "acs.redirect",
            explains: &[],
        },
        Case {
            said: "perftest is a third with --use_cuda, and at line rate without",
            spec: good,
            change: |node| {
                put(node, "perftest-host", &perftest("", 390));
                put(node, "perftest-gpu", &perftest("initializing CUDA\n", 130));
            },
            log: None,
            first: "acs.redirect",
            explains: &["bandwidth.gpu-slower"],
        },
        Case {
            said: "Couldn't allocate MR",
            spec: |spec| drivers(spec, Rdma::Ofed, Peermem::Good),
            change: |node| {
                clear(node);
                put(
                    node,
                    "perftest-gpu",
                    "initializing CUDA\nCouldn't allocate MR with error=14\nfailed to create mr\n",
                );
            },
            log: None,
            first: "peermem.not-loaded",
            explains: &["perftest.mr-failed"],
        },
        Case {
            said: "the card could have a larger window, by its capability",
            spec: |spec| {
                good(spec);
                spec.bar1 = 64 << 30;
            },
            change: |node| {
                clear(node);
                could_be_larger(node, "0000:18:00.0");
            },
            log: None,
            first: "bar1.small",
            explains: &[],
        },
        Case {
            said: "captured from a unit that hides home directories",
            spec: good,
            change: |node| {
                clear(node);
                put(node, "etc/passwd", "root:x:0:0:root:/root:/bin/bash\n");
                let home = node.path().join("root");
                std::fs::create_dir_all(&home).unwrap();
                std::fs::set_permissions(home, std::fs::Permissions::from_mode(0o000)).unwrap();
            },
            log: None,
            first: "nccl.env-net-disabled",
            explains: &[],
        },
    ]
}

/// What `ib_write_bw` prints.
fn perftest(before: &str, gbps: u32) -> String {
    format!(
        "{before}                    RDMA_Write BW Test\n Device         : mlx5_0\n #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n 1048576    5000             0.00               {gbps}.00              0.046\n"
    )
}

/// A Resizable BAR capability at the end of the chain: BAR 2 with 64 GiB (2^16 MiB) now, 64 and 128 GiB supported.
fn could_be_larger(node: &Node, bdf: &str) {
    let mut space = node.read(&config(bdf));
    let word = |space: &[u8], at: usize| u32::from_le_bytes(space[at..at + 4].try_into().unwrap());
    let mut last = 0x100;
    while word(&space, last) >> 20 != 0 {
        last = (word(&space, last) >> 20) as usize;
    }
    let header = word(&space, last) | 0x400 << 20;
    for (at, value) in [
        (last, header),
        (0x400, 0x0001_0015),
        (0x404, 0b11 << 20),
        (0x408, 16 << 8 | 1 << 5 | 2),
    ] {
        space[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }
    node.write(&config(bdf), &space);
}

/// What is the same on all of these nodes, and nobody's question.
const ASIDE: [&str; 2] = ["host.memlock", "link.read-request"];

#[test]
fn each_case_comes_out_with_the_right_first_cause() {
    let cases = cases();
    assert!(cases.len() >= 20);
    let mut wrong = Vec::new();
    for case in &cases {
        let mut spec = NodeSpec::default();
        (case.spec)(&mut spec);
        let node = Node::new(&spec);
        (case.change)(&node);
        let out = tempfile::tempdir().unwrap();
        let archive = out.path().join("node.tar.zst");
        let mut capture = Command::new(binary());
        capture
            .args(["--root", ".", "capture"])
            .arg(&archive)
            .current_dir(node.path());
        if let Some(log) = case.log {
            put(&node, "job.log", log);
            capture.args(["--nccl-log", "job.log"]);
        }
        for file in ["perftest-host", "perftest-gpu"] {
            if node.has(file) {
                capture.args(["--perftest", file]);
            }
        }
        assert!(capture.output().unwrap().status.success(), "{}", case.said);
        let output = Command::new(binary())
            .args(["--format", "json", "doctor", "--capture"])
            .arg(&archive)
            .output()
            .unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let causes = report["causes"].as_array().unwrap();
        let failed =
            |cause: &&Value| cause["outcome"] == "failed" || cause["severity"] == "required";
        let shown = causes
            .iter()
            .filter(failed)
            .find(|cause| !ASIDE.contains(&cause["id"].as_str().unwrap()));
        let (first, explains) = match shown {
            Some(cause) => {
                let symptoms = cause["explains"].as_array().unwrap().iter();
                (
                    cause["id"].as_str().unwrap(),
                    symptoms.map(|s| s["id"].as_str().unwrap()).collect(),
                )
            }
            None => ("nothing", Vec::new()),
        };
        if first != case.first || !case.explains.iter().all(|id| explains.contains(id)) {
            let all: Vec<String> = causes
                .iter()
                .map(|c| format!("{} {}", c["id"], c["outcome"]))
                .collect();
            wrong.push(format!(
                "{}: {first} {explains:?}, not {} {:?}; {all:?}",
                case.said, case.first, case.explains
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
