//! The archive: a tar file packed with Zstandard. `manifest.json` comes first and says of every path what it is;
//! `root/` has the contents and links, so that any tar program can show them; `parts/` has pieces of large files, and
//! `logs/` the logs. Reading one trusts nothing: it is taken apart in memory, and nothing is ever written to a disk.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use ruzstd::decoding::StreamingDecoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tar::{Archive as Tar, Builder, EntryType, Header};

use super::tree::{Content, Node, Tree, parts};
use crate::sys::{Entry, EntryKind};

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
}

/// A log of a job.
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

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    schema: String,
    agent: String,
    live: bool,
    addresses: bool,
    pid: Option<u32>,
    logs: Vec<String>,
    /// Of names and contents of all other members, in their order.
    digest: String,
    absent: BTreeSet<String>,
    nodes: BTreeMap<String, Meta>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Meta {
    kind: Kind,
    mode: u32,
    uid: u32,
    gid: u32,
    size: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    open_error: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    read_error: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    list_error: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    list: Option<Vec<(String, Kind)>>,
    /// The content is in the archive.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    whole: bool,
    /// Offsets and lengths of what is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parts: Option<Vec<(u64, u64)>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
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

/// Packs an archive. The same content gives the same bytes.
///
/// # Errors
/// It is larger than what is read back, or a path cannot be written as one.
pub fn pack(archive: &Archive) -> Result<Vec<u8>, ArchiveError> {
    let members = members(archive);
    let mut digest = Sha256::new();
    for (name, member) in &members {
        add(&mut digest, name, member.bytes());
    }
    let manifest = Manifest {
        schema: SCHEMA.to_owned(),
        agent: env!("CARGO_PKG_VERSION").to_owned(),
        live: archive.live,
        addresses: archive.addresses,
        pid: archive.pid,
        logs: archive.logs.iter().map(|log| log.name.clone()).collect(),
        digest: hex(digest),
        absent: archive.tree.absent.clone(),
        nodes: archive
            .tree
            .nodes
            .iter()
            .map(|(path, node)| (path.clone(), meta(node)))
            .collect(),
    };
    let io = |e: std::io::Error| ArchiveError::Damaged(format!("it cannot be written: {e}"));
    let text = serde_json::to_vec(&manifest).map_err(|e| io(e.into()))?;
    let mut tar = Builder::new(Vec::new());
    write(&mut tar, MANIFEST, &Member::File(text)).map_err(io)?;
    for (name, member) in &members {
        write(&mut tar, name, member).map_err(io)?;
    }
    let bytes = tar.into_inner().map_err(io)?;
    if bytes.len() as u64 > MOST || members.len() > MOST_FILES {
        let what = format!("{} files of {} MiB", members.len(), bytes.len() >> 20);
        return Err(ArchiveError::TooLarge(what));
    }
    Ok(compress_to_vec(bytes.as_slice(), CompressionLevel::Fastest))
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

fn members(archive: &Archive) -> BTreeMap<String, Member> {
    let mut members = BTreeMap::new();
    for (path, node) in &archive.tree.nodes {
        match (&node.content, &node.target) {
            (Content::Whole(bytes), _) => {
                members.insert(format!("root{path}"), Member::File(bytes.clone()));
            }
            (Content::Parts(parts), _) => {
                let bytes = parts.values().flatten().copied().collect();
                members.insert(format!("parts{path}"), Member::File(bytes));
            }
            // A link of `/proc` may lead nowhere that has a path.
            (_, Some(target)) if !target.is_empty() => {
                members.insert(format!("root{path}"), Member::Link(target.clone()));
            }
            _ => {}
        }
    }
    for (at, log) in archive.logs.iter().enumerate() {
        members.insert(format!("logs/{at}"), Member::File(log.bytes.clone()));
    }
    members
}

fn meta(node: &Node) -> Meta {
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

fn write(tar: &mut Builder<Vec<u8>>, name: &str, member: &Member) -> std::io::Result<()> {
    let mut header = Header::new_gnu();
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    match member {
        Member::File(bytes) => {
            header.set_mode(0o600);
            header.set_size(bytes.len() as u64);
            tar.append_data(&mut header, name, bytes.as_slice())
        }
        Member::Link(target) => {
            header.set_mode(0o777);
            header.set_size(0);
            header.set_entry_type(EntryType::Symlink);
            tar.append_link(&mut header, name, target)
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

/// Takes an archive apart, in memory.
///
/// # Errors
/// [`ArchiveError`]
pub fn unpack(packed: &[u8]) -> Result<Archive, ArchiveError> {
    let bytes = inflate(packed)?;
    let mut tar = Tar::new(bytes.as_slice());
    let not_tar = |e: std::io::Error| ArchiveError::Damaged(e.to_string());
    let entries = tar.entries().map_err(not_tar)?;
    let mut manifest: Option<Manifest> = None;
    let mut members: BTreeMap<String, Member> = BTreeMap::new();
    let mut digest = Sha256::new();
    for (count, entry) in entries.enumerate() {
        if count > MOST_FILES {
            return Err(ArchiveError::TooLarge(format!(
                "more than {MOST_FILES} files"
            )));
        }
        let mut entry = entry.map_err(not_tar)?;
        let name = name_of(&entry.path_bytes())?;
        if entry.size() > MOST_FILE.max(HARMLESS) {
            return Err(ArchiveError::TooLarge(format!(
                "{name} has {} MiB",
                entry.size() >> 20
            )));
        }
        let member = match entry.header().entry_type() {
            EntryType::Regular => {
                let mut content = Vec::new();
                entry.read_to_end(&mut content).map_err(not_tar)?;
                if content.len() as u64 != entry.size() {
                    return Err(ArchiveError::Damaged(format!("{name} ends too early")));
                }
                Member::File(content)
            }
            EntryType::Symlink => {
                let target = entry.link_name_bytes().unwrap_or_default().into_owned();
                let target = String::from_utf8(target).map_err(|_| {
                    ArchiveError::Hostile(format!(
                        "the link {name} leads to a name that is not UTF-8"
                    ))
                })?;
                Member::Link(target)
            }
            other => {
                return Err(ArchiveError::Hostile(format!(
                    "{name} is {}, and a capture has files and links only",
                    kind_name(other)
                )));
            }
        };
        match (&mut manifest, count, member) {
            (None, 0, Member::File(content)) if name == MANIFEST => {
                manifest = Some(read_manifest(&content)?);
            }
            (None, ..) => {
                return Err(ArchiveError::NotOne(format!(
                    "it begins with {name} and not with {MANIFEST}"
                )));
            }
            (Some(_), _, member) => {
                add(&mut digest, &name, member.bytes());
                if members.insert(name.clone(), member).is_some() {
                    return Err(ArchiveError::Hostile(format!("{name} is there twice")));
                }
            }
        }
    }
    let Some(manifest) = manifest else {
        return Err(ArchiveError::NotOne("it is empty".to_owned()));
    };
    let digest = hex(digest);
    let expected = manifest.digest.clone();
    let archive = assemble(manifest, members)?;
    if digest != expected {
        return Err(ArchiveError::Damaged(
            "the digest of its files is another one".to_owned(),
        ));
    }
    Ok(archive)
}

fn inflate(packed: &[u8]) -> Result<Vec<u8>, ArchiveError> {
    if !packed.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        return Err(ArchiveError::NotOne(
            "it is not packed with Zstandard".to_owned(),
        ));
    }
    let mut rest = packed;
    let decoder = StreamingDecoder::new_with_max_window_size(&mut rest, WINDOW)
        .map_err(|e| ArchiveError::NotOne(e.to_string()))?;
    let size = packed.len() as u64;
    let limit = MOST.min((size.saturating_mul(MOST_RATIO)).max(HARMLESS));
    let mut bytes = Vec::new();
    decoder
        .take(limit + 1)
        .read_to_end(&mut bytes)
        .map_err(|e| ArchiveError::Damaged(e.to_string()))?;
    if bytes.len() as u64 > limit {
        let what = format!("{size} bytes would unpack to more than {} MiB", limit >> 20);
        return Err(ArchiveError::TooLarge(what));
    }
    if !rest.is_empty() {
        return Err(ArchiveError::Damaged(format!(
            "{} bytes follow its end",
            rest.len()
        )));
    }
    Ok(bytes)
}

/// A member's name: relative, and nothing in it that leads elsewhere.
fn name_of(bytes: &[u8]) -> Result<String, ArchiveError> {
    let shown = || crate::nccl_log::harmless(bytes.get(..bytes.len().min(200)).unwrap_or_default());
    let name = std::str::from_utf8(bytes)
        .map_err(|_| ArchiveError::Hostile(format!("the name {} is not UTF-8", shown())))?;
    let plain = |part: &str| !matches!(part, "" | "." | "..") && !part.contains('\0');
    if !name.split('/').all(plain) {
        return Err(ArchiveError::Hostile(format!(
            "the name {} leads out of it",
            shown()
        )));
    }
    if name == MANIFEST
        || ["root/", "parts/", "logs/"]
            .iter()
            .any(|dir| name.starts_with(dir))
    {
        return Ok(name.to_owned());
    }
    Err(ArchiveError::NotOne(format!("it holds {}", shown())))
}

fn kind_name(kind: EntryType) -> &'static str {
    match kind {
        EntryType::Link => "a hard link",
        EntryType::Char | EntryType::Block => "a device",
        EntryType::Fifo => "a pipe",
        EntryType::Directory => "a directory",
        _ => "of a special kind",
    }
}

fn read_manifest(bytes: &[u8]) -> Result<Manifest, ArchiveError> {
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

fn assemble(
    manifest: Manifest,
    mut members: BTreeMap<String, Member>,
) -> Result<Archive, ArchiveError> {
    let mut tree = Tree {
        absent: manifest.absent,
        ..Tree::default()
    };
    let mut total: u64 = 0;
    for path in manifest.nodes.keys().chain(&tree.absent) {
        // The root itself is the empty path.
        if !path.is_empty()
            && (!path.starts_with('/')
                || path.ends_with('/')
                || parts(path).any(|p| p == "..")
                || parts(path).count() != path.matches('/').count())
        {
            return Err(ArchiveError::Hostile(format!(
                "the path {} is none",
                crate::nccl_log::harmless(path.as_bytes())
            )));
        }
    }
    for (path, meta) in manifest.nodes {
        let node = node(&path, meta, &mut members)?;
        total = total.saturating_add(match &node.content {
            Content::Whole(bytes) => bytes.len() as u64,
            _ => 0,
        });
        tree.nodes.insert(path, node);
    }
    let mut logs = Vec::new();
    for (at, name) in manifest.logs.into_iter().enumerate() {
        match members.remove(&format!("logs/{at}")) {
            Some(Member::File(bytes)) => logs.push(Log { name, bytes }),
            _ => return Err(ArchiveError::Damaged(format!("log {at} is not in it"))),
        }
    }
    if let Some((name, _)) = members.first_key_value() {
        return Err(ArchiveError::Hostile(format!(
            "{name} is in it, and its manifest does not know it"
        )));
    }
    Ok(Archive {
        live: manifest.live,
        addresses: manifest.addresses,
        pid: manifest.pid,
        tree,
        logs,
    })
}

fn node(
    path: &str,
    meta: Meta,
    members: &mut BTreeMap<String, Member>,
) -> Result<Node, ArchiveError> {
    let missing = || ArchiveError::Damaged(format!("the content of {path} is not in it"));
    let content = if meta.whole {
        match members.remove(&format!("root{path}")) {
            Some(Member::File(bytes)) => Content::Whole(bytes),
            _ => return Err(missing()),
        }
    } else if let Some(spans) = meta.parts {
        match members.remove(&format!("parts{path}")) {
            Some(Member::File(bytes)) => {
                Content::Parts(split(&spans, &bytes, meta.size).ok_or_else(missing)?)
            }
            _ => return Err(missing()),
        }
    } else if let Some(errno) = meta.read_error {
        Content::Failed(errno)
    } else {
        Content::None
    };
    if let Some(target) = meta.target.as_ref().filter(|target| !target.is_empty()) {
        if meta.kind != Kind::Link || leads_out(path, target) {
            return Err(ArchiveError::Hostile(format!(
                "the link {path} leads out of it"
            )));
        }
        match members.remove(&format!("root{path}")) {
            Some(Member::Link(found)) if found == *target => {}
            _ => return Err(missing()),
        }
    }
    let list = match (meta.list, meta.list_error) {
        (Some(entries), _) => {
            let entry = |(name, kind): (String, Kind)| Entry {
                name,
                kind: kind.into(),
            };
            Some(Ok(entries.into_iter().map(entry).collect()))
        }
        (None, Some(errno)) => Some(Err(errno)),
        (None, None) => None,
    };
    Ok(Node {
        kind: meta.kind.into(),
        mode: meta.mode,
        uid: meta.uid,
        gid: meta.gid,
        size: meta.size,
        target: meta.target,
        open_error: meta.open_error,
        list,
        content,
    })
}

/// The parts of a file that has `size` bytes, in order and not overlapping.
fn split(spans: &[(u64, u64)], bytes: &[u8], size: u64) -> Option<BTreeMap<u64, Vec<u8>>> {
    let mut parts = BTreeMap::new();
    let mut rest = bytes;
    let mut end = 0;
    for (at, length) in spans {
        let (part, more) = rest.split_at_checked(usize::try_from(*length).ok()?)?;
        if *at < end || at.checked_add(*length)? > size {
            return None;
        }
        end = at.checked_add(*length)?;
        rest = more;
        parts.insert(*at, part.to_vec());
    }
    rest.is_empty().then_some(parts)
}

/// Whether a relative link has more `..` than there are directories above it. An absolute one begins at the root.
fn leads_out(path: &str, target: &str) -> bool {
    let mut depth = if target.starts_with('/') {
        0
    } else {
        parts(path).count().saturating_sub(1)
    };
    for part in parts(target) {
        if part != ".." {
            depth += 1;
        } else if depth == 0 {
            return true;
        } else {
            depth -= 1;
        }
    }
    false
}
