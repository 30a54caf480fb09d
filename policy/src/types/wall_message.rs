//! What people on a node read before it reboots.

use super::{Invalid, checked_text};
use crate::escape::quote;

checked_text! {
    /// A line for terminals: printable ASCII, no blank at either end, at most 200 characters.
    WallMessage,
    check,
    "One line of printable ASCII, at most 200 characters, no blank at either end.",
    "^[!-~]([ -~]{0,198}[!-~])?$"
}

const MAX: usize = 200;

fn check(text: &str) -> Result<(), Invalid> {
    let printable = text.bytes().all(|b| (b' '..=b'~').contains(&b));
    if !text.is_empty() && text.len() <= MAX && printable && text.trim() == text {
        return Ok(());
    }
    // Terminals of every age and language get it, so that control characters and all that is not ASCII stay out.
    Err(Invalid::new(format!("{} is not a message for terminals", quote(text)))
        .help("write one line of plain ASCII, at most 200 characters, as in \"maintenance, ask ops@example.com\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_line_that_no_terminal_acts_upon() {
        for text in [
            "x",
            "maintenance; ask \"ops\" <o@x> $(no shell) `here` \\n",
            &"x".repeat(200),
        ] {
            assert_eq!(text.parse::<WallMessage>().unwrap().as_str(), text);
        }
        for text in [
            "",
            " ",
            " x",
            "x ",
            "a\nb",
            "a\tb",
            "\u{1b}[2J",
            "a\u{7f}",
            "\u{fc}ber",
            "a\u{202e}b",
            &"x".repeat(201),
        ] {
            assert!(text.parse::<WallMessage>().is_err(), "{text:?}");
        }
    }
}
