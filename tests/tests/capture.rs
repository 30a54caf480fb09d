//! `capture`, and `doctor --capture` with the same answers as on the node itself.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    dead_code,
    reason = "a test looks at the machine from outside"
)]

mod support;

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};

use gdr_tests::node::drivers::{Drivers, Flavour, Peermem, Rdma};
use gdr_tests::node::kmod::Packing;
use gdr_tests::node::{Cpu, Family, Lockdown, NodeSpec};
use serde_json::Value;
use support::{Node, binary, config};

fn run(dir: &Path, args: &[&str]) -> Output {
    Command::new(binary())
        .args(args)
        .current_dir(dir)
        .output()
        .unwrap()
}

fn put(node: &Node, path: &str, text: &str) {
    let full = node.path().join(path);
    std::fs::create_dir_all(full.parent().unwrap()).unwrap();
    node.write(path, text.as_bytes());
}

/// Takes a capture, and holds the report about it against the one about the node, byte for byte.
fn same(what: &str, node: &Node, logs: &[&str]) -> Value {
    let given: Vec<(&str, &str)> = logs.iter().map(|log| ("--nccl-log", *log)).collect();
    same_with(what, node, &given)
}

/// With these options and files.
fn same_with(what: &str, node: &Node, given: &[(&str, &str)]) -> Value {
    let out = tempfile::tempdir().unwrap();
    let archive = out.path().join("node.tar.zst").display().to_string();
    let mut args = vec!["--root", ".", "capture", &archive];
    let mut asked = vec!["--root", ".", "--format", "json", "doctor"];
    for (option, file) in given {
        args.extend([option, file]);
        asked.extend([option, file]);
    }
    let captured = run(node.path(), &args);
    assert!(
        captured.status.success(),
        "{what}: {}",
        String::from_utf8_lossy(&captured.stderr)
    );
    let here = run(node.path(), &asked);
    // Elsewhere: nothing of the node is in reach, and nothing is written.
    let elsewhere = tempfile::tempdir().unwrap();
    let there = Command::new(binary())
        .args(["--format", "json", "doctor", "--capture", &archive])
        .current_dir(elsewhere.path())
        .env("TMPDIR", elsewhere.path())
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8_lossy(&here.stdout),
        String::from_utf8_lossy(&there.stdout),
        "{what}"
    );
    assert_eq!(here.status.code(), there.status.code(), "{what}");
    let page = |dir: &Path, more: &[&str]| {
        run(dir, &[&["--format", "html", "doctor"], more].concat()).stdout
    };
    let here_page: Vec<&str> = ["--root", "."]
        .into_iter()
        .chain(given.iter().flat_map(|(option, file)| [*option, *file]))
        .collect();
    assert!(
        page(node.path(), &here_page) == page(elsewhere.path(), &["--capture", &archive]),
        "{what}: the page is another one"
    );
    assert_eq!(
        std::fs::read_dir(elsewhere.path()).unwrap().count(),
        0,
        "{what}"
    );
    serde_json::from_slice(&here.stdout).unwrap()
}

#[test]
fn every_sort_of_node_gives_the_same_report() {
    let base = NodeSpec::default();
    let drivers = |rdma, peermem, packing| Drivers {
        flavour: Flavour::Proprietary,
        rdma,
        peermem,
        packing,
        ..Drivers::default()
    };
    let specs = [
        ("eight GPUs", base.clone()),
        (
            "AMD",
            NodeSpec {
                cpu: Cpu::Amd,
                ..base.clone()
            },
        ),
        (
            "guest",
            NodeSpec {
                hypervisor: true,
                ..base.clone()
            },
        ),
        (
            "no NIC",
            NodeSpec {
                nics: false,
                ..base.clone()
            },
        ),
        (
            "EL 8",
            NodeSpec {
                family: Family::El8,
                ..base.clone()
            },
        ),
        (
            "EL 9",
            NodeSpec {
                family: Family::El9,
                ..base.clone()
            },
        ),
        (
            "Fedora",
            NodeSpec {
                family: Family::Fedora,
                ..base.clone()
            },
        ),
        (
            "SUSE",
            NodeSpec {
                family: Family::Suse,
                ..base.clone()
            },
        ),
        (
            "64 bytes",
            NodeSpec {
                config_len: 64,
                ..base.clone()
            },
        ),
        (
            "256 bytes",
            NodeSpec {
                config_len: 256,
                ..base.clone()
            },
        ),
        (
            "no ACS",
            NodeSpec {
                acs: false,
                ..base.clone()
            },
        ),
        (
            "lockdown",
            NodeSpec {
                lockdown: Lockdown::Integrity,
                secure_boot: true,
                ..base.clone()
            },
        ),
        (
            "small BAR1",
            NodeSpec {
                bar1: 256 << 20,
                ..base.clone()
            },
        ),
        (
            "good peermem",
            NodeSpec {
                drivers: drivers(Rdma::Ofed, Peermem::Good, Packing::None),
                ..base.clone()
            },
        ),
        (
            "stub, packed",
            NodeSpec {
                drivers: drivers(Rdma::Ofed, Peermem::Stub, Packing::Zstd),
                ..base.clone()
            },
        ),
        (
            "mismatch",
            NodeSpec {
                drivers: drivers(Rdma::InboxWithPeers, Peermem::OtherInterface, Packing::Xz),
                ..base.clone()
            },
        ),
        (
            "no RDMA",
            NodeSpec {
                drivers: drivers(Rdma::None, Peermem::None, Packing::None),
                ..base
            },
        ),
    ];
    for (what, spec) in specs {
        let report = same(what, &Node::new(&spec), &[]);
        assert_eq!(report["node"]["gpus"], 8, "{what}");
    }
}

#[test]
fn logs_come_along() {
    let node = Node::new(&NodeSpec::default());
    put(
        &node,
        "job.log",
        "host-1:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0\n",
    );
    put(
        &node,
        "dev/kmsg",
        "4,1,1,-;NVRM: Xid (PCI:0000:9b:00): 79, GPU has fallen off the bus.\n",
    );
    let report = same("with a log", &node, &["job.log"]);
    assert_eq!(report["logs"][0]["verdict"], "not-engaged");
    assert!(
        report["causes"]
            .as_array()
            .unwrap()
            .iter()
            .any(|c| c["id"] == "kernel.xid")
    );
}

/// Outputs of perftest are evidence there as here.
#[test]
fn outputs_of_perftest_come_along() {
    let node = Node::new(&NodeSpec::default());
    let head = "                    RDMA_Write BW Test\n Device         : mlx5_0\n #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n";
    put(
        &node,
        "host.txt",
        &format!(
            "{head} 1048576    5000             0.00               390.00              0.046\n"
        ),
    );
    put(
        &node,
        "gpu.txt",
        &format!(
            "initializing CUDA\n local address: LID 0000 GID: 10.1.2.3\n{head} 1048576    5000             0.00               120.00              0.014\n"
        ),
    );
    let given = [("--perftest", "host.txt"), ("--perftest", "gpu.txt")];
    let report = same_with("perftest", &node, &given);
    let checks = report["checks"].as_array().unwrap();
    let slower = checks.iter().find(|c| c["id"] == "bandwidth.gpu-slower");
    assert_eq!(slower.unwrap()["outcome"], "failed");

    let out = tempfile::tempdir().unwrap();
    let archive = out.path().join("node.tar.zst");
    let path = archive.display().to_string();
    let args = [
        "--root",
        ".",
        "--format",
        "json",
        "capture",
        &path,
        "--perftest",
        "gpu.txt",
    ];
    let taken: Value = serde_json::from_slice(&run(node.path(), &args).stdout).unwrap();
    assert_eq!(taken["perftest"], serde_json::json!(["gpu.txt"]));
    assert!(!unpacked(&archive).contains("10.1.2.3"));
    let output = run(
        node.path(),
        &["--root", ".", "capture", "x", "--perftest", "none"],
    );
    assert_eq!(output.status.code(), Some(1));
}

/// rpm's list of the packages that matter. A directory's programs are not run, so the agent runs in it as in a system of its own.
#[test]
fn rpm_is_asked_on_the_node_itself() {
    if !is_root() {
        println!("SKIPPED: chroot takes root");
        return;
    }
    let node = Node::new(&NodeSpec {
        tools: Some(env!("CARGO_BIN_EXE_sample-node").into()),
        ..NodeSpec::default()
    });
    std::fs::copy(binary(), node.path().join("usr/bin/gdr-agent")).unwrap();
    // programs are started with it as their input
    put(&node, "dev/null", "");
    let rpm = "#!/bin/sh\n[ \"$1 $2\" = '-qa --qf' ] || exit 1\nprintf 'bash\\t0\\t5.1.8\\t9.el9\\nkernel-core\\t0\\t5.14.0\\t427.el9\\nkmod-nvidia-open-dkms\\t3\\t570.1\\t1.el9\\nrdma-core\\t0\\t1.2.3.4\\t1\\n'\n";
    let path = node.path().join("usr/bin/rpm");
    std::fs::write(&path, rpm).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let output = Command::new("chroot")
        .arg(node.path())
        .args(["/usr/bin/gdr-agent", "capture", "--no-smi", "/srv.tar.zst"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let text = unpacked(&node.path().join("srv.tar.zst"));
    assert!(
        text.contains("ended\nkernel-core\t0\t5.14.0\t427.el9\nkmod-nvidia-open-dkms\t3\t570.1\t1.el9\nrdma-core\t0\t1.2.3.4\t1\n"),
        "{}",
        text.split("rpm_-qa").nth(1).unwrap_or("no list")
    );
    // and asking the archive gives an answer
    let archive = node.path().join("srv.tar.zst").display().to_string();
    let output = run(node.path(), &["doctor", "--capture", &archive]);
    assert!(matches!(output.status.code(), Some(0 | 3)));
}

/// Files that are there and may not be read: they stay unreadable, and never become absent.
#[test]
fn what_could_not_be_read_stays_unreadable() {
    let node = Node::new(&NodeSpec::default());
    let locked = [
        "proc/modules",
        "etc/default/grub",
        "boot/grub/grub.cfg",
        &config("0000:17:00.0"),
    ]
    .map(|path| node.path().join(path));
    for path in &locked {
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o000)).unwrap();
    }
    std::fs::set_permissions(node.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let out = tempfile::tempdir().unwrap();
    std::fs::set_permissions(out.path(), PermissionsExt::from_mode(0o777)).unwrap();
    let as_nobody = |args: &[&str]| {
        let mut command = Command::new(binary());
        command.args(args).current_dir(node.path());
        if is_root() {
            command.uid(65534).gid(65534);
        }
        command.output().unwrap()
    };
    let archive = out.path().join("a.tar.zst").display().to_string();
    let taken = as_nobody(&["--root", ".", "--format", "json", "capture", &archive]);
    assert!(
        taken.status.success(),
        "{}",
        String::from_utf8_lossy(&taken.stderr)
    );
    let taken: Value = serde_json::from_slice(&taken.stdout).unwrap();
    let unreadable: Vec<&str> = taken["unreadable"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| p.as_str().unwrap())
        .collect();
    for path in ["/proc/modules", "/boot/grub/grub.cfg"] {
        assert!(unreadable.contains(&path), "{unreadable:?}");
    }
    assert!(
        unreadable
            .iter()
            .any(|path| path.ends_with("0000:17:00.0/config")),
        "{unreadable:?}"
    );
    let here = as_nobody(&["--root", ".", "--format", "json", "doctor"]);
    let there = run(
        out.path(),
        &["--format", "json", "doctor", "--capture", &archive],
    );
    let text = String::from_utf8(there.stdout).unwrap();
    assert_eq!(String::from_utf8_lossy(&here.stdout), text);
    assert!(text.contains("Permission denied"), "{text}");
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").unwrap().uid() == 0
}

fn unpacked(path: &Path) -> String {
    let bytes = std::fs::read(path).unwrap();
    let mut rest = bytes.as_slice();
    let mut decoder = ruzstd::decoding::StreamingDecoder::new(&mut rest).unwrap();
    let mut text = Vec::new();
    std::io::Read::read_to_end(&mut decoder, &mut text).unwrap();
    String::from_utf8_lossy(&text).into_owned()
}

#[test]
fn keys_never_leave_and_addresses_only_when_asked() {
    let node = Node::new(&NodeSpec {
        cmdline: "ip=192.168.77.5::192.168.77.1:255.255.255.0:gpu-node-17:eth0:off rd.iscsi.password=hunter2".into(),
        ..NodeSpec::default()
    });
    put(&node, "proc/sys/kernel/hostname", "gpu-node-17\n");
    put(
        &node,
        "etc/nccl.conf",
        "SECRET_THING=abcdef\nNCCL_COMM_ID=10.77.0.9:1234\n",
    );
    put(
        &node,
        "dev/kmsg",
        "4,1,1,-;NVRM: Xid (PCI:0000:9b:00): 79 on gpu-node-17\n6,1,1,-;eth0: 0c:42:a1:77:11:22\n",
    );
    put(
        &node,
        "job.log",
        "gpu-node-17:1:2 [0] NCCL INFO OOB ib0:10.77.0.9<0>\nAWS_SECRET_ACCESS_KEY=zyxwv\n",
    );
    put(
        &node,
        "proc/kallsyms",
        "ffffffffc0de T ib_register_client\t[ib_core]\nffffffff1234 T secret_symbol\n",
    );
    let mut grub = node.read("boot/grub/grub.cfg");
    grub.extend_from_slice(b"password_pbkdf2 root grub.pbkdf2.sha512.10000.FEED\n");
    node.write("boot/grub/grub.cfg", &grub);
    let out = tempfile::tempdir().unwrap();
    let (closed, open) = (
        out.path().join("closed.tar.zst"),
        out.path().join("open.tar.zst"),
    );
    for (path, more) in [(&closed, &[][..]), (&open, &["--with-addresses"])] {
        let name = path.display().to_string();
        let mut args = vec!["--root", ".", "capture", &name, "--nccl-log", "job.log"];
        args.extend(more);
        assert!(run(node.path(), &args).status.success());
    }
    let (closed, open) = (unpacked(&closed), unpacked(&open));
    for secret in [
        "hunter2",
        "abcdef",
        "zyxwv",
        "FEED",
        "secret_symbol",
        "ffffffffc0de",
        "0c:42:a1",
    ] {
        assert!(
            !closed.contains(secret) && !open.contains(secret),
            "{secret}"
        );
    }
    for address in ["192.168.77.5", "10.77.0.9", "gpu-node-17"] {
        assert!(!closed.contains(address), "{address}");
        assert!(open.contains(address), "{address}");
    }
    assert!(closed.contains("NCCL_COMM_ID=x.x.x.x:1234"));
}

#[test]
fn config_spaces_keep_their_length() {
    for length in [64, 256, 4096] {
        let node = Node::new(&NodeSpec {
            config_len: length,
            ..NodeSpec::default()
        });
        let out = tempfile::tempdir().unwrap();
        let archive = out.path().join("n.tar.zst").display().to_string();
        assert!(
            run(node.path(), &["--root", ".", "capture", &archive])
                .status
                .success()
        );
        let text = unpacked(Path::new(&archive));
        let manifest = text.split_once("{\"schema\"").unwrap().1;
        assert!(manifest.contains("/config"));
        let listing = Command::new("tar")
            .args(["--zstd", "-tvf", &archive])
            .output();
        let Ok(listing) = listing else {
            println!("tar is not there: lengths are only compared by the reports");
            continue;
        };
        if !listing.status.success() {
            println!("tar has no zstd: lengths are only compared by the reports");
            continue;
        }
        let listing = String::from_utf8(listing.stdout).unwrap();
        let configs: Vec<&str> = listing
            .lines()
            .filter(|line| line.ends_with("/config"))
            .collect();
        assert!(configs.len() > 50, "{listing}");
        assert!(
            configs
                .iter()
                .all(|line| line.split_whitespace().nth(2) == Some(&length.to_string())),
            "{listing}"
        );
    }
}

#[test]
fn nothing_is_replaced_and_bad_files_are_named() {
    let node = Node::new(&NodeSpec::default());
    let out = tempfile::tempdir().unwrap();
    let there = out.path().join("there.tar.zst").display().to_string();
    std::fs::write(&there, "mine").unwrap();
    let link = out.path().join("link.tar.zst").display().to_string();
    std::os::unix::fs::symlink("elsewhere", &link).unwrap();
    for path in [&there, &link] {
        let output = run(node.path(), &["--root", ".", "capture", path]);
        assert_eq!(output.status.code(), Some(1));
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("choose another name"), "{said}");
    }
    assert_eq!(std::fs::read(&there).unwrap(), b"mine");
    assert!(!out.path().join("elsewhere").exists());
    let output = run(out.path(), &["doctor", "--capture", &there]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        String::from_utf8(output.stderr)
            .unwrap()
            .contains("it is not an archive")
    );
    let output = run(node.path(), &["--root", ".", "doctor", "--capture", &there]);
    assert_eq!(output.status.code(), Some(2));
    // A pipe must not block.
    let pipe = out.path().join("pipe");
    if Command::new("mkfifo")
        .arg(&pipe)
        .status()
        .is_ok_and(|s| s.success())
    {
        let output = run(out.path(), &["doctor", "--capture", "pipe"]);
        assert_eq!(output.status.code(), Some(9));
    }
}

#[test]
fn the_json_is_as_its_schema_says() {
    let node = Node::new(&NodeSpec::default());
    let out = tempfile::tempdir().unwrap();
    let archive = out.path().join("n.tar.zst").display().to_string();
    let output = run(
        node.path(),
        &[
            "--root",
            ".",
            "--format",
            "json",
            "capture",
            &archive,
            "--nccl-log",
            "none.log",
        ],
    );
    assert_eq!(output.status.code(), Some(1), "a log could not be read");
    let schema = run(out.path(), &["schema", "capture"]);
    let schema: Value = serde_json::from_slice(&schema.stdout).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    let problems: Vec<String> = validator
        .iter_errors(&value)
        .map(|e| e.to_string())
        .collect();
    assert!(problems.is_empty(), "{problems:?}");
    let mode = std::fs::metadata(&archive).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

/// Processes without variables of RDMA's are not in it, and those with them only with these; what nvidia-smi said is, without
/// what names a board. The report is the same.
#[test]
fn jobs_and_what_nvidia_smi_said() {
    let node = Node::new(&NodeSpec::default());
    let sick = "<nvidia_smi_log>\n<driver_version>570.1</driver_version>\n<gpu id=\"00000000:18:00.0\">\n\
                <serial>1652123000001</serial>\n<process_name>/home/anna/train</process_name>\n\
                <fb_memory_usage>\n<total>81559 MiB</total>\n</fb_memory_usage>\n</gpu>\n\
                <gpu id=\"00000000:1a:00.0\">\n<serial>GPU is lost</serial>\n<uuid>GPU is lost</uuid>\n</gpu>\n</nvidia_smi_log>\n";
    put(
        &node,
        "run/gdr-agent/said/nvidia-smi_-q_-x",
        &format!("ended\n{sick}"),
    );
    for (pid, environ) in [
        (
            100,
            "HOME=/home/anna\0NCCL_IB_DISABLE=1\0AWS_SECRET_ACCESS_KEY=abc123\0",
        ),
        (101, "HOME=/home/anna\0"),
        (102, ""),
    ] {
        put(&node, &format!("proc/{pid}/environ"), environ);
        put(&node, &format!("proc/{pid}/comm"), "python3\n");
    }
    let report = same("jobs", &node, &[]);
    let ids: Vec<&str> = report["causes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cause| cause["id"].as_str().unwrap())
        .collect();
    for id in ["gpu.lost", "gpu.missing", "nccl.env-net-disabled"] {
        assert!(ids.contains(&id), "{id}: {ids:?}");
    }
    let out = tempfile::tempdir().unwrap();
    let archive = out.path().join("node.tar.zst");
    let taken = run(
        node.path(),
        &["--root", ".", "capture", &archive.display().to_string()],
    );
    assert!(taken.status.success());
    let text = unpacked(&archive);
    assert!(text.contains("NCCL_IB_DISABLE=1") && text.contains("GPU is lost"));
    for gone in [
        "anna",
        "abc123",
        "1652123000001",
        "root/proc/101",
        "root/proc/102",
    ] {
        assert!(!text.contains(gone), "{gone} is in the archive");
    }
}
