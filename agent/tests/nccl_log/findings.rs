//! Why not: each cause by its own lines, and silence where all is well.

use super::writer::source;
use super::{ids, read};

const GOOD: &str = "Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0/GDRDMA";
const BAD: &str = "Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0";

fn log(lines: &[&str]) -> String {
    lines
        .iter()
        .map(|line| format!("{}{line}\n", source(0)))
        .collect()
}

fn check(lines: &[&str], verdict: &str, findings: &[&str]) {
    let report = read(log(lines));
    assert_eq!(report.verdict.word(), verdict, "{lines:?}");
    assert_eq!(ids(&report), findings, "{lines:?}");
}

#[test]
fn the_environment() {
    check(
        &[
            "NCCL_IB_DISABLE set by environment to 1.",
            "Using network Socket",
        ],
        "not-engaged",
        &["nccl.env-net-disabled", "nccl.socket-fallback"],
    );
    check(
        &[
            "NCCL_NET set by environment to Socket",
            "Using network Socket",
        ],
        "not-engaged",
        &["nccl.env-net-disabled", "nccl.socket-fallback"],
    );
    check(
        &["NCCL_IB_DISABLE set by environment to 0.", GOOD],
        "engaged",
        &[],
    );
    check(
        &["NCCL_NET_GDR_LEVEL set by environment to LOC", BAD],
        "not-engaged",
        &["nccl.env-gdr-level"],
    );
    check(
        &["NCCL_NET_GDR_LEVEL set by environment to SYS", GOOD],
        "engaged",
        &[],
    );
    check(
        &["NCCL_NET_GDR_LEVEL set by environment to PIX", GOOD],
        "engaged",
        &[],
    );
    check(
        &[
            "GPU Direct RDMA Disabled for GPU 1b000 / HCA 0 (distance 4 > 0)",
            BAD,
        ],
        "not-engaged",
        &["nccl.env-gdr-level"],
    );
    check(
        &[
            "NCCL_NET_GDR_READ set by environment to 0.",
            BAD,
            "Channel 00/0 : 8[0] -> 0[0] [receive] via NET/IB/0/GDRDMA",
        ],
        "partial",
        &["nccl.env-gdr-read"],
    );
    check(
        &[
            BAD,
            "Channel 00/0 : 8[0] -> 0[0] [receive] via NET/IB/0/GDRDMA",
        ],
        "partial",
        &["nccl.sends-without-gdr"],
    );
    // other variables that end in the same words
    check(
        &["MY_NCCL_IB_DISABLE set by environment to 1.", GOOD],
        "engaged",
        &[],
    );
}

#[test]
fn what_the_node_lacks() {
    let hca = "NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'";
    check(
        &["NCCL version 2.22.3+cuda12.5", hca],
        "not-engaged",
        &["nccl.too-old-for-peermem"],
    );
    check(
        &["NCCL version 2.23.4+cuda12.6", hca],
        "not-engaged",
        &["nccl.no-kernel-path"],
    );
    check(
        &[
            "NCCL version 2.8.4+cuda11.2",
            "NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0' (no module)",
        ],
        "not-engaged",
        &["nccl.too-old-for-peermem"],
    );
    check(
        &[hca, "NET/IB : GPU Direct RDMA Enabled for HCA 1 'mlx5_1'"],
        "unknown",
        &["nccl.no-kernel-path", "nccl.log-incomplete"],
    );
    check(
        &["NET/IB : No device found.", "Using network Socket"],
        "not-engaged",
        &["nccl.no-rdma-device", "nccl.socket-fallback"],
    );
    check(
        &["Failed to open libibverbs.so[.1]", "Using network Socket"],
        "not-engaged",
        &["nccl.no-libibverbs", "nccl.socket-fallback"],
    );
}

/// The distance decides alone only if every pair is too far, and is nobody's fault where records say otherwise.
#[test]
fn distances_of_all_versions() {
    for far in [
        "GPU Direct RDMA Disabled for GPU 1b000 / HCA 0 (distance 4 > 3)",
        "GPU Direct RDMA Disabled for GPU 1b000 / HCA 2 (distance 8 > 4)",
        "GPU Direct RDMA Disabled for GPU 1 / HCA a2 (distance 8 > 5)",
        "GPU Direct RDMA Disabled for GPU/0-1b000 (rank 0) - NET/0-3 (distance 9 > 5)",
        "GPU Direct RDMA Disabled for GPU/0-1b000 (rank 0) - NET/0-3 ( using PXN via GPU/0-2000, distance 9 > 5)",
    ] {
        check(&[far], "not-engaged", &["path.far"]);
        check(&[far, GOOD], "engaged", &[]);
        check(
            &[
                far,
                "GPU Direct RDMA Enabled for GPU 1 / HCA 0 (distance 4 <= 5), read 1",
            ],
            "unknown",
            &["path.far", "nccl.log-incomplete"],
        );
        // cut before its end, it may say anything
        let (cut, _) = far.split_at(far.len() - 1);
        check(&[cut], "unknown", &["nccl.log-incomplete"]);
    }
    let report = read(log(&[
        "NCCL version 2.26.2+cuda12.2",
        "GPU Direct RDMA Disabled for GPU 1 / HCA 4 (distance 8 > 5)",
    ]));
    assert!(
        report.findings[0]
            .summary
            .ends_with("distance 8 (SYS), allowed 5 (PXB)"),
        "{:?}",
        report.findings
    );
}

/// Capability, DMA-BUF and ring flags never decide.
#[test]
fn what_never_decides() {
    check(
        &["NET/IB : GPU Direct RDMA Enabled for HCA 0 'mlx5_0'"],
        "unknown",
        &["nccl.log-incomplete"],
    );
    check(
        &["NET/IB : GPU Direct RDMA (nvidia-peermem) enabled for HCA 0 'mlx5_0"],
        "unknown",
        &["nccl.log-incomplete"],
    );
    check(
        &["DMA-BUF is available on GPU device 0"],
        "unknown",
        &["nccl.log-incomplete"],
    );
    check(
        &["Connected all rings, use ring PXN 0 GDR 1"],
        "unknown",
        &["nccl.log-incomplete"],
    );
    check(
        &["NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'", GOOD],
        "engaged",
        &[],
    );
    let efa = "fi_getinfo: provider efa output empty list";
    check(&[efa], "not-engaged", &["nccl.efa-no-device"]);
    check(
        &[efa, "Using network AWS Libfabric"],
        "unknown",
        &["nccl.efa-no-device", "nccl.log-incomplete"],
    );
    check(&["Using network IB"], "unknown", &["nccl.log-incomplete"]);
    let report = read("loss 1.0\nloss 0.9\n");
    assert_eq!(
        (report.verdict.word(), ids(&report)),
        ("unknown", vec!["nccl.log-empty"])
    );
}

#[test]
fn inside_a_node() {
    let p2p = |rank: u32| {
        format!(
            "{}Channel 00/0 : {rank}[0] -> 1[1] via P2P/CUMEM/read\n",
            source(rank)
        )
    };
    let word = |log: String| read(log).verdict.word();
    assert_eq!(word(p2p(0) + &p2p(7)), "not-applicable");
    assert_eq!(word(p2p(0) + &p2p(8)), "unknown");
    let nodes = |n: u32, mnnvl: u32| {
        format!(
            "{}comm 0x5 rank 0 nRanks 16 nNodes {n} localRanks 8 localRank 0 MNNVL {mnnvl}\n",
            source(0)
        )
    };
    assert_eq!(word(p2p(0) + &nodes(2, 0)), "unknown");
    assert_eq!(word(p2p(0) + &p2p(8) + &nodes(2, 1)), "not-applicable");
    assert_eq!(
        word(format!("{}Using network Socket\n", source(0)) + &p2p(0)),
        "not-applicable"
    );
}

#[test]
fn completions() {
    for (message, points) in [
        (
            "NET/IB : Got completion with error 4, opcode 0, len 0, vendor err 81",
            "ACS",
        ),
        (
            "NET/IB : Got completion from peer 192.0.2.1<5> with error 10, opcode 1, len 0, vendor err 136",
            "ACS",
        ),
        (
            "NET/IB : Got completion from peer 192.0.2.1<5> with status=12 opcode=1 len=0 vendor err 129 (Send)",
            "peer",
        ),
        (
            "NET/IB: Got completion from peer 192.0.2.1<5> with status=4 opcode=129 len=0 vendor err 81 (Recv) hca mlx5_0",
            "ACS",
        ),
        (
            "NET/IB: Got completion from peer 192.0.2.1<5> with status=IBV_WC_LOC_PROT_ERR(4) opcode=IBV_WC_SEND(0) vendor_err=81 hca mlx5_0",
            "ACS",
        ),
    ] {
        let report = read(format!(
            "{GOOD}\nnode0:1:2 [0] transport/net_ib.cc:1295 NCCL WARN {message}\n"
        ));
        assert_eq!(
            (report.verdict.word(), ids(&report)),
            ("engaged", vec!["nccl.completion-error"]),
            "{message}"
        );
        let finding = &report.findings[0];
        assert!(finding.fix.contains(points), "{finding:?}");
        assert_eq!(finding.evidence[0].line, 2);
        assert!(finding.evidence[0].text.contains("Got completion"));
    }
}

/// Device numbers get their HCA's name where hosts agree, and no name where they do not.
#[test]
fn names_of_devices() {
    let name = |lines: &[&str]| read(log(lines)).devices[0].name.clone();
    assert_eq!(
        name(&[
            "NET/IB : Using [0]mlx5_3:1/IB [1]mlx5_1:1/RoCE [RO]; OOB eth0:192.0.2.1<0>",
            GOOD
        ])
        .as_deref(),
        Some("mlx5_3")
    );
    assert_eq!(
        name(&[
            "NET/IB : GPU Direct RDMA Enabled for HCA 0 'mlx5_0+mlx5_1'",
            "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB ; OOB x",
            GOOD
        ])
        .as_deref(),
        Some("mlx5_0+mlx5_1")
    );
    assert_eq!(
        name(&[
            "NET/IB : Using [0]a:1/IB ; OOB x",
            "NET/IB : Using [0]b:1/IB ; OOB x",
            GOOD
        ]),
        None
    );
    assert_eq!(name(&[GOOD]), None);
}
