//! NCCL's environment: files and processes in NCCL's order, real processes of this machine, hostile input.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    missing_docs,
    reason = "a test"
)]

mod growth;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use gdr_agent::checks::{Outcome, Severity};
use gdr_agent::facts::{Fact, RdmaDevice, RdmaPort, nccl_env, nccl_files};
use gdr_agent::finding::Finding;
use gdr_agent::nccl_env::{
    ConfFile, Known, NcclEnv, Process, conf, effective, environ, findings, integer, level,
    suggestion,
};
use gdr_agent::sys::Root;
use proptest::prelude::*;

fn etc(text: &str) -> NcclEnv {
    NcclEnv {
        files: vec![ConfFile {
            lines: Fact::known(conf(text.as_bytes()), "/etc/nccl.conf"),
            uid: None,
        }],
        processes: Vec::new(),
        denied: 0,
    }
}

fn found(text: &str) -> Vec<Finding> {
    findings(&etc(text), Known::default())
}

fn ids(text: &str) -> Vec<String> {
    found(text).into_iter().map(|f| f.id).collect()
}

#[test]
fn what_values_do() {
    for (text, wanted) in [
        ("NCCL_IB_DISABLE=1", "nccl.env-net-disabled"),
        ("NCCL_IB_DISABLE=2", "nccl.env-net-disabled"),
        ("NCCL_NET=socket", "nccl.env-net-disabled"),
        ("NCCL_NET_GDR_LEVEL=LOC", "nccl.env-gdr-level"),
        ("NCCL_NET_GDR_LEVEL=0", "nccl.env-gdr-level"),
        ("NCCL_NET_GDR_LEVEL=NVL", "nccl.env-gdr-level"),
        ("NCCL_NET_GDR_LEVEL=PIX", "nccl.env-gdr-level"),
        ("NCCL_NET_GDR_LEVEL=sys", "nccl.env-bad-value"),
        ("NCCL_NET_GDR_READ=0", "nccl.env-gdr-read"),
        // to NCCL any word is 0
        ("NCCL_NET_GDR_READ=on", "nccl.env-gdr-read"),
        ("NCCL_IB_DISABLE=true", "nccl.env-bad-value"),
        ("NCCL_DMABUF_ENABLE=0", "nccl.env-dmabuf-disabled"),
        (
            "NCCL_IB_PCI_RELAXED_ORDERING=0",
            "nccl.env-relaxed-ordering",
        ),
        ("NCCL_NET_GDR_C2C=0", "nccl.env-gdr-c2c"),
        ("NCCL_P2P_DISABLE=1", "nccl.env-p2p-disabled"),
        ("NCCL_P2P_LEVEL=LOC", "nccl.env-p2p-disabled"),
        ("NCCL_IB_GDR_DISABLE=1", "nccl.env-unknown-name"),
        ("NCCL_IB_CUDA_SUPPORT=1", "nccl.env-unknown-name"),
        (" NCCL_IB_DISABLE=1", "nccl.env-bad-line"),
        ("export NCCL_DEBUG=INFO", "nccl.env-bad-line"),
    ] {
        assert_eq!(ids(text), [wanted], "{text}");
    }
    for text in [
        "NCCL_IB_DISABLE=0",
        "NCCL_IB_DISABLE=",
        "NCCL_NET=IB",
        "NCCL_NET_GDR_LEVEL=SYS",
        "NCCL_NET_GDR_LEVEL=2",
        "NCCL_NET_GDR_LEVEL=PXB",
        "NCCL_NET_GDR_READ=1",
        "NCCL_NET_GDR_READ=-2",
        "NCCL_DMABUF_ENABLE=1",
        "NCCL_IB_PCI_RELAXED_ORDERING=2",
        "NCCL_SOCKET_IFNAME==ens1f0",
        "NCCL_FASTRAK_NUM_FLOWS=2",
        "#NCCL_IB_DISABLE=1",
        "PATH=/bin",
        "",
    ] {
        assert_eq!(ids(text), [""; 0], "{text}");
    }
}

#[test]
fn what_turns_it_off_comes_first_with_file_and_line() {
    let found =
        found("NCCL_DEBUG=INFO\nNCCL_NET_GDR_LEVLE=SYS\nNCCL_DMABUF_ENABLE=0\nNCCL_IB_DISABLE=1\n");
    let order: Vec<(&str, Severity)> = found.iter().map(|f| (f.id.as_str(), f.severity)).collect();
    let wanted = [
        ("nccl.env-net-disabled", Severity::Required),
        ("nccl.env-dmabuf-disabled", Severity::Warning),
        ("nccl.env-unknown-name", Severity::Warning),
    ];
    assert_eq!(order, wanted);
    assert!(
        found[0].evidence[0].starts_with("/etc/nccl.conf:4: NCCL_IB_DISABLE=1 "),
        "{:?}",
        found[0]
    );
    assert_eq!(
        found[2].fix.as_deref(),
        Some("did you mean NCCL_NET_GDR_LEVEL? If not, take it away")
    );
}

#[test]
fn names_by_version() {
    let of = |text: &str, minor| {
        let known = Known {
            minor: Some(minor),
            ..Known::default()
        };
        findings(&etc(text), known)
            .into_iter()
            .map(|f| f.evidence[0].clone())
            .collect::<Vec<String>>()
    };
    assert!(of("NCCL_IB_DATA_DIRECT=1", 27).is_empty());
    assert!(
        of("NCCL_IB_DATA_DIRECT=1", 26)[0].ends_with("is read from NCCL 2.27 on, and this is 2.26")
    );
    assert!(of("NCCL_WORK_FIFO_DEPTH=1", 20).is_empty());
    assert!(
        of("NCCL_WORK_FIFO_DEPTH=1", 22)[0].ends_with("was read up to NCCL 2.21, and this is 2.22")
    );
}

fn device(name: &str) -> RdmaDevice {
    RdmaDevice {
        name: name.to_owned(),
        bdf: None,
        ports: vec![RdmaPort {
            number: 1,
            active: Some(true),
            gbps: Some(400.0),
            link_layer: None,
        }],
    }
}

#[test]
fn a_list_of_hcas_that_fits_none() {
    let devices = [device("mlx5_0"), device("mlx5_10")];
    let known = Known {
        devices: Some(&devices),
        ..Known::default()
    };
    let of = |value: &str| !findings(&etc(&format!("NCCL_IB_HCA={value}")), known).is_empty();
    assert!(of("ibp1"));
    assert!(of("=mlx5_1"));
    assert!(of("^mlx5"));
    assert!(of("mlx5_0:2,mlx5_10:2"));
    assert!(!of("mlx5_1"));
    assert!(!of("=mlx5_0:1"));
    assert!(!of("^=mlx5_0"));
}

#[test]
fn the_first_source_wins() {
    let mut env = etc(
        "NCCL_IB_DISABLE=1\nNCCL_NET_GDR_LEVEL=LOC\nNCCL_NET_GDR_LEVEL=SYS\nNCCL_NET_GDR_READ=0\n",
    );
    env.files.push(ConfFile {
        lines: Fact::known(conf(b"NCCL_IB_DISABLE=0\n"), "/home/user/.nccl.conf"),
        uid: Some(1000),
    });
    env.files.push(ConfFile {
        lines: Fact::known(conf(b"NCCL_NET_GDR_READ=1\n"), "/opt/nccl.conf"),
        uid: None,
    });
    let process = |pid, environment: &[(&str, &str)]| Process {
        pid,
        uid: 1000,
        name: "python3".into(),
        environment: environment
            .iter()
            .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
            .collect(),
    };
    let values = |process: Option<&Process>| {
        let settings = effective(&env, process);
        ["NCCL_IB_DISABLE", "NCCL_NET_GDR_LEVEL", "NCCL_NET_GDR_READ"].map(|name| {
            let setting = settings.iter().find(|s| s.name == name).unwrap();
            format!("{} {}", setting.value, setting.from)
        })
    };
    // the node's file alone, its first line of a name
    assert_eq!(
        values(None),
        [
            "1 /etc/nccl.conf:1",
            "LOC /etc/nccl.conf:2",
            "0 /etc/nccl.conf:4"
        ]
    );
    // the user's before it, the process's own before that
    let own = process(7, &[("NCCL_NET_GDR_LEVEL", "PHB")]);
    assert_eq!(
        values(Some(&own)),
        [
            "0 /home/user/.nccl.conf:1",
            "PHB pid 7 (python3)",
            "0 /etc/nccl.conf:4"
        ]
    );
    // a file that is named takes the place of the user's
    let named = process(8, &[("NCCL_CONF_FILE", "/opt/nccl.conf")]);
    assert_eq!(
        values(Some(&named)),
        [
            "1 /etc/nccl.conf:1",
            "LOC /etc/nccl.conf:2",
            "1 /opt/nccl.conf:1"
        ]
    );
}

#[test]
fn a_jobs_processes_are_told_once() {
    let mut env = etc("");
    env.processes = (100..164)
        .map(|pid| Process {
            pid,
            uid: 0,
            name: "python3".into(),
            environment: vec![("NCCL_NET".into(), "Socket".into())],
        })
        .collect();
    let found = findings(&env, Known::default());
    assert_eq!(found.len(), 1);
    assert_eq!(
        found[0].evidence[1],
        "and 63 more processes with the same settings"
    );
    assert!(found[0].evidence[0].starts_with("pid 100 (python3): NCCL_NET=Socket"));
}

#[test]
fn processes_that_really_run() {
    let mut child = Command::new("sleep")
        .arg("60")
        .env("NCCL_NET_GDR_LEVEL", "LOC")
        .env("NCCL_IB_GDR_DISABEL", "1")
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let root = Root::open(Path::new("/")).unwrap();
    // until it has become sleep, its environment is that of the test
    let mut process = None;
    for _ in 0..200 {
        let env = nccl_env(&root);
        process = env
            .processes
            .iter()
            .find(|p| p.pid == child.id() && p.name == "sleep")
            .cloned();
        if process.is_some() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let env = nccl_env(&root);
    let start = Instant::now();
    let found = findings(&env, Known::default());
    let judged = start.elapsed();
    child.kill().unwrap();
    child.wait().unwrap();
    let process = process.unwrap();
    assert!(
        process
            .environment
            .contains(&("NCCL_NET_GDR_LEVEL".to_owned(), "LOC".to_owned()))
    );
    let pid = format!("pid {} (sleep)", process.pid);
    let off = found
        .iter()
        .find(|f| f.id == "nccl.env-gdr-level" && f.outcome == Outcome::Failed)
        .unwrap();
    assert!(off.evidence.iter().any(|e| e.starts_with(&pid)), "{off:?}");
    assert!(found.iter().any(|f| f.id == "nccl.env-unknown-name"));
    assert!(judged.as_secs() < 5);
}

#[test]
fn files_below_another_root() {
    let dir = tempfile::tempdir().unwrap();
    let put = |path: &str, text: &str| {
        let path = dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    put(
        "etc/passwd",
        "root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000::/home/user:/bin/sh\nbroken\n",
    );
    put("root/.nccl.conf", "NCCL_NET=Socket\n");
    put("home/user/.nccl.conf", "NCCL_IB_DISABLE=1\n");
    let root = Root::open(dir.path()).unwrap();
    let env = nccl_files(&root);
    assert_eq!(env.files.len(), 2);
    assert_eq!(env.files[1].lines.from, "/root/.nccl.conf");
    // root's is in force for what root starts; the other user runs nothing
    let found = findings(&env, Known::default());
    assert_eq!(found.len(), 1);
    assert!(
        found[0].evidence[0].starts_with("/root/.nccl.conf:1: NCCL_NET=Socket"),
        "{found:?}"
    );
    // a directory in the file's place is unknown, and said to be
    std::fs::create_dir_all(dir.path().join("etc/nccl.conf")).unwrap();
    let found = findings(&nccl_files(&root), Known::default());
    let unread = found.iter().find(|f| f.id == "nccl.env-unread").unwrap();
    assert_eq!(unread.outcome, Outcome::Unknown);
}

fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(b"NCCL_IB_DISABLE=".to_vec()),
        Just(b"NCCL_NET_GDR_LEVEL=".to_vec()),
        Just(b"\nNCCL_IB_HCA=^=mlx5_0:1,\n".to_vec()),
        Just(b"NCCL_XYZ=1\0".to_vec()),
        proptest::collection::vec(any::<u8>(), 0..30),
    ];
    proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_bytes_give_an_answer(bytes in pieces()) {
        let devices = [device("mlx5_0")];
        let mut env = etc(&String::from_utf8_lossy(&bytes));
        env.files[0].lines = Fact::known(conf(&bytes), "/etc/nccl.conf");
        env.processes.push(Process { pid: 1, uid: 0, name: "x".into(), environment: environ(&bytes) });
        for finding in findings(&env, Known { devices: Some(&devices), minor: Some(26) }) {
            for text in finding.evidence.iter().chain([&finding.subject]) {
                prop_assert!(text.chars().all(|c| !c.is_control()), "{text:?}");
            }
        }
    }

    #[test]
    fn any_value_has_a_meaning(value in "\\PC{0,60}") {
        let _ = (integer(&value), level(&value), suggestion(&value));
    }

    /// What the C library itself says.
    #[test]
    fn integers_are_those_of_strtoll(value in "[ \t]{0,2}[-+]{0,1}(0x|0X|0){0,1}[0-9a-fg]{0,20}[ x]{0,1}") {
        let Ok(output) = Command::new("perl").args(["-MPOSIX=strtol,errno", "-e", "$! = 0; my ($n) = strtol($ARGV[0], 0); print $!+0, q( ), $n", "--", &value]).output() else {
            return Ok(());
        };
        let text = String::from_utf8(output.stdout).unwrap();
        let (error, number) = text.split_once(' ').unwrap();
        // perl has numbers beyond 2^53 as they are
        let wanted = if value.is_empty() || error == "34" { None } else { Some(number.parse::<i64>().unwrap()) };
        prop_assert_eq!(integer(&value), wanted, "{:?} {}", value, text);
    }
}

#[test]
fn time_grows_with_the_size_and_no_faster() {
    for unit in [
        &b"NCCL_A=1\n"[..],
        b"\n",
        b"=",
        b"NCCL_A=1\0",
        b"NCCL_IB_HCA=a,",
    ] {
        growth::is_bounded(unit, 20_000, |bytes| {
            let mut env = etc("");
            env.files[0].lines = Fact::known(conf(bytes), "/etc/nccl.conf");
            env.processes.push(Process {
                pid: 1,
                uid: 0,
                name: "x".into(),
                environment: environ(bytes),
            });
            let _ = findings(&env, Known::default());
        });
    }
}

/// A unit with ProtectHome=yes sees empty directories without permissions in place of homes: what is in the real ones is not known.
#[test]
fn a_home_that_a_unit_hides_is_unknown_and_an_empty_one_is_not() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join("etc")).unwrap();
    std::fs::create_dir_all(dir.path().join("root")).unwrap();
    std::fs::write(
        dir.path().join("etc/passwd"),
        "root:x:0:0:root:/root:/bin/bash\n",
    )
    .unwrap();
    let root = gdr_agent::sys::Root::open(dir.path()).unwrap();
    let of_root = || {
        let env = gdr_agent::facts::nccl_files(&root);
        let file = env.files.into_iter().find(|file| file.uid == Some(0));
        file.unwrap().lines
    };
    assert!(!of_root().is_unknown(), "it is there, and has no such file");
    let mode = |mode| {
        let home = dir.path().join("root");
        std::fs::set_permissions(home, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(0o000);
    let hidden = of_root();
    assert!(hidden.is_unknown() && hidden.get().is_none(), "{hidden:?}");
    // as root it can be entered, and then says why
    if std::fs::read_dir(dir.path().join("root")).is_ok() {
        let why = hidden.unknown.unwrap();
        assert!(
            why.contains("/root is closed to everybody") && why.contains("ProtectHome"),
            "{why}"
        );
    }
    mode(0o700);
    std::fs::write(dir.path().join("root/.nccl.conf"), "NCCL_IB_DISABLE=1\n").unwrap();
    assert_eq!(of_root().get().map(Vec::len), Some(1));
}
