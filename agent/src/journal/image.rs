//! What a file was before and is after a write, so that it can be put back, or left alone when
//! somebody else has changed it since.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::sys::write::Attributes;
use crate::sys::{EntryKind, Root, SysError};

/// A file at one instant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Image {
    /// It was not there.
    Absent,
    /// It was there.
    File {
        /// SHA-256 of its bytes, hexadecimal.
        sha256: String,
        /// Owner and mode.
        attributes: Attributes,
    },
}

/// A write that is about to happen or has happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Intent {
    /// The file, as on the node.
    pub path: String,
    /// What it was.
    pub pre: Image,
    /// What it becomes.
    pub post: Image,
    /// The name of the file in the transaction's directory that holds the old bytes.
    pub blob: Option<String>,
    /// Whether GRUB reads the file, so that it has to be visible outside the journal.
    pub boot: bool,
    /// Whether other programs regenerate the file, so that an undo may have to regenerate it
    /// instead of restoring bytes.
    pub generated: bool,
}

/// The lower-case hexadecimal SHA-256 of bytes.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect()
}

/// A file's image and its bytes.
///
/// # Errors
/// It is there and cannot be read.
pub fn image_of(root: &Root, path: &str) -> Result<(Image, Option<Vec<u8>>), SysError> {
    let Some(bytes) = root.read_if_there(path)? else {
        return Ok((Image::Absent, None));
    };
    let Some(stat) = root.stat(path)? else {
        return Ok((Image::Absent, None));
    };
    if stat.kind != EntryKind::File {
        let why = "it is not a regular file".to_owned();
        return Err(SysError::Refused {
            action: "change",
            path: root.outside(path),
            why,
        });
    }
    let attributes = Attributes {
        mode: stat.mode,
        uid: stat.uid,
        gid: stat.gid,
    };
    Ok((
        Image::File {
            sha256: sha256(&bytes),
            attributes,
        },
        Some(bytes),
    ))
}

impl Image {
    /// Whether both have the same bytes; owner and mode may differ.
    #[must_use]
    pub fn same_bytes(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Absent, Self::Absent) => true,
            (Self::File { sha256: a, .. }, Self::File { sha256: b, .. }) => a == b,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_is_sha256() {
        // From `printf abc | sha256sum`.
        assert_eq!(
            sha256(b"abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }
}
