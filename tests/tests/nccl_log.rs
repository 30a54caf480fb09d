//! `nccl-log` as a person or a script runs it.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    clippy::panic,
    dead_code,
    reason = "a test looks at the machine from outside"
)]

mod support;

use std::process::{Command, Output};

use serde_json::Value;
use support::{binary, fed};

const GOOD: &str = "n1:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0/GDRDMA\n";
const BAD: &str = "n1:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0\n";

fn run(args: &[&str], input: &str) -> Output {
    fed(&[&["nccl-log"], args].concat(), input)
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_verdict_is_not_the_exit_code() {
    for (log, word) in [(GOOD, "engaged"), (BAD, "not-engaged"), ("", "unknown")] {
        let output = run(&["-"], log);
        assert_eq!(output.status.code(), Some(0));
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.starts_with(&format!("-: {word}")), "{text}");
        assert!(output.stderr.is_empty());
        let output = run(&["--format", "json", "-"], log);
        let json = json(&output);
        assert_eq!(json["schema"], "gdr-agent/nccl-log/v1");
        assert_eq!(
            (&json["files"][0]["name"], &json["files"][0]["verdict"]),
            (&"-".into(), &word.into())
        );
    }
}

/// A file that cannot be read is an error, and the others are still told.
#[test]
fn unreadable_files() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    std::fs::write(path("good"), GOOD).unwrap();
    std::fs::write(path("cut.gz"), b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x01").unwrap();
    std::fs::create_dir(path("empty")).unwrap();
    let (good, none, cut, empty) = (path("good"), path("none"), path("cut.gz"), path("empty"));
    let args = ["--format", "json", &none, &good, &cut, &empty];
    let output = run(&args, "");
    assert_eq!(output.status.code(), Some(1));
    let json = json(&output);
    assert_eq!(json["files"].as_array().unwrap().len(), 1);
    assert_eq!(json["files"][0]["verdict"], "engaged");
    let names: Vec<&str> = json["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| e["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, [none.as_str(), &empty, &cut]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        said.lines()
            .filter(|line| line.starts_with("error:"))
            .count(),
        3,
        "{said}"
    );
}

#[test]
fn files_keep_their_order_and_add_up() {
    let dir = tempfile::tempdir().unwrap();
    let mut names = Vec::new();
    for i in 0..40 {
        let name = dir.path().join(format!("{i:02}")).display().to_string();
        std::fs::write(&name, if i == 17 { BAD } else { GOOD }).unwrap();
        names.push(name);
    }
    let folder = dir.path().display().to_string();
    let output = run(&["--format", "json", &folder], "");
    let json = json(&output);
    let found: Vec<&str> = json["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|f| f["name"].as_str().unwrap())
        .collect();
    assert_eq!(found, names);
    assert_eq!(json["verdict"], "partial");
    assert_eq!(
        json["verdicts"],
        serde_json::json!({"engaged": 39, "not-engaged": 1})
    );
    // the one that is wrong comes first
    let text = String::from_utf8(run(&[&folder], "").stdout).unwrap();
    assert!(
        text.lines().nth(2).unwrap().contains("/17: not-engaged"),
        "{text}"
    );
}

#[test]
fn wrong_usage() {
    assert_eq!(run(&[], "").status.code(), Some(2));
    assert_eq!(run(&["-", "-"], "").status.code(), Some(2));
}

#[test]
fn the_json_is_as_its_schema_says() {
    let schema = Command::new(binary())
        .args(["schema", "nccl-log"])
        .output()
        .unwrap();
    let validator = jsonschema::validator_for(&json(&schema)).unwrap();
    let log = format!(
        "{GOOD}{BAD}NCCL version 2.22.3+cuda12.5\nNET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'\n"
    );
    let output = json(&run(&["--format", "json", "-", "/none"], &log));
    let problems: Vec<String> = validator
        .iter_errors(&output)
        .map(|e| e.to_string())
        .collect();
    assert!(problems.is_empty(), "{problems:?}");
    assert_eq!(
        output["files"][0]["findings"][0]["id"],
        "nccl.too-old-for-peermem"
    );
}
