//! What values mean to NCCL.

use crate::pci::path::PathKind;

/// An integer as `strtoll(3)` with base 0 takes it, which is what NCCL calls: what does not begin with a number is 0, what follows one is
/// passed over. None for a value that counts as not set: the empty one, and one out of range.
#[must_use]
pub fn integer(value: &str) -> Option<i64> {
    if value.is_empty() {
        return None;
    }
    let text = value.trim_start_matches([' ', '\t', '\n', '\r', '\u{b}', '\u{c}']);
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let hex = digits
        .strip_prefix("0x")
        .or_else(|| digits.strip_prefix("0X"));
    let (base, digits) = match hex.filter(|rest| rest.starts_with(|c: char| c.is_ascii_hexdigit()))
    {
        Some(rest) => (16, rest),
        None if digits.starts_with('0') => (8, digits),
        None => (10, digits),
    };
    let end = digits
        .find(|c: char| !c.is_digit(base))
        .unwrap_or(digits.len());
    let digits = digits.get(..end).unwrap_or_default();
    if digits.is_empty() {
        return Some(0);
    }
    let number = i128::from_str_radix(digits.get(..38).unwrap_or(digits), base).ok()?;
    i64::try_from(if negative { -number } else { number }).ok()
}

/// Whether a value is a number and nothing else, so that its author and NCCL mean the same.
#[must_use]
pub fn is_number(value: &str) -> bool {
    let digits = value.trim().trim_start_matches(['-', '+']);
    let digits = digits.strip_prefix("0x").unwrap_or(digits);
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit())
}

/// A distance, as `NCCL_NET_GDR_LEVEL` and `NCCL_P2P_LEVEL` name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Never.
    Never,
    /// NVLink only: between a GPU and a NIC that is never.
    NvLink,
    /// Up to this distance.
    Up(PathKind),
    /// Not what any version knows: the default stays.
    Ignored,
}

/// The level that a value means (`ncclGetLevel` in `src/graph/paths.cc`): words in capitals, and from before 2.5 the numbers 0 to 5 with the
/// meaning that they had then.
#[must_use]
pub fn level(value: &str) -> Level {
    match value {
        "LOC" => Level::Never,
        "NVL" | "NVB" => Level::NvLink,
        "PIX" => Level::Up(PathKind::Pix),
        // C2C and P2C are between NVLink and PXB, PXN is above: as far as PCIe goes they reach as far as these
        "C2C" => Level::NvLink,
        "PXB" | "P2C" | "PXN" => Level::Up(PathKind::Pxb),
        "PHB" => Level::Up(PathKind::Phb),
        "SYS" => Level::Up(PathKind::Sys),
        _ if value.starts_with(|c: char| c.is_ascii_digit()) => match integer(value) {
            Some(0) => Level::Never,
            Some(1) => Level::Up(PathKind::Pix),
            Some(2) => Level::Up(PathKind::Pxb),
            Some(3) => Level::Up(PathKind::Phb),
            _ => Level::Up(PathKind::Sys),
        },
        _ => Level::Ignored,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_as_strtoll_takes_them() {
        for (text, wanted) in [
            ("1", Some(1)),
            (" 1", Some(1)),
            ("1\r", Some(1)),
            ("true", Some(0)),
            ("\"1\"", Some(0)),
            ("0x10", Some(16)),
            ("0x", Some(0)),
            ("010", Some(8)),
            ("08", Some(0)),
            ("-2", Some(-2)),
            ("12abc", Some(12)),
            ("", None),
            ("99999999999999999999", None),
            ("9999999999999999999999999999999999999999999999", None),
        ] {
            assert_eq!(integer(text), wanted, "{text:?}");
        }
    }

    #[test]
    fn levels_by_word_and_by_number() {
        assert_eq!(level("LOC"), Level::Never);
        assert_eq!(level("0"), Level::Never);
        assert_eq!(level("1"), Level::Up(PathKind::Pix));
        assert_eq!(level("3"), Level::Up(PathKind::Phb));
        assert_eq!(level("5"), Level::Up(PathKind::Sys));
        assert_eq!(level("99"), Level::Up(PathKind::Sys));
        assert_eq!(level("SYS"), Level::Up(PathKind::Sys));
        assert_eq!(level("sys"), Level::Ignored);
        assert_eq!(level("SYS\r"), Level::Ignored);
        assert_eq!(level("-1"), Level::Ignored);
        assert_eq!(level("NODE"), Level::Ignored);
    }
}
