//! The archive: a tar file packed with Zstandard. `manifest.json` comes first and says of every path what it is;
//! `root/` has the contents and links, so that any tar program can show them; `parts/` has pieces of large files, and
//! `logs/` and `perftest/` what was given besides. Reading one trusts nothing: it is taken apart in memory, and nothing is ever written to a disk.

mod assemble;
mod manifest;
mod read;
mod write;

use sha2::{Digest, Sha256};

use super::tree::Tree;

pub use read::unpack;
pub use write::pack;

/// Bytes of an archive as it lies on the disk.
pub const MOST_PACKED: u64 = 256 << 20;
/// Bytes of an archive unpacked.
const MOST: u64 = 512 << 20;
/// Bytes of one file in it.
const MOST_FILE: u64 = 64 << 20;
/// Files in it.
const MOST_FILES: usize = 200_000;
/// How far Zstandard may have packed it, where it is large: config spaces are mostly zeros, bombs are nothing else.
const MOST_RATIO: u64 = 400;
/// Below this size any ratio is harmless.
const HARMLESS: u64 = 64 << 20;
const WINDOW: u64 = 16 << 20;
const SCHEMA: &str = "gdr-agent/capture-archive/v1";
const MANIFEST: &str = "manifest.json";

/// What an archive holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Archive {
    /// Whether it was taken from a running system.
    pub live: bool,
    /// Whether addresses and names of machines were left in.
    pub addresses: bool,
    /// The process that was looked at.
    pub pid: Option<u32>,
    /// The files.
    pub tree: Tree,
    /// The logs.
    pub logs: Vec<Log>,
    /// Outputs of perftest.
    pub perftest: Vec<Log>,
}

/// A log of a job, or an output of perftest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    /// The path as it was given.
    pub name: String,
    /// Its text.
    pub bytes: Vec<u8>,
}

/// Why something is no archive, or not one that can be trusted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// It is something else.
    #[error("it is not an archive of `gdr-agent capture`: {0}")]
    NotOne(String),
    /// It is damaged, or was cut.
    #[error("it is damaged or was cut off: {0}")]
    Damaged(String),
    /// Nobody who means well makes such an archive.
    #[error("it is refused: {0}")]
    Hostile(String),
    /// It is larger than any capture.
    #[error("it is refused as too large: {0}")]
    TooLarge(String),
    /// A later version has made it.
    #[error("it has the format {0:?}, and this version reads {SCHEMA}")]
    OtherVersion(String),
}
enum Member {
    File(Vec<u8>),
    Link(String),
}

impl Member {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::File(bytes) => bytes,
            Self::Link(target) => target.as_bytes(),
        }
    }
}

fn add(digest: &mut Sha256, name: &str, bytes: &[u8]) {
    for part in [name.as_bytes(), bytes] {
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part);
    }
}

fn hex(digest: Sha256) -> String {
    digest
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
