//! How much memory running a script may take.
//!
//! A script of a few bytes can fill any memory: a loop makes entries, a variable doubles itself. So what a
//! menu takes is counted while it is made, and where it comes to more than ten times the input (or 1 MiB, if
//! that is more) the run stops, and [`super::Menu::incomplete`] says so. Menus as they are written by
//! `grub-mkconfig` take less than eight times their size; no real one comes near: it would have to be made
//! of entries of fewer than a hundred bytes each, by the thousand.

use core::fmt;

/// Why a menu is not the whole of what GRUB would show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Incomplete {
    /// The script, or an entry's body, does not come to an end in good time.
    Endless,
    /// The menu would take more than ten times the memory of what it is made of.
    TooLarge,
}

impl fmt::Display for Incomplete {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Endless => "the script does not come to an end",
            Self::TooLarge => "the menu takes more than ten times the memory of its script",
        })
    }
}

impl core::error::Error for Incomplete {}

/// What is left for small scripts.
const LEAST: usize = 1 << 20;

/// Memory in use, as far as it is counted, and how much there may be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    held: usize,
    most: usize,
}

impl Room {
    /// For a run on so many bytes of input, of which `taken` bytes of memory are in use already.
    pub(super) fn new(input: usize, taken: usize) -> Self {
        Self {
            held: taken,
            // The rest is for what is not counted.
            most: (input / 2 * 19).max(LEAST),
        }
    }

    /// Counts memory; false if there is not so much. It counts as taken either way.
    pub(super) fn take(&mut self, bytes: usize) -> bool {
        self.held = self.held.saturating_add(bytes);
        self.held <= self.most
    }

    pub(super) fn give_back(&mut self, bytes: usize) {
        self.held = self.held.saturating_sub(bytes);
    }

    pub(super) fn left(&self) -> usize {
        self.most.saturating_sub(self.held)
    }
}

/// About what a list of texts takes.
pub(super) fn texts(texts: &[alloc::vec::Vec<u8>]) -> usize {
    let each = texts.iter().map(|text| size_of_val(text) + text.capacity());
    each.sum()
}
