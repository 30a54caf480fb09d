//! Untrusted text made safe to print on a terminal.

/// How much of a value is repeated in a message, in characters.
const SHOWN: usize = 60;

/// The text in backticks, shortened, with control and invisible characters spelled out.
pub(crate) fn quote(text: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    format!("`{}`", spell_out(&shown))
}

/// One character for a message: itself in backticks, or its name.
pub(crate) fn character(c: char) -> String {
    match c {
        ' ' => "a space".to_owned(),
        '\t' => "a tab".to_owned(),
        '\n' | '\r' => "a line break".to_owned(),
        '`' => "a backtick".to_owned(),
        c if is_hidden(c) => format!("the control character U+{:04X}", u32::from(c)),
        c => format!("`{c}`"),
    }
}

/// Control and invisible characters as `\u{1b}`, everything else as it is.
pub(crate) fn spell_out(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_hidden(c) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out
}

/// Each control or invisible character as one visible symbol, so that columns stay; tabs are kept.
pub(crate) fn one_for_one(text: &str) -> String {
    text.chars()
        .map(|c| if c == '\t' { c } else { symbol(c) })
        .collect()
}

fn symbol(c: char) -> char {
    match c {
        '\u{0}'..='\u{1f}' => char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{fffd}'),
        '\u{7f}' => '\u{2421}',
        c if is_hidden(c) => '\u{fffd}',
        c => c,
    }
}

/// C0 and C1 controls, and the characters that reorder or hide text (Unicode TR 36).
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}
