//! Unified diffs of what would be written.

/// The unified diff from `old` to `new`, empty when they are the same; bytes that are not UTF-8
/// and control characters are shown escaped, so that a diff can always be printed.
#[must_use]
pub fn unified(path: &str, old: Option<&[u8]>, new: Option<&[u8]>) -> String {
    let text = |bytes: Option<&[u8]>| bytes.map(printable).unwrap_or_default();
    let (before, after) = (text(old), text(new));
    let from = old.map_or("/dev/null".to_owned(), |_| format!("a{path}"));
    let to = new.map_or("/dev/null".to_owned(), |_| format!("b{path}"));
    similar::TextDiff::from_lines(before.as_str(), after.as_str())
        .unified_diff()
        .context_radius(2)
        .header(&from, &to)
        .to_string()
}

/// Text that is safe on a terminal.
#[must_use]
pub(crate) fn printable(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.chars()
        .map(|c| match c {
            '\n' | '\t' => c.to_string(),
            c if c.is_control() => c.escape_default().to_string(),
            c => c.to_string(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_a_new_file_and_hides_escapes() {
        let diff = unified("/etc/x", None, Some(b"a\x1b[31mb\n"));
        assert_eq!(
            diff,
            "--- /dev/null\n+++ b/etc/x\n@@ -0,0 +1 @@\n+a\\u{1b}[31mb\n"
        );
        assert_eq!(unified("/etc/x", Some(b"same\n"), Some(b"same\n")), "");
    }
}
