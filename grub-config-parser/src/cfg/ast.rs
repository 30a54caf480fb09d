//! The syntax tree, in flat tables: nothing here recurses, however deep a script nests.

use alloc::vec::Vec;
use core::ops::Range;

/// A range of one of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Slice {
    pub(super) start: u32,
    pub(super) end: u32,
}

impl Slice {
    pub(super) fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    pub(super) fn is_empty(self) -> bool {
        self.start >= self.end
    }
}

/// A piece of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Unquoted text, backslashes still in it.
    Text(Slice),
    /// Text in single quotes.
    Single(Slice),
    /// Text in double quotes, backslashes still in it.
    Double(Slice),
    /// `$"..."`, translated text.
    Translated(Slice),
    /// `$name` outside quotes: split at blanks.
    Variable(Slice),
    /// `$name` in double quotes.
    QuotedVariable(Slice),
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Word {
    pub(super) parts: Slice,
    pub(super) span: Slice,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Block {
    pub(super) list: Slice,
    /// The text between the braces.
    pub(super) span: Slice,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Command {
        words: Slice,
        block: Option<Block>,
    },
    /// `branches` holds pairs of lists: condition, body. `otherwise` is empty without `else`.
    If {
        branches: Slice,
        otherwise: Slice,
    },
    For {
        name: Slice,
        words: Slice,
        body: Slice,
    },
    While {
        condition: Slice,
        body: Slice,
        until: bool,
    },
    Function {
        name: Slice,
        body: Slice,
    },
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Node {
    pub(super) kind: Kind,
    /// True if a newline stands between the previous command and this one.
    pub(super) new_line: bool,
}

#[derive(Debug, Default)]
pub(super) struct Ast {
    pub(super) source: Vec<u8>,
    pub(super) nodes: Vec<Node>,
    /// Lists of node numbers.
    pub(super) lists: Vec<u32>,
    pub(super) words: Vec<Word>,
    pub(super) parts: Vec<Part>,
    /// Pairs of lists for `if`.
    pub(super) branches: Vec<(Slice, Slice)>,
    pub(super) root: Slice,
}

impl Ast {
    /// An empty tree with room for what a source of this size usually makes.
    pub(super) fn for_source(bytes: usize) -> Self {
        let words = bytes / 10;
        Self {
            nodes: Vec::with_capacity(words / 4),
            lists: Vec::with_capacity(words / 4),
            words: Vec::with_capacity(words),
            parts: Vec::with_capacity(words),
            ..Self::default()
        }
    }

    pub(super) fn text(&self, slice: Slice) -> &[u8] {
        self.source.get(slice.range()).unwrap_or(&[])
    }

    pub(super) fn list(&self, slice: Slice) -> &[u32] {
        self.lists.get(slice.range()).unwrap_or(&[])
    }

    pub(super) fn words(&self, slice: Slice) -> &[Word] {
        self.words.get(slice.range()).unwrap_or(&[])
    }

    pub(super) fn parts(&self, word: &Word) -> &[Part] {
        self.parts.get(word.parts.range()).unwrap_or(&[])
    }

    pub(super) fn node(&self, index: u32) -> Option<&Node> {
        self.nodes.get(index as usize)
    }
}
