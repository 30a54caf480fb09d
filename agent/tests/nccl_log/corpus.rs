//! Collected logs with the right answers beside them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use gdr_agent::nccl_log::{Support, TransportCount};
use serde_json::Value;

use super::read;

fn folder() -> Option<PathBuf> {
    match std::env::var_os("GDR_CORPUS") {
        Some(root) => Some(PathBuf::from(root).join("nccl-logs")),
        None => {
            assert!(std::env::var_os("CI").is_none(), "GDR_CORPUS is not set");
            println!("SKIPPED: GDR_CORPUS is not set, the collected logs are not tested");
            None
        }
    }
}

/// `NET/IB/N(P)/GDRDMA` counts under `NET/IB`, `P2P/IPC/read` under `P2P`.
fn transports(expected: &Value) -> BTreeMap<String, TransportCount> {
    let mut all: BTreeMap<String, TransportCount> = BTreeMap::new();
    for (path, count) in expected.as_object().unwrap() {
        let parts: Vec<&str> = path.split('/').collect();
        let key = match parts[0] {
            "NET" | "COLLNET" => parts[..2].join("/"),
            other => other.to_owned(),
        };
        let entry = all.entry(key).or_default();
        let count = count.as_u64().unwrap();
        entry.total += count;
        if path.contains("/GDRDMA") {
            entry.gdr += count;
        }
    }
    all
}

#[test]
fn every_collected_log() {
    let Some(folder) = folder() else { return };
    let answers = std::fs::read(folder.join("EXPECTED.json")).unwrap();
    let answers: Value = serde_json::from_slice(&answers).unwrap();
    let answers = answers.as_object().unwrap();
    assert!(answers.len() > 40);
    for (name, expected) in answers {
        let report = read(std::fs::read(folder.join(name)).unwrap());
        let verdict = Value::from(report.verdict.word());
        let accepted = expected["also_accepted"].as_array();
        assert!(
            verdict == expected["verdict"] || accepted.is_some_and(|a| a.contains(&verdict)),
            "{name}: {verdict}"
        );
        let version = report.nccl_version.clone().map_or(Value::Null, Value::from);
        assert_eq!(version, expected["nccl_version"], "{name}");
        let wanted = transports(&expected["channel_transports"]);
        assert_eq!(report.channels.by_transport, wanted, "{name}");
        let hcas = report.hcas.iter().map(|hca| {
            let state = match hca.gdr {
                Support::Enabled => "on",
                Support::Disabled => "off",
            };
            (hca.name.clone(), format!("{state} ({})", hca.net).into())
        });
        let hcas: serde_json::Map<String, Value> = hcas.collect();
        assert_eq!(Value::Object(hcas), expected["hca"], "{name}");
        // every log of the collection either has GPUDirect RDMA, needs none, or is told why not
        let quiet = matches!(report.verdict.word(), "engaged" | "not-applicable");
        assert!(quiet || !report.findings.is_empty(), "{name}");
        assert_eq!(report.cut_records, 0, "{name}");
    }
}
