//! Input that nobody's NCCL printed: no panic, no hang, bounded answers, nothing that commands a terminal.

use gdr_agent::nccl_log::render;
use gdr_agent::pci::render::Styles;
use proptest::collection::vec;
use proptest::prelude::*;

use super::read;
use super::writer::source;

fn check(log: &[u8]) {
    let report = read(log);
    let text = render::file(&report, Styles::default());
    let commands = |c: char| c.is_control() && c != '\n';
    assert!(!text.contains(commands), "{text:?}");
    assert!(text.len() < 64 << 10);
    for finding in &report.findings {
        assert!(finding.evidence.len() <= 4);
        for evidence in &finding.evidence {
            assert!(evidence.text.chars().count() <= 240);
            assert!(
                evidence.line >= 1
                    && evidence.line <= 1 + log.iter().filter(|b| **b == b'\n').count() as u64
            );
        }
    }
}

const PARTS: [&[u8]; 23] = [
    b"NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx",
    b"_0'",
    b"\n",
    b"\x1b[2J",
    b"GPU Direct RDMA Disabled for GPU 0 / HCA 0 (distance 8 > 5)",
    b" via NET/",
    b"IB/0",
    b"/GDRDMA",
    b"99999999999999999999",
    b"NCCL version 2.",
    b"NCCL_IB_DISABLE set by environment to ",
    b"Using network ",
    b"Socket",
    b"\xff\xfe",
    b"Got completion from peer with status=",
    b"4",
    b" nNodes ",
    b"MNNVL ",
    b"Channel 00/0 : ",
    b"0[0] -> 1[0]",
    b" [send]",
    b"\r",
    b"\0",
];

proptest! {
    #[test]
    fn any_bytes(log in vec(any::<u8>(), 0..4000)) {
        check(&log);
    }

    #[test]
    fn pieces_of_messages(parts in vec(prop::sample::select(&PARTS[..]), 0..60)) {
        check(&parts.concat());
    }
}

#[test]
fn names_that_command_a_terminal() {
    let log = "NET/IB : GPU Direct RDMA Disabled for HCA 0 '\x1b]0;x\x07'\n\
        NCCL_NET set by environment to \x1b[2JSocket\nUsing network Socket\x1b[2J\u{202e}\n\
        NET/IB : No device found.\x1b[2J\n";
    check(log.as_bytes());
    check("NET/IB : GPU Direct RDMA Disabled for HCA 0 'a\u{202e}b'\n".as_bytes());
}

/// More ranks, hosts, nets and HCAs than any machine has.
#[test]
fn tables_are_bounded() {
    let mut log = String::new();
    for i in 0..80_000u32 {
        log += &format!(
            "h{i}:{i}:1 [0] NCCL INFO Channel {:02}/0 : {i}[0] -> {}[0] [send] via NET/N{}/{i}/GDRDMA\n\
             NET/X{i} : GPU Direct RDMA Enabled for HCA {i} 'n{i}'\nNCCL version 2.{i}.1\nUsing network N{i}\n",
            i % 90,
            i + 1,
            i % 1000,
        );
    }
    let report = read(&log);
    assert_eq!((report.channels.net, report.channels.gdr), (80_000, 80_000));
    assert_eq!(report.verdict.word(), "engaged");
    assert!(
        report.ranks.len() <= 1 << 16 && report.hcas.len() <= 4096 && report.networks.len() <= 64
    );
    assert!(report.not_listed > 10_000 && report.by_channel.len() <= 64);
    check(log.as_bytes());
}

/// Thousands of ranks of one job are all there, and the text stays short.
#[test]
fn thousands_of_ranks() {
    let mut log = String::new();
    for rank in 0..4096u32 {
        let gdr = if rank == 4000 { "" } else { "/GDRDMA" };
        log += &format!(
            "{}Channel 00/0 : {rank}[0] -> {}[0] [send] via NET/IB/{}{gdr}\n",
            source(rank),
            (rank + 8) % 4096,
            rank % 8,
        );
    }
    let report = read(&log);
    assert_eq!(report.verdict.word(), "partial");
    assert_eq!(report.ranks.len(), 4096);
    let text = render::file(&report, Styles::default());
    assert!(text.lines().count() < 40, "{text}");
    // the one that lacks it comes first
    let table = text
        .lines()
        .skip_while(|line| !line.contains("rank "))
        .nth(1)
        .unwrap();
    assert!(
        table.contains("4000") && table.contains("node-500"),
        "{text}"
    );
}
