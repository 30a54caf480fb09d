//! A file on the node.

use super::{Invalid, checked_text};
use crate::escape::quote;

checked_text! {
    /// An absolute path without `.` and `..`: letters, digits and `/._+@-`.
    FilePath,
    check,
    "An absolute path without `.` and `..`: letters, digits and `/._+@-`.",
    "^(/[A-Za-z0-9_+@-][A-Za-z0-9._+@-]*|/[.][A-Za-z0-9_+@-][A-Za-z0-9._+@-]*)+$"
}

const MAX: usize = 255;

fn check(text: &str) -> Result<(), Invalid> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._+@-".contains(c);
    let name = |name: &str| {
        !name.is_empty() && !name.starts_with("..") && name != "." && name.chars().all(allowed)
    };
    let good = text
        .strip_prefix('/')
        .is_some_and(|rest| rest.split('/').all(name));
    if good && text.len() <= MAX {
        return Ok(());
    }
    Err(
        Invalid::new(format!("{} is not an absolute path", quote(text))).help(
            "write it as in \"/etc/gdr-agent/stop\": letters, digits and ._+@- between the slashes",
        ),
    )
}
