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

/// Columns that text is broken at: lines of evidence are longer than any terminal.
const WIDTH: usize = 96;

/// Writes words after a start, broken at blanks, what follows indented below the first; a word that is too long stays
/// whole, to be copied.
pub(crate) fn wrap(out: &mut String, start: &str, words: &str) {
    let indent = start.chars().count();
    out.push_str(start);
    let mut used = indent;
    let mut first = true;
    for word in words.split(' ') {
        let length = word.chars().count();
        if !first && used + 1 + length > WIDTH {
            out.push('\n');
            out.push_str(&" ".repeat(indent));
            used = indent;
            first = true;
        }
        if !first {
            out.push(' ');
            used += 1;
        }
        out.push_str(word);
        used += length;
        first = false;
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_at_blanks_and_words_stay_whole() {
        let mut text = String::new();
        let long = "x".repeat(130);
        let words = format!("{} {long} end", "word ".repeat(30).trim());
        wrap(&mut text, "    do: ", &words);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("    do: word") && lines[0].len() <= WIDTH);
        assert!(lines[1].starts_with("        word"));
        assert!(lines.iter().any(|line| line.trim() == long));
        assert_eq!(lines.last().unwrap().trim(), "end");
    }

    #[test]
    fn colours_go_and_text_stays() {
        assert_eq!(clean(b"\x1b[1;32m #bytes\x1b[0m x\r"), " #bytes x");
        assert_eq!(clean(b"\x1b[1;3"), "");
        assert_eq!(shown(" a\x07 "), "a\\u{7}");
    }
}
