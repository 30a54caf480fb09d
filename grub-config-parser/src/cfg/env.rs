//! Variables and positional parameters.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use super::traced::Setter;

#[derive(Debug, Clone, Default)]
struct Variable {
    value: Vec<u8>,
    exported: bool,
    setter: Option<Setter>,
}

/// One of GRUB's environment contexts.
#[derive(Debug, Clone, Default)]
pub(super) struct Env {
    variables: BTreeMap<Vec<u8>, Variable>,
    /// What names and values take.
    bytes: usize,
}

/// What a variable takes besides its name and value, in a tree whose nodes are half full.
const VARIABLE: usize = 160;

impl Env {
    pub(super) fn get(&self, name: &[u8]) -> Option<&[u8]> {
        self.variables
            .get(name)
            .map(|variable| variable.value.as_slice())
    }

    /// What has set a variable, if that is known.
    pub(super) fn setter(&self, name: &[u8]) -> Option<Setter> {
        self.variables.get(name)?.setter
    }

    /// Names, values and what has set them.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8], Option<Setter>)> {
        self.variables
            .iter()
            .map(|(name, own)| (name.as_slice(), own.value.as_slice(), own.setter))
    }

    pub(super) fn set(&mut self, name: &[u8], value: &[u8], setter: Option<Setter>) {
        match self.variables.get_mut(name) {
            Some(variable) => {
                self.bytes = self.bytes + value.len() - variable.value.len();
                variable.value = value.to_vec();
                variable.setter = setter;
            }
            None => {
                let variable = Variable {
                    value: value.to_vec(),
                    exported: false,
                    setter,
                };
                self.bytes += VARIABLE + name.len() + value.len();
                self.variables.insert(name.to_vec(), variable);
            }
        }
    }

    pub(super) fn unset(&mut self, name: &[u8]) {
        if let Some(variable) = self.variables.remove(name) {
            self.bytes -= VARIABLE + name.len() + variable.value.len();
        }
    }

    pub(super) fn export(&mut self, name: &[u8]) {
        if !self.variables.contains_key(name) {
            self.set(name, b"", None);
        }
        if let Some(variable) = self.variables.get_mut(name) {
            variable.exported = true;
        }
    }

    /// The context that a submenu starts with.
    pub(super) fn exported(&self) -> Self {
        let mut inner = Self::default();
        let exported = self.variables.iter().filter(|(_, own)| own.exported);
        for (name, own) in exported {
            inner.set(name, &own.value, own.setter);
            inner.export(name);
        }
        inner
    }

    /// All variables.
    pub(super) fn texts(&self) -> BTreeMap<String, String> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        self.variables
            .iter()
            .map(|(name, own)| (text(name), text(&own.value)))
            .collect()
    }

    /// About how many bytes it takes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn text(&self, name: &str) -> Option<String> {
        self.get(name.as_bytes())
            .map(|value| String::from_utf8_lossy(value).into_owned())
    }
}

/// The names that only positional parameters have.
pub(super) fn is_special(name: &[u8]) -> bool {
    name.first().is_some_and(u8::is_ascii_digit) || matches!(name, b"#" | b"*" | b"@")
}

/// `grub_strtoull` as it is used for numbers in scripts: leading blanks, then digits of `base`, where
/// 0 guesses from `0x` and `0`. Gives the number and the text behind it; `None` without a digit.
/// An overflow gives `Some(Err)`.
pub(super) fn number(text: &[u8], base: u64) -> Option<(Result<u64, Overflow>, &[u8])> {
    let blanks = text.iter().take_while(|byte| is_space(**byte)).count();
    let mut rest = text.get(blanks..).unwrap_or(&[]);
    let mut radix = base;
    match rest {
        [b'0', b'x', tail @ ..] if base == 0 || base == 16 => {
            radix = 16;
            rest = tail;
        }
        [b'0', b'0'..=b'7', ..] if base == 0 => radix = 8,
        _ => {}
    }
    let radix = if radix == 0 { 10 } else { radix };
    let mut value = Ok(0u64);
    let mut found = false;
    while let Some((first, tail)) = rest.split_first() {
        let Some(digit) = char::from(*first)
            .to_digit(36)
            .map(u64::from)
            .filter(|d| *d < radix)
        else {
            break;
        };
        found = true;
        let next = value.and_then(|sum: u64| {
            sum.checked_mul(radix)
                .and_then(|sum| sum.checked_add(digit))
                .ok_or(Overflow)
        });
        value = next;
        if value.is_err() {
            break;
        }
        rest = tail;
    }
    found.then_some((value, rest))
}

/// A number beyond 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Overflow;

pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}
