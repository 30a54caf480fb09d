//! A regular file that is read in parts: from the disk, from the disk and noted, or from a capture.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Cursor, Read, Result, Seek, SeekFrom};

use super::Root;

/// An open regular file.
#[derive(Debug)]
pub struct Reader<'r>(From<'r>);

#[derive(Debug)]
enum From<'r> {
    File(File),
    Noted {
        file: File,
        root: &'r Root,
        path: String,
        at: u64,
    },
    Bytes(Cursor<&'r [u8]>),
    Parts {
        parts: &'r BTreeMap<u64, Vec<u8>>,
        size: u64,
        at: u64,
    },
}

impl<'r> Reader<'r> {
    pub(super) fn file(file: File) -> Self {
        Self(From::File(file))
    }

    pub(super) fn noted(file: File, root: &'r Root, path: String) -> Self {
        Self(From::Noted {
            file,
            root,
            path,
            at: 0,
        })
    }

    pub(super) fn bytes(bytes: &'r [u8]) -> Self {
        Self(From::Bytes(Cursor::new(bytes)))
    }

    pub(super) fn parts(parts: &'r BTreeMap<u64, Vec<u8>>, size: u64) -> Self {
        Self(From::Parts { parts, size, at: 0 })
    }
}

impl Read for Reader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        match &mut self.0 {
            From::File(file) => file.read(buffer),
            From::Noted {
                file,
                root,
                path,
                at,
            } => {
                let length = file.read(buffer)?;
                root.note_part(path, *at, buffer.get(..length).unwrap_or_default());
                *at += length as u64;
                Ok(length)
            }
            From::Bytes(bytes) => bytes.read(buffer),
            From::Parts { parts, size, at } => {
                if *at >= *size || buffer.is_empty() {
                    return Ok(0);
                }
                let part = parts.range(..=*at).next_back();
                let rest =
                    part.and_then(|(start, part)| part.get(usize::try_from(*at - start).ok()?..));
                let Some(rest) = rest.filter(|rest| !rest.is_empty()) else {
                    return Err(std::io::Error::other(
                        "the capture does not have this part of it",
                    ));
                };
                let length = rest.len().min(buffer.len());
                if let (Some(to), Some(from)) = (buffer.get_mut(..length), rest.get(..length)) {
                    to.copy_from_slice(from);
                }
                *at += length as u64;
                Ok(length)
            }
        }
    }
}

impl Seek for Reader<'_> {
    fn seek(&mut self, to: SeekFrom) -> Result<u64> {
        match &mut self.0 {
            From::File(file) => file.seek(to),
            From::Noted { file, at, .. } => {
                *at = file.seek(to)?;
                Ok(*at)
            }
            From::Bytes(bytes) => bytes.seek(to),
            From::Parts { size, at, .. } => {
                let new = match to {
                    SeekFrom::Start(new) => Some(new),
                    SeekFrom::End(by) => size.checked_add_signed(by),
                    SeekFrom::Current(by) => at.checked_add_signed(by),
                };
                *at = new.ok_or_else(|| std::io::Error::from(std::io::ErrorKind::InvalidInput))?;
                Ok(*at)
            }
        }
    }
}
