//! One file.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// One `.conf` file: every byte kept, keys read as GRUB reads them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snippet {
    name: String,
    source: Vec<u8>,
    /// Keys and values as they are read, one behind the other.
    text: String,
    keys: Vec<Key>,
}

/// Where a key and its value are in the text, and its line in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Key {
    start: u32,
    middle: u32,
    end: u32,
    line: u32,
}

impl Snippet {
    /// Reads a file. `name` is its name with `.conf`. Reading stops at an empty line or at a key
    /// without a value, as GRUB's does.
    pub fn parse(name: &str, source: &[u8]) -> Self {
        let lines = source.split(|byte| *byte == b'\n');
        let pairs = lines
            .zip(1..)
            .map_while(|(line, number)| match key_value(line) {
                Line::Comment => Some(None),
                Line::Pair(key, value) => Some(Some((key, value, number))),
                Line::End => None,
            });
        let offset = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        // Counted first: a list that grows takes three times its size.
        let mut keys = Vec::with_capacity(pairs.clone().flatten().count());
        let mut text = String::with_capacity(source.len());
        for (key, value, line) in pairs.flatten() {
            let start = offset(text.len());
            text.push_str(&key);
            let middle = offset(text.len());
            text.push_str(&value);
            keys.push(Key {
                start,
                middle,
                end: offset(text.len()),
                line,
            });
        }
        Self {
            name: name.to_string(),
            source: source.to_vec(),
            text,
            keys,
        }
    }

    fn pair(&self, key: &Key) -> (&str, &str) {
        let text = |start: u32, end: u32| self.text.get(start as usize..end as usize);
        (
            text(key.start, key.middle).unwrap_or_default(),
            text(key.middle, key.end).unwrap_or_default(),
        )
    }

    /// The file's name, with `.conf`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many bytes the file has.
    pub(crate) fn size(&self) -> usize {
        self.source.len()
    }

    /// The file as it was given.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.source.clone()
    }

    /// The first value of a key: the one that counts for `linux`, `title` and `options`.
    pub fn value(&self, key: &str) -> Option<&str> {
        self.keys()
            .find(|(own, _)| *own == key)
            .map(|(_, value)| value)
    }

    /// The line, from 1, of the first value of a key.
    pub fn line(&self, key: &str) -> Option<usize> {
        self.lines_of(key).next()
    }

    /// True if the first value of a key is what stands in the file, byte for byte.
    pub(super) fn is_plain(&self, key: &str) -> bool {
        let (Some(line), Some(value)) = (self.line(key), self.value(key)) else {
            return false;
        };
        let text = self.source.split(|byte| *byte == b'\n').nth(line - 1);
        text.is_some_and(|text| {
            let text = text.strip_suffix(b"\r").unwrap_or(text);
            text.ends_with(value.as_bytes())
        })
    }

    /// The lines, from 1, of every value of a key.
    pub(super) fn lines_of<'a>(&'a self, key: &'a str) -> impl Iterator<Item = usize> + use<'a> {
        let own = self.keys.iter().filter(move |own| self.pair(own).0 == key);
        own.map(|own| own.line as usize)
    }

    /// Every value of a key, in order.
    pub fn values<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        self.keys()
            .filter(move |(own, _)| *own == key)
            .map(|(_, value)| value)
    }

    /// Keys and values in order, up to where GRUB stops reading.
    pub fn keys(&self) -> impl Iterator<Item = (&str, &str)> {
        self.keys.iter().map(|key| self.pair(key))
    }

    /// The file with another first value of `key`, all other bytes kept. A key that is not there is
    /// added behind the last one that GRUB reads.
    pub fn with_value(&self, key: &str, value: &str) -> Self {
        let mut out = Vec::with_capacity(self.source.len() + value.len());
        let mut done = false;
        for line in self.source.split_inclusive(|byte| *byte == b'\n') {
            let text = line.strip_suffix(b"\n").unwrap_or(line);
            let read = key_value(text);
            match &read {
                Line::Pair(own, _) if !done && own == key => {
                    // GRUB drops carriage returns; the one that ends the line stays.
                    let body = text.strip_suffix(b"\r").unwrap_or(text);
                    let head = value_start(body);
                    out.extend_from_slice(line.get(..head).unwrap_or(line));
                    out.extend_from_slice(value.as_bytes());
                    out.extend_from_slice(line.get(body.len()..).unwrap_or(&[]));
                    done = true;
                    continue;
                }
                Line::End if !done => {
                    out.extend_from_slice(alloc::format!("{key} {value}\n").as_bytes());
                    done = true;
                }
                _ => {}
            }
            out.extend_from_slice(line);
        }
        if !done {
            if !out.is_empty() && !out.ends_with(b"\n") {
                out.push(b'\n');
            }
            out.extend_from_slice(alloc::format!("{key} {value}\n").as_bytes());
        }
        Self::parse(&self.name, &out)
    }
}

/// Where the value of a line begins that has one.
fn value_start(line: &[u8]) -> usize {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r');
    let mut at = line.iter().take_while(|byte| blank(byte)).count();
    let key = line.iter().skip(at);
    at += key.take_while(|byte| !matches!(byte, b' ' | b'\t')).count();
    at + line.iter().skip(at).take_while(|byte| blank(byte)).count()
}

enum Line {
    Comment,
    Pair(String, String),
    End,
}

fn key_value(line: &[u8]) -> Line {
    let end = line
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(line.len());
    let bytes = line.iter().take(end).copied().filter(|byte| *byte != b'\r');
    let line = String::from_utf8_lossy(&bytes.collect::<Vec<u8>>()).into_owned();
    let blank = |c: char| matches!(c, ' ' | '\t');
    let line = line.trim_start_matches(blank);
    let (key, value) = line.split_once(blank).unwrap_or((line, ""));
    let value = value.trim_start_matches(blank);
    if key.starts_with('#') {
        Line::Comment
    } else if key.is_empty() || value.is_empty() {
        Line::End
    } else {
        Line::Pair(key.to_string(), value.to_string())
    }
}
