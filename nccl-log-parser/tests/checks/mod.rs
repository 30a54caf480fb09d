//! What must hold for any bytes. The bounded tests and the fuzz target run the same code.
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a broken property panics"
)]

use nccl_log_parser::{CHANNELS, Evidence, Kind, Log, Reader, Seen};

fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Log {
    let mut reader = Reader::new();
    pieces.into_iter().for_each(|piece| reader.push(piece));
    reader.finish()
}

/// No panic; the same in pieces of any size; counts that add up; evidence from lines that are there, short and harmless;
/// nothing grows beyond the log.
pub fn log(data: &[u8]) {
    let log = read([data]);
    let size = usize::from(data.first().copied().unwrap_or_default()) % 61 + 1;
    let pieces = read(data.chunks(size));
    // tables' indexes have an order of their own
    assert_eq!(pieces.gathered, log.gathered, "in pieces of {size}");
    assert_eq!((pieces.cut, pieces.bytes), (log.cut, log.bytes));
    let tables = |log: &Log| {
        let tally = &log.tally;
        (
            tally.net,
            tally.transports.clone(),
            tally.channels.clone(),
            tally.processes.clone(),
            tally.cells.clone(),
            tally.not_listed,
        )
    };
    assert_eq!(tables(&pieces), tables(&log), "in pieces of {size}");

    assert_eq!(log.bytes, data.len() as u64);
    let tally = &log.tally;
    assert!(tally.net.gdr <= tally.net.total);
    let sum = |kinds: &[Kind]| -> u64 {
        let of = tally.transports.iter().filter(|t| kinds.contains(&t.kind));
        of.map(|t| t.count.total).sum()
    };
    assert!(sum(&[Kind::Net, Kind::CollNet]) <= tally.net.total);
    let by_channel: u64 = tally.channels.iter().map(|c| c.total).sum();
    assert!(by_channel <= tally.net.total && tally.channels.len() <= CHANNELS);
    let cells = tally.cells.iter();
    let listed: u64 = cells.map(|(_, c)| c.send.total + c.receive.total).sum();
    assert_eq!(listed + tally.not_listed, tally.net.total);
    // the shortest record has a dozen bytes
    assert!(tally.net.total + sum(&[Kind::P2p, Kind::Shm]) <= data.len() as u64 / 7);

    let lines = 1 + data.iter().filter(|b| **b == b'\n').count() as u64;
    let gathered = &log.gathered;
    let seen = gathered
        .networks
        .values()
        .chain(gathered.hcas.values().map(|hca| &hca.seen))
        .chain(gathered.troubles.values())
        .chain(gathered.env.values().flatten().map(|env| &env.seen))
        .chain([
            &gathered.socket_using,
            &gathered.no_device,
            &gathered.distances.disabled,
            &gathered.completions.seen,
        ]);
    for Seen { count, first } in seen {
        assert!(first.len() <= 3 && first.len() as u64 <= *count);
        for Evidence { line, text } in first {
            assert!((1..=lines).contains(line), "{line} of {lines}");
            assert!(text.chars().count() <= 240 && !text.contains(char::is_control));
        }
    }
}
