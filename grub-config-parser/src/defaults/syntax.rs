//! The syntax tree of a shell file.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

/// What `${name<op>word}` does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    /// `$X`, `${X}`
    Normal,
    /// `-`; `colon` as in `:-`: empty counts as unset.
    Minus { colon: bool },
    /// `+`
    Plus { colon: bool },
    /// `=`
    Assign { colon: bool },
    /// `?`
    Question { colon: bool },
    /// `${#X}`, `#`, `##`, `%`, `%%`
    Other,
    /// What dash calls a bad substitution when it gets there.
    Bad,
}

#[derive(Debug, Clone)]
pub(super) enum Part {
    /// Text. With `exact` each byte stands on one byte of the source, else all of them on the whole span.
    Text {
        text: Vec<u8>,
        span: Range<usize>,
        quoted: bool,
        exact: bool,
    },
    Parameter {
        name: Vec<u8>,
        operator: Operator,
        word: Vec<Part>,
        quoted: bool,
        span: Range<usize>,
    },
    /// `$(...)` or backquotes.
    Command { quoted: bool },
    /// `$((...))`
    Arithmetic { parts: Vec<Part> },
}

impl Part {
    /// Where it ends in the source, closing quotes not counted; `None` where that is not kept.
    pub(super) fn end(&self) -> Option<usize> {
        match self {
            Self::Text { span, .. } | Self::Parameter { span, .. } => Some(span.end),
            Self::Command { .. } | Self::Arithmetic { .. } => None,
        }
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct Word {
    pub(super) parts: Vec<Part>,
    /// True if any quoting stands in it: such a word is never a keyword.
    pub(super) quoted: bool,
    /// It begins with `NAME+=`, and the shell is one that appends.
    pub(super) appends: bool,
}

impl Word {
    /// The word's text if it has no expansion.
    pub(super) fn literal(&self) -> Option<Vec<u8>> {
        let mut all = Vec::new();
        for part in &self.parts {
            let Part::Text { text, .. } = part else {
                return None;
            };
            all.extend_from_slice(text);
        }
        Some(all)
    }

    /// For `NAME=value`, unquoted up to the `=`: the name.
    pub(super) fn assigned_name(&self) -> Option<Vec<u8>> {
        let mut name: Vec<u8> = Vec::new();
        for part in &self.parts {
            let Part::Text {
                text,
                quoted: false,
                ..
            } = part
            else {
                return None;
            };
            for byte in text {
                match byte {
                    b'=' if !name.is_empty() => return Some(name),
                    b'+' if self.appends => {}
                    b'0'..=b'9' if name.is_empty() => return None,
                    b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' => name.push(*byte),
                    _ => return None,
                }
            }
        }
        None
    }

    /// True if the word begins, unquoted, with a name and this text.
    pub(super) fn names(&self, then: &[u8]) -> bool {
        let Some(Part::Text {
            text,
            quoted: false,
            ..
        }) = self.parts.first()
        else {
            return false;
        };
        let name = text
            .iter()
            .take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_')
            .count();
        let (name, rest) = text.split_at(name);
        super::parse::is_name(name) && rest.starts_with(then)
    }

    /// True if bash may make several words of this one for its braces.
    pub(super) fn braces(&self) -> bool {
        let has = |wanted: u8| {
            self.parts.iter().any(|part| {
                matches!(part, Part::Text { text, quoted: false, .. } if text.contains(&wanted))
            })
        };
        has(b'{') && has(b'}')
    }

    /// For `NAME=value`: the parts of the value.
    pub(super) fn assigned_value(&self) -> Vec<Part> {
        let mut parts = Vec::new();
        let mut found = false;
        for part in &self.parts {
            if found {
                parts.push(part.clone());
            } else if let Part::Text {
                text,
                span,
                quoted,
                exact,
            } = part
                && let Some(equals) = text.iter().position(|byte| *byte == b'=')
            {
                found = true;
                let text = text.get(equals + 1..).unwrap_or(&[]).to_vec();
                let start = if *exact {
                    span.start + equals + 1
                } else {
                    span.start
                };
                let span = start..span.end;
                parts.push(Part::Text {
                    text,
                    span,
                    quoted: *quoted,
                    exact: *exact,
                });
            }
        }
        parts
    }
}

/// A redirection's target, for what its expansion does.
pub(super) type Redirects = Vec<Word>;

#[derive(Debug, Clone)]
pub(super) struct Simple {
    pub(super) assignments: Vec<Word>,
    pub(super) words: Vec<Word>,
    pub(super) redirects: Redirects,
    pub(super) line: usize,
}

#[derive(Debug, Clone)]
pub(super) enum Command {
    Simple(Simple),
    Pipeline {
        commands: Vec<Command>,
        line: usize,
    },
    Not(Arc<Command>),
    /// A chain of `&&` (true) and `||` (false).
    Chain {
        first: Arc<Command>,
        rest: Vec<(bool, Command)>,
    },
    List(Vec<Command>),
    Subshell {
        body: Arc<Command>,
        redirects: Redirects,
        line: usize,
    },
    Background(Arc<Command>),
    If {
        branches: Vec<(Command, Command)>,
        otherwise: Option<Arc<Command>>,
    },
    While {
        condition: Arc<Command>,
        body: Arc<Command>,
        until: bool,
    },
    For {
        name: Vec<u8>,
        words: Option<Vec<Word>>,
        body: Arc<Command>,
    },
    Case {
        word: Word,
        arms: Vec<(Vec<Word>, Command)>,
    },
    Function {
        name: Vec<u8>,
        body: Arc<Command>,
        /// How many commands, words and pieces of words are in it.
        nodes: usize,
    },
    Redirected {
        command: Arc<Command>,
        redirects: Redirects,
    },
}
