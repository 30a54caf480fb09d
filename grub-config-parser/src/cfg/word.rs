//! Words: taken apart as GRUB's lexer does, decoded, and quoted anew.

use alloc::string::String;
use alloc::vec::Vec;

use core::ops::Range;

use super::ast::{Part, Slice, offset};
use super::lex::{is_name_char, variable};
use super::parse::is_reserved;

fn slice(start: usize, end: usize) -> Slice {
    Slice {
        start: offset(start),
        end: offset(end),
    }
}

/// Takes a word apart. `None` if a `$` in double quotes starts no variable.
pub(super) fn split_word(
    source: &[u8],
    word: Range<usize>,
    mut take: impl FnMut(Part),
) -> Option<()> {
    let end = word.end;
    let mut at = word.start;
    while at < end {
        match *source.get(at)? {
            b'"' => at = split_double(source, at + 1, &mut take)?,
            b'\'' => {
                let close = find_quote(source, at + 1)?;
                take(Part::Single(slice(at + 1, close)));
                at = close + 1;
            }
            b'$' if source.get(at + 1) == Some(&b'"') => {
                let close = find_double(source, at + 2)?;
                take(Part::Translated(slice(at + 2, close)));
                at = close + 1;
            }
            b'$' => {
                let (name, next) = variable(source, at + 1)?;
                take(Part::Variable(slice(name.start, name.end)));
                at = next;
            }
            _ => {
                let start = at;
                at = plain_end(source, at, end);
                take(Part::Text(slice(start, at)));
            }
        }
    }
    Some(())
}

fn plain_end(source: &[u8], at: usize, end: usize) -> usize {
    let text = source.get(at..end).unwrap_or(&[]);
    let special = |byte: &u8| matches!(byte, b'"' | b'\'' | b'$' | b'\\');
    let mut length = text.iter().position(special).unwrap_or(text.len());
    while text.get(length) == Some(&b'\\') {
        length += 2;
        let rest = text.get(length..).unwrap_or(&[]);
        length += rest.iter().position(special).unwrap_or(rest.len());
    }
    (at + length).min(end)
}

fn find_quote(source: &[u8], start: usize) -> Option<usize> {
    source
        .get(start..)?
        .iter()
        .position(|byte| *byte == b'\'')
        .map(|at| start + at)
}

fn find_double(source: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match source.get(at)? {
            b'"' => return Some(at),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// Takes a double-quoted string apart and returns the place behind it.
fn split_double(source: &[u8], start: usize, take: &mut impl FnMut(Part)) -> Option<usize> {
    let mut from = start;
    let mut at = start;
    loop {
        match source.get(at)? {
            b'"' => {
                take(Part::Double(slice(from, at)));
                return Some(at + 1);
            }
            // Only these are escapes; any other backslash stands for itself and hides nothing.
            b'\\' if matches!(source.get(at + 1), Some(b'$' | b'\\' | b'"' | b'\n')) => at += 2,
            b'$' => {
                take(Part::Double(slice(from, at)));
                let (name, next) = variable(source, at + 1)?;
                take(Part::QuotedVariable(slice(name.start, name.end)));
                from = next;
                at = next;
            }
            _ => at += 1,
        }
    }
}

/// Unquoted text: a backslash stands for the character behind it, before a newline for nothing.
pub(super) fn decode_text(text: &[u8], out: &mut Vec<u8>) {
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => out.extend(bytes.next().filter(|byte| **byte != b'\n')),
            _ => out.push(*byte),
        }
    }
}

/// Text in double quotes.
pub(super) fn decode_double(text: &[u8], out: &mut Vec<u8>) {
    let mut bytes = text.iter().peekable();
    while let Some(byte) = bytes.next() {
        match (byte, bytes.peek()) {
            (b'\\', Some(b'\n')) => drop(bytes.next()),
            (b'\\', Some(next @ (b'$' | b'\\' | b'"'))) => {
                out.push(**next);
                bytes.next();
            }
            _ => out.push(*byte),
        }
    }
}

/// Quotes one word for a GRUB script, only where it needs it.
///
/// ```
/// use grub_config_parser::cfg::quote;
/// assert_eq!(quote("--fs-uuid"), "--fs-uuid");
/// assert_eq!(quote("it's $5"), r"'it'\''s $5'");
/// assert_eq!(quote("a\n#b"), "'a\n''#b'");
/// ```
pub fn quote(word: &str) -> String {
    let plain = |byte: u8| is_name_char(byte) || b"-./:=,@%+".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) && !is_reserved(word.as_bytes()) {
        return String::from(word);
    }
    // GRUB's reader drops a line that starts with `#`, also inside quotes.
    let word = word.replace('\'', "'\\''").replace("\n#", "\n''#");
    alloc::format!("'{word}'")
}
