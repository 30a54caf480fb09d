//! Where a stream, a line or a log is cut changes nothing.

use gdr_agent::nccl_log::{FileReport, Reader};
use proptest::collection::vec;
use proptest::prelude::*;

use super::read;
use super::versions::{edge, truth};
use super::writer::{Edge, STYLES, source};

fn log(edges: &[Edge], style: usize) -> String {
    let lines = edges
        .iter()
        .map(|e| source(e.rank()) + &e.record(STYLES[style].0) + "\n");
    let noise = "step 17 loss 3.2 GPU Direct RDMA via NET and so on\n";
    lines.flat_map(|line| [line, noise.to_owned()]).collect()
}

fn in_pieces(log: &[u8], at: &[usize]) -> FileReport {
    let mut at: Vec<usize> = at.iter().map(|i| i % (log.len() + 1)).collect();
    at.sort_unstable();
    at.push(log.len());
    let mut reader = Reader::new();
    let mut from = 0;
    for to in at {
        reader.push(&log[from..to]);
        from = to;
    }
    reader.report("log", None)
}

proptest! {
    #[test]
    fn pieces_of_any_size(edges in vec(edge(), 1..12), style in 0..STYLES.len(), at in vec(any::<usize>(), 0..20)) {
        let log = log(&edges, style);
        prop_assert_eq!(in_pieces(log.as_bytes(), &at), read(&log));
    }

    /// Random bytes around records, line breaks anywhere: still the same in pieces.
    #[test]
    fn pieces_of_anything(parts in vec(prop_oneof![
        Just("via NET/IB/0".to_owned()), Just("/GDRDMA".to_owned()), Just("\n".to_owned()), Just("/GDR".to_owned()),
        Just("Channel 00/0 : 0[0] -> 1[0] [send] ".to_owned()), Just("\r\n".to_owned()), Just("1".to_owned()), "[ -~]{0,8}",
    ], 0..30), at in vec(any::<usize>(), 0..8)) {
        let log = parts.concat();
        prop_assert_eq!(in_pieces(log.as_bytes(), &at), read(&log));
    }

    /// One line break more, anywhere in the part that decides: the verdict stays, and so do the counts.
    #[test]
    fn a_line_break_in_a_record(edges in vec(edge(), 2..8), style in 0..STYLES.len(), which: prop::sample::Index, at: prop::sample::Index) {
        let which = which.index(edges.len());
        let mut log = String::new();
        for (i, edge) in edges.iter().enumerate() {
            let mut line = source(edge.rank()) + &edge.record(STYLES[style].0);
            if i == which {
                let from = line.find("via NET/").unwrap() + "via NET/".len();
                line.insert(from + at.index(line.len() - from + 1), '\n');
            }
            log += &(line + "\n");
        }
        let report = read(&log);
        prop_assert_eq!(report.verdict.word(), truth(&edges), "{}", log);
        prop_assert_eq!(report.channels.net, edges.len() as u64, "{}", log);
    }

    /// The log ends anywhere: whatever records are whole decide, and the last one only if it is.
    #[test]
    fn the_end_of_the_log(edges in vec(edge(), 1..8), style in 0..STYLES.len(), at: prop::sample::Index) {
        let mut whole = 0;
        let mut log = String::new();
        let mut ends = Vec::new();
        for edge in &edges {
            log += &(source(edge.rank()) + &edge.record(STYLES[style].0));
            log += "\n";
            ends.push(log.len());
        }
        let cut = at.index(log.len() + 1);
        whole += ends.iter().filter(|end| **end <= cut).count();
        let report = read(&log[..cut]);
        // a record that says GDRDMA is known before its line ends, and so is one with /Shared after its device
        prop_assert!(report.channels.net == whole as u64 || report.channels.net == whole as u64 + 1);
        let known = &edges[..usize::try_from(report.channels.net).unwrap()];
        if known.is_empty() {
            prop_assert_eq!(report.verdict.word(), "unknown");
        } else {
            prop_assert_eq!(report.verdict.word(), truth(known));
        }
    }
}

/// A record whose `/GDRDMA` comes behind a launcher's prefix, or behind another rank's line.
#[test]
fn the_rest_behind_a_prefix() {
    let start = "Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0";
    for (log, net, gdr) in [
        (
            format!(
                "[1,0]<stdout>:{}{start}\n[1,0]<stdout>:/GDRDMA\n",
                source(0)
            ),
            1,
            1,
        ),
        (
            format!(
                "{}{start}\n{}Connected all rings\n/GDRDMA/Shared\n",
                source(0),
                source(1)
            ),
            1,
            1,
        ),
        (
            format!("{}{start}\n{}{start}/GDRDMA\n", source(0), source(1)),
            2,
            1,
        ),
        (
            format!("{}{start}\n{}what /GDRDMA means\n", source(0), source(1)),
            1,
            0,
        ),
        (format!("{}{start}{}{start}\n", source(0), source(1)), 1, 0),
        (
            format!("{}{start}/GDR\n[1,0]<stdout>:DMA\n", source(0)),
            0,
            0,
        ),
    ] {
        let report = read(&log);
        assert_eq!(
            (report.channels.net, report.channels.gdr),
            (net, gdr),
            "{log}"
        );
    }
}

/// A line of megabytes is looked at in windows; records on their edges are counted once.
#[test]
fn a_line_of_megabytes() {
    let record = format!(
        "{}Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0/GDRDMA ",
        source(0)
    );
    for pad in [0, 1, 7, 64] {
        let line = format!("{}{}", " ".repeat(pad), record.repeat(30_000));
        assert!(line.len() > 2 << 20);
        let report = read(line.clone() + "\n");
        assert_eq!((report.channels.net, report.channels.gdr), (30_000, 30_000));
        assert_eq!(report.ranks.len(), 1);
        let pieces = in_pieces(
            (line + "\n").as_bytes(),
            &[70_000, 70_001, 1 << 20, 123_456],
        );
        assert_eq!(pieces, report);
    }
}
