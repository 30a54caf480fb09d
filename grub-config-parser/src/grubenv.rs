//! GRUB's environment block, by the rules of `grub-core/lib/envblk.c`.
//!
//! The block has no checksum and its size is the file's size. Edits never change its length, so that
//! they can be one in-place write; the bytes are those that `grub-editenv` would make.
//!
//! ```
//! use grub_config_parser::grubenv::EnvBlock;
//! let mut block = EnvBlock::empty();
//! block.set("saved_entry", "a\nb")?;
//! assert_eq!(block.get("saved_entry").as_deref(), Some("a\nb"));
//! assert_eq!(block.as_bytes().len(), 1024);
//! # Ok::<(), grub_config_parser::grubenv::EnvError>(())
//! ```

mod argument;

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use crate::cmdline::OpenQuote;

/// The first line of every block.
pub const SIGNATURE: &[u8] = b"# GRUB Environment Block\n";

/// The size that `grub-editenv create` gives a block, in bytes.
pub const DEFAULT_SIZE: usize = 1024;

/// Why a block is refused or an edit is not made.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum EnvError {
    /// The block does not start with [`SIGNATURE`].
    Signature,
    /// Nothing follows the signature line.
    TooShort {
        /// The block's size in bytes.
        size: usize,
    },
    /// The padding does not start behind a newline: the block is damaged.
    Damaged,
    /// The value does not fit.
    NoSpace {
        /// The variable.
        name: String,
        /// Bytes that the edit needs beyond those in use.
        needed: usize,
        /// Bytes of padding that are left.
        left: usize,
    },
    /// An argument of a variable is to be changed, and the variable is not set.
    NotSet {
        /// The variable.
        name: String,
    },
    /// An argument of a variable is to be changed, and the variable stands there more than once.
    Twice {
        /// The variable.
        name: String,
    },
    /// An argument of a variable is to be changed, and its value is not text.
    NotText {
        /// The variable.
        name: String,
    },
    /// An argument of a variable is to be changed, and a quote in its value is not closed.
    Quote {
        /// The variable.
        name: String,
        /// What is wrong.
        error: OpenQuote,
    },
    /// A name or value holds a NUL byte, which no block can carry.
    Nul {
        /// The variable.
        name: String,
    },
}

impl fmt::Display for EnvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Signature => f.write_str(
                "environment block does not start with \"# GRUB Environment Block\"; \
                 make a new one with grub-editenv create",
            ),
            Self::TooShort { size } => write!(
                f,
                "environment block of {size} bytes is too short; make a new one with grub-editenv create",
            ),
            Self::Damaged => f.write_str(
                "environment block is damaged: its padding does not follow a complete line; \
                 make a new one with grub-editenv create",
            ),
            Self::NoSpace { name, needed, left } => write!(
                f,
                "no room for {name} in the environment block: {needed} bytes needed, {left} left, {} \
                 missing; unset a variable first",
                needed.saturating_sub(*left),
            ),
            Self::NotSet { name } => write!(f, "{name} is not set in the environment block"),
            Self::Twice { name } => write!(
                f,
                "{name} stands in the environment block more than once; unset it and set it again",
            ),
            Self::NotText { name } => {
                write!(f, "{name}: its value is not text and cannot be edited")
            }
            Self::Quote { name, error } => write!(f, "{name}: {error}"),
            Self::Nul { name } => write!(f, "{name}: a NUL byte cannot be stored"),
        }
    }
}

impl core::error::Error for EnvError {}

/// An environment block. Its length never changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvBlock {
    bytes: Vec<u8>,
}

impl EnvBlock {
    /// A new block of [`DEFAULT_SIZE`] without variables.
    pub fn empty() -> Self {
        let mut bytes = SIGNATURE.to_vec();
        bytes.resize(DEFAULT_SIZE, b'#');
        Self { bytes }
    }

    /// Accepts what GRUB accepts: the signature line and at least one byte more.
    ///
    /// # Errors
    /// [`EnvError::Signature`] or [`EnvError::TooShort`].
    pub fn parse(bytes: &[u8]) -> Result<Self, EnvError> {
        if bytes.len() <= SIGNATURE.len() {
            return Err(EnvError::TooShort { size: bytes.len() });
        }
        if !bytes.starts_with(SIGNATURE) {
            return Err(EnvError::Signature);
        }
        Ok(Self {
            bytes: bytes.to_vec(),
        })
    }

    /// The whole block.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The variable's value, unescaped; the last one if the name stands there twice. Bytes that are
    /// not UTF-8 come as U+FFFD.
    pub fn get(&self, name: &str) -> Option<String> {
        self.iter()
            .filter(|(own, _)| own == name)
            .last()
            .map(|(_, value)| value)
    }

    /// Names and values in the order of the block, as GRUB reads them. Reading stops silently where
    /// the block is damaged, as GRUB's does.
    pub fn iter(&self) -> Iter<'_> {
        Iter {
            bytes: &self.bytes,
            at: SIGNATURE.len(),
        }
    }

    /// The line of the block, from 1, where the variable that [`EnvBlock::get`] reads begins.
    pub fn line(&self, name: &str) -> Option<usize> {
        let mut iter = self.iter();
        let mut found = None;
        loop {
            iter.skip_comments();
            let start = iter.at;
            match iter.next() {
                Some((own, _)) if own == name => found = Some(start),
                Some(_) => {}
                None => break,
            }
        }
        let before = self.bytes.get(..found?)?;
        Some(1 + before.iter().filter(|byte| **byte == b'\n').count())
    }

    /// Bytes of padding that are left.
    pub fn free(&self) -> usize {
        self.bytes
            .iter()
            .rev()
            .take_while(|byte| **byte == b'#')
            .count()
    }

    /// Sets a variable in place; byte for byte what `grub-editenv set` does.
    ///
    /// # Errors
    /// Nothing is changed then: [`EnvError::NoSpace`], [`EnvError::Damaged`] or [`EnvError::Nul`].
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), EnvError> {
        self.set_bytes(name.as_bytes(), value.as_bytes())
    }

    /// [`EnvBlock::set`] for names and values that are not UTF-8.
    ///
    /// # Errors
    /// The same.
    pub fn set_bytes(&mut self, name: &[u8], value: &[u8]) -> Result<(), EnvError> {
        let shown = || String::from_utf8_lossy(name).to_string();
        if name.contains(&0) || value.contains(&0) {
            return Err(EnvError::Nul { name: shown() });
        }
        let left = self.free();
        let used = self.bytes.len() - left;
        if self.bytes.get(used.wrapping_sub(1)) != Some(&b'\n') {
            return Err(EnvError::Damaged);
        }
        let escaped = escape(value);
        match self.find(name, used) {
            Some(start) => {
                let old = self.value_len(start);
                if start + old >= self.bytes.len() {
                    return Err(EnvError::Damaged);
                }
                let needed = escaped.len().saturating_sub(old);
                if needed > left {
                    return Err(EnvError::NoSpace {
                        name: shown(),
                        needed,
                        left,
                    });
                }
                let size = self.bytes.len();
                self.bytes.splice(start..start + old, escaped);
                self.bytes.resize(size, b'#');
            }
            None => {
                let needed = name.len() + escaped.len() + 2;
                if needed > left {
                    return Err(EnvError::NoSpace {
                        name: shown(),
                        needed,
                        left,
                    });
                }
                let line = name.iter().chain(b"=").chain(&escaped).chain(b"\n");
                for (slot, byte) in self.bytes.iter_mut().skip(used).zip(line) {
                    *slot = *byte;
                }
            }
        }
        Ok(())
    }

    /// Removes the first line with this name; false if there is none. Byte for byte what
    /// `grub-editenv unset` does.
    pub fn unset(&mut self, name: &str) -> bool {
        let size = self.bytes.len();
        let Some(start) = self.find(name.as_bytes(), size) else {
            return false;
        };
        let line = start - name.len() - 1;
        let end = start + self.value_len(start);
        if end >= size {
            return false;
        }
        self.bytes.drain(line..=end);
        self.bytes.resize(size, b'#');
        true
    }

    /// Where the value of `name` starts, looking at lines that begin before `limit`.
    fn find(&self, name: &[u8], limit: usize) -> Option<usize> {
        let mut at = SIGNATURE.len();
        while at + name.len() + 1 < limit {
            let rest = self.bytes.get(at..)?;
            if rest.starts_with(name) && rest.get(name.len()) == Some(&b'=') {
                return Some(at + name.len() + 1);
            }
            at = next_line(&self.bytes, at);
        }
        None
    }

    /// The length of the escaped value at `start`; reaches the block's end if it has no newline.
    fn value_len(&self, start: usize) -> usize {
        scan_value(&self.bytes, start) - start
    }
}

fn escape(value: &[u8]) -> Vec<u8> {
    let mut escaped = Vec::with_capacity(value.len());
    for byte in value {
        if matches!(byte, b'\\' | b'\n') {
            escaped.push(b'\\');
        }
        escaped.push(*byte);
    }
    escaped
}

/// The place of the newline that ends the value at `at`, or one at or behind the end.
fn scan_value(bytes: &[u8], mut at: usize) -> usize {
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\n' => break,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    at
}

fn next_line(bytes: &[u8], at: usize) -> usize {
    scan_value(bytes, at) + 1
}

/// Names and values of an [`EnvBlock`].
#[derive(Debug, Clone)]
pub struct Iter<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Iter<'_> {
    fn skip_comments(&mut self) {
        while self.bytes.get(self.at) == Some(&b'#') {
            self.at = next_line(self.bytes, self.at);
        }
    }
}

impl Iterator for Iter<'_> {
    type Item = (String, String);

    fn next(&mut self) -> Option<Self::Item> {
        self.skip_comments();
        let rest = self.bytes.get(self.at..)?;
        // A name runs to the next `=`, over newlines too.
        let Some(length) = rest.iter().position(|byte| *byte == b'=') else {
            self.at = self.bytes.len();
            return None;
        };
        let start = self.at + length + 1;
        let end = scan_value(self.bytes, start);
        if end >= self.bytes.len() {
            self.at = self.bytes.len();
            return None;
        }
        self.at = end + 1;
        let name = c_string(rest.get(..length)?.iter().copied());
        Some((name, c_string(unescape(self.bytes.get(start..end)?))))
    }
}

impl<'a> IntoIterator for &'a EnvBlock {
    type Item = (String, String);
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

fn unescape(value: &[u8]) -> impl Iterator<Item = u8> {
    let mut bytes = value.iter().copied();
    core::iter::from_fn(move || match bytes.next() {
        Some(b'\\') => bytes.next(),
        other => other,
    })
}

fn c_string(bytes: impl Iterator<Item = u8>) -> String {
    let bytes: Vec<u8> = bytes.take_while(|byte| *byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}
