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

/// About what a list of texts takes.
pub(super) fn texts(texts: &[alloc::vec::Vec<u8>]) -> usize {
    let each = texts.iter().map(|text| size_of_val(text) + text.capacity());
    each.sum()
}
