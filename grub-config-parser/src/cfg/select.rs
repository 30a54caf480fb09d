//! Which entry a menu boots: GRUB's `normal/menu.c`.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::env::{is_space, number};
use super::machine::RawEntry;

/// The entry of one menu that `default` names; the first one where it names none. `ids_first` is Red
/// Hat's rule: an id, else a title, else a number and nothing more. Theirs are made of the machine id,
/// which often begins with a digit.
pub(super) fn default_index(
    default: Option<&[u8]>,
    menu: &[Box<RawEntry>],
    ids_first: bool,
) -> usize {
    let Some(default) = default else { return 0 };
    let by_id = || menu.iter().position(|entry| names(&entry.id, default));
    let by_title = || menu.iter().position(|entry| names(&entry.title, default));
    // GRUB puts the number into an `int`.
    #[allow(clippy::cast_possible_truncation, reason = "the C code truncates")]
    let place = |value: u64| usize::try_from(value as i32).ok();
    let index = if ids_first {
        let blank = default.iter().any(|byte| is_space(*byte));
        let id = if blank { None } else { by_id() };
        id.or_else(by_title).or_else(|| match number(default, 0) {
            Some((Ok(value), [])) => place(value),
            _ => None,
        })
    } else {
        match number(default, 0) {
            Some((Ok(value), _)) => place(value),
            Some((Err(_), _)) => None,
            None => menu
                .iter()
                .position(|entry| names(&entry.title, default) || names(&entry.id, default)),
        }
    };
    index.filter(|index| *index < menu.len()).unwrap_or(0)
}

/// True if the first component of `spec` is `id`; `>>` stands for a `>`.
fn names(id: &[u8], spec: &[u8]) -> bool {
    let mut id = id.iter();
    let mut spec = spec.iter().peekable();
    loop {
        let mut wanted = spec.next();
        if wanted == Some(&b'>') {
            if spec.peek() != Some(&&b'>') {
                return id.next().is_none();
            }
            wanted = spec.next();
        }
        match (id.next(), wanted) {
            (None, None) => return true,
            (a, b) if a != b => return false,
            _ => {}
        }
    }
}

/// What `default` is inside a chosen entry: what follows the first single `>`.
pub(super) fn rest_of_default(default: &[u8]) -> Option<&[u8]> {
    let mut at = 0;
    while let Some(byte) = default.get(at) {
        if *byte == b'>' {
            if default.get(at + 1) != Some(&b'>') {
                break;
            }
            at += 1;
        }
        at += 1;
    }
    default.get(at + 1..).filter(|rest| !rest.is_empty())
}

/// `chosen` inside an entry.
pub(super) fn chosen(outer: Option<&[u8]>, id: &[u8]) -> Vec<u8> {
    let mut path = Vec::new();
    if let Some(outer) = outer {
        path.extend_from_slice(outer);
        path.push(b'>');
    }
    for byte in id {
        if *byte == b'>' {
            path.push(b'>');
        }
        path.push(*byte);
    }
    path
}
