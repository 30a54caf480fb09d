//! Which bytes of a text came from where: lengths with a mark each.

use alloc::vec::Vec;
use core::ops::Range;

/// Beyond so many pieces nothing is said: a text in so many pieces is nobody's configuration.
const MOST: usize = 4096;

/// Consecutive pieces of a text, each with a mark.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Runs {
    runs: Vec<(u32, u32)>,
    /// There were too many: every byte counts as unknown.
    lost: bool,
}

impl Runs {
    /// One piece.
    pub(crate) fn one(bytes: usize, mark: u32) -> Self {
        let mut runs = Self::default();
        runs.push(bytes, mark);
        runs
    }

    /// How many pieces there are.
    pub(crate) fn count(&self) -> usize {
        self.runs.len()
    }

    /// What its list takes.
    pub(crate) fn bytes(&self) -> usize {
        self.runs.capacity() * size_of::<(u32, u32)>()
    }

    pub(crate) fn push(&mut self, bytes: usize, mark: u32) {
        if bytes == 0 || self.lost {
            return;
        }
        let size = u32::try_from(bytes).unwrap_or(u32::MAX);
        let many = self.runs.len() >= MOST || size == u32::MAX;
        match self.runs.last_mut() {
            Some((length, last)) if *last == mark && !many => *length = length.saturating_add(size),
            _ if many => {
                self.lost = true;
                self.runs = Vec::new();
            }
            _ => self.runs.push((size, mark)),
        }
    }

    pub(crate) fn append(&mut self, other: &Self) {
        for (bytes, mark) in &other.runs {
            self.push(*bytes as usize, *mark);
        }
        if other.lost {
            self.lost = true;
            self.runs = Vec::new();
        }
    }

    /// Puts another mark in the place of one.
    pub(crate) fn replace(&mut self, old: u32, new: u32) {
        for (_, mark) in &mut self.runs {
            if *mark == old {
                *mark = new;
            }
        }
    }

    /// Gives back memory that is not needed.
    pub(crate) fn finish(mut self) -> Self {
        self.runs.shrink_to_fit();
        self
    }

    pub(crate) fn contains(&self, mark: u32) -> bool {
        self.runs.iter().any(|(_, own)| *own == mark)
    }

    /// The marks in a range, each once, in order; `None` where they are not known for all of it.
    pub(crate) fn marks(&self, range: &Range<usize>) -> Option<Vec<u32>> {
        if self.lost {
            return None;
        }
        let mut found = Vec::new();
        let mut at = 0;
        for (bytes, mark) in &self.runs {
            let end = at + *bytes as usize;
            if at < range.end && range.start < end && !found.contains(mark) {
                found.push(*mark);
            }
            at = end;
        }
        (range.end <= at).then_some(found)
    }

    /// The pieces, one behind the other.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = (Range<usize>, u32)> {
        let mut at = 0;
        self.runs.iter().map(move |(bytes, mark)| {
            let start = at;
            at += *bytes as usize;
            (start..at, *mark)
        })
    }
}
