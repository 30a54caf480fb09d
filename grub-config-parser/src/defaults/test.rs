//! `test` and `[` where the answer needs no file.

use alloc::vec::Vec;

use super::state::Status;

pub(super) fn test(args: &[Vec<u8>], name: &[u8]) -> Status {
    let mut args: Vec<&[u8]> = args.iter().map(Vec::as_slice).collect();
    // dash looks at the first character only.
    if name == b"[" && !args.pop().is_some_and(|last| last.starts_with(b"]")) {
        return Status::Fail;
    }
    expression(&args)
}

fn expression(args: &[&[u8]]) -> Status {
    let status = |holds: bool| if holds { Status::Ok } else { Status::Fail };
    match args {
        [] => Status::Fail,
        [word] => status(!word.is_empty()),
        [left, b"=", right] => status(left == right),
        [left, b"!=", right] => status(left != right),
        [left, operator, right] if operator.starts_with(b"-") => numbers(left, operator, right),
        [b"!", rest @ ..] if rest.len() < 4 => expression(rest).not(),
        [b"-n", word] => status(!word.is_empty()),
        [b"-z", word] => status(word.is_empty()),
        _ => Status::Unknown,
    }
}

fn numbers(left: &[u8], operator: &[u8], right: &[u8]) -> Status {
    let number = |text: &[u8]| core::str::from_utf8(text).ok()?.parse::<i64>().ok();
    let (Some(left), Some(right)) = (number(left), number(right)) else {
        return Status::Unknown;
    };
    let holds = match operator {
        b"-eq" => left == right,
        b"-ne" => left != right,
        b"-lt" => left < right,
        b"-le" => left <= right,
        b"-gt" => left > right,
        b"-ge" => left >= right,
        _ => return Status::Unknown,
    };
    if holds { Status::Ok } else { Status::Fail }
}
