//! What must hold for any bytes, on pieces of messages in any order. The fuzz target runs the same check without a bound.

mod checks;

use proptest::prelude::*;

const PIECES: &[&str] = &[
    "h-1:7:9 [0] NCCL INFO ",
    "Channel 00/0 : 0[0] -> 8[0] [send] ",
    "CollNet 00 : 5 [receive] ",
    "via NET/",
    "via COLLNET/",
    "via P2P/",
    "via SHM/",
    "via direct shared memory",
    "IB/0",
    "/GDRDMA",
    "/GDR",
    "/Shared",
    "(1)",
    "NCCL version 2.",
    "L version 2.1",
    "26.2+cuda12",
    "\n",
    "\r\n",
    "nccl==2.20.5",
    "NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'",
    "GPU Direct RDMA Disabled for GPU 1b000 / HCA 0 (distance 8 > 5)",
    "Using network IB",
    "Using network Socket",
    "NET/Socket : Using [0]eth0",
    "NET/IB : Using [0]mlx5_0:1/IB; OOB",
    "NET/IB : No device found",
    " nNodes 2",
    "MNNVL 1",
    "\u{1b}[2J",
    "\u{202e}",
    "Got completion ",
    "status=12",
    "NCCL_IB_DISABLE set by environment to 1",
    "GDRDMA not enabled",
    "DMA-BUF is available",
    "Unable to register memory",
    "1",
    "é",
];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1000) })]

    #[test]
    fn pieces_of_messages(parts in prop::collection::vec(prop::sample::select(PIECES), 0..40)) {
        checks::log(parts.concat().as_bytes());
    }

    #[test]
    fn pieces_between_any_bytes(parts in prop::collection::vec(prop_oneof![
        prop::sample::select(PIECES).prop_map(|text| text.as_bytes().to_vec()),
        prop::collection::vec(any::<u8>(), 0..6),
    ], 0..40)) {
        checks::log(&parts.concat());
    }
}

/// The version's text is rarer than `CCL `, which every line has, and so the two letters before it count.
#[test]
fn only_nccl_and_rccl_have_versions() {
    for (log, versions) in [
        (
            "h:1:2 [0] NCCL INFO NCCL version 2.26.2+cuda12.8\n",
            &["2.26.2+cuda12.8"][..],
        ),
        ("RCCL version 2.18.3+hip6.0\n", &["2.18.3+hip6.0"]),
        (
            "UCCL version 2.1.0\nGL version 4.6.0\nL version 2.1.0\n",
            &[],
        ),
    ] {
        let mut reader = nccl_log_parser::Reader::new();
        reader.push(log.as_bytes());
        assert_eq!(reader.finish().gathered.versions, versions, "{log}");
    }
}

/// Lines of the same process have the same prefix, and lines of another one are never taken for its.
#[test]
fn prefixes_tell_processes_apart() {
    let line = |prefix: &str, rank: u32| {
        format!("{prefix}Channel 00/0 : {rank}[0] -> 9[0] [send] via NET/IB/0/GDRDMA\n")
    };
    let log = [
        line("a:1:2 [0] NCCL INFO ", 0),
        line("a:1:2 [0] NCCL INFO ", 0),
        line("a:2:2 [0] NCCL INFO ", 1),
        line("", 2),
        line("a:1:2 [0] NCCL INFO ", 0),
        line("b:1:2 [0] NCCL INFO ", 3),
        line("", 2),
    ]
    .concat();
    let mut reader = nccl_log_parser::Reader::new();
    reader.push(log.as_bytes());
    let tally = reader.finish().tally;
    let cells: Vec<_> = tally
        .cells
        .iter()
        .map(|(key, cell)| (key.process, key.rank, cell.send.total))
        .collect();
    assert_eq!(
        cells,
        [
            (Some(0), Some(0), 3),
            (Some(1), Some(1), 1),
            (None, Some(2), 2),
            (Some(2), Some(3), 1),
        ]
    );
}
