//! Constructs that are not complete yet.

use alloc::vec::Vec;

use super::ast::Slice;

/// A construct that is not complete yet.
pub(super) enum Open {
    Top,
    Block {
        words: Slice,
        new_line: bool,
        text_start: u32,
    },
    Function {
        name: Slice,
        new_line: bool,
    },
    IfCondition {
        new_line: bool,
        done: Vec<(Slice, Slice)>,
    },
    IfBody {
        new_line: bool,
        done: Vec<(Slice, Slice)>,
        condition: Slice,
    },
    Else {
        new_line: bool,
        done: Vec<(Slice, Slice)>,
    },
    For {
        new_line: bool,
        name: Slice,
        words: Slice,
    },
    WhileCondition {
        new_line: bool,
        until: bool,
    },
    WhileBody {
        new_line: bool,
        until: bool,
        condition: Slice,
    },
}

pub(super) struct Frame {
    pub(super) open: Open,
    pub(super) items: Vec<u32>,
    /// Places taken by what encloses this list.
    pub(super) places: usize,
    /// A command is complete, a delimiter has to follow before the next.
    pub(super) complete: bool,
    pub(super) delimited: bool,
    pub(super) new_line: bool,
}

impl Frame {
    pub(super) fn new(open: Open, places: usize) -> Self {
        Self {
            open,
            items: Vec::new(),
            places,
            complete: false,
            delimited: false,
            new_line: false,
        }
    }

    /// Places taken before the next command of this list starts.
    pub(super) fn next_places(&self) -> usize {
        match self.open {
            Open::Top => self.places,
            _ if self.items.is_empty() && !self.complete => self.places + 1,
            _ => self.places + 2,
        }
    }
}
