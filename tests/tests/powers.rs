//! Root without some of its powers, and the agent with no more of them than it needs.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test looks at the machine from outside"
)]

mod support;

use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use gdr_tests::node::NodeSpec;
use support::{Node, binary};

/// `DAC_READ_SEARCH`, `SYS_PTRACE`, `SYS_ADMIN` and `SYSLOG`, by their bits in linux/capability.h.
const TO_READ: u64 = 1 << 2 | 1 << 19 | 1 << 21 | 1 << 34;

/// The value of a field like `CapEff` in /proc/PID/status.
fn capabilities(pid: &str, field: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix(field))
        .unwrap();
    u64::from_str_radix(value.trim_matches([':', '\t', ' ']), 16).unwrap()
}

/// Root, and with this power.
fn have(bit: u32) -> bool {
    let yes = capabilities("self", "CapEff") & 1 << bit != 0;
    if !yes {
        println!("SKIPPED: only root with capability {bit} can give it up");
    }
    yes
}

#[test]
fn whoever_only_reads_keeps_only_what_that_takes() {
    if !have(0) {
        return;
    }
    let mine = capabilities("self", "CapPrm");
    // Waits for its input.
    let mut child = Command::new(binary())
        .args(["nccl-log", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let pid = child.id().to_string();
    let until = Instant::now() + Duration::from_secs(20);
    while capabilities(&pid, "CapEff") != mine & TO_READ && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(10));
    }
    let seen = ["CapEff", "CapPrm", "CapInh"].map(|field| capabilities(&pid, field));
    drop(child.stdin.take());
    child.wait().unwrap();
    assert_eq!(seen, [mine & TO_READ, mine & TO_READ, 0]);
}

/// Root as in a container: without `SYS_ADMIN`.
fn contained(args: &[&str]) -> Output {
    Command::new("setpriv")
        .args(["--bounding-set=-sys_admin", "--inh-caps=-sys_admin"])
        .arg(binary())
        .args(args)
        .output()
        .unwrap()
}

#[test]
fn root_in_a_container_is_told_before_anything_is_changed_and_can_still_bake_an_image() {
    if !have(21) {
        return;
    }
    for verb in [&["apply"][..], &["rollback"], &["acs", "clear"]] {
        let output = contained(&[&["--policy", "/nonexistent/policy.toml"], verb].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(7), "{said}");
        for part in ["CAP_SYS_ADMIN", "nothing was changed", "apply --bake"] {
            assert!(said.contains(part), "{part}: {said}");
        }
    }
    let node = Node::new(&NodeSpec {
        tools: Some(env!("CARGO_BIN_EXE_sample-node").into()),
        ..NodeSpec::default()
    });
    let baked = contained(&["--root", node.path().to_str().unwrap(), "apply", "--bake"]);
    let said = String::from_utf8_lossy(&baked.stderr);
    assert_eq!(baked.status.code(), Some(8), "{said}");
}
