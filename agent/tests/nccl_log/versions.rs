//! Every version's channel lines, behind every launcher, with known truth.

use proptest::collection::vec;
use proptest::prelude::*;

use super::read;
use super::writer::{Edge, PREFIXES, STYLES, source};

const NETS: [&str; 8] = [
    "IB",
    "AWS Libfabric",
    "Libfabric",
    "NCCL RDMA Plugin v6",
    "IBext_v8",
    "Socket",
    "gIB",
    "UCX-UCT-RD",
];

pub fn edge() -> impl Strategy<Value = Edge> {
    let numbers = (0..32u32, 0..4096u32, 0..4096u32, 0..16u32);
    let proxy = proptest::option::of(0..64u32);
    (numbers, 0..NETS.len(), any::<[bool; 3]>(), proxy).prop_map(
        |((channel, from, to, device), net, [send, gdr, shared], proxy)| Edge {
            channel,
            from,
            to,
            send,
            device,
            shared,
            proxy,
            net: NETS[net],
            gdr: gdr && NETS[net] != "Socket",
        },
    )
}

/// The verdict that the records alone give.
pub fn truth(edges: &[Edge]) -> &'static str {
    match (edges.iter().any(|e| e.gdr), edges.iter().all(|e| e.gdr)) {
        (true, true) => "engaged",
        (true, false) => "partial",
        (false, _) => "not-engaged",
    }
}

proptest! {
    #[test]
    fn counts_are_right(edges in vec(edge(), 1..40), style in 0..STYLES.len(), prefix in 0..PREFIXES.len(), crlf: bool) {
        let (style, version) = STYLES[style];
        let line_end = if crlf { "\r\n" } else { "\n" };
        let mut log = format!("NCCL version {version}{line_end}");
        for edge in &edges {
            log += PREFIXES[prefix];
            log += &source(edge.rank());
            log += &edge.record(style);
            log += line_end;
        }
        let report = read(&log);
        prop_assert_eq!(report.verdict.word(), truth(&edges));
        prop_assert_eq!(report.channels.net, edges.len() as u64);
        prop_assert_eq!(report.channels.gdr, edges.iter().filter(|e| e.gdr).count() as u64);
        prop_assert_eq!(report.nccl_version.as_deref(), Some(version));
        prop_assert_eq!((report.cut_records, report.not_listed), (0, 0));
        for rank in &report.ranks {
            let number = rank.rank.unwrap();
            let host = format!("node-{:02}.example", number / 8);
            prop_assert_eq!(rank.host.as_deref(), Some(host.as_str()));
            prop_assert_eq!(rank.pid, Some(1000 + number));
            let of_rank: Vec<Edge> = edges.iter().filter(|e| e.rank() == number).cloned().collect();
            prop_assert_eq!(rank.verdict.word(), truth(&of_rank));
            for device in &rank.devices {
                let is = |e: &&Edge| device.transport == format!("NET/{}", e.net) && device.device == e.device;
                let of_device: Vec<&Edge> = of_rank.iter().filter(is).collect();
                let count = |send: bool| of_device.iter().filter(|e| e.send == send).count() as u64;
                prop_assert_eq!(device.send.total, count(true));
                prop_assert_eq!(device.receive.total, count(false));
                for edge in of_device {
                    let channels = if edge.gdr { &device.channels_with } else { &device.channels_without };
                    prop_assert!(channels.contains(&edge.channel));
                }
            }
        }
        let channels: u64 = report.by_channel.iter().map(|c| c.count.total).sum();
        prop_assert_eq!(channels, edges.len() as u64);
    }

    /// All messages of a log on one line, as some collectors store them.
    #[test]
    fn records_on_one_line(edges in vec(edge(), 1..20), style in 0..STYLES.len(), gap in 1..70usize) {
        let line: Vec<String> = edges.iter().map(|e| source(e.rank()) + &e.record(STYLES[style].0)).collect();
        let report = read(line.join(&" ".repeat(gap)) + "\n");
        prop_assert_eq!(report.channels.net, edges.len() as u64);
        prop_assert_eq!(report.verdict.word(), truth(&edges));
        prop_assert_eq!(report.ranks.iter().filter(|r| r.host.is_none()).count(), 0);
    }
}

#[test]
fn collective_networks_count() {
    for (line, gdr) in [
        ("Coll 00 : 5 [send] via COLLNET/SHARP/1", 0),
        ("CollNet 01 : 5 [receive] via COLLNET/SHARP/1/GDRDMA", 1),
        ("CollNet 01/1 : 5 [send] via COLLNET/SHARP/1/GDRDMA", 1),
        (
            "CollNet 01/0 : 5 [receive] via COLLNET/SHARP/1/GDRDMA(PCI)",
            1,
        ),
        (
            "CollNet 01/0 : 5 [receive] via COLLNET/SHARP/1/GDRDMA comm 0x5 nRanks 16",
            1,
        ),
    ] {
        let report = read(format!("{}{line}\n", source(5)));
        assert_eq!(
            (report.channels.net, report.channels.gdr),
            (1, gdr),
            "{line}"
        );
        assert_eq!(report.ranks[0].rank, Some(5), "{line}");
        assert_eq!(report.channels.by_transport["COLLNET/SHARP"].total, 1);
    }
}
