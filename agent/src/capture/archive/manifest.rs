//! `manifest.json`: what every path is.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{ArchiveError, MANIFEST, SCHEMA};
use crate::capture::tree::{Content, Node};
use crate::sys::EntryKind;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Manifest {
    pub(super) schema: String,
    pub(super) agent: String,
    pub(super) live: bool,
    pub(super) addresses: bool,
    pub(super) pid: Option<u32>,
    pub(super) logs: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) perftest: Vec<String>,
    /// Of names and contents of all other members, in their order.
    pub(super) digest: String,
    pub(super) absent: BTreeSet<String>,
    pub(super) nodes: BTreeMap<String, Meta>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Meta {
    pub(super) kind: Kind,
    pub(super) mode: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) size: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) target: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) open_error: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) read_error: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) list_error: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) list: Option<Vec<(String, Kind)>>,
    /// The content is in the archive.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) whole: bool,
    /// Offsets and lengths of what is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) parts: Option<Vec<(u64, u64)>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    File,
    Dir,
    Link,
    Other,
}

impl From<EntryKind> for Kind {
    fn from(kind: EntryKind) -> Self {
        match kind {
            EntryKind::File => Self::File,
            EntryKind::Dir => Self::Dir,
            EntryKind::Link => Self::Link,
            EntryKind::Other => Self::Other,
        }
    }
}

impl From<Kind> for EntryKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::File => Self::File,
            Kind::Dir => Self::Dir,
            Kind::Link => Self::Link,
            Kind::Other => Self::Other,
        }
    }
}

pub(super) fn meta(node: &Node) -> Meta {
    let parts = match &node.content {
        Content::Parts(parts) => Some(
            parts
                .iter()
                .map(|(at, bytes)| (*at, bytes.len() as u64))
                .collect(),
        ),
        _ => None,
    };
    let list = node.list.as_ref();
    Meta {
        kind: node.kind.into(),
        mode: node.mode,
        uid: node.uid,
        gid: node.gid,
        size: node.size,
        target: node.target.clone(),
        open_error: node.open_error,
        read_error: match &node.content {
            Content::Failed(errno) => Some(*errno),
            _ => None,
        },
        list_error: list.and_then(|list| list.as_ref().err().copied()),
        list: list.and_then(|list| {
            let entries = list.as_ref().ok()?.iter();
            Some(entries.map(|e| (e.name.clone(), e.kind.into())).collect())
        }),
        whole: matches!(node.content, Content::Whole(_)),
        parts,
    }
}

pub(super) fn read_manifest(bytes: &[u8]) -> Result<Manifest, ArchiveError> {
    #[derive(Deserialize)]
    struct Schema {
        schema: String,
    }
    let damaged = |e: serde_json::Error| ArchiveError::Damaged(format!("{MANIFEST}: {e}"));
    // Which format it is decides what the rest may look like.
    let Schema { schema } = serde_json::from_slice(bytes).map_err(damaged)?;
    if schema != SCHEMA {
        return Err(ArchiveError::OtherVersion(schema));
    }
    serde_json::from_slice(bytes).map_err(damaged)
}
