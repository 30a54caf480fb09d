//! One record: its content and its bytes.

use gdr_policy::Policy;
use serde::{Deserialize, Serialize};

use super::image::Intent;
use crate::machine::Txn;
use crate::reboot::Lock;

/// The format's number; a record with a larger one was written by a newer agent.
pub(super) const FORMAT: u32 = 1;

/// Records are padded to multiples of this, so that a rewrite needs no new blocks.
const BLOCK: usize = 4096;

/// One durable step of a transaction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// 1; another number was written by another version.
    pub format: u32,
    /// Its number in the transaction, from 1.
    pub seq: u32,
    /// When it was written, seconds since 1970, for people.
    pub time: u64,
    /// The agent's version that wrote it.
    pub agent: String,
    /// What led to it, for people.
    pub event: String,
    /// The transaction.
    pub txn: Txn,
    /// What the executors need.
    pub work: Work,
}

/// What the executors need beside the machine's state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Work {
    /// The policy as it was when the transaction began.
    pub policy: Policy,
    /// The trial entry, when one is needed.
    pub trial: Option<Trial>,
    /// What was or is about to be written, in order, with the pre-images.
    pub intents: Vec<Intent>,
    /// Variables of grubenv that were or are about to be set.
    #[serde(default)]
    pub env: Vec<EnvIntent>,
    /// The boot entries in files that were there when it began: others are of kernels that came since.
    #[serde(default)]
    pub entries: Vec<String>,
    /// Modules that this transaction loaded.
    pub modules: Vec<String>,
    /// Modules that this transaction unloaded, since they were in the way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unloaded: Vec<String>,
    /// Packages that this transaction has installed or begun to, in the manager's words. They stay.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub packages: Vec<String>,
    /// Whether it prepares an image: what runs is then somebody else's kernel.
    #[serde(default)]
    pub bake: bool,
    /// The checks that were not met when it was verified.
    pub unmet: Vec<String>,
    /// What a FleetLock server may hold for this node, until it says that it does not any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock: Option<Lock>,
}

impl Work {
    /// Whether the image that it prepares boots the new command line at once, with no trial.
    #[must_use]
    pub fn commits_in_image(&self) -> bool {
        self.bake && self.policy.trial.bake == gdr_policy::Bake::Commit
    }

    /// Whether it is over while the image is made: there is nothing to try, or it is not to be tried.
    #[must_use]
    pub fn ends_in_image(&self) -> bool {
        self.commits_in_image() || self.bake && self.trial.is_none()
    }
}

/// A variable of grubenv, before and after. The block itself is GRUB's to write, too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnvIntent {
    /// Its name.
    pub name: String,
    /// Its value before.
    pub pre: String,
    /// Its value after.
    pub post: String,
}

/// The one boot that tries a new command line, built from parts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trial {
    /// GRUB commands that find the file system of the kernel.
    pub preamble: Vec<String>,
    /// The kernel, as GRUB names it.
    pub kernel: String,
    /// The initramfs files, as GRUB names them.
    pub initrds: Vec<String>,
    /// Where the entry that boots today, or its submenu, stands in GRUB's menu.
    #[serde(default)]
    pub fallback: usize,
    /// The arguments of the entry that boots today.
    pub known_good: String,
    /// The arguments that a commit makes permanent.
    pub target: String,
    /// The arguments of the trial: target, marker, safety arguments, modules to load.
    pub args: String,
}

/// Why bytes are not a record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The first line is not a journal header.
    #[error("it does not begin with a journal header")]
    Header,
    /// The file ends before the record does.
    #[error("it is cut short")]
    Short,
    /// The checksum is wrong.
    #[error("its checksum is wrong")]
    Checksum,
    /// The content is not a record of this format.
    #[error("it was written by another version: {0}")]
    Content(String),
}

/// The bytes of a record: a header line with checksum and length, JSON, line feeds up to a whole block.
///
/// # Errors
/// It cannot be written as JSON.
pub fn encode(record: &Record) -> Result<Vec<u8>, serde_json::Error> {
    let json = serde_json::to_vec(record)?;
    let mut bytes = format!(
        "gdr-agent-journal crc32c={:08x} len={:08}\n",
        crc32c::crc32c(&json),
        json.len()
    )
    .into_bytes();
    bytes.extend_from_slice(&json);
    let padded = bytes.len().next_multiple_of(BLOCK);
    bytes.resize(padded, b'\n');
    Ok(bytes)
}

/// Reads a record back.
///
/// # Errors
/// [`DecodeError`]
pub fn decode(bytes: &[u8]) -> Result<Record, DecodeError> {
    let end = bytes
        .iter()
        .take(100)
        .position(|b| *b == b'\n')
        .ok_or(DecodeError::Header)?;
    let (header, rest) = bytes.split_at_checked(end + 1).ok_or(DecodeError::Header)?;
    let header = std::str::from_utf8(header).map_err(|_| DecodeError::Header)?;
    let fields = header
        .trim_end()
        .strip_prefix("gdr-agent-journal crc32c=")
        .ok_or(DecodeError::Header)?;
    let (sum, length) = fields.split_once(" len=").ok_or(DecodeError::Header)?;
    let sum = u32::from_str_radix(sum, 16).map_err(|_| DecodeError::Header)?;
    let length: usize = length.parse().map_err(|_| DecodeError::Header)?;
    let json = rest.get(..length).ok_or(DecodeError::Short)?;
    if crc32c::crc32c(json) != sum {
        return Err(DecodeError::Checksum);
    }
    let value: serde_json::Value =
        serde_json::from_slice(json).map_err(|e| DecodeError::Content(e.to_string()))?;
    match value.get("format").and_then(serde_json::Value::as_u64) {
        Some(f) if f == u64::from(FORMAT) => {}
        Some(f) => {
            return Err(DecodeError::Content(format!(
                "format {f}, and this agent knows {FORMAT}"
            )));
        }
        None => return Err(DecodeError::Content("it has no format number".to_owned())),
    }
    serde_json::from_value(value).map_err(|e| DecodeError::Content(e.to_string()))
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::machine::{Budget, State, TxnId};

    pub(crate) fn sample() -> Record {
        Record {
            format: FORMAT,
            seq: 3,
            time: 1,
            agent: "0.1.0".into(),
            event: "test".into(),
            txn: Txn {
                id: TxnId::new(1, [0; 4]),
                state: State::Staged,
                digest: "d".into(),
                boot_id: "b".into(),
                trial: true,
                ready: false,
                on_trial: false,
                granted: false,
                budget: Budget {
                    allowed: false,
                    used: 0,
                    max: 2,
                },
                not_taken: 0,
                failure: None,
                denial: None,
                conflicts: vec![],
            },
            work: Work {
                policy: Policy::default(),
                trial: None,
                intents: vec![],
                env: vec![],
                entries: vec![],
                modules: vec![],
                unloaded: vec![],
                packages: vec![],
                bake: false,
                unmet: vec![],
                lock: None,
            },
        }
    }

    #[test]
    fn reads_back_and_fills_whole_blocks() {
        let bytes = encode(&sample()).unwrap();
        assert_eq!(bytes.len() % 4096, 0);
        assert_eq!(decode(&bytes).unwrap(), sample());
    }

    #[test]
    fn every_flipped_bit_of_the_content_is_seen() {
        let bytes = encode(&sample()).unwrap();
        let content = bytes.iter().rposition(|b| *b == b'}').unwrap();
        for at in 0..=content {
            let mut bad = bytes.clone();
            bad[at] ^= 1;
            assert!(
                decode(&bad).is_err() || decode(&bad).unwrap() == sample(),
                "byte {at}"
            );
        }
        assert_eq!(decode(&bytes[..content]), Err(DecodeError::Short));
    }

    proptest! {
        #[test]
        fn any_bytes_are_refused_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(decode(&bytes).is_err());
        }
    }
}
