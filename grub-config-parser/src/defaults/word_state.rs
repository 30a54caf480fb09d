//! Where a word stands while it is read: dash's syntax stack, and the parts so far.

use alloc::vec::Vec;
use core::ops::Range;

use super::syntax::{Operator, Part};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Syntax {
    Base,
    Double,
    Single,
    Arithmetic,
}

/// One level of dash's syntax stack.
pub(super) struct Level {
    pub(super) syntax: Syntax,
    pub(super) inner_double: bool,
    pub(super) pushed: bool,
    pub(super) double: bool,
    pub(super) variables: u32,
    pub(super) double_variables: u32,
    pub(super) parens: u32,
}

impl Level {
    pub(super) fn new(syntax: Syntax) -> Self {
        Self {
            syntax,
            inner_double: false,
            pushed: false,
            double: matches!(syntax, Syntax::Double | Syntax::Arithmetic),
            variables: 0,
            double_variables: 0,
            parens: 0,
        }
    }
}

pub(super) enum Open {
    Parameter {
        name: Vec<u8>,
        operator: Operator,
        quoted: bool,
    },
    Arithmetic,
}

/// The parts of a word, and of the words inside it that are still open.
#[derive(Default)]
pub(super) struct Parts {
    pub(super) done: Vec<Part>,
    pub(super) open: Vec<(Open, usize, Vec<Part>)>,
}

impl Parts {
    /// How many there are at least.
    pub(super) fn count(&self) -> usize {
        self.done.len() + self.open.len()
    }

    /// True within a `${...}` that stands between double quotes.
    pub(super) fn in_double(&self) -> bool {
        self.open
            .iter()
            .any(|(open, ..)| matches!(open, Open::Parameter { quoted: true, .. }))
    }

    pub(super) fn push(&mut self, part: Part) {
        self.done.push(part);
    }

    pub(super) fn text(&mut self, byte: u8, span: Range<usize>, quoted: bool) {
        if let Some(Part::Text {
            text,
            span: last,
            quoted: q,
            exact: true,
        }) = self.done.last_mut()
            && *q == quoted
            && last.end == span.start
            && span.len() == 1
        {
            last.end = span.end;
            text.push(byte);
            return;
        }
        let exact = span.len() == 1;
        self.done.push(Part::Text {
            text: alloc::vec![byte],
            span,
            quoted,
            exact,
        });
    }

    pub(super) fn start(&mut self, open: Open, at: usize) {
        self.open.push((open, at, core::mem::take(&mut self.done)));
    }

    pub(super) fn close(&mut self, end: usize) {
        let Some((open, start, outer)) = self.open.pop() else {
            return;
        };
        let parts = core::mem::replace(&mut self.done, outer);
        let span = start..end;
        self.done.push(match open {
            Open::Parameter {
                name,
                operator,
                quoted,
            } => Part::Parameter {
                name,
                operator,
                word: parts,
                quoted,
                span,
            },
            Open::Arithmetic => Part::Arithmetic { parts },
        });
    }
}

pub(super) fn is_name_start(byte: Option<u8>) -> bool {
    byte.is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
}

pub(super) fn is_name(byte: Option<u8>) -> bool {
    byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

pub(super) fn is_digit(byte: Option<u8>) -> bool {
    byte.is_some_and(|byte| byte.is_ascii_digit())
}

pub(super) fn is_special(byte: Option<u8>) -> bool {
    byte.is_some_and(|byte| b"#?$!-*@0123456789".contains(&byte))
}

/// Notes that quotes opened or closed here, so that `""` is an empty word and not none.
pub(super) fn mark(parts: &mut Parts, at: usize) {
    parts.push(Part::Text {
        text: Vec::new(),
        span: at..at,
        quoted: true,
        exact: true,
    });
}
