use gdr_agent::nccl_log::{FileReport, Reader, render};
use gdr_agent::pci::render::Styles;

fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> FileReport {
    let mut reader = Reader::new();
    pieces.into_iter().for_each(|piece| reader.push(piece));
    reader.report("log", None)
}

/// Logs: the same answer in pieces of any size, evidence from lines that are there, short and harmless text.
pub fn nccl_log(data: &[u8]) {
    let report = read([data]);
    let size = usize::from(data.first().copied().unwrap_or_default()) % 61 + 1;
    assert_eq!(read(data.chunks(size)), report, "in pieces of {size}");

    let lines = 1 + data.iter().filter(|b| **b == b'\n').count() as u64;
    for finding in &report.findings {
        assert!(finding.evidence.len() <= 4);
        for evidence in &finding.evidence {
            assert!((1..=lines).contains(&evidence.line));
            assert!(evidence.text.chars().count() <= 240);
            shown(&evidence.text);
        }
    }
    let channels = &report.channels;
    assert!(channels.gdr <= channels.net);
    let by_rank = report.ranks.iter().flat_map(|rank| &rank.devices);
    let listed: u64 = by_rank.map(|d| d.send.total + d.receive.total).sum();
    assert_eq!(listed + report.not_listed, channels.net);

    let text = render::file(&report, Styles::default());
    super::lines_shown(&text);
    assert!(text.len() < 64 << 10);
}

use super::shown;
