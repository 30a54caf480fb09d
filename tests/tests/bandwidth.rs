//! `gdr-agent bandwidth`: with files, with Debian's own perftest where that is installed, and with a stand-in for a
//! perftest with CUDA. An RDMA card cannot be had here: the stand-in is a shell script in the made-up node that prints what real ones
//! print, with their faults: no CUDA in the build, memory that cannot be registered, a server that is late, a transfer that
//! fails half way, a program that hangs.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    missing_docs,
    reason = "a test"
)]

mod support;

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use gdr_tests::node::{NodeSpec, Reboot};
use serde_json::Value;
use support::{Node, binary, fed};

/// What a build with CUDA prints in its help (perftest 24.10), shortened.
const HELP: &str = "  -a, --all  Run sizes from 2 till 2^23
      --report_gbits  Report Max/Average BW of test in Gbit/sec (instead of MiB/sec)
      --use_cuda=<cuda device id> Use CUDA specific device for GPUDirect RDMA testing
      --use_cuda_bus_id=<cuda full BUS id> Use CUDA specific device, based on its full PCIe address, for GPUDirect RDMA testing
      --use_cuda_dmabuf Use CUDA DMA-BUF for GPUDirect RDMA testing
";

/// Only what the shell itself can do: there is nothing else in the node.
const STAND_IN: &str = r#"#!/bin/sh
set -u
here=/srv/perftest
peer= port= gpu= dmabuf= size= device= bus=
for word; do
    case $word in
    --help) printf '%s' "$HELP"; exit 1 ;;
    --port=*) port=${word#*=} ;;
    --size=*) size=${word#*=} ;;
    --use_cuda_bus_id=*) gpu=1 bus=${word#*=} ;;
    --use_cuda_dmabuf) dmabuf=1; [ "$gpu" ] || { echo "CUDA DMA-BUF cannot be used without CUDA" >&2; exit 1; } ;;
    --*|-F) ;;
    -d) device=next ;;
    *) if [ "$device" = next ]; then device=$word; else peer=$word; fi ;;
    esac
done
echo "$0 $*" >> $here/log
if [ "$peer" ] && ! [ -e $here/$port ]; then
    echo "Couldn't connect to $peer:$port" >&2
    echo " Unable to init the socket connection" >&2
    exit 1
fi
if [ "$gpu" ]; then
    echo "initializing CUDA"
    echo "Finding PCIe BUS $bus"
    echo "Picking GPU number 0"
    if [ "$FAULT" = mr ]; then
        echo "cuMemAlloc() of a 2097152 bytes GPU buffer"
        echo "Couldn't allocate MR with error=14" >&2
        echo "failed to create mr" >&2
        echo "Failed to create MR" >&2
        echo " Couldn't create IB resources" >&2
        exit 1
    fi
    [ "$dmabuf" ] && echo "using DMA-BUF for GPU buffer address at 0x7f aligned at 0x7f with aligned size 2097152"
fi
if ! [ "$peer" ]; then
    i=0; while [ $i -lt "$LATE" ]; do i=$((i + 1)); done
    : > $here/$port
fi
echo "                    RDMA_Write BW Test"
echo " Dual-port       : OFF		Device         : $device"
echo " Number of qps   : 2		Transport type : IB"
echo " Data ex. method : Ethernet"
echo " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]"
[ "$peer" ] || { while ! [ -e $here/$port.over ]; do :; done; exit 0; }
rate=388.20; [ "$gpu" ] && rate=$GPU
if [ "$gpu" ] && [ "$FAULT" = completion ]; then
    echo " 65536      5000             0.00               380.10              0.724983"
    echo " Completion with error at client" >&2
    echo " Failed status 10: wr_id 0 syndrom 0x88" >&2
    : > $here/$port.over
    exit 1
fi
if [ "$gpu" ] && [ "$FAULT" = hang ]; then
    : > $here/$port.over
    kill -STOP $$
fi
echo " $size    230000           0.00               $rate              0.046277"
: > $here/$port.over
"#;

fn with_stand_in(fault: &str, gpu: &str, help: &str, late: u32) -> Node {
    with_policy("", fault, gpu, help, late)
}

/// With this at the end of the policy.
fn with_policy(policy: &str, fault: &str, gpu: &str, help: &str, late: u32) -> Node {
    let spec = NodeSpec::default();
    // the shell, and the libraries that it needs, come with the tools
    let node = Node::new(&NodeSpec {
        tools: Some(env!("CARGO_BIN_EXE_sample-node").into()),
        policy: spec.policy.map(|text| format!("{text}{policy}")),
        ..NodeSpec::default()
    });
    std::fs::create_dir_all(node.path().join("srv/perftest")).unwrap();
    let set = format!("FAULT={fault}\nGPU={gpu}\nLATE={late}\nHELP='{help}'\n");
    let script = STAND_IN.replace("set -u\n", &format!("set -u\n{set}"));
    let path = node.path().join("usr/bin/ib_write_bw");
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    node
}

fn ids(json: &Value) -> Vec<&str> {
    let findings = json["findings"].as_array().unwrap().iter();
    findings.map(|f| f["id"].as_str().unwrap()).collect()
}

#[test]
fn both_sides_host_and_gpu_memory() {
    // a server that is a while in starting: the asking side has to come again
    let node = with_stand_in("", "385.10", HELP, 300_000);
    let json = node.json(&["bandwidth", "--seconds", "1"], 0);
    assert_eq!(json["verdict"], "met");
    assert_eq!(json["error"], Value::Null);
    let results = json["results"].as_array().unwrap();
    assert_eq!(results.len(), 2);
    assert_eq!(results[0]["average_gbps"], 388.2);
    assert_eq!(results[0]["memory"], "host");
    assert_eq!(results[1]["average_gbps"], 385.1);
    assert_eq!(results[1]["memory"], "dma-buf");
    assert_eq!(results[1]["peak_gbps"], Value::Null);
    assert_eq!(json["link"]["gbps"], 400.0);
    let ratio = json["ratios"][0]["ratio"].as_f64().unwrap();
    assert!((ratio - 385.1 / 388.2).abs() < 1e-9);
    // the first GPU and the NIC next to it, and the GPU before the DMA-BUF
    let log = String::from_utf8(node.read("srv/perftest/log")).unwrap();
    assert!(log.contains("-d mlx5_0"), "{log}");
    assert!(
        log.contains("--use_cuda_bus_id=0000:18:00.0 --use_cuda_dmabuf 127.0.0.1"),
        "{log}"
    );
    assert!(
        log.lines().filter(|l| l.contains("--help")).count() == 0,
        "{log}"
    );
}

/// Both nodes are one here: the stand-in meets itself in a directory instead of the network.
#[test]
fn two_nodes_one_listens() {
    let node = with_stand_in("", "385.10", HELP, 0);
    let args = [
        "bandwidth",
        "--seconds",
        "1",
        "--gpu",
        "0000:18:00.0",
        "--nic",
        "0000:19:00.0",
    ];
    let (asks, listens) = std::thread::scope(|scope| {
        let listens = scope.spawn(|| node.json(&[&args[..], &["--listen"]].concat(), 0));
        let asks = node.json(&[&args[..], &["--peer", "node1"]].concat(), 0);
        (asks, listens.join().unwrap())
    });
    assert_eq!(asks["verdict"], "met");
    assert_eq!(asks["results"][1]["average_gbps"], 385.1);
    // the listening side of this stand-in prints no row, as a real one does for reads
    assert_ne!(listens["verdict"], "met");
    let log = String::from_utf8(node.read("srv/perftest/log")).unwrap();
    assert!(log.contains("--use_cuda_dmabuf node1"), "{log}");
    assert_eq!(node.run(&["bandwidth", "--peer=-x"]).status.code(), Some(2));
    assert_eq!(
        node.run(&["bandwidth", "--listen", "--peer", "x"])
            .status
            .code(),
        Some(2)
    );
    assert_eq!(
        node.run(&["bandwidth", "--gpu", "0000:ff:00.0"])
            .status
            .code(),
        Some(2)
    );
}

#[test]
fn slow_and_failing_gpu_memory() {
    let json = with_stand_in("", "110.00", HELP, 0).json(&["bandwidth", "--seconds", "1"], 3);
    assert_eq!(json["verdict"], "failed");
    assert_eq!(ids(&json), ["bandwidth.gpu-slower", "bandwidth.low"]);

    let json = with_stand_in("mr", "0", HELP, 0).json(&["bandwidth", "--seconds", "1"], 3);
    assert_eq!(ids(&json), ["perftest.mr-failed"]);
    assert_eq!(json["results"].as_array().unwrap().len(), 1);
    let error = json["error"].as_str().unwrap();
    assert!(
        error.contains("Couldn't allocate MR with error=14"),
        "{error}"
    );

    let json = with_stand_in("completion", "0", HELP, 0).json(&["bandwidth", "--seconds", "1"], 3);
    assert_eq!(ids(&json)[0], "perftest.completion-error");
    // the row before the failure stays
    assert_eq!(json["results"][1]["average_gbps"], 380.1);
}

#[test]
fn a_program_that_hangs_is_stopped() {
    let node = with_stand_in("hang", "0", HELP, 0);
    let start = Instant::now();
    let json = node.json(&["bandwidth", "--seconds", "1", "--limit", "2"], 3);
    assert!(start.elapsed() < Duration::from_secs(20));
    assert_eq!(ids(&json)[0], "perftest.hung");
    assert_eq!(json["results"][0]["average_gbps"], 388.2);
}

#[test]
fn builds_without_cuda_and_no_build_at_all() {
    let help = "      --report_gbits  Report Max/Average BW of test in Gbit/sec\n";
    let json = with_stand_in("", "0", help, 0).json(&["bandwidth", "--seconds", "1"], 3);
    assert_eq!(json["verdict"], "unknown");
    assert_eq!(ids(&json), ["perftest.no-cuda"]);
    // host memory was measured all the same
    assert_eq!(json["results"][0]["average_gbps"], 388.2);

    let node = Node::new(&NodeSpec::default());
    let json = node.json(&["bandwidth"], 3);
    assert_eq!(ids(&json), ["perftest.missing"]);
}

/// Groups that the made-up node meets, and the measurement beside them.
fn policy(require: &str, warn: &str) -> String {
    format!(
        "\n[verify]\nrequire = [\"cmdline\", \"iommu\"{require}]\nwarn = [\"link\"{warn}]\n\n[verify.bandwidth]\nmin_gbps = 380.0\n"
    )
}

const ALSO: &str = ", \"bandwidth\"";

/// Subject, id and outcome of the answers about bandwidth.
fn answers(json: &Value) -> Vec<(String, String, String)> {
    let checks = json["checks"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    checks
        .filter(|check| check["group"] == "bandwidth")
        .map(|c| (text(&c["subject"]), text(&c["id"]), text(&c["outcome"])))
        .collect()
}

#[test]
fn verification_measures_every_pair_of_the_policy() {
    let node = with_policy(&policy(ALSO, ""), "", "385.10", HELP, 0);
    node.json(&["apply", "--reboot"], 8);
    node.reboot(Reboot::default());
    let status = node.json(&["status"], 0);
    assert_eq!(status["state"], "COMMITTED", "{status:#}");
    let log = String::from_utf8(node.read("srv/perftest/log")).unwrap();
    let asking = || log.lines().filter(|line| line.ends_with(" 127.0.0.1"));
    // eight GPUs and eight NICs, each GPU with its own; every NIC once on host memory and once with its GPU
    for gpu in ["18", "1a", "3a", "3c", "9a", "9c", "ca", "cc"] {
        let of_it = format!("--use_cuda_bus_id=0000:{gpu}:00.0 ");
        assert_eq!(asking().filter(|l| l.contains(&of_it)).count(), 1, "{log}");
    }
    assert_eq!(asking().count(), 16, "{log}");

    let verify = node.json(&["verify"], 0);
    let found = answers(&verify);
    assert_eq!(found.len(), 8, "{found:?}");
    assert!(
        found
            .iter()
            .all(|(_, id, o)| id == "bandwidth.low" && o == "met")
    );
    assert_eq!(found[0].0, "0000:18:00.0 - 0000:19:00.0");
    let text = verify["checks"].to_string();
    assert!(
        text.contains("385.10 Gb/s with 1048576 bytes, GPU memory (DMA-BUF)"),
        "{text}"
    );
    assert!(
        text.contains("the rate of mlx5_0 port 1 is 400 Gb/s"),
        "{text}"
    );
    // nothing is run each minute
    let lines = log.lines().count();
    let again = || String::from_utf8(node.read("srv/perftest/log")).unwrap();
    let after_verify = again().lines().count();
    assert!(after_verify > lines);
    let metrics = node.json(&["metrics"], 0);
    assert_eq!(metrics["verdict"], "met", "{metrics:#}");
    assert_eq!(again().lines().count(), after_verify);
}

/// What is slow, cannot be registered or cannot be measured keeps a trial from passing, unless the policy only warns.
#[test]
fn a_trial_that_is_slow_or_not_measured_goes_back() {
    let no_cuda = "      --report_gbits  Report Max/Average BW of test in Gbit/sec\n";
    for (fault, gpu, help, id) in [
        ("", "200.00", HELP, "bandwidth.low"),
        ("mr", "0", HELP, "perftest.mr-failed"),
        ("", "0", no_cuda, "perftest.no-cuda"),
    ] {
        let node = with_policy(&policy(ALSO, ""), fault, gpu, help, 0);
        node.json(&["apply", "--reboot"], 8);
        node.reboot(Reboot::default());
        let status = node.json(&["status"], 6);
        assert_eq!(status["state"], "ROLLING_BACK", "{id}: {status:#}");
        let unmet = status["unmet"].to_string();
        assert!(
            unmet.contains(&format!("bandwidth: {id} (0000:18:00.0")),
            "{unmet}"
        );
    }
    let node = with_policy(&policy("", ALSO), "mr", "0", HELP, 0);
    node.json(&["apply", "--reboot"], 8);
    node.reboot(Reboot::default());
    assert_eq!(node.json(&["status"], 0)["state"], "COMMITTED");
}

#[test]
fn no_program_no_device_and_the_table_alone() {
    // without the groups, and without perftest: it is reported, and decides nothing
    let spec = NodeSpec::default();
    let policy_of = |require: &str| spec.policy.clone().map(|p| p + &policy(require, ""));
    let node = Node::new(&NodeSpec {
        policy: policy_of(""),
        ..NodeSpec::default()
    });
    node.json(&["apply", "--reboot"], 8);
    node.reboot(Reboot::default());
    assert_eq!(node.json(&["status"], 0)["state"], "COMMITTED");
    let verify = node.json(&["verify"], 0);
    let found = answers(&verify);
    assert_eq!(found.len(), 8, "{found:?}");
    assert!(
        found
            .iter()
            .all(|(_, id, o)| id == "perftest.missing" && o == "unknown")
    );

    // required, and no NIC has an RDMA device: unknown, and so not met
    let node = with_policy(&policy(ALSO, ""), "", "385.10", HELP, 0);
    node.json(&["apply", "--reboot"], 8);
    node.reboot(Reboot::default());
    std::fs::remove_dir_all(node.path().join("sys/class/infiniband")).unwrap();
    let verify = node.json(&["verify"], 3);
    assert_eq!(verify["verdict"], "unknown");
    let found = answers(&verify);
    assert!(
        found
            .iter()
            .all(|(_, id, _)| id == "bandwidth.not-measured"),
        "{found:?}"
    );
    assert_eq!(found.len(), 8, "{found:?}");
}

/// It would measure what the job leaves, and take it from the job.
#[test]
fn nothing_is_measured_while_a_process_computes() {
    let node = with_policy(&policy(ALSO, ""), "", "385.10", HELP, 0);
    std::fs::create_dir_all(node.path().join("proc/4711/fd")).unwrap();
    node.write("proc/4711/comm", b"python3\n");
    let open = node.path().join("proc/4711/fd/9");
    std::os::unix::fs::symlink("/dev/nvidia-uvm", open).unwrap();
    let verify = node.json(&["verify"], 3);
    let found = answers(&verify);
    assert_eq!(found.len(), 8, "{found:?}");
    assert!(
        found
            .iter()
            .all(|(_, id, o)| id == "bandwidth.not-measured" && o == "unknown")
    );
    assert!(
        verify["checks"]
            .to_string()
            .contains("process 4711 (python3)")
    );
    assert!(!node.path().join("srv/perftest/log").exists());
}

/// A program that hangs takes its own limit each time; the trial's deadline ends what all of them together take.
#[test]
fn the_deadline_ends_the_measurement() {
    let text = policy(ALSO, "") + "\n[trial]\ndeadline = \"1m\"\n";
    let node = with_policy(&text, "hang", "0", HELP, 0);
    let start = Instant::now();
    let verify = node.json(&["verify"], 3);
    // a program that is stopped may take some seconds to die
    assert!(
        start.elapsed() < Duration::from_secs(75),
        "{:?}",
        start.elapsed()
    );
    let found = answers(&verify);
    let has = |wanted: &str| found.iter().any(|(_, id, _)| id == wanted);
    assert!(
        has("perftest.hung") && has("bandwidth.not-measured"),
        "{found:?}"
    );
    assert!(
        !found.iter().any(|(_, _, outcome)| outcome == "met"),
        "{found:?}"
    );
}

fn read(args: &[&str], input: &str) -> Output {
    fed(&[&["--format", "json", "bandwidth"], args].concat(), input)
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

const TABLE: &str =
    " #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]
 8388608    20000            24056.74            24056.72\t\t   0.003007
";

#[test]
fn files_and_standard_input() {
    let output = read(&["--from", "-"], TABLE);
    assert_eq!(output.status.code(), Some(0));
    let json = json(&output);
    assert_eq!(json["results"][0]["bytes"], 8_388_608);
    // 24056.72 * 2^20 * 8 / 10^9
    let average = json["results"][0]["average_gbps"].as_f64().unwrap();
    assert!((average - 201.802_393).abs() < 1e-5);
    assert_eq!(json["error"], Value::Null);
    assert_eq!(
        read(&["--from", "-", "--from", "-"], "").status.code(),
        Some(2)
    );
    assert_eq!(read(&["--from", "/none"], "").status.code(), Some(1));
    assert_eq!(
        read(&["--from", "-", "--gpu", "0000:18:00.0"], "")
            .status
            .code(),
        Some(2)
    );
    assert_eq!(read(&["--gpu", "nonsense"], "").status.code(), Some(2));
}

#[test]
fn the_json_is_as_its_schema_says() {
    let schema = Command::new(binary())
        .args(["schema", "bandwidth"])
        .output()
        .unwrap();
    let validator = jsonschema::validator_for(&json(&schema)).unwrap();
    for text in [
        TABLE.to_owned(),
        format!("initializing CUDA\n{TABLE}Couldn't allocate MR\n"),
        String::new(),
    ] {
        let output = json(&read(&["--from", "-"], &text));
        let problems: Vec<String> = validator
            .iter_errors(&output)
            .map(|e| e.to_string())
            .collect();
        assert!(problems.is_empty(), "{problems:?}");
    }
}

/// The real program, which has no device here and, from Debian, no CUDA.
#[test]
fn what_the_real_perftest_says() {
    let run = |args: &[&str]| Command::new("ib_write_bw").args(args).output();
    let Ok(output) = run(&["-d", "mlx5_0"]) else {
        println!("SKIPPED: perftest is not installed");
        return;
    };
    if std::path::Path::new("/sys/class/infiniband").exists() {
        println!("SKIPPED: there is an RDMA device here");
        return;
    }
    let said = |output: &Output| String::from_utf8(output.stderr.clone()).unwrap();
    let found = json(&read(&["--from", "-"], &said(&output)));
    assert_eq!(ids(&found), ["perftest.no-device"]);
    let output = run(&["--use_cuda=0"]).unwrap();
    let help = run(&["--help"]).unwrap();
    if String::from_utf8_lossy(&help.stdout).contains("--use_cuda") {
        println!("SKIPPED: this perftest has CUDA");
        return;
    }
    let found = json(&read(&["--from", "-"], &said(&output)));
    assert_eq!(ids(&found), ["perftest.no-cuda"]);
}
