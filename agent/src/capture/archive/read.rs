//! Taking an archive apart, without trust.

use std::collections::BTreeMap;
use std::io::Read;

use ruzstd::decoding::StreamingDecoder;
use sha2::{Digest, Sha256};
use tar::{Archive as Tar, EntryType};

use super::assemble::assemble;
use super::manifest::{Manifest, read_manifest};
use super::{
    Archive, ArchiveError, HARMLESS, MANIFEST, MOST, MOST_FILE, MOST_FILES, MOST_RATIO, Member,
    WINDOW, add, hex,
};
use crate::plain::shown;

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
                "{} has {} MiB",
                shown(&name),
                entry.size() >> 20
            )));
        }
        let member = match entry.header().entry_type() {
            EntryType::Regular => {
                let mut content = Vec::new();
                entry.read_to_end(&mut content).map_err(not_tar)?;
                if content.len() as u64 != entry.size() {
                    return Err(ArchiveError::Damaged(format!(
                        "{} ends too early",
                        shown(&name)
                    )));
                }
                Member::File(content)
            }
            EntryType::Symlink => {
                let target = entry.link_name_bytes().unwrap_or_default().into_owned();
                let target = String::from_utf8(target).map_err(|_| {
                    ArchiveError::Hostile(format!(
                        "the link {} leads to a name that is not UTF-8",
                        shown(&name)
                    ))
                })?;
                Member::Link(target)
            }
            other => {
                return Err(ArchiveError::Hostile(format!(
                    "{} is {}, and a capture has files and links only",
                    shown(&name),
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
                    "it begins with {} and not with {MANIFEST}",
                    shown(&name)
                )));
            }
            (Some(_), _, member) => {
                add(&mut digest, &name, member.bytes());
                if members.insert(name.clone(), member).is_some() {
                    return Err(ArchiveError::Hostile(format!(
                        "{} is there twice",
                        shown(&name)
                    )));
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
        .map_err(|_| ArchiveError::Damaged("it cannot be unpacked".to_owned()))?;
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
        || ["root/", "parts/", "logs/", "perftest/"]
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
