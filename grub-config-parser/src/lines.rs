//! Lines of a text.

use alloc::vec::Vec;

/// Which line a place is on, in little memory.
#[derive(Debug)]
pub(crate) struct Lines<'a> {
    source: &'a [u8],
    /// How many newlines are before each block of the source.
    before: Vec<u32>,
}

/// So far apart are the places at which newlines have been counted.
const BLOCK: usize = 64;

fn newlines(text: &[u8]) -> usize {
    text.iter().filter(|byte| **byte == b'\n').count()
}

impl<'a> Lines<'a> {
    pub(crate) fn new(source: &'a [u8]) -> Self {
        let mut count = 0;
        let blocks = source.chunks(BLOCK).map(|block| {
            let before = count;
            count += u32::try_from(newlines(block)).unwrap_or(u32::MAX);
            before
        });
        Self {
            before: blocks.collect(),
            source,
        }
    }

    /// The line, from 1, of a place.
    pub(crate) fn line(&self, at: usize) -> usize {
        let block = (at / BLOCK).min(self.before.len().saturating_sub(1));
        let before = self.before.get(block).copied().unwrap_or_default() as usize;
        let rest = self.source.get(block * BLOCK..at.min(self.source.len()));
        1 + before + newlines(rest.unwrap_or_default())
    }
}
