//! Cuts a stream into lines without copying them, wherever its pieces begin and end.
//!
//! A line longer than [`LONGEST`] is looked at in windows that overlap, so that memory stays bounded and a record
//! on a window's edge is seen whole and once. Windows are counted from the line's beginning: the pieces in which
//! the stream comes change nothing.

use memchr::{memchr, memchr_iter, memrchr};

/// A longer line is looked at in windows of this size.
const LONGEST: usize = 64 << 10;
/// What a window shows behind its end and before its beginning.
const OVERLAP: usize = 2 << 10;

/// Lines that belong together in memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block<'a> {
    /// Whole lines, or a window of one.
    pub bytes: &'a [u8],
    /// What begins in here is to be looked at; the rest is context.
    pub begin: usize,
    pub end: usize,
    /// The number of the first line, from 1.
    pub number: u64,
    /// The last byte is the stream's last, and no line break.
    pub unfinished: bool,
}

/// The part of a stream that waits for its line's end.
#[derive(Debug)]
pub(crate) struct Lines {
    rest: Vec<u8>,
    /// Bytes of `rest` that were looked at already.
    done: usize,
    number: u64,
}

impl Lines {
    pub(crate) const fn new() -> Self {
        Self {
            rest: Vec::new(),
            done: 0,
            number: 1,
        }
    }

    /// The next piece of the stream.
    pub(crate) fn push(&mut self, mut piece: &[u8], mut each: impl FnMut(Block)) {
        if !self.rest.is_empty() {
            let line_end = memchr(b'\n', piece).map(|at| at + 1);
            let (head, tail) = piece
                .split_at_checked(line_end.unwrap_or(piece.len()))
                .unwrap_or((piece, b""));
            // a window at a time, so that a piece of any size stays bounded here
            for part in head.chunks(LONGEST) {
                self.rest.extend_from_slice(part);
                self.windows(&mut each);
            }
            if line_end.is_none() {
                return;
            }
            self.flush(false, &mut each);
            piece = tail;
        }
        let whole = memrchr(b'\n', piece).map_or(0, |at| at + 1);
        let (lines, rest) = piece.split_at_checked(whole).unwrap_or((piece, b""));
        self.whole(lines, &mut each);
        for part in rest.chunks(LONGEST) {
            self.rest.extend_from_slice(part);
            self.windows(&mut each);
        }
    }

    /// The stream is at its end.
    pub(crate) fn finish(&mut self, mut each: impl FnMut(Block)) {
        if !self.rest.is_empty() {
            self.flush(true, &mut each);
        }
    }

    /// Whole lines; those that are too long one by one.
    fn whole(&mut self, lines: &[u8], each: &mut impl FnMut(Block)) {
        let mut from = 0;
        let mut at = 0;
        // only a stretch without a line break longer than a window can hold such a line
        while lines.len() - at > LONGEST {
            let window = lines.get(at..at + LONGEST).unwrap_or_default();
            if let Some(newline) = memrchr(b'\n', window) {
                at += newline + 1;
                continue;
            }
            let rest = lines.get(at..).unwrap_or_default();
            let length = memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
            self.block(lines.get(from..at).unwrap_or_default(), each);
            for part in rest.get(..length).unwrap_or_default().chunks(LONGEST) {
                self.rest.extend_from_slice(part);
                self.windows(each);
            }
            self.flush(false, each);
            at += length;
            from = at;
        }
        self.block(lines.get(from..).unwrap_or_default(), each);
    }

    fn block(&mut self, bytes: &[u8], each: &mut impl FnMut(Block)) {
        if bytes.is_empty() {
            return;
        }
        each(Block {
            bytes,
            begin: 0,
            end: bytes.len(),
            number: self.number,
            unfinished: false,
        });
        self.number += newlines(bytes);
    }

    /// Looks at what is surely no line's end.
    fn windows(&mut self, each: &mut impl FnMut(Block)) {
        while self.rest.len() >= LONGEST + OVERLAP {
            each(Block {
                bytes: self.rest.get(..LONGEST + OVERLAP).unwrap_or(&self.rest),
                begin: self.done,
                end: LONGEST,
                number: self.number,
                unfinished: false,
            });
            self.rest.drain(..LONGEST - OVERLAP);
            self.done = OVERLAP;
        }
    }

    fn flush(&mut self, unfinished: bool, each: &mut impl FnMut(Block)) {
        each(Block {
            bytes: &self.rest,
            begin: self.done,
            end: self.rest.len(),
            number: self.number,
            unfinished,
        });
        self.number += newlines(&self.rest);
        self.rest.clear();
        self.done = 0;
    }
}

/// Line breaks.
pub(crate) fn newlines(bytes: &[u8]) -> u64 {
    memchr_iter(b'\n', bytes).count() as u64
}
