//! Readers of perftest's output against collected outputs and against hostile input.
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

use std::path::PathBuf;

use gdr_agent::bandwidth::{Kind, Memory, Run, judge};
use gdr_agent::checks::Outcome;
use proptest::prelude::*;

fn folder() -> Option<PathBuf> {
    match std::env::var_os("GDR_CORPUS") {
        Some(root) => Some(PathBuf::from(root).join("perftest")),
        None => {
            assert!(std::env::var_os("CI").is_none(), "GDR_CORPUS is not set");
            println!("SKIPPED: GDR_CORPUS is not set, the collected outputs are not tested");
            None
        }
    }
}

/// Rows, last row, message, where the buffer lay, device: by hand from the files. In Gb/s what was in MB/s: 23240.68 * 2^20 * 8 / 10^9.
type Answer = (
    &'static str,
    usize,
    Option<(u64, u64, f64, f64)>,
    Option<&'static str>,
    Memory,
    Option<&'static str>,
);

const ANSWERS: &[Answer] = &[
    (
        "01-",
        23,
        Some((8_388_608, 5000, 226.25, 226.24)),
        None,
        Memory::Host,
        Some("mlx5_2"),
    ),
    (
        "04-",
        23,
        Some((8_388_608, 5000, 197.88, 197.88)),
        None,
        Memory::DmaBuf,
        Some("mlx5_2"),
    ),
    (
        "07-",
        23,
        Some((8_388_608, 16000, 84.67, 84.67)),
        None,
        Memory::DmaBuf,
        Some("mlx5_2"),
    ),
    (
        "08-",
        1,
        Some((8_388_608, 5000, 108.70, 108.70)),
        None,
        Memory::DmaBuf,
        Some("mlx5_2"),
    ),
    (
        "10-",
        0,
        None,
        Some("no row of results"),
        Memory::Unknown,
        None,
    ),
    (
        "21-",
        2,
        Some((8_388_608, 20000, 201.8026, 201.8024)),
        None,
        Memory::Host,
        Some("ib0"),
    ),
    (
        "22-",
        24,
        Some((8_388_608, 2000, 194.957, 194.957)),
        None,
        Memory::Host,
        Some("ib0"),
    ),
    (
        "24-",
        1,
        Some((65536, 5000, 394.55, 392.18)),
        None,
        Memory::Host,
        Some("rdma_dev_0"),
    ),
    // the bare table: where the buffer lay is not told
    (
        "25-",
        23,
        Some((8_388_608, 5000, 197.48, 197.48)),
        None,
        Memory::Unknown,
        None,
    ),
    (
        "26-",
        23,
        Some((8_388_608, 5000, 196.56, 196.55)),
        None,
        Memory::Unknown,
        None,
    ),
    // the file ends before the table of the page that it is from
    (
        "27-",
        0,
        None,
        Some("no row of results"),
        Memory::Unknown,
        None,
    ),
    (
        "28-",
        1,
        Some((65536, 5000, 92.42, 92.40)),
        None,
        Memory::Host,
        Some("mlx5_0"),
    ),
    (
        "29-",
        1,
        Some((65536, 20000, 98.01, 98.01)),
        None,
        Memory::Host,
        Some("mlx5_5"),
    ),
    (
        "s02-",
        0,
        None,
        Some("Couldn't allocate MR"),
        Memory::Gpu,
        None,
    ),
    (
        "s03-",
        0,
        None,
        Some("CUDA DMA-BUF cannot be used without CUDA"),
        Memory::Unknown,
        None,
    ),
    (
        "s04-",
        0,
        None,
        Some("Failed status 4"),
        Memory::Unknown,
        None,
    ),
];

#[test]
fn every_collected_output() {
    let Some(folder) = folder() else { return };
    let files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(files.len(), ANSWERS.len());
    for (prefix, rows, last, error, memory, device) in ANSWERS {
        let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
        let file = files.iter().find(|f| name(f).starts_with(prefix)).unwrap();
        let run = Run::read(prefix, &std::fs::read(file).unwrap());
        assert_eq!(run.rows.len(), *rows, "{prefix}");
        assert_eq!(run.memory, *memory, "{prefix}");
        assert_eq!(run.about.device.as_deref(), *device, "{prefix}");
        match error {
            None => assert_eq!(run.error(), None, "{prefix}"),
            Some(part) => assert!(run.error().unwrap().contains(part), "{prefix}"),
        }
        if let Some((bytes, iterations, peak, average)) = last {
            let row = run.rows.last().unwrap();
            assert_eq!(
                (row.bytes, row.iterations),
                (*bytes, *iterations),
                "{prefix}"
            );
            assert!((row.peak_gbps.unwrap() - peak).abs() < 0.001, "{prefix}");
            assert!((row.average_gbps - average).abs() < 0.001, "{prefix}");
        }
    }
}

const HEAD: &str = "                    RDMA_Write BW Test
 Dual-port       : OFF\t\tDevice         : mlx5_0
 Number of qps   : 1\t\tTransport type : IB
---------------------------------------------------------------------------------------
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
";
const CUDA: &str =
    "initializing CUDA\nPicking device No. 0\nusing DMA-BUF for GPU buffer address at 0x7f\n";

fn gpu(gbps: &str) -> Run {
    let text = format!("{CUDA}{HEAD} 1048576 5000 0.00 {gbps} 0.02\n");
    Run::read("gpu", text.as_bytes())
}

fn host(gbps: &str) -> Run {
    let text = format!("{HEAD} 1048576 5000 0.00 {gbps} 0.02\n");
    Run::read("host", text.as_bytes())
}

#[test]
fn rows_before_a_failure_stay() {
    let text = format!(
        "{CUDA}{HEAD} 65536 5000 390.1 388.2 0.7\n Completion with error at client\n Failed status 12: wr_id 0 syndrom 0x81\n"
    );
    let run = Run::read("x", text.as_bytes());
    assert_eq!(run.rows.len(), 1);
    assert_eq!(run.failures[0].kind, Kind::Completion);
    assert_eq!(
        run.error().unwrap(),
        "Completion with error at client; Failed status 12: wr_id 0 syndrom 0x81"
    );
}

#[test]
fn json_of_new_and_old_versions() {
    let new = r#"{
"test_info": {
"test": "RDMA_Write_BW_Test",
"Device": "mlx5_3",
"Number_of_qps": 1,
"Mtu": 4096,
"Link_type": "Ethernet",
"cuda_device": 2,
"Use_ROCm_memory": "OFF",
"Data_ex_method": "Ethernet"
},
"results": {
"MsgSize": 65536,
"n_iterations": 5000,
"BW_peak": 92.42,
"BW_average": 92.40,
"MsgRate": 0.176230
}
}"#;
    let run = Run::read("x", new.as_bytes());
    assert_eq!(run.about.test.as_deref(), Some("RDMA_Write BW Test"));
    assert_eq!((run.memory, run.about.cuda_device), (Memory::Gpu, Some(2)));
    assert_eq!(
        (run.rows[0].peak_gbps, run.rows[0].average_gbps),
        (Some(92.42), 92.40)
    );
    // before 24.01: no quotes, a comma too many; here in MB/sec, in duration mode
    let old = "{\ntest_info: {\ntest: RDMA_Write BW Test,\nDevice: mlx5_3,\n},\nresults: {\nMsgSize: 65536,\nn_iterations: 5000,\nBW_peak: 0.00,\nBW_average: 11014.94,\nMsgRate: 0.176239,\n}\n}\n";
    let run = Run::read("x", old.as_bytes());
    assert_eq!(run.about.device.as_deref(), Some("mlx5_3"));
    assert_eq!((run.error(), run.rows[0].peak_gbps), (None, None));
    // 11014.94 * 2^20 * 8 / 10^9
    assert!((run.rows[0].average_gbps - 92.4000).abs() < 0.0001);
    // a file that was cut off
    let run = Run::read("x", &new.as_bytes()[..new.len() - 30]);
    assert!(run.rows.is_empty() && run.error().is_some());
}

#[test]
fn judged_by_host_memory_by_the_policy_and_by_the_link() {
    let ids = |runs: &[Run], min, ceiling| {
        let judgement = judge(runs, min, ceiling);
        let ids: Vec<String> = judgement.findings.into_iter().map(|f| f.id).collect();
        (judgement.verdict, ids)
    };
    let none: Vec<String> = Vec::new();
    assert_eq!(
        ids(&[gpu("385"), host("388")], None, None),
        (Outcome::Met, none.clone())
    );
    let slower = vec!["bandwidth.gpu-slower".to_owned()];
    // 87 %: worth a look; 30 %: the path is not what it should be
    assert_eq!(
        ids(&[gpu("338"), host("388")], None, None),
        (Outcome::Met, slower.clone())
    );
    assert_eq!(
        ids(&[gpu("116"), host("388")], None, None),
        (Outcome::Failed, slower)
    );
    assert_eq!(
        ids(&[gpu("385")], Some(380.0), None),
        (Outcome::Met, none.clone())
    );
    assert_eq!(ids(&[gpu("375")], Some(380.0), None).0, Outcome::Failed);
    assert_eq!(
        ids(&[gpu("375")], None, Some((400.0, "the rate"))),
        (Outcome::Met, none)
    );
    assert_eq!(
        ids(&[gpu("300")], None, Some((400.0, "the rate"))).0,
        Outcome::Failed
    );
    // nothing to compare with, and nothing of a GPU
    assert_eq!(ids(&[gpu("385")], None, None).0, Outcome::Unknown);
    assert_eq!(ids(&[host("385")], Some(380.0), None).0, Outcome::Unknown);
    // a bidirectional test adds two directions up
    let both = HEAD.replace("RDMA_Write BW", "RDMA_Write Bidirectional BW");
    let both = Run::read(
        "x",
        format!("{CUDA}{both} 1048576 5000 0.00 500 0.02\n").as_bytes(),
    );
    assert_eq!(ids(&[both], Some(380.0), None).0, Outcome::Failed);
}

#[test]
fn runs_that_differ_in_more_than_the_memory_are_not_compared() {
    let other = HEAD.replace("mlx5_0", "mlx5_1");
    let other = Run::read(
        "x",
        format!("{other} 1048576 5000 0.00 388 0.02\n").as_bytes(),
    );
    assert!(judge(&[gpu("385"), other], None, None).ratios.is_empty());
}

fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(HEAD.as_bytes().to_vec()),
        Just(CUDA.as_bytes().to_vec()),
        Just(b" 65536      5000  92.42   92.40   0.176230\n".to_vec()),
        Just(b"{\"results\": {\"MsgSize\": 65536, \"BW_average\": 1e308, \"MsgRate\": 1e308, \"n_iterations\": 3,".to_vec()),
        Just(b"\x1b[1mCouldn't allocate MR\x1b[".to_vec()),
        proptest::collection::vec(any::<u8>(), 0..40),
    ];
    proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_bytes_give_an_answer(bytes in pieces()) {
        let run = Run::read("x", &bytes);
        // no silence: a result or a reason
        prop_assert!(!run.rows.is_empty() || run.error().is_some());
        for row in &run.rows {
            prop_assert!(row.average_gbps.is_finite());
        }
        for failure in &run.failures {
            prop_assert!(failure.message.chars().all(|c| !c.is_control()));
        }
        let _ = judge(&[run], Some(1.0), None);
    }

    #[test]
    fn a_cut_never_changes_a_row(at in 0usize..400) {
        let whole = format!("{CUDA}{HEAD} 65536 5000 92.42 92.40 0.176230\n 131072 5000 93.42 93.40 0.176230\n");
        let whole_run = Run::read("x", whole.as_bytes());
        let at = at.min(whole.len());
        let run = Run::read("x", &whole.as_bytes()[..at]);
        for (cut, row) in run.rows.iter().zip(&whole_run.rows) {
            prop_assert_eq!((cut.bytes, cut.iterations, cut.average_gbps), (row.bytes, row.iterations, row.average_gbps));
        }
    }
}

#[test]
fn time_grows_with_the_size_and_no_faster() {
    // the worst lines: one without an end, and millions of short ones
    for unit in [
        &b"{"[..],
        b"\n",
        b"#bytes #iterations ",
        b" 65536 5000 1 1 1\n",
        b"\x1b[",
        b"\"a\":",
    ] {
        growth::is_bounded(unit, 20_000, |bytes| {
            let _ = Run::read("x", bytes);
        });
    }
}
