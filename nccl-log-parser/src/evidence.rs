//! A line of the log as it may be shown to a person: short, and unable to command the terminal.

use crate::bytes::{first, last};

/// Characters that are shown of a line.
const SHOWN: usize = 220;
/// Bytes that are kept before the place that matters.
const BEFORE: usize = 80;

/// Where something was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// The line, counted from 1.
    pub line: u64,
    /// Its text: shortened, control characters as escapes.
    pub text: String,
}

impl Evidence {
    /// The line around byte `at`.
    pub(crate) fn of(line: &[u8], at: usize, number: u64) -> Self {
        let (before, after) = line.split_at_checked(at).unwrap_or((line, b""));
        let kept = last(before, BEFORE);
        let mut text = String::new();
        if kept.len() < before.len() {
            text.push_str("...");
        }
        let rest = first(after, SHOWN);
        let mut bytes = kept.to_vec();
        bytes.extend_from_slice(rest);
        text.push_str(&harmless(&bytes));
        if rest.len() < after.len() || text.chars().count() > SHOWN {
            text = text.chars().take(SHOWN).collect();
            text.push_str("...");
        }
        Self { line: number, text }
    }
}

/// Text that no terminal takes for a command: control characters and direction marks become escapes.
#[must_use]
pub fn harmless(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut shown = String::with_capacity(text.len());
    for c in text.trim().chars() {
        if is_command(c) {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Whether a terminal, or the eye, takes it for more than a sign: control characters, those that turn the direction of text
/// round, and other ends of lines.
#[must_use]
pub fn is_command(c: char) -> bool {
    let turns =
        matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || turns || matches!(c, '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_and_long_lines() {
        let evidence = Evidence::of(b"\x1b[2J\x1b]0;x\x07 NCCL \xff\xe2\x80\xae", 0, 7);
        assert_eq!(
            evidence.text,
            "\\u{1b}[2J\\u{1b}]0;x\\u{7} NCCL \u{fffd}\\u{202e}"
        );
        let mut long = vec![b'a'; 1000];
        long.extend_from_slice(b"HERE");
        long.extend_from_slice(&[b'b'; 1000]);
        let text = Evidence::of(&long, 1000, 1).text;
        assert!(text.starts_with("...aaa") && text.ends_with("bbb..."));
        assert!(text.contains("HERE") && text.len() < 240);
    }
}
