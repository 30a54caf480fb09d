//! Text in a picture: what may be in it, and how wide it is.

/// Width of a monospaced character in tenths of its size, which the fonts in the style sheet have;
/// `textLength` holds the ones that do not to it.
const ADVANCE: i32 = 6;

/// Width of a label in pixels, rounded up.
pub(super) fn width(text: &str, size: i32) -> i32 {
    let characters = i32::try_from(text.chars().count()).unwrap_or(i32::MAX / 1000);
    characters.saturating_mul(size * ADVANCE).saturating_add(9) / 10
}

/// Width of words in a proportional font, reckoned generously: wide ones take half an em on average.
pub(super) fn words_width(text: &str, size: i32) -> i32 {
    width(text, size) * 11 / 12
}

/// Text from the machine as printable ASCII. Everything else is written out as an escape, so that
/// no name can turn the direction of writing, break the file, or look like another one.
pub(crate) fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            ' '..='~' => out.push(c),
            c => out.extend(c.escape_default()),
        }
    }
    out
}

/// At most `limit` characters of it.
pub(super) fn clipped(text: &str, limit: usize) -> String {
    let text = printable(text);
    // ASCII: bytes are characters.
    match text.get(..limit.saturating_sub(1)) {
        Some(start) if text.len() > limit => format!("{start}\u{2026}"),
        _ => text,
    }
}

/// Text as XML and HTML take it, in content and in quoted attributes.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // Not allowed in XML, in no form.
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => {
                out.extend(c.escape_default());
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_is_harmless() {
        assert_eq!(printable("mlx5_core"), "mlx5_core");
        assert_eq!(printable("a\u{202e}b\n"), "a\\u{202e}b\\n");
        assert_eq!(
            escaped("<b a='1'>&\"\u{1b}"),
            "&lt;b a=&#39;1&#39;&gt;&amp;&quot;\\u{1b}"
        );
    }

    #[test]
    fn long_text_is_cut_where_it_says_so() {
        assert_eq!(clipped("nvidia", 6), "nvidia");
        assert_eq!(clipped("nvidia_drm", 6), "nvidi\u{2026}");
        assert_eq!(width("nvidi\u{2026}", 10), 36);
        assert_eq!(width("ab", 11), 14);
    }
}
