//! Messages other than channels: capability, the network chosen, the environment, versions, errors.

use memchr::memmem;

use crate::bytes::{first, last, number, text, word};
use crate::evidence::Evidence;
use crate::gathered::Gathered;
use crate::needles::Needle;

/// Variables that decide about GPUDirect RDMA (NCCL user guide, "Environment variables").
const VARIABLES: &[&str] = &[
    "NCCL_NET_GDR_LEVEL",
    "NCCL_NET_GDR_READ",
    "NCCL_NET_GDR_C2C",
    "NCCL_IB_DISABLE",
    "NCCL_DMABUF_ENABLE",
    "NCCL_NET",
    "NCCL_NET_PLUGIN",
    "NCCL_IB_HCA",
];

/// Where a text was found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    /// The whole line.
    pub line: &'a [u8],
    /// The text's beginning and end in it.
    pub at: usize,
    pub end: usize,
    /// The line may go on where it ends.
    pub unfinished: bool,
}

impl<'a> Place<'a> {
    fn before(&self) -> &'a [u8] {
        self.line.get(..self.at).unwrap_or_default()
    }

    fn after(&self) -> &'a [u8] {
        self.line.get(self.end..).unwrap_or_default()
    }

    /// `value`, unless the log ends where it does: then it may be cut.
    fn whole<'b>(&self, value: &'b [u8], length: usize) -> Option<&'b [u8]> {
        let cut = self.unfinished && length >= self.after().len();
        (!cut && !value.is_empty()).then_some(value)
    }
}

/// Reads one message.
pub(crate) fn read(
    into: &mut Gathered,
    needle: Needle,
    place: &Place,
    evidence: impl FnOnce() -> Evidence,
) {
    match needle {
        Needle::Via | Needle::Inside(_) | Needle::Gdrdma => {}
        Needle::Capability => capability(into, place, evidence),
        Needle::Network => network(into, place, evidence),
        Needle::SocketUsing => into.socket_using.add(evidence),
        Needle::Ib => ib(into, place, evidence),
        Needle::Env => env(into, place, evidence),
        Needle::Version => version(into, place),
        Needle::PythonVersion => {
            let value = version_word(place.after());
            if let Some(value) = place.whole(value, value.len()) {
                into.python_version.get_or_insert_with(|| text(value));
            }
        }
        Needle::Nodes => nodes(into, place),
        Needle::Completion => completion(into, place, evidence),
        Needle::Trouble(trouble) => into.troubles.entry(trouble).or_default().add(evidence),
        Needle::DmaBuf => into.dma_buf += 1,
    }
}

/// `NET/IB : GPU Direct RDMA Enabled for HCA 0 'mlx5_0'`, `GPU Direct RDMA Disabled for GPU ... (distance 8 > 5)`,
/// and the HPC-X plugin's `GPU Direct RDMA (DMABUF) enabled for HCA 0 'mlx5_0` without the last quote.
fn capability(into: &mut Gathered, place: &Place, evidence: impl FnOnce() -> Evidence) {
    let Some(before) = place.before().strip_suffix(b"GPU ") else {
        return;
    };
    let after = place.after();
    let (enabled, rest) = if let Some(rest) = after.strip_prefix(b"Enabled for ") {
        (true, rest)
    } else if let Some(rest) = after.strip_prefix(b"Disabled for ") {
        (false, rest)
    } else if let Some(rest) = after
        .strip_prefix(b"(nvidia-peermem) enabled for ")
        .or_else(|| after.strip_prefix(b"(DMABUF) enabled for "))
    {
        (true, rest)
    } else {
        return;
    };
    if rest.starts_with(b"GPU") {
        distance(into, enabled, first(rest, 256), evidence);
        return;
    }
    let hca = rest.strip_prefix(b"HCA ").and_then(number);
    let Some((index, name)) = hca.and_then(|(i, rest)| Some((i, rest.strip_prefix(b" '")?))) else {
        return;
    };
    let length = name
        .iter()
        .take_while(|b| b.is_ascii_graphic() && !matches!(b, b'\'' | b'"' | b'\\'))
        .count();
    let closed = name.get(length) == Some(&b'\'');
    // only the plugin leaves the quote out
    if length == 0 || length > 128 || !closed && (place.unfinished || !after.starts_with(b"(")) {
        return;
    }
    let Some(net) = net_before(before) else {
        return;
    };
    into.hca(net, first(name, length), index, enabled, evidence);
}

/// `NET/NAME : ` at the end.
fn net_before(before: &[u8]) -> Option<&[u8]> {
    let before = last(before, 80).trim_ascii_end().strip_suffix(b":")?;
    let start = memmem::rfind(before, b"NET/")? + 4;
    let name = before.get(start..)?.trim_ascii();
    (!name.is_empty() && !name.contains(&b':')).then_some(name)
}

/// `... (distance 8 > 5)`, `(distance 5 <= 5, read 1, mode Default)`, `( using PXN via GPU/0-1000, distance 4 <= 5`.
fn distance(into: &mut Gathered, enabled: bool, rest: &[u8], evidence: impl FnOnce() -> Evidence) {
    let Some(at) = memmem::find(rest, b"distance ") else {
        return;
    };
    let read = || {
        let (distance, rest) = number(rest.get(at + 9..)?)?;
        let rest = match rest.strip_prefix(b" <= ") {
            Some(rest) => rest,
            None => rest.strip_prefix(b" > ")?,
        };
        let (level, rest) = number(rest)?;
        matches!(rest.first(), Some(b')' | b',')).then_some((distance, level))
    };
    let Some((distance, level)) = read() else {
        return;
    };
    let distances = &mut into.distances;
    if enabled {
        distances.enabled += 1;
        return;
    }
    distances.level_zero = level == 0 && (distances.level_zero || distances.disabled.count == 0);
    if distances.farthest.is_none_or(|(most, _)| distance > most) {
        distances.farthest = Some((distance, level));
    }
    distances.disabled.add(evidence);
}

/// A net's name may hold blanks; two of them are a padded line's end.
fn network(into: &mut Gathered, place: &Place, evidence: impl FnOnce() -> Evidence) {
    let after = place.after();
    let name = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b' ' | b'_' | b'-' | b'.');
    let length = after.iter().take_while(|b| name(b)).count().min(48);
    let length = memmem::find(first(after, length), b"  ").unwrap_or(length);
    let value = first(after, length).trim_ascii();
    // whoever reads `So` has half a word
    if value.is_empty() || value != b"Socket" && b"Socket".starts_with(value) {
        return;
    }
    if value == b"Socket" || place.whole(value, length).is_some() {
        into.network(value, evidence);
    }
}

fn ib(into: &mut Gathered, place: &Place, evidence: impl FnOnce() -> Evidence) {
    let after = place.after();
    if after.starts_with(b"No device found") {
        into.no_device.add(evidence);
    } else if after.starts_with(b"Using [") {
        devices(into, first(after, 8 << 10));
    }
}

/// `[0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB ...`; merged devices (`[0]={...}`) have no name of their own.
fn devices(into: &mut Gathered, mut rest: &[u8]) {
    rest = first(rest, memmem::find(rest, b"; OOB").unwrap_or(rest.len()));
    while let Some(at) = memchr::memchr(b'[', rest) {
        rest = rest.get(at + 1..).unwrap_or_default();
        let Some((index, after)) = number(rest) else {
            continue;
        };
        let Some(name) = after.strip_prefix(b"]") else {
            continue;
        };
        let length = name
            .iter()
            .take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'))
            .count();
        if length > 0 && name.get(length) == Some(&b':') {
            into.device(index, first(name, length));
        }
    }
}

fn env(into: &mut Gathered, place: &Place, evidence: impl FnOnce() -> Evidence) {
    let before = last(place.before().trim_ascii_end(), 64);
    let known = |name: &&&str| {
        before.strip_suffix(name.as_bytes()).is_some_and(|rest| {
            rest.last()
                .is_none_or(|b| !b.is_ascii_alphanumeric() && *b != b'_')
        })
    };
    let Some(name) = VARIABLES.iter().find(known) else {
        return;
    };
    let value = first(word(place.after()), 64);
    let Some(value) = place.whole(value, value.len()) else {
        return;
    };
    // numbers are printed with a full stop
    let value = value.strip_suffix(b".").unwrap_or(value);
    into.env(name, value, evidence);
}

fn version(into: &mut Gathered, place: &Place) {
    if !matches!(last(place.before(), 3), b"NCC" | b"RCC") {
        return;
    }
    let value = version_word(place.after());
    if let Some(value) = place.whole(value, value.len()) {
        into.version(value);
    }
}

/// `2.26.2+cuda12.8`; empty if it does not begin like a version.
fn version_word(after: &[u8]) -> &[u8] {
    let after = after.strip_prefix(b": ").unwrap_or(after);
    let part = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'+' | b'-' | b':' | b'_');
    let length = after.iter().take_while(|b| part(b)).count().min(64);
    let value = first(after, length);
    let value = value.strip_suffix(b".").unwrap_or(value);
    match number(value) {
        Some((_, rest)) if rest.first() == Some(&b'.') => value,
        _ => b"",
    }
}

/// `comm 0x... rank 0 nRanks 16 nNodes 2 localRanks 8 localRank 0 MNNVL 0` (2.20 and later).
fn nodes(into: &mut Gathered, place: &Place) {
    let Some((nodes, rest)) = number(place.after()) else {
        return;
    };
    if place
        .whole(place.after(), place.after().len() - rest.len())
        .is_none()
    {
        return;
    }
    into.max_nodes = into.max_nodes.max(Some(nodes));
    let rest = first(rest, 64);
    let mnnvl = memmem::find(rest, b"MNNVL ").and_then(|at| number(rest.get(at + 6..)?));
    into.mnnvl |= mnnvl.is_some_and(|(value, _)| value != 0);
}

/// `with error 12,`, `with status=12 `, `with status=IBV_WC_LOC_PROT_ERR(4) `.
fn completion(into: &mut Gathered, place: &Place, evidence: impl FnOnce() -> Evidence) {
    let rest = first(place.after(), 256);
    let status = || {
        if let Some(at) = memmem::find(rest, b"status=") {
            let rest = rest.get(at + 7..)?;
            let name = rest
                .iter()
                .take_while(|b| b.is_ascii_alphabetic() || **b == b'_')
                .count();
            let rest = rest.get(name..)?;
            return Some(number(rest.strip_prefix(b"(").unwrap_or(rest))?.0);
        }
        let at = memmem::find(rest, b"with error ")?;
        Some(number(rest.get(at + 11..)?)?.0)
    };
    let Some(status) = status() else {
        return;
    };
    let completions = &mut into.completions;
    if completions.by_status.len() < 64 || completions.by_status.contains_key(&status) {
        *completions.by_status.entry(status).or_default() += 1;
    }
    completions.seen.add(evidence);
}
