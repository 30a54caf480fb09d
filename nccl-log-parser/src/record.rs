//! A channel's transport: the record that says what NCCL chose for one edge.
//!
//! NCCL `src/transport/net.cc`, `coll_net.cc`, `p2p.cc`, `shm.cc`, tags 2.3 to 2.31. The part before `via` has
//! changed with nearly every version; the part after it only grew:
//!
//! ```text
//! via NET/NAME/DEVICE[(PROXY_RANK)][/GDRDMA[(PCI)]][/Shared][/flush=NAME]
//! via COLLNET/NAME/DEVICE[/GDRDMA[(PCI)]]
//! ```

use crate::bytes::{number, number_before};

/// Names longer than this are no net's.
const NAME: usize = 48;

/// What a record says that it goes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A network.
    Net,
    /// In-network reduction.
    CollNet,
    /// Within a node, or over MNNVL.
    P2p,
    /// Host memory of one node.
    Shm,
}

/// Which end of an edge the rank is that printed the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Direction {
    Send,
    Receive,
}

/// What stands before `via`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub channel: u32,
    /// The rank that printed it.
    pub rank: u32,
    pub direction: Option<Direction>,
}

/// One record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Record<'a> {
    pub kind: Kind,
    /// The net's name, as printed; it may hold blanks.
    pub name: &'a [u8],
    pub device: u32,
    pub gdr: bool,
}

/// What follows `via `.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parsed<'a> {
    /// A record; how many bytes it takes.
    Record(Record<'a>, usize),
    /// The text ends inside a record.
    Cut,
    /// Something else, or a record with another text in its middle.
    Other,
}

/// Reads what follows `via `; `text` reaches to the end of the line.
pub(crate) fn transport(text: &[u8]) -> Parsed<'_> {
    if let Some(rest) = text.strip_prefix(b"NET/") {
        return net(text, rest, Kind::Net);
    }
    if let Some(rest) = text.strip_prefix(b"COLLNET/") {
        return net(text, rest, Kind::CollNet);
    }
    let (kind, length) = if text.starts_with(b"P2P/") {
        (Kind::P2p, 4)
    } else if text.starts_with(b"SHM") {
        (Kind::Shm, 3)
    } else if text.starts_with(b"direct shared memory") {
        (Kind::Shm, 20)
    } else {
        return Parsed::Other;
    };
    let record = Record {
        kind,
        name: b"",
        device: 0,
        gdr: false,
    };
    Parsed::Record(record, length)
}

fn net<'a>(all: &'a [u8], rest: &'a [u8], kind: Kind) -> Parsed<'a> {
    let length = rest.iter().take_while(|b| in_name(**b)).count();
    let Some((name, rest)) = rest.split_at_checked(length) else {
        return Parsed::Other;
    };
    if name.len() > NAME {
        return Parsed::Other;
    }
    let Some(rest) = rest.strip_prefix(b"/") else {
        return cut_if(rest.is_empty());
    };
    if name.is_empty() {
        return Parsed::Other;
    }
    if rest.is_empty() {
        return Parsed::Cut;
    }
    let Some((device, mut rest)) = number(rest) else {
        return Parsed::Other;
    };
    if let Some(inner) = rest.strip_prefix(b"(") {
        // the rank whose NIC is used (PXN)
        let Some((_, after)) = number(inner) else {
            return cut_if(inner.is_empty());
        };
        let Some(after) = after.strip_prefix(b")") else {
            return cut_if(after.is_empty());
        };
        rest = after;
    }
    let (gdr, rest) = match rest.strip_prefix(b"/GDRDMA") {
        Some(after) => (true, after),
        None if !rest.is_empty() && b"/GDRDMA".starts_with(rest) => return Parsed::Cut,
        None if rest.starts_with(b"/S") || rest.starts_with(b"/f") => (false, rest),
        None if rest.first().is_none_or(|b| ends(*b)) => (false, rest),
        None => return Parsed::Other,
    };
    let record = Record {
        kind,
        name,
        device,
        gdr,
    };
    Parsed::Record(record, all.len() - rest.len())
}

fn cut_if(at_end: bool) -> Parsed<'static> {
    if at_end { Parsed::Cut } else { Parsed::Other }
}

fn in_name(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b' ' | b'_' | b'-' | b'.' | b'+')
}

/// What may follow a record that ends with its device: a blank, or what wrappers of lines put there (a colour, a
/// table's rule, JSON's quote or `\n`, HTML). Anything else is another text that begins inside the record.
fn ends(b: u8) -> bool {
    b.is_ascii_whitespace()
        || matches!(
            b,
            0x1b | b'"' | b'\'' | b'`' | b'\\' | b'|' | b',' | b')' | b'<'
        )
}

/// Reads what stands before `via`, from its end: `Channel 00/0 : 1[0] -> 2[1] [send] `, with everything optional
/// that some version leaves out. None if its head is cut off.
pub(crate) fn head(before: &[u8]) -> Option<(Head, &[u8])> {
    let before = before.trim_ascii_end();
    let (before, direction) = if let Some(rest) = before.strip_suffix(b"[send]") {
        (rest.trim_ascii_end(), Some(Direction::Send))
    } else if let Some(rest) = before.strip_suffix(b"[receive]") {
        (rest.trim_ascii_end(), Some(Direction::Receive))
    } else {
        (before, None)
    };
    let (before, last) = rank_before(before)?;
    let (before, rank) = match before.trim_ascii_end().strip_suffix(b"->") {
        Some(rest) => {
            let (before, sender) = rank_before(rest.trim_ascii_end())?;
            let receives = direction == Some(Direction::Receive);
            (before, if receives { last } else { sender })
        }
        // CollNet names the rank alone
        None => (before, last),
    };
    let before = before.trim_ascii_end().strip_suffix(b":")?.trim_ascii_end();
    let (before, last) = number_before(before)?;
    let (before, channel) = match before.strip_suffix(b"/") {
        Some(rest) => number_before(rest)?,
        None => (before, last),
    };
    let before = before.trim_ascii_end();
    let before = [b"Channel".as_slice(), b"Ring", b"CollNet", b"Coll"]
        .into_iter()
        .find_map(|word| before.strip_suffix(word))?;
    let head = Head {
        channel,
        rank,
        direction,
    };
    Some((head, before))
}

/// `12[83000]` or `12` at the end: the rank, and what is before it. The bracket is a bus id or a device.
fn rank_before(bytes: &[u8]) -> Option<(&[u8], u32)> {
    let Some(inner) = bytes.strip_suffix(b"]") else {
        return number_before(bytes);
    };
    let id = |b: &u8| b.is_ascii_hexdigit() || *b == b'-';
    let length = inner.iter().rev().take_while(|b| id(b)).count();
    let (rest, _) = inner.split_at_checked(inner.len() - length)?;
    number_before(rest.strip_suffix(b"[")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> (Parsed<'_>, Option<Head>) {
        let at = line.find("via ").unwrap();
        let (before, after) = line.as_bytes().split_at(at);
        (transport(&after[4..]), head(before).map(|(head, _)| head))
    }

    #[test]
    fn heads_of_all_versions() {
        let head = |line: &str| {
            let head = read(line).1.unwrap();
            (head.channel, head.rank, head.direction)
        };
        let send = Some(Direction::Send);
        let receive = Some(Direction::Receive);
        for (line, wanted) in [
            ("Ring 01 : 0 -> 8 [send] via NET/IB/0", (1, 0, send)),
            (
                "Ring 00 : 7[7] -> 8[0] [receive] via NET/IB/0",
                (0, 8, receive),
            ),
            (
                "Channel 00 : 7[8a000] -> 8[1b000] [receive] via NET/IB/0/GDRDMA",
                (0, 8, receive),
            ),
            (
                "Channel 03/1 : 3[0] -> 0[1] [send] via NET/IB/0(2)/GDRDMA",
                (3, 3, send),
            ),
            (
                "Channel 00/0 : 7[-1] -> 6[-1] via P2P/IPC/read",
                (0, 7, None),
            ),
            (
                "Coll 00 : 5 [send] via COLLNET/SHARP/1/GDRDMA",
                (0, 5, send),
            ),
            (
                "CollNet 02/1 : 5 [receive] via COLLNET/SHARP/1/GDRDMA(PCI)",
                (2, 5, receive),
            ),
        ] {
            assert_eq!(head(line), wanted, "{line}");
        }
        assert_eq!(read("0[0] -> 1[0] [send] via NET/IB/0").1, None);
    }

    #[test]
    fn ends_of_records() {
        let gdr = |line: &str| match read(line).0 {
            Parsed::Record(record, _) => Some(record.gdr),
            Parsed::Cut | Parsed::Other => None,
        };
        for line in [
            "via NET/IB/0",
            "via NET/IB/0 x",
            "via NET/IB/12/Shared",
            "via NET/IB/0(1)/Shared",
            "via NET/IB/0\\n",
        ] {
            assert_eq!(gdr(line), Some(false), "{line}");
        }
        for line in [
            "via NET/IB/0/GDRDMA",
            "via NET/AWS Libfabric/0/GDRDMA(PCI)/Shared",
            "via NET/IB/0(7)/GDRDMAnode1:2",
        ] {
            assert_eq!(gdr(line), Some(true), "{line}");
        }
        for line in [
            "via NET/",
            "via NET/I",
            "via NET/IB/",
            "via NET/IB/0(",
            "via NET/IB/0(1",
            "via NET/IB/0/",
            "via NET/IB/0/GDRD",
        ] {
            assert_eq!(read(line).0, Parsed::Cut, "{line}");
        }
        for line in [
            "via NET/IB/0node1:1:1 [0] NCCL INFO x",
            "via NET/Inode1:2:3 [0] NCCL INFO Using",
            "via NET/IB/0/GDRnode1",
            "via NET/IB : Using",
        ] {
            assert_eq!(read(line).0, Parsed::Other, "{line}");
        }
    }
}
