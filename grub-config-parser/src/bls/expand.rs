//! Variables in values: GRUB's own substitution, which is not that of its scripts.

use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

/// A piece of a value that variables have been put into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    /// How many bytes of the result it makes.
    pub(crate) bytes: usize,
    /// The variable, or `None` for text of the value.
    pub(crate) variable: Option<String>,
}

/// Puts variables in, as `blscfg` does: behind each value comes a blank, and a blank that follows the
/// name goes. A piece of one byte is lost, and `None` is what GRUB makes of a value whose first
/// pieces are unset variables without anything between them.
pub fn expand<'v>(value: &str, variable: impl Fn(&str) -> Option<&'v str>) -> Option<String> {
    expand_parts(value, variable).map(|(text, _)| text)
}

/// [`expand`], and what each byte of the result comes from.
pub(crate) fn expand_parts<'v>(
    value: &str,
    variable: impl Fn(&str) -> Option<&'v str>,
) -> Option<(String, Vec<Part>)> {
    let bytes = value.as_bytes();
    let mut out: Option<Vec<u8>> = None;
    let mut parts = Vec::new();
    let mut append = |out: &mut Option<Vec<u8>>, is_variable: bool, piece: Range<usize>| {
        let piece = bytes.get(piece).unwrap_or(&[]);
        let before = out.as_ref().map_or(0, Vec::len);
        let mut name = None;
        if !is_variable {
            out.get_or_insert_default().extend_from_slice(piece);
        } else if let Ok(own) = core::str::from_utf8(piece)
            && let Some(text) = variable(own)
        {
            let out = out.get_or_insert_default();
            out.extend_from_slice(text.as_bytes());
            out.push(b' ');
            name = Some(String::from(own));
        }
        parts.push(Part {
            bytes: out.as_ref().map_or(0, Vec::len) - before,
            variable: name,
        });
    };
    // `end` is the last byte that was looked at, not the one behind it.
    let (mut start, mut end) = (0, 0);
    let mut in_variable = false;
    for (at, byte) in bytes.iter().enumerate() {
        if *byte == b'$' {
            if start != end {
                append(&mut out, in_variable, start..end + 1);
                out.as_ref()?;
            }
            in_variable = true;
            start = at + 1;
        } else if in_variable && !byte.is_ascii_alphanumeric() && *byte != b'_' {
            append(&mut out, true, start..end + 1);
            in_variable = false;
            start = at + usize::from(*byte == b' ');
        }
        end = at;
    }
    if start != end {
        append(&mut out, in_variable, start..end + 1);
    }
    out.map(|out| (String::from_utf8_lossy(&out).into_owned(), parts))
}
