//! `test` and `[`, as GRUB's `commands/test.c` reads them.

use alloc::vec::Vec;

use super::env::{is_space, number};

const DEPTH: usize = 100;

/// Evaluates an expression. `exists` answers for a path.
pub(super) fn test(args: &[Vec<u8>], exists: &dyn Fn(&[u8]) -> bool) -> bool {
    let args = match args.split_last() {
        Some((last, rest)) if last == b"]" => rest,
        _ => args,
    };
    let mut test = Test {
        args,
        at: 0,
        depth: 0,
        exists,
    };
    test.parse()
}

struct Test<'a> {
    args: &'a [Vec<u8>],
    at: usize,
    depth: usize,
    exists: &'a dyn Fn(&[u8]) -> bool,
}

/// One level of parentheses.
struct Level {
    invert: bool,
    or: bool,
    and: bool,
}

impl Level {
    fn update(&mut self, value: bool) {
        self.and = self.and && (self.invert != value);
        self.invert = false;
    }

    fn result(&self) -> bool {
        self.or || self.and
    }
}

impl Test<'_> {
    fn arg(&self, ahead: usize) -> Option<&[u8]> {
        self.args.get(self.at + ahead).map(Vec::as_slice)
    }

    fn parse(&mut self) -> bool {
        let mut level = Level {
            invert: false,
            or: false,
            and: true,
        };
        while let Some(first) = self.arg(0) {
            if let (Some(operator), Some(third)) = (self.arg(1), self.arg(2))
                && let Some(value) = self.binary(first, operator, third)
            {
                level.update(value);
                self.at += 3;
                continue;
            }
            if let Some(second) = self.arg(1)
                && let Some(value) = self.unary(first, second)
            {
                level.update(value);
                self.at += 2;
                continue;
            }
            let value = !first.is_empty();
            let first = match first {
                b")" => 1,
                b"(" => 2,
                b"!" => 3,
                b"-a" => 4,
                b"-o" => 5,
                _ => 0,
            };
            self.at += 1;
            match first {
                1 => {
                    self.depth = self.depth.saturating_sub(1);
                    return level.result();
                }
                2 => {
                    self.depth += 1;
                    if self.depth > DEPTH {
                        return level.result();
                    }
                    let inner = self.parse();
                    level.update(inner);
                }
                3 => level.invert = !level.invert,
                4 => {}
                5 => {
                    level.or = level.or || level.and;
                    level.and = true;
                }
                _ => level.update(value),
            }
        }
        level.result()
    }

    fn binary(&self, left: &[u8], operator: &[u8], right: &[u8]) -> Option<bool> {
        Some(match operator {
            b"=" | b"==" => left == right,
            b"!=" => left != right,
            b"<" => left < right,
            b"<=" => left <= right,
            b">" => left > right,
            b">=" => left >= right,
            b"-eq" => signed(left) == signed(right),
            b"-ge" => signed(left) >= signed(right),
            b"-gt" => signed(left) > signed(right),
            b"-le" => signed(left) <= signed(right),
            b"-lt" => signed(left) < signed(right),
            b"-ne" => signed(left) != signed(right),
            b"-pgt" | b"-plt" => {
                let from = common_prefix(left, right);
                let left = unsigned(left.get(from..).unwrap_or(&[]));
                let right = unsigned(right.get(from..).unwrap_or(&[]));
                if operator == b"-pgt" {
                    left > right
                } else {
                    left < right
                }
            }
            _ if operator.starts_with(b"-nt") => (self.exists)(left) && !(self.exists)(right),
            _ if operator.starts_with(b"-ot") => !(self.exists)(left) && (self.exists)(right),
            _ => return None,
        })
    }

    fn unary(&self, operator: &[u8], value: &[u8]) -> Option<bool> {
        Some(match operator {
            b"-d" => false,
            b"-e" | b"-f" | b"-s" => (self.exists)(value),
            b"-n" => !value.is_empty(),
            b"-z" => value.is_empty(),
            _ => return None,
        })
    }
}

fn unsigned(text: &[u8]) -> u64 {
    number(text, 0).map_or(0, |(value, _)| value.unwrap_or(u64::MAX))
}

/// GRUB keeps these in an `int`.
#[allow(clippy::cast_possible_truncation, reason = "the C code truncates")]
fn signed(text: &[u8]) -> i32 {
    match text {
        [b'-', rest @ ..] => (unsigned(rest) as i32).wrapping_neg(),
        _ => unsigned(text) as i32,
    }
}

/// Where the two differ, moved back to the first digit of the number there, as GRUB does it.
fn common_prefix(left: &[u8], right: &[u8]) -> usize {
    let same = left.iter().zip(right).take_while(|(a, b)| a == b).count();
    let Some(mut at) = same.checked_sub(1) else {
        return 0;
    };
    while at > 0 && left.get(at).is_some_and(u8::is_ascii_digit) {
        at -= 1;
    }
    at + 1
}

/// Splits an unquoted value at blanks.
pub(super) fn fields(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value
        .split(|byte| is_space(*byte))
        .filter(|field| !field.is_empty())
}
