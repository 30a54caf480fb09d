//! Reads a log as a stream: finds what matters, reads it, counts it.

use memchr::{memchr, memmem, memrchr};

use crate::bytes::first;
use crate::evidence::Evidence;
use crate::gathered::Gathered;
use crate::lines::{Block, Lines, newlines};
use crate::messages::{self, Place};
use crate::needles::{Hit, Needle, Needles, Trouble};
use crate::record::{self, Kind, Parsed};
use crate::tally::{Counted, Tally};

/// What of the next line can belong to a record that a line break cut.
const NEXT: usize = 80;
/// How much of a line is kept for that, across pieces of the stream.
const KEPT: usize = 512;
/// How many places later the rest of a cut record may come, behind another rank's line.
const NEAR: u32 = 4;

/// A log that is being read. Feed it with [`Reader::push`], in pieces of any size.
#[derive(Debug)]
pub struct Reader {
    lines: Lines,
    state: State,
}

/// What a log holds.
#[derive(Debug, Default)]
pub struct Log {
    /// Its channel records.
    pub tally: Tally,
    /// Everything else.
    pub gathered: Gathered,
    /// Records that ended in their middle, or whose end could not be told from a cut.
    pub cut: u64,
    /// Bytes read, unpacked.
    pub bytes: u64,
}

/// What was read so far.
#[derive(Debug)]
struct State {
    needles: Needles,
    log: Log,
    /// The end of the last line, where its record may go on in the next piece.
    open: Option<Open>,
    /// The last record that ended with its line and without `/GDRDMA`, and how many places ago that was.
    bare: Option<(Counted, u32)>,
}

/// A line whose last record may go on in the next line.
#[derive(Debug)]
struct Open {
    line: Vec<u8>,
    via: usize,
    counted: Option<Counted>,
}

impl Default for Reader {
    fn default() -> Self {
        Self::new()
    }
}

impl Reader {
    /// Nothing read yet.
    #[must_use]
    pub fn new() -> Self {
        Self {
            lines: Lines::new(),
            state: State {
                needles: Needles::new(),
                log: Log::default(),
                open: None,
                bare: None,
            },
        }
    }

    /// The next piece of the log.
    pub fn push(&mut self, piece: &[u8]) {
        self.state.log.bytes += piece.len() as u64;
        let state = &mut self.state;
        self.lines.push(piece, |block| state.block(block));
    }

    /// Bytes read so far.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.state.log.bytes
    }

    /// The end of the log: all that it holds.
    #[must_use]
    pub fn finish(mut self) -> Log {
        let state = &mut self.state;
        self.lines.finish(|block| state.block(block));
        self.state.log
    }
}

/// A line in its block.
#[derive(Debug, Clone, Copy)]
struct Line<'a> {
    block: Block<'a>,
    start: usize,
    /// Its text ends here, the line break left out.
    end: usize,
    /// Where the next line begins; none if the line has no line break yet.
    next: Option<usize>,
}

impl<'a> Line<'a> {
    fn text(&self) -> &'a [u8] {
        self.block
            .bytes
            .get(self.start..self.end)
            .unwrap_or_default()
    }

    /// Nothing shows that the text does not go on.
    fn unfinished(&self) -> bool {
        self.next.is_none() && self.block.unfinished
    }

    /// Around a byte of the text.
    fn evidence(&self, at: usize) -> Evidence {
        let before = self.block.bytes.get(..self.start).unwrap_or_default();
        Evidence::of(self.text(), at, self.block.number + newlines(before))
    }
}

impl State {
    fn block(&mut self, block: Block) {
        let bytes = block.bytes;
        if !self.log.gathered.any {
            self.log.gathered.any = memmem::find(bytes, b"NCCL").is_some();
        }
        if let Some(open) = self.open.take() {
            self.join(&open.line, open.via, open.counted, bytes);
        }
        let mut line: Option<Line> = None;
        let mut at = block.begin;
        while let Some(hit) = self.needles.find(bytes, at) {
            if hit.start >= block.end {
                break;
            }
            at = hit.end;
            if let Needle::Inside(kind) = hit.needle
                && self.inside(kind)
            {
                continue;
            }
            let current = match line {
                Some(line) if line.next.is_none_or(|next| hit.start < next) => line,
                previous => line_of(block, previous.and_then(|p| p.next).unwrap_or(0), hit.start),
            };
            line = Some(current);
            at = self.hit(&current, hit).max(at);
        }
    }

    /// Counts a record of a transport inside a node, whose line tells no more: who stays inside a node matters only where
    /// nothing leaves it. False if the line has to be looked at.
    fn inside(&mut self, kind: Kind) -> bool {
        if self.log.tally.net.total == 0 {
            return false;
        }
        self.age();
        self.log.tally.add_inside(kind);
        true
    }

    /// Reads what was found; where to go on.
    fn hit(&mut self, line: &Line, hit: Hit) -> usize {
        let text = line.text();
        let place = Place {
            line: text,
            at: hit.start - line.start,
            end: hit.end - line.start,
            unfinished: line.unfinished(),
        };
        let evidence = || line.evidence(place.at);
        match hit.needle {
            Needle::Via | Needle::Inside(_) => return self.record(line, hit),
            Needle::Gdrdma
                if text
                    .get(place.end..)
                    .is_some_and(|t| t.starts_with(b" not enabled")) =>
            {
                let troubles = &mut self.log.gathered.troubles;
                troubles
                    .entry(Trouble::NoPeerMemory)
                    .or_default()
                    .add(evidence);
            }
            Needle::Gdrdma => self.orphan(&place),
            needle => messages::read(&mut self.log.gathered, needle, &place, evidence),
        }
        hit.end
    }

    fn record(&mut self, line: &Line, hit: Hit) -> usize {
        let text = line.text();
        let via = hit.start - line.start;
        let (before, after) = text.split_at_checked(via).unwrap_or((text, b""));
        let after = after.get(4..).unwrap_or_default();
        self.age();
        match record::transport(after) {
            Parsed::Record(record, length) => {
                let net = matches!(record.kind, Kind::Net | Kind::CollNet);
                let bare = net && !record.gdr && length == after.len();
                if bare && line.unfinished() {
                    // it may be the beginning of `/GDRDMA`
                    self.log.cut += 1;
                    return hit.end;
                }
                let counted = count(&mut self.log.tally, &record, before);
                if bare {
                    self.bare = counted.map(|counted| (counted, 0));
                    self.open(line, via, counted);
                }
                line.start + via + 4 + length
            }
            Parsed::Cut => {
                self.log.cut += 1;
                self.open(line, via, None);
                line.end
            }
            Parsed::Other => {
                // `via NET/` with another text in its middle; `via direct` may be anything
                self.log.cut +=
                    u64::from(after.starts_with(b"NET/") || after.starts_with(b"COLLNET/"));
                hit.end
            }
        }
    }

    /// A record that may go on in the next line.
    fn open(&mut self, line: &Line, via: usize, counted: Option<Counted>) {
        let Some(next) = line.next else { return };
        match line.block.bytes.get(next..) {
            Some(rest) if !rest.is_empty() => self.join(line.text(), via, counted, rest),
            _ => {
                let from = line.text().len().saturating_sub(KEPT).min(via);
                self.open = Some(Open {
                    line: line.text().get(from..).unwrap_or_default().to_vec(),
                    via: via - from,
                    counted,
                });
            }
        }
    }

    /// Looks whether the next line begins with the rest of a record.
    fn join(&mut self, line: &[u8], via: usize, counted: Option<Counted>, next: &[u8]) {
        let begins = next.first().copied().unwrap_or_default();
        if counted.is_some() && !(begins.is_ascii_digit() || matches!(begins, b'/' | b'(')) {
            return;
        }
        let next = first(next, memchr(b'\n', first(next, NEXT)).unwrap_or(NEXT)).trim_ascii_end();
        let joined = [line, next].concat();
        let Some((before, after)) = joined.split_at_checked(via) else {
            return;
        };
        let after = after.get(4..).unwrap_or_default();
        let Parsed::Record(record, length) = record::transport(after) else {
            return;
        };
        if counted.is_some() && via + 4 + length <= line.len() {
            return;
        }
        match counted {
            Some(counted) if record.gdr => self.log.tally.correct(&counted),
            // without `/GDRDMA` only if nothing else is in the line: it could be any number
            None if record.gdr || goes_on(after.get(length..).unwrap_or_default()) => {
                count(&mut self.log.tally, &record, before);
                self.log.cut = self.log.cut.saturating_sub(1);
            }
            _ => return,
        }
        self.bare = None;
    }

    /// `/GDRDMA` at the beginning of a line's content: the rest of a record that something cut after its device.
    fn orphan(&mut self, place: &Place) {
        let before = place.line.get(..place.at).unwrap_or_default();
        let after = place.line.get(place.end..).unwrap_or_default();
        let Some(before) = before.strip_suffix(b"/") else {
            return;
        };
        let digits = before
            .iter()
            .rev()
            .take_while(|b| b.is_ascii_digit())
            .count();
        let prefix = before.get(..before.len() - digits).unwrap_or_default();
        let starts = prefix
            .last()
            .is_none_or(|b| b.is_ascii_whitespace() || matches!(b, b':' | b'>' | b'|' | b'm'));
        let ends = after
            .first()
            .is_none_or(|b| matches!(b, b'(' | b'/') || b.is_ascii_whitespace());
        let told = memmem::find(prefix, b"NCCL").or(memmem::find(prefix, b"NET/"));
        if prefix.len() > NEXT || !starts || !ends || told.is_some() {
            return;
        }
        if let Some((counted, _)) = self.bare.take() {
            self.log.tally.correct(&counted);
        }
    }

    fn age(&mut self) {
        if let Some((_, age)) = &mut self.bare {
            *age += 1;
            if *age > NEAR {
                self.bare = None;
            }
        }
    }
}

/// What may follow a record's device where nothing else vouches for it: its own suffixes, and RCCL's.
fn goes_on(rest: &[u8]) -> bool {
    rest.is_empty()
        || [&b"/S"[..], b"/f", b" comm 0x"]
            .iter()
            .any(|s| rest.starts_with(s))
}

/// The line that holds byte `at`, not before `from`.
fn line_of(block: Block<'_>, from: usize, at: usize) -> Line<'_> {
    let bytes = block.bytes;
    let before = bytes.get(from..at).unwrap_or_default();
    let start = memrchr(b'\n', before).map_or(from, |i| from + i + 1);
    let newline = bytes.get(at..).and_then(|rest| memchr(b'\n', rest));
    let end = newline.map_or(bytes.len(), |i| at + i);
    let returned = end > start && bytes.get(end - 1) == Some(&b'\r') && newline.is_some();
    Line {
        block,
        start,
        end: end - usize::from(returned),
        next: newline.map(|i| at + i + 1),
    }
}

fn count(tally: &mut Tally, record: &record::Record, before: &[u8]) -> Option<Counted> {
    match record::head(before) {
        Some((head, prefix)) => {
            let process = tally.process_of(prefix);
            tally.add(record, Some(&head), process)
        }
        None => tally.add(record, None, None),
    }
}
