//! Splitting by the kernel's rule, on bytes.

use alloc::vec::Vec;
use core::ops::Range;

/// One argument as `next_arg()` sees it. All parts are slices of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawArg<'a> {
    /// The text as written, quotes included.
    pub raw: &'a [u8],
    /// The name, without an opening quote, dashes as written.
    pub name: &'a [u8],
    /// What follows the first `=`, without the quotes around it; `None` without `=`.
    pub value: Option<&'a [u8]>,
}

/// The kernel's `isspace()`: its character table also counts byte 0xa0.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r' | 0xa0)
}

/// Splits a command line as the kernel does. Stops at a NUL, as C strings do. `--` and what follows
/// it are listed like everything else.
pub fn split_bytes(line: &[u8]) -> Vec<RawArg<'_>> {
    let end = line.iter().position(|b| *b == 0).unwrap_or(line.len());
    split_with(line.get(..end).unwrap_or(line), is_space)
}

pub(super) fn split_with(line: &[u8], is_space: fn(u8) -> bool) -> Vec<RawArg<'_>> {
    let mut args = Vec::new();
    let mut rest = skip(line, is_space);
    while !rest.is_empty() {
        let (arg, after) = next_arg(rest, is_space);
        args.push(arg);
        rest = skip(after, is_space);
    }
    args
}

/// The places of the arguments of a line, as [`super::CommandLine::parse`] splits it.
pub(crate) fn arg_ranges(line: &str) -> impl Iterator<Item = Range<usize>> {
    let space = |byte| matches!(byte, b' ' | b'\t'..=b'\r');
    let bytes = line.as_bytes();
    let mut rest = skip(bytes, space);
    core::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let start = bytes.len() - rest.len();
        let (arg, after) = next_arg(rest, space);
        rest = skip(after, space);
        Some(start..start + arg.raw.len())
    })
}

fn skip(bytes: &[u8], is_space: fn(u8) -> bool) -> &[u8] {
    let start = bytes
        .iter()
        .position(|b| !is_space(*b))
        .unwrap_or(bytes.len());
    bytes.get(start..).unwrap_or(&[])
}

/// Takes the first argument of `bytes`, which does not start with a space.
pub(super) fn next_arg(bytes: &[u8], is_space: fn(u8) -> bool) -> (RawArg<'_>, &[u8]) {
    let quoted = bytes.first() == Some(&b'"');
    let start = usize::from(quoted);
    let body = bytes.get(start..).unwrap_or(&[]);
    let mut in_quote = quoted;
    let mut equals = None;
    let mut end = body.len();
    for (i, byte) in body.iter().enumerate() {
        if is_space(*byte) && !in_quote {
            end = i;
            break;
        }
        // A `=` in the first place does not count: the kernel uses index 0 for "none seen".
        if *byte == b'=' && i > 0 && equals.is_none() {
            equals = Some(i);
        }
        if *byte == b'"' {
            in_quote = !in_quote;
        }
    }
    let raw = bytes.get(..start + end).unwrap_or(bytes);
    let after = bytes.get(start + end..).unwrap_or(&[]);
    let text = body.get(..end).unwrap_or(body);
    let (name, value) = parts(text, quoted, equals);
    (RawArg { raw, name, value }, after)
}

fn parts(text: &[u8], quoted: bool, equals: Option<usize>) -> (&[u8], Option<&[u8]>) {
    let closed = text.last() == Some(&b'"');
    let Some(equals) = equals else {
        let end = text.len() - usize::from(quoted && closed);
        return (text.get(..end).unwrap_or(text), None);
    };
    let name = text.get(..equals).unwrap_or(text);
    let opened = text.get(equals + 1) == Some(&b'"');
    let start = equals + 1 + usize::from(opened);
    let end = text.len() - usize::from((opened || quoted) && closed);
    (name, Some(text.get(start..end).unwrap_or(&[])))
}
