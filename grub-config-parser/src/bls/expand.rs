//! Variables in values: GRUB's own substitution, which is not that of its scripts.

use alloc::string::String;
use alloc::vec::Vec;

/// Puts variables in, as `blscfg` does: behind each value comes a blank, and a blank that follows the
/// name goes. A piece of one byte is lost, and `None` is what GRUB makes of a value whose first
/// pieces are unset variables without anything between them.
pub fn expand<'v>(value: &str, variable: impl Fn(&str) -> Option<&'v str>) -> Option<String> {
    let bytes = value.as_bytes();
    let mut out: Option<Vec<u8>> = None;
    let append = |out: &mut Option<Vec<u8>>, is_variable: bool, start: usize, end: usize| {
        let piece = bytes.get(start..end + 1).unwrap_or(&[]);
        if !is_variable {
            out.get_or_insert_default().extend_from_slice(piece);
        } else if let Some(text) = core::str::from_utf8(piece).ok().and_then(&variable) {
            let out = out.get_or_insert_default();
            out.extend_from_slice(text.as_bytes());
            out.push(b' ');
        }
    };
    // `end` is the last byte that was looked at, not the one behind it.
    let (mut start, mut end) = (0, 0);
    let mut in_variable = false;
    for (at, byte) in bytes.iter().enumerate() {
        if *byte == b'$' {
            if start != end {
                append(&mut out, in_variable, start, end);
                out.as_ref()?;
            }
            in_variable = true;
            start = at + 1;
        } else if in_variable && !byte.is_ascii_alphanumeric() && *byte != b'_' {
            append(&mut out, true, start, end);
            in_variable = false;
            start = at + usize::from(*byte == b' ');
        }
        end = at;
    }
    if start != end {
        append(&mut out, in_variable, start, end);
    }
    out.map(|out| String::from_utf8_lossy(&out).into_owned())
}
