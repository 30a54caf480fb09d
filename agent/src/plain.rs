//! One line of a program's output, without what terminals are told in it.

use nccl_log_parser::{harmless, is_command};

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

/// Text of several lines with our own colours, and nothing else that a terminal takes for a command: whatever a file, a log or
/// a name has brought along is written out.
pub(crate) fn tame(text: &str) -> String {
    let mut tame = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let colour = (c == '\u{1b}').then(|| colour(rest)).flatten();
        let length = colour.unwrap_or(c.len_utf8());
        let (piece, more) = rest.split_at(length);
        if colour.is_some() || matches!(c, '\n' | '\t') {
            tame.push_str(piece);
        } else if is_command(c) {
            tame.extend(c.escape_default());
        } else {
            tame.push(c);
        }
        rest = more;
    }
    tame
}

/// The length of a colour's sequence (`ESC [ 1 ; 31 m`) at the start of a text. Blinking, hiding and turning round are none.
fn colour(text: &str) -> Option<usize> {
    let numbers = text.strip_prefix("\u{1b}[")?;
    let end = numbers.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    let (numbers, rest) = numbers.split_at_checked(end)?;
    let fine =
        |number: &str| number.is_empty() || number.parse().is_ok_and(|n: u8| !(5..30).contains(&n));
    // one of 256 colours, or of all
    let of_many = numbers.starts_with("38;") || numbers.starts_with("48;");
    let short = end < 20 && (of_many || numbers.split(';').all(fine));
    (rest.starts_with('m') && short).then_some(2 + end + 1)
}

/// A count with what is counted: `1 port`, `2 ports`, `0 processes`. The last word is made plural.
pub(crate) fn counted(count: usize, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        _ if what.ends_with('s') || what.ends_with('x') || what.ends_with("ch") => {
            format!("{count} {what}es")
        }
        _ => match what.strip_suffix("ry") {
            Some(stem) => format!("{count} {stem}ries"),
            None => format!("{count} {what}s"),
        },
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
    fn colours_stay_and_commands_are_written_out() {
        for text in [
            "a\tb\nc",
            "\u{1b}[1m\u{1b}[38;5;9mred\u{1b}[0m \u{1b}[m",
            "Übermaß",
        ] {
            assert_eq!(tame(text), text);
        }
        for (text, shown) in [
            ("\u{1b}[2J", "\\u{1b}[2J"),
            ("\u{1b}]0;title\u{7}", "\\u{1b}]0;title\\u{7}"),
            // hidden, blinking, turned round; a sequence without an end
            ("\u{1b}[8m", "\\u{1b}[8m"),
            ("\u{1b}[31;5m", "\\u{1b}[31;5m"),
            ("\u{1b}[31", "\\u{1b}[31"),
            ("\u{1b}", "\\u{1b}"),
            ("\r\u{8}\u{9b}2J", "\\r\\u{8}\\u{9b}2J"),
            ("a\u{202e}b", "a\\u{202e}b"),
        ] {
            assert_eq!(tame(text), shown, "{text:?}");
        }
    }

    #[test]
    fn one_is_not_many() {
        let said = |count| ["port", "process", "entry", "box", "path"].map(|w| counted(count, w));
        assert_eq!(
            said(0).join(" "),
            "0 ports 0 processes 0 entries 0 boxes 0 paths"
        );
        assert_eq!(said(1).join(" "), "1 port 1 process 1 entry 1 box 1 path");
        assert_eq!(
            said(2).join(" "),
            "2 ports 2 processes 2 entries 2 boxes 2 paths"
        );
    }

    #[test]
    fn colours_go_and_text_stays() {
        assert_eq!(clean(b"\x1b[1;32m #bytes\x1b[0m x\r"), " #bytes x");
        assert_eq!(clean(b"\x1b[1;3"), "");
        assert_eq!(shown(" a\x07 "), "a\\u{7}");
    }
}
