//! The syntax tree, in one flat table: nothing here recurses, however deep a script nests.
//!
//! A node stands before what is in it, and a construct's node tells where the first one behind it is.
//! Words are not kept: a node has the place where its words begin, and they are read again from the
//! source where they are needed. So a command takes one node, however many words it has.

use alloc::vec::Vec;
use core::ops::Range;

use super::lex::{Lexer, TokenKind};
use super::table::Table;
use super::word::split_word;

/// A range of the source or of the nodes.
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

/// The block behind a command.
#[derive(Debug, Clone, Copy)]
pub(super) struct Block {
    pub(super) list: Slice,
    /// The text between the braces.
    pub(super) span: Slice,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// `at`: its first word.
    Command,
    /// The same with a block: a `Text` follows, then the block's commands.
    Block,
    /// `at` to `link` are a place in the source.
    Text,
    /// Clauses follow: a condition and a body, again and again, and an `Else` may be the last.
    If,
    /// A list, up to `link`.
    Clause,
    Else,
    /// `at`: the variable; then the body.
    For,
    /// A clause follows, the condition; then the body.
    While,
    Until,
    /// `at`: the name; then the body.
    Function,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Node {
    pub(super) at: u32,
    /// The first node that is not in this one. A plain command has nothing in it and no link.
    pub(super) link: u32,
    pub(super) kind: Kind,
    /// True if a newline stands between the previous command and this one.
    pub(super) new_line: bool,
}

/// What a tree takes that is empty.
const TREE: usize = 256;

#[derive(Debug, Default)]
pub(super) struct Ast {
    pub(super) source: Vec<u8>,
    pub(super) nodes: Table<Node>,
}

impl Ast {
    pub(super) fn text(&self, slice: Slice) -> &[u8] {
        self.source.get(slice.range()).unwrap_or(&[])
    }

    pub(super) fn node(&self, index: u32) -> Option<&Node> {
        self.nodes.get(index as usize)
    }

    /// The whole script.
    pub(super) fn root(&self) -> Slice {
        Slice {
            start: 0,
            end: offset(self.nodes.len()),
        }
    }

    /// The node that follows this one in its list.
    pub(super) fn after(&self, index: u32) -> u32 {
        match self.node(index) {
            // Always forward, so that every walk ends.
            Some(node) if node.kind != Kind::Command => node.link.max(index.saturating_add(1)),
            _ => index.saturating_add(1),
        }
    }

    /// The nodes from `start` up to the end of the construct at `index`.
    pub(super) fn inside(&self, index: u32, start: u32) -> Slice {
        Slice {
            start,
            end: self.after(index).max(start),
        }
    }

    /// The list of a clause.
    pub(super) fn clause(&self, index: u32) -> Slice {
        self.inside(index, index.saturating_add(1))
    }

    /// The block of the command at `index`.
    pub(super) fn block(&self, index: u32) -> Option<Block> {
        self.node(index).filter(|node| node.kind == Kind::Block)?;
        let text = self.node(index + 1)?;
        Some(Block {
            list: self.inside(index, index + 2),
            span: Slice {
                start: text.at,
                end: text.link,
            },
        })
    }

    /// The words from a place on, up to something that is none.
    pub(super) fn words(&self, at: u32) -> impl Iterator<Item = Slice> {
        let mut lexer = Lexer::new(&self.source);
        lexer.seek(at as usize);
        core::iter::from_fn(move || {
            let token = lexer.next_solid()?;
            matches!(token.kind, TokenKind::Name | TokenKind::Word).then(|| Slice {
                start: offset(token.span.start),
                end: offset(token.span.end),
            })
        })
    }

    /// The variable of a `for` and where its words begin, behind the `in`.
    pub(super) fn for_head(&self, at: u32) -> (Slice, u32) {
        let mut words = self.words(at);
        let name = words.next().unwrap_or_default();
        (name, words.next().map_or(u32::MAX, |word| word.end))
    }

    /// Takes a word apart.
    pub(super) fn parts(&self, word: Slice, take: impl FnMut(Part)) {
        // The parser has refused what cannot be taken apart.
        let _ = split_word(&self.source, word.range(), take);
    }

    /// The only part of a word; `None` where it has none or several.
    pub(super) fn only_part(&self, word: Slice) -> Option<Part> {
        let (mut first, mut count) = (None, 0);
        self.parts(word, |part| {
            first.get_or_insert(part);
            count += 1;
        });
        first.filter(|_| count == 1)
    }

    /// About how many bytes the tree takes.
    pub(super) fn bytes(&self) -> usize {
        TREE + self.source.len() + self.nodes.bytes()
    }
}

pub(super) fn offset(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
