//! One line of a program's output, without what terminals are told in it.

use crate::nccl_log::harmless;

/// Longer lines are of no interest here; they are cut, so that one costs no more than its length.
const LONGEST: usize = 4096;

/// The line as text: no colours, no carriage return.
pub(crate) fn clean(line: &[u8]) -> String {
    let line = line.get(..LONGEST).unwrap_or(line);
    let text = String::from_utf8_lossy(line);
    if !text.contains('\u{1b}') {
        return text.trim_end().to_owned();
    }
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\u{1b}' {
            plain.push(c);
        } else if chars.next_if_eq(&'[').is_some() {
            // a control sequence ends with a letter or one of a few signs (ECMA-48, 5.4)
            while chars
                .next_if(|c| matches!(c, '\u{20}'..='\u{3f}'))
                .is_some()
            {}
            chars.next();
        }
    }
    plain.trim_end().to_owned()
}

/// As it may be shown to a person: short, and unable to command the terminal.
pub(crate) fn shown(text: &str) -> String {
    let text = harmless(text.as_bytes());
    match text.char_indices().nth(200) {
        Some((at, _)) => format!("{}...", text.get(..at).unwrap_or_default()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_go_and_text_stays() {
        assert_eq!(clean(b"\x1b[1;32m #bytes\x1b[0m x\r"), " #bytes x");
        assert_eq!(clean(b"\x1b[1;3"), "");
        assert_eq!(shown(" a\x07 "), "a\\u{7}");
    }
}
