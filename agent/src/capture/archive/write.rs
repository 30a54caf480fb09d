//! Packing an archive.

use std::collections::BTreeMap;

use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use sha2::{Digest, Sha256};
use tar::{Builder, EntryType, Header};

use super::manifest::{Manifest, meta};
use super::{Archive, ArchiveError, Log, MANIFEST, MOST, MOST_FILES, Member, SCHEMA, add, hex};
use crate::capture::tree::Content;

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
        logs: names(&archive.logs),
        perftest: names(&archive.perftest),
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
    for (dir, given) in [("logs", &archive.logs), ("perftest", &archive.perftest)] {
        for (at, log) in given.iter().enumerate() {
            members.insert(format!("{dir}/{at}"), Member::File(log.bytes.clone()));
        }
    }
    members
}

fn names(given: &[Log]) -> Vec<String> {
    given.iter().map(|log| log.name.clone()).collect()
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
