//! Versions as dpkg and rpm order them: pure functions, compared in tests with the programs' own.

use std::cmp::Ordering;

/// As `dpkg --compare-versions`: epoch, upstream version, revision (deb-version(7)).
#[must_use]
pub fn dpkg(a: &str, b: &str) -> Ordering {
    let (a, b) = (Deb::of(a), Deb::of(b));
    a.epoch
        .cmp(&b.epoch)
        .then_with(|| deb_part(a.upstream, b.upstream))
        .then_with(|| deb_part(a.revision, b.revision))
}

/// A Debian version in its parts.
struct Deb<'a> {
    epoch: u64,
    upstream: &'a str,
    revision: &'a str,
}

impl<'a> Deb<'a> {
    fn of(text: &'a str) -> Self {
        let (epoch, rest) = text.split_once(':').unwrap_or(("0", text));
        // The revision is behind the last hyphen; without one it is empty, which orders as "0" does.
        let (upstream, revision) = rest.rsplit_once('-').unwrap_or((rest, ""));
        Self {
            epoch: epoch.parse().unwrap_or(0),
            upstream,
            revision,
        }
    }
}

/// The upstream part of a Debian version: `3:570.148.08-0ubuntu1` is `570.148.08`.
#[must_use]
pub fn upstream(version: &str) -> &str {
    Deb::of(version).upstream
}

/// dpkg's `verrevcmp`: text and numbers by turns; in text a tilde is before everything, even the end, and
/// letters are before all else.
fn deb_part(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a.as_bytes(), b.as_bytes());
    while !a.is_empty() || !b.is_empty() {
        loop {
            let (x, y) = (text_at(a), text_at(b));
            if x.is_none() && y.is_none() {
                break;
            }
            match weight(x).cmp(&weight(y)) {
                Ordering::Equal => {}
                other => return other,
            }
            a = a.get(1..).unwrap_or_default();
            b = b.get(1..).unwrap_or_default();
        }
        let (x, y);
        (x, a) = number(a);
        (y, b) = number(b);
        match by_value(x, y) {
            Ordering::Equal => {}
            other => return other,
        }
    }
    Ordering::Equal
}

/// The first byte, if it is no digit.
fn text_at(bytes: &[u8]) -> Option<u8> {
    bytes.first().copied().filter(|b| !b.is_ascii_digit())
}

fn weight(byte: Option<u8>) -> i32 {
    match byte {
        None => 0,
        Some(b'~') => -1,
        Some(b) if b.is_ascii_alphabetic() => i32::from(b),
        Some(b) => i32::from(b) + 256,
    }
}

/// Splits the digits off.
fn number(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = bytes
        .iter()
        .position(|b| !b.is_ascii_digit())
        .unwrap_or(bytes.len());
    bytes.split_at_checked(end).unwrap_or((bytes, &[]))
}

/// Digits as numbers of any length.
fn by_value(a: &[u8], b: &[u8]) -> Ordering {
    let trim = |digits: &[u8]| {
        let zeros = digits.iter().take_while(|b| **b == b'0').count();
        digits.get(zeros..).unwrap_or_default().to_vec()
    };
    let (a, b) = (trim(a), trim(b));
    a.len().cmp(&b.len()).then_with(|| a.cmp(&b))
}

/// As rpm orders `EPOCH:VERSION-RELEASE`; an epoch that is not there is 0.
#[must_use]
pub fn rpm(a: &str, b: &str) -> Ordering {
    let (a, b) = (Evr::of(a), Evr::of(b));
    a.epoch
        .cmp(&b.epoch)
        .then_with(|| rpmvercmp(a.version, b.version))
        .then_with(|| match (a.release, b.release) {
            (Some(a), Some(b)) => rpmvercmp(a, b),
            // Without a release it is before all that have one.
            (a, b) => a.is_some().cmp(&b.is_some()),
        })
}

/// `EPOCH:VERSION-RELEASE` in its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Evr<'a> {
    /// 0 where there is none.
    pub epoch: u64,
    /// The version.
    pub version: &'a str,
    /// The release, where there is one.
    pub release: Option<&'a str>,
}

impl<'a> Evr<'a> {
    /// Takes it apart.
    #[must_use]
    pub fn of(text: &'a str) -> Self {
        let (epoch, rest) = match text.split_once(':') {
            Some((epoch, rest)) if epoch.bytes().all(|b| b.is_ascii_digit()) => (epoch, rest),
            _ => ("0", text),
        };
        let (version, release) = match rest.rsplit_once('-') {
            Some((version, release)) => (version, Some(release)),
            None => (rest, None),
        };
        Self {
            epoch: epoch.parse().unwrap_or(0),
            version,
            release,
        }
    }
}

/// rpm's `rpmvercmp`: runs of digits and of letters; `~` is before the end, `^` behind it.
#[must_use]
pub fn rpmvercmp(a: &str, b: &str) -> Ordering {
    if a == b {
        return Ordering::Equal;
    }
    let (mut a, mut b) = (a.as_bytes(), b.as_bytes());
    while !a.is_empty() || !b.is_empty() {
        a = skip_separators(a);
        b = skip_separators(b);
        match (a.first(), b.first()) {
            (Some(b'~'), Some(b'~')) => {
                a = a.get(1..).unwrap_or_default();
                b = b.get(1..).unwrap_or_default();
                continue;
            }
            (Some(b'~'), _) => return Ordering::Less,
            (_, Some(b'~')) => return Ordering::Greater,
            (Some(b'^'), None) => return Ordering::Greater,
            (None, Some(b'^')) => return Ordering::Less,
            (Some(b'^'), Some(b'^')) => {
                a = a.get(1..).unwrap_or_default();
                b = b.get(1..).unwrap_or_default();
                continue;
            }
            (Some(b'^'), _) => return Ordering::Less,
            (_, Some(b'^')) => return Ordering::Greater,
            (Some(_), Some(_)) => {}
            _ => break,
        }
        let numeric = a.first().is_some_and(u8::is_ascii_digit);
        let (x, y);
        (x, a) = run(a, numeric);
        (y, b) = run(b, numeric);
        if y.is_empty() {
            // Of different kinds: numbers are newer than letters.
            return if numeric {
                Ordering::Greater
            } else {
                Ordering::Less
            };
        }
        let order = if numeric { by_value(x, y) } else { x.cmp(y) };
        if order != Ordering::Equal {
            return order;
        }
    }
    a.len().min(1).cmp(&b.len().min(1))
}

fn skip_separators(bytes: &[u8]) -> &[u8] {
    let at = bytes
        .iter()
        .position(|b| b.is_ascii_alphanumeric() || matches!(b, b'~' | b'^'))
        .unwrap_or(bytes.len());
    bytes.get(at..).unwrap_or_default()
}

fn run(bytes: &[u8], numeric: bool) -> (&[u8], &[u8]) {
    let same = |b: &u8| match numeric {
        true => b.is_ascii_digit(),
        false => b.is_ascii_alphabetic(),
    };
    let end = bytes.iter().position(|b| !same(b)).unwrap_or(bytes.len());
    bytes.split_at_checked(end).unwrap_or((bytes, &[]))
}
