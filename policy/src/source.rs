//! The files of a policy, as text with lines and columns.

use std::ops::Range;

/// One file of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The path to show.
    pub name: String,
    /// The bytes of the file; anything, up to [`MAX_SIZE`] of it.
    pub text: Vec<u8>,
}

/// The largest file that is looked into, in bytes.
pub const MAX_SIZE: usize = 1024 * 1024;

/// Where something stands. Line and column from 1, the column and width in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) line: usize,
    pub(crate) column: usize,
    pub(crate) width: usize,
}

/// What keeps bytes from being text.
#[derive(Debug)]
pub(crate) struct NotText {
    pub(crate) position: Position,
    pub(crate) message: String,
    pub(crate) help: &'static str,
}

impl Source {
    /// The text, if it is text and not too much of it.
    pub(crate) fn decode(&self) -> Result<&str, NotText> {
        let bytes = &self.text;
        if bytes.len() > MAX_SIZE {
            return Err(NotText {
                position: Position {
                    line: 1,
                    column: 1,
                    width: 1,
                },
                message: format!(
                    "the file has {} bytes, the limit for a policy is {MAX_SIZE}",
                    bytes.len()
                ),
                help: "is this the file that you meant?",
            });
        }
        let nul = bytes.iter().position(|byte| *byte == 0);
        let utf8 = std::str::from_utf8(bytes);
        let bad = match (nul, &utf8) {
            (None, Ok(text)) => return Ok(text),
            (Some(nul), Ok(_)) => nul,
            (Some(nul), Err(error)) => nul.min(error.valid_up_to()),
            (None, Err(error)) => error.valid_up_to(),
        };
        let message = if nul == Some(bad) {
            "the file is binary: it has a NUL byte here"
        } else {
            "the file is not UTF-8 text: it has an invalid byte here"
        };
        let before = bytes.get(..bad).unwrap_or_default();
        Err(NotText {
            position: position(&String::from_utf8_lossy(before), before.len()..before.len()),
            message: message.to_owned(),
            help: "a policy is a TOML file in UTF-8",
        })
    }
}

/// The position of a span of bytes. A span over several lines counts to the end of the first.
pub(crate) fn position(text: &str, span: Range<usize>) -> Position {
    let start = floor(text, span.start);
    let end = floor(text, span.end).max(start);
    let (before, rest) = text.split_at(start);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let marked = rest.get(..end - start).unwrap_or_default();
    let marked = marked.lines().next().unwrap_or_default();
    Position {
        line: before.matches('\n').count() + 1,
        column: before.get(line_start..).unwrap_or_default().chars().count() + 1,
        width: marked.chars().count().max(1),
    }
}

/// The nearest character boundary at or below `index`.
fn floor(text: &str, index: usize) -> usize {
    let index = index.min(text.len());
    (0..=index)
        .rev()
        .find(|index| text.is_char_boundary(*index))
        .unwrap_or(0)
}

/// The bytes of the line that holds `index`, without its line break.
pub(crate) fn line_around(text: &str, index: usize) -> Range<usize> {
    let index = floor(text, index);
    let (before, after) = text.split_at(index);
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let end = after
        .find('\n')
        .map_or(text.len(), |newline| index + newline);
    start..end
}
