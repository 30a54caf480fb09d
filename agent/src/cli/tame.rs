//! Text on its way to a terminal: file names and values of somebody else's root are in it.

use std::borrow::Cow;

/// The text with its own styles, and with everything else that would command a terminal or turn the order of letters
/// as a visible escape. Lines and tabs stay.
pub(super) fn tame(text: &str) -> Cow<'_, str> {
    let plain = |c: char| !commands(c) && c != '\u{1b}';
    if text.chars().all(plain) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if let Some(length) = style(rest) {
            let (own, behind) = rest.split_at(length);
            out.push_str(own);
            rest = behind;
            continue;
        }
        if plain(c) {
            out.push(c);
        } else {
            out.extend(c.escape_default());
        }
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
    }
    Cow::Owned(out)
}

/// Control characters but line feed, tab and escape, and what turns or hides text (Unicode TR 36).
fn commands(c: char) -> bool {
    (c.is_control() && !matches!(c, '\n' | '\t' | '\u{1b}'))
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The length of a style at the start (ECMA-48, 8.3.117): bold, dim, a colour of letters, or their end. Nothing that
/// hides text is among them.
fn style(text: &str) -> Option<usize> {
    let parameters = text.strip_prefix("\u{1b}[")?;
    let end = parameters.find('m')?;
    let known = |one: &str| {
        let number: u8 = one.parse().unwrap_or(u8::MAX);
        matches!(number, 0..=2 | 30..=37 | 90..=97)
    };
    let all = parameters.get(..end)?;
    (end <= 12 && all.split(';').all(known)).then_some(end + 3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::output::{paint, style as own};

    #[test]
    fn own_styles_stay_and_everything_else_is_shown() {
        for style in [own::BOLD, own::GOOD, own::BAD, own::WARN, own::DIM] {
            let text = format!("a {}\n\tb é\n", paint(style, "word"));
            assert_eq!(tame(&text), text);
        }
        for (hostile, shown) in [
            ("\u{1b}[2J", "\\u{1b}[2J"),
            ("\u{1b}[8mhidden", "\\u{1b}[8mhidden"),
            ("\u{1b}[37;47m", "\\u{1b}[37;47m"),
            ("\u{1b}]0;title\u{7}", "\\u{1b}]0;title\\u{7}"),
            ("\u{9b}31m", "\\u{9b}31m"),
            ("over\rwritten", "over\\rwritten"),
            ("\u{202e}turned", "\\u{202e}turned"),
            ("\u{1b}", "\\u{1b}"),
            ("\u{1b}[", "\\u{1b}["),
            ("\u{1b}[1;1;1;1;1;1;1;1;1m", "\\u{1b}[1;1;1;1;1;1;1;1;1m"),
        ] {
            assert_eq!(tame(hostile), shown);
        }
    }
}
