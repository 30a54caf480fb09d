//! Reading small things out of bytes, forwards and backwards, without allocation.

/// A decimal number of at most nine digits at the beginning, and what follows.
pub(crate) fn number(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let length = bytes.iter().take_while(|b| b.is_ascii_digit()).count();
    if length == 0 || length > 9 {
        return None;
    }
    let (digits, rest) = bytes.split_at_checked(length)?;
    let value = digits
        .iter()
        .fold(0, |value, digit| value * 10 + u32::from(digit - b'0'));
    Some((value, rest))
}

/// A decimal number of at most nine digits at the end, and what is before it.
pub(crate) fn number_before(bytes: &[u8]) -> Option<(&[u8], u32)> {
    let length = bytes
        .iter()
        .rev()
        .take_while(|b| b.is_ascii_digit())
        .count();
    let (rest, digits) = bytes.split_at_checked(bytes.len() - length)?;
    Some((rest, number(digits)?.0))
}

/// The last `count` bytes, or all.
pub(crate) fn last(bytes: &[u8], count: usize) -> &[u8] {
    bytes
        .get(bytes.len().saturating_sub(count)..)
        .unwrap_or_default()
}

/// The first `count` bytes, or all.
pub(crate) fn first(bytes: &[u8], count: usize) -> &[u8] {
    bytes.get(..count).unwrap_or(bytes)
}

/// Up to the next blank or control character.
pub(crate) fn word(bytes: &[u8]) -> &[u8] {
    let length = bytes.iter().take_while(|b| b.is_ascii_graphic()).count();
    first(bytes, length)
}

/// A name as text; what is not UTF-8 is replaced.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
