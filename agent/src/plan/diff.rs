//! Unified diffs of what would be written.

use std::fmt::Write as _;
use std::ops::Range;

use similar::algorithms::{Capture, Compact, Replace, myers};
use similar::{DiffOp, DiffTag};

/// Lines around a change that are shown.
const CONTEXT: usize = 2;

/// The unified diff from `old` to `new`, empty when they are the same; bytes that are not UTF-8
/// and control characters are shown escaped, so that a diff can always be printed.
#[must_use]
pub fn unified(path: &str, old: Option<&[u8]>, new: Option<&[u8]>) -> String {
    let text = |bytes: Option<&[u8]>| bytes.map(printable).unwrap_or_default();
    let (before, after) = (text(old), text(new));
    let from = old.map_or("/dev/null".to_owned(), |_| format!("a{path}"));
    let to = new.map_or("/dev/null".to_owned(), |_| format!("b{path}"));
    let before: Vec<&str> = before.split_inclusive('\n').collect();
    let after: Vec<&str> = after.split_inclusive('\n').collect();
    let hunks = hunks(&before, &after);
    if hunks.is_empty() {
        return String::new();
    }
    let mut diff = format!("--- {from}\n+++ {to}\n");
    for hunk in &hunks {
        let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else {
            continue;
        };
        let old = first.old_range().start..last.old_range().end;
        let new = first.new_range().start..last.new_range().end;
        let _ = writeln!(diff, "@@ -{} +{} @@", range(&old), range(&new));
        for op in hunk {
            if op.tag() == DiffTag::Equal {
                lines(&mut diff, ' ', &before, op.old_range());
                continue;
            }
            lines(&mut diff, '-', &before, op.old_range());
            lines(&mut diff, '+', &after, op.new_range());
        }
    }
    diff
}

/// The changes with the lines around them. `similar`'s own text diff would bring every algorithm it has,
/// which is a quarter of a megabyte.
fn hunks(before: &[&str], after: &[&str]) -> Vec<Vec<DiffOp>> {
    let mut hook = Compact::new(Replace::new(Capture::new()), before, after);
    // Its error type has no values: capturing cannot fail.
    let Ok(()) = myers::diff(&mut hook, before, 0..before.len(), after, 0..after.len());
    let ops = hook.into_inner().into_inner().into_ops();
    if ops.iter().all(|op| op.tag() == DiffTag::Equal) {
        return Vec::new();
    }
    similar::group_diff_ops(ops, CONTEXT)
}

/// Begin and length, as `diff -u` writes them: no length where it is 1, the line before where it is 0.
fn range(lines: &Range<usize>) -> String {
    match lines.len() {
        1 => format!("{}", lines.start + 1),
        0 => format!("{},0", lines.start),
        length => format!("{},{length}", lines.start + 1),
    }
}

fn lines(diff: &mut String, sign: char, text: &[&str], range: Range<usize>) {
    for line in text.get(range).unwrap_or_default() {
        let _ = write!(diff, "{sign}{line}");
        if !line.ends_with('\n') {
            diff.push_str("\n\\ No newline at end of file\n");
        }
    }
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

    /// Expected: `diff -U2` of GNU diffutils.
    #[test]
    fn hunks_are_those_of_diff() {
        let diff = unified(
            "/f",
            Some(b"1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n"),
            Some(b"0\n1\n2\n3\n4\n5\n6\n7\nacht\n9\n10\n11\n12"),
        );
        assert_eq!(
            diff,
            "--- a/f\n+++ b/f\n@@ -1,2 +1,3 @@\n+0\n 1\n 2\n@@ -6,7 +7,7 @@\n 6\n 7\n-8\n+acht\n 9\n 10\n 11\n\
             -12\n+12\n\\ No newline at end of file\n"
        );
        assert_eq!(
            unified("/f", Some(b"a\nb\n"), None),
            "--- a/f\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n"
        );
    }
}
