//! Constructs that are not complete yet.

/// A construct that is not complete yet. The numbers are those of nodes whose ends are still to be told:
/// the construct's own and its clause's.
#[derive(Clone, Copy)]
pub(super) enum Open {
    Top,
    Block { node: u32 },
    Function { node: u32 },
    IfCondition { node: u32, clause: u32 },
    IfBody { node: u32, clause: u32 },
    Else { node: u32, clause: u32 },
    For { node: u32 },
    WhileCondition { node: u32, clause: u32 },
    WhileBody { node: u32 },
}

pub(super) struct Frame {
    pub(super) open: Open,
    /// Places taken by what encloses this list.
    pub(super) places: usize,
    /// Nothing is in the list yet.
    pub(super) empty: bool,
    /// A command is complete, a delimiter has to follow before the next.
    pub(super) complete: bool,
    pub(super) delimited: bool,
    pub(super) new_line: bool,
}

impl Frame {
    pub(super) fn new(open: Open, places: usize) -> Self {
        Self {
            open,
            places,
            empty: true,
            complete: false,
            delimited: false,
            new_line: false,
        }
    }

    /// Places taken before the next command of this list starts.
    pub(super) fn next_places(&self) -> usize {
        match self.open {
            Open::Top => self.places,
            _ if self.empty => self.places + 1,
            _ => self.places + 2,
        }
    }

    /// A command of this list is complete.
    pub(super) fn completed(&mut self) {
        self.empty = false;
        self.complete = true;
        self.delimited = false;
        self.new_line = false;
    }
}
