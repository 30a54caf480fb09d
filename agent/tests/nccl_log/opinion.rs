//! A second opinion: the specification's regular expressions over whole lines must count the same.

use proptest::collection::vec;
use proptest::prelude::*;
use regex::bytes::Regex;

use super::read;
use super::versions::edge;
use super::writer::{PREFIXES, STYLES, source};

fn count(log: &[u8]) -> (u64, u64) {
    let net = Regex::new(r"via (?:COLL)?NET/[A-Za-z0-9 _.+-]+/\d+(?:\(\d+\))?(/GDRDMA)?(?:\(PCI\))?(?:/Shared)?(?:/flush=\w+)?(?:\s|$)").unwrap();
    let (mut all, mut gdr) = (0, 0);
    for line in log.split(|b| *b == b'\n') {
        for found in net.captures_iter(line) {
            all += 1;
            gdr += u64::from(found.get(1).is_some());
        }
    }
    (all, gdr)
}

proptest! {
    #[test]
    fn on_generated_logs(edges in vec((edge(), 0..PREFIXES.len(), 0..STYLES.len(), "[ -~]{0,40}"), 1..30)) {
        let mut log = String::new();
        for (edge, prefix, style, noise) in &edges {
            log += &format!("{noise}\n{}{}{}\n", PREFIXES[*prefix], source(edge.rank()), edge.record(STYLES[*style].0));
        }
        let report = read(&log);
        prop_assert_eq!((report.channels.net, report.channels.gdr), count(log.as_bytes()));
    }
}

#[test]
fn on_collected_logs() {
    let Some(root) = std::env::var_os("GDR_CORPUS") else {
        println!("SKIPPED: GDR_CORPUS is not set, the collected logs are not tested");
        return;
    };
    let mut seen = 0;
    for entry in std::fs::read_dir(std::path::Path::new(&root).join("nccl-logs")).unwrap() {
        let path = entry.unwrap().path();
        let log = std::fs::read(&path).unwrap();
        let report = read(&log);
        assert_eq!(
            (report.channels.net, report.channels.gdr),
            count(&log),
            "{}",
            path.display()
        );
        seen += report.channels.net;
    }
    assert!(seen > 900);
}
