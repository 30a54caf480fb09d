//! The two ways to compare file names.

use core::cmp::Ordering;

fn at(text: &[u8], place: usize) -> Option<u8> {
    text.get(place).copied()
}

fn digit(byte: Option<u8>) -> bool {
    byte.is_some_and(|byte| byte.is_ascii_digit())
}

/// gnulib's `filevercmp`: versions inside names, suffixes like `.conf` looked at last.
pub fn file_version_order(a: &[u8], b: &[u8]) -> Ordering {
    for special in [b"".as_slice(), b".", b".."] {
        match (a == special, b == special) {
            (true, true) => return Ordering::Equal,
            (true, false) => return Ordering::Less,
            (false, true) => return Ordering::Greater,
            _ => {}
        }
    }
    match (a.first() == Some(&b'.'), b.first() == Some(&b'.')) {
        (true, false) => return Ordering::Less,
        (false, true) => return Ordering::Greater,
        _ => {}
    }
    let stem = |text: &[u8]| text.get(..without_suffix(text)).unwrap_or(text).to_vec();
    version_order(&stem(a), &stem(b)).then_with(|| version_order(a, b))
}

/// The length without the longest tail of the form `(\.[A-Za-z~][A-Za-z0-9~]*)*`, but never zero.
fn without_suffix(text: &[u8]) -> usize {
    let mut place = 0;
    let mut length = 0;
    while place < text.len() {
        place += 1;
        length = place;
        while at(text, place) == Some(b'.')
            && at(text, place + 1).is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'~')
        {
            place += 2;
            while at(text, place).is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'~') {
                place += 1;
            }
        }
    }
    length
}

/// How a byte that is not part of a number sorts; the end of the name before all but `~`.
fn rank(byte: Option<u8>) -> i32 {
    match byte {
        None => -1,
        Some(byte) if byte.is_ascii_digit() => 0,
        Some(byte) if byte.is_ascii_alphabetic() => i32::from(byte),
        Some(b'~') => -2,
        Some(byte) => i32::from(byte) + 256,
    }
}

fn version_order(a: &[u8], b: &[u8]) -> Ordering {
    let (mut i, mut j) = (0, 0);
    while i < a.len() || j < b.len() {
        while i < a.len() && !digit(at(a, i)) || j < b.len() && !digit(at(b, j)) {
            match rank(at(a, i)).cmp(&rank(at(b, j))) {
                Ordering::Equal => {}
                other => return other,
            }
            i += 1;
            j += 1;
        }
        while at(a, i) == Some(b'0') {
            i += 1;
        }
        while at(b, j) == Some(b'0') {
            j += 1;
        }
        let mut first = Ordering::Equal;
        while digit(at(a, i)) && digit(at(b, j)) {
            first = first.then(at(a, i).cmp(&at(b, j)));
            i += 1;
            j += 1;
        }
        match (digit(at(a, i)), digit(at(b, j))) {
            (true, _) => return Ordering::Greater,
            (_, true) => return Ordering::Less,
            _ if first.is_ne() => return first,
            _ => {}
        }
    }
    Ordering::Equal
}

/// Name, version and release, split at the last two dashes, each as rpm compares versions.
pub fn rpm_order(a: &[u8], b: &[u8]) -> Ordering {
    let (a, b) = (split(a), split(b));
    a.iter().zip(&b).fold(Ordering::Equal, |sofar, (a, b)| {
        sofar.then_with(|| segments(a, b))
    })
}

/// Version and release, split at the last dash, each as rpm compares versions.
pub fn rpm_version_order(a: &[u8], b: &[u8]) -> Ordering {
    fn parts(text: &[u8]) -> (Option<&[u8]>, Option<&[u8]>) {
        match text.iter().rposition(|byte| *byte == b'-') {
            Some(dash) => (text.get(..dash), text.get(dash + 1..)),
            None => (Some(text), None),
        }
    }
    let ((a, a_release), (b, b_release)) = (parts(a), parts(b));
    let compare = |a: Option<&[u8]>, b: Option<&[u8]>| segments(a.unwrap_or(&[]), b.unwrap_or(&[]));
    compare(a, b).then_with(|| compare(a_release, b_release))
}

fn split(text: &[u8]) -> [&[u8]; 3] {
    let cut = |text: &[u8]| text.iter().rposition(|byte| *byte == b'-');
    let Some(release) = cut(text) else {
        return [text, b"", b""];
    };
    let (head, tail) = text.split_at(release);
    let release = tail.get(1..).unwrap_or(&[]);
    match cut(head) {
        Some(version) => {
            let (name, tail) = head.split_at(version);
            [name, tail.get(1..).unwrap_or(&[]), release]
        }
        // With one dash, what follows it takes the version's place.
        None => [head, release, b""],
    }
}

/// Red Hat's `vercmp`: like rpm's, and `+` sorts behind the end and before everything else.
fn segments(a: &[u8], b: &[u8]) -> Ordering {
    if a == b {
        return Ordering::Equal;
    }
    let (mut one, mut two) = (a, b);
    while !one.is_empty() || !two.is_empty() {
        one = skip_separators(one);
        two = skip_separators(two);
        let heads = (one.first().copied(), two.first().copied());
        for sign in [b'~', b'+'] {
            let ends = sign == b'+';
            match (heads.0 == Some(sign), heads.1 == Some(sign)) {
                (false, false) => continue,
                (false, true) if ends && one.is_empty() => return Ordering::Less,
                (true, false) if ends && two.is_empty() => return Ordering::Greater,
                (false, true) => return Ordering::Greater,
                (true, false) => return Ordering::Less,
                (true, true) => {
                    one = one.get(1..).unwrap_or(&[]);
                    two = two.get(1..).unwrap_or(&[]);
                }
            }
            break;
        }
        if heads.0 == Some(b'~') || heads.0 == Some(b'+') {
            continue;
        }
        if one.is_empty() || two.is_empty() {
            break;
        }
        let number = one.first().is_some_and(u8::is_ascii_digit);
        let (first, rest_one) = segment(one, number);
        let (second, rest_two) = segment(two, number);
        if second.is_empty() {
            // Numbers are newer than letters.
            return if number {
                Ordering::Greater
            } else {
                Ordering::Less
            };
        }
        let ordering = if number {
            numbers(first, second)
        } else {
            first.cmp(second)
        };
        if ordering.is_ne() {
            return ordering;
        }
        (one, two) = (rest_one, rest_two);
    }
    one.is_empty().cmp(&two.is_empty()).reverse()
}

fn skip_separators(text: &[u8]) -> &[u8] {
    let kept = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'~' | b'+');
    text.get(text.iter().position(kept).unwrap_or(text.len())..)
        .unwrap_or(&[])
}

fn segment(text: &[u8], number: bool) -> (&[u8], &[u8]) {
    let inside = |byte: &u8| {
        if number {
            byte.is_ascii_digit()
        } else {
            byte.is_ascii_alphabetic()
        }
    };
    text.split_at(
        text.iter()
            .position(|byte| !inside(byte))
            .unwrap_or(text.len()),
    )
}

fn numbers(a: &[u8], b: &[u8]) -> Ordering {
    let strip = |text: &[u8]| {
        let zeros = text.iter().take_while(|byte| **byte == b'0').count();
        text.get(zeros..).unwrap_or(&[]).to_vec()
    };
    let (a, b) = (strip(a), strip(b));
    a.len().cmp(&b.len()).then_with(|| a.cmp(&b))
}
