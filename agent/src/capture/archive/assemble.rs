//! From a manifest and members to the tree that both describe: what one has and the other does not is refused.

use std::collections::BTreeMap;

use super::manifest::{Kind, Manifest, Meta};
use super::{Archive, ArchiveError, Log, Member};
use crate::capture::tree::{Content, Node, Tree, parts};
use crate::plain::shown;
use crate::sys::Entry;

pub(super) fn assemble(
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
                shown(path)
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
    let logs = given("logs", manifest.logs, &mut members)?;
    let perftest = given("perftest", manifest.perftest, &mut members)?;
    if let Some((name, _)) = members.first_key_value() {
        return Err(ArchiveError::Hostile(format!(
            "{} is in it, and its manifest does not know it",
            shown(name)
        )));
    }
    Ok(Archive {
        live: manifest.live,
        addresses: manifest.addresses,
        pid: manifest.pid,
        tree,
        logs,
        perftest,
    })
}

/// What was given besides the node's files, in the manifest's order.
fn given(
    dir: &str,
    names: Vec<String>,
    members: &mut BTreeMap<String, Member>,
) -> Result<Vec<Log>, ArchiveError> {
    let one = |(at, name)| {
        let member = format!("{dir}/{at}");
        match members.remove(&member) {
            Some(Member::File(bytes)) => Ok(Log { name, bytes }),
            _ => Err(ArchiveError::Damaged(format!("{member} is not in it"))),
        }
    };
    names.into_iter().enumerate().map(one).collect()
}

fn node(
    path: &str,
    meta: Meta,
    members: &mut BTreeMap<String, Member>,
) -> Result<Node, ArchiveError> {
    let missing = || ArchiveError::Damaged(format!("the content of {} is not in it", shown(path)));
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
                "the link {} leads out of it",
                shown(path)
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
