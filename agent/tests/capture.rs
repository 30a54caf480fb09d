//! Archives of `capture`: what goes in comes out, and what nobody who means well has made is refused.
#![allow(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::panic,
    clippy::semicolon_if_nothing_returned,
    reason = "a test makes its own archives"
)]

use std::collections::BTreeMap;
use std::path::Path;

use gdr_agent::capture::{Archive, ArchiveError, Content, Log, Node, Tree, pack, unpack};
use gdr_agent::sys::{EntryKind, Root};
use proptest::prelude::*;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use serde_json::Value;
use tar::{Builder, EntryType, Header};

fn file(bytes: &[u8]) -> Node {
    Node {
        size: bytes.len() as u64,
        content: Content::Whole(bytes.to_vec()),
        ..Node::bare(EntryKind::File)
    }
}

fn link(target: &str) -> Node {
    Node {
        target: Some(target.to_owned()),
        ..Node::bare(EntryKind::Link)
    }
}

fn archive() -> Archive {
    let mut nodes = BTreeMap::new();
    for dir in ["", "/etc", "/sys", "/sys/devices"] {
        nodes.insert(dir.to_owned(), Node::bare(EntryKind::Dir));
    }
    nodes.insert("/etc/a".into(), file(b"text\n"));
    nodes.insert("/etc/link".into(), link("../sys/devices/config"));
    nodes.insert("/sys/devices/config".into(), file(&[7; 4096]));
    let long = format!("/sys/devices/{}", "0000:00:01.0/".repeat(30));
    nodes.insert(long.trim_end_matches('/').into(), file(b"deep"));
    nodes.insert(
        "/sys/devices/denied".into(),
        Node {
            size: 4096,
            open_error: Some(13),
            ..Node::bare(EntryKind::File)
        },
    );
    nodes.insert(
        "/sys/devices/fails".into(),
        Node {
            size: 4096,
            content: Content::Failed(5),
            ..Node::bare(EntryKind::File)
        },
    );
    nodes.insert(
        "/sys/devices/large".into(),
        Node {
            size: 1 << 40,
            content: Content::Parts(BTreeMap::from([
                (0, b"ELF".to_vec()),
                (1 << 39, b"end".to_vec()),
            ])),
            ..Node::bare(EntryKind::File)
        },
    );
    Archive {
        live: true,
        addresses: false,
        pid: Some(7),
        tree: Tree {
            nodes,
            absent: ["/etc/none".to_owned()].into(),
        },
        logs: vec![Log {
            name: "job.log".into(),
            bytes: b"a log\n".to_vec(),
        }],
        perftest: vec![Log {
            name: "gpu.txt".into(),
            bytes: b"initializing CUDA\n".to_vec(),
        }],
    }
}

#[test]
fn what_goes_in_comes_out_and_always_the_same() {
    let before = archive();
    let packed = pack(&before).unwrap();
    assert_eq!(packed, pack(&before).unwrap());
    assert_eq!(unpack(&packed).unwrap(), before);
}

#[test]
fn unreadable_absent_and_never_asked_stay_apart() {
    let archive = unpack(&pack(&archive()).unwrap()).unwrap();
    let root = Root::captured(Path::new("x"), archive.tree, archive.live).unwrap();
    assert_eq!(root.read("/etc/link").unwrap(), [7; 4096]);
    assert_eq!(root.read_if_there("/etc/none").unwrap(), None);
    assert_eq!(
        root.read("/sys/devices/denied").unwrap_err().errno(),
        Some(13)
    );
    assert_eq!(
        root.read("/sys/devices/fails").unwrap_err().errno(),
        Some(5)
    );
    let error = root.read_if_there("/etc/other").unwrap_err().to_string();
    assert!(
        error.contains("/etc/other: the capture does not have it"),
        "{error}"
    );
    assert!(root.list("/etc").is_err() && !root.is_live() && root.is_of_running());
}

/// The members of a good archive, as raw tar entries that a test can bend.
struct Members(Vec<(Header, Vec<u8>, Vec<u8>)>);

impl Members {
    fn of(packed: &[u8]) -> Self {
        let mut rest = packed;
        let mut bytes = Vec::new();
        let mut decoder = ruzstd::decoding::StreamingDecoder::new(&mut rest).unwrap();
        std::io::Read::read_to_end(&mut decoder, &mut bytes).unwrap();
        let mut tar = tar::Archive::new(bytes.as_slice());
        let members = tar.entries().unwrap().map(|entry| {
            let mut entry = entry.unwrap();
            let name = entry.path_bytes().into_owned();
            let mut content = Vec::new();
            std::io::Read::read_to_end(&mut entry, &mut content).unwrap();
            (entry.header().clone(), name, content)
        });
        Self(members.filter(|(_, name, _)| name.len() < 100).collect())
    }

    fn good() -> Self {
        let mut archive = archive();
        archive.tree.nodes.retain(|path, _| path.len() < 90);
        Self::of(&pack(&archive).unwrap())
    }

    /// Adds one with a name that no decent program writes.
    fn add(&mut self, name: &str, kind: EntryType, content: &[u8], target: &str) {
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(0o600);
        header.as_mut_bytes()[157..157 + target.len()].copy_from_slice(target.as_bytes());
        self.0
            .push((header, name.as_bytes().to_vec(), content.to_vec()));
    }

    fn manifest(&mut self, change: impl FnOnce(&mut Value)) {
        let (_, _, content) = &mut self.0[0];
        let mut value: Value = serde_json::from_slice(content).unwrap();
        change(&mut value);
        *content = serde_json::to_vec(&value).unwrap();
    }

    fn pack(&self) -> Vec<u8> {
        let mut tar = Builder::new(Vec::new());
        for (header, name, content) in &self.0 {
            let mut header = header.clone();
            header.as_mut_bytes()[..100].fill(0);
            header.as_mut_bytes()[..name.len()].copy_from_slice(name);
            header.set_size(content.len() as u64);
            header.set_cksum();
            tar.append(&header, content.as_slice()).unwrap();
        }
        compress_to_vec(
            tar.into_inner().unwrap().as_slice(),
            CompressionLevel::Fastest,
        )
    }

    fn error(&self) -> ArchiveError {
        unpack(&self.pack()).unwrap_err()
    }
}

#[test]
fn the_bent_archives_are_good_before_they_are_bent() {
    unpack(&Members::good().pack()).unwrap();
}

#[test]
fn names_that_lead_elsewhere_and_special_files_are_refused() {
    for (name, kind, target) in [
        ("root/../../etc/passwd", EntryType::Regular, ""),
        ("/etc/passwd", EntryType::Regular, ""),
        ("../x", EntryType::Regular, ""),
        ("root//etc/a", EntryType::Regular, ""),
        ("root/./etc/a", EntryType::Regular, ""),
        ("root/etc/hard", EntryType::Link, "/etc/shadow"),
        ("root/etc/hard", EntryType::Link, "root/etc/a"),
        ("root/dev/sda", EntryType::Block, ""),
        ("root/dev/mem", EntryType::Char, ""),
        ("root/etc/pipe", EntryType::Fifo, ""),
        ("root/etc/dir", EntryType::Directory, ""),
        ("root/etc/other", EntryType::Continuous, ""),
        ("root/etc/unknown", EntryType::Regular, ""),
        ("root/etc/link2", EntryType::Symlink, "/etc/shadow"),
        ("root/etc/a", EntryType::Regular, ""),
        ("logs/1", EntryType::Regular, ""),
        ("perftest/1", EntryType::Regular, ""),
        ("perftest/../root/etc/b", EntryType::Regular, ""),
    ] {
        let mut members = Members::good();
        members.add(name, kind, b"", target);
        let error = members.error();
        assert!(
            matches!(error, ArchiveError::Hostile(_)),
            "{name} {kind:?}: {error}"
        );
    }
    let mut members = Members::good();
    members.add("bin/sh", EntryType::Regular, b"", "");
    assert!(matches!(members.error(), ArchiveError::NotOne(_)));
}

#[test]
fn links_out_of_the_tree_are_refused() {
    for target in ["../../etc/shadow", "../../../../../../x", "../sys/../../x"] {
        let mut archive = archive();
        archive.tree.nodes.insert("/etc/link".into(), link(target));
        let error = unpack(&pack(&archive).unwrap()).unwrap_err();
        assert!(
            matches!(error, ArchiveError::Hostile(_)),
            "{target}: {error}"
        );
    }
    // An absolute one begins at the archive's own root, and a target that the manifest does not have is a lie.
    let mut archive = archive();
    archive
        .tree
        .nodes
        .insert("/etc/link".into(), link("/sys/devices/config"));
    unpack(&pack(&archive).unwrap()).unwrap();
    let mut members = Members::good();
    for (header, _, _) in &mut members.0 {
        if header.entry_type() == EntryType::Symlink {
            header.as_mut_bytes()[157..167].copy_from_slice(b"/etc/shado");
        }
    }
    assert!(matches!(members.error(), ArchiveError::Damaged(_)));
}

#[test]
fn manifests_that_lie_are_refused() {
    let bend = |change: fn(&mut Value)| {
        let mut members = Members::good();
        members.manifest(change);
        members.error()
    };
    let hostile =
        |error: ArchiveError| assert!(matches!(error, ArchiveError::Hostile(_)), "{error}");
    let damaged =
        |error: ArchiveError| assert!(matches!(error, ArchiveError::Damaged(_)), "{error}");
    hostile(bend(|m| m["absent"] = serde_json::json!(["/etc/../x"])));
    hostile(bend(|m| m["absent"] = serde_json::json!(["etc"])));
    hostile(bend(|m| {
        m["nodes"].as_object_mut().unwrap().remove("/etc/a");
    }));
    damaged(bend(|m| m["digest"] = "00".into()));
    damaged(bend(|m| {
        m["nodes"]["/etc/b"] = m["nodes"]["/etc/a"].clone()
    }));
    damaged(bend(|m| {
        m["nodes"]["/sys/devices/large"]["parts"] = serde_json::json!([[0, 6], [3, 0]])
    }));
    damaged(bend(|m| {
        m["nodes"]["/sys/devices/large"]["parts"] = serde_json::json!([[u64::MAX, 6]])
    }));
    damaged(bend(|m| {
        m["nodes"]["/sys/devices/large"]["size"] = 3.into()
    }));
    damaged(bend(|m| m["logs"] = serde_json::json!(["a", "b"])));
    damaged(bend(|m| m["perftest"] = serde_json::json!(["a", "b"])));
    hostile(bend(|m| m["perftest"] = serde_json::json!([])));
    damaged(bend(|m| m["more"] = true.into()));
    let other = bend(|m| m["schema"] = "gdr-agent/capture-archive/v9".into());
    assert!(matches!(other, ArchiveError::OtherVersion(_)), "{other}");
}

#[test]
fn a_changed_byte_and_a_swapped_file_are_seen() {
    let mut members = Members::good();
    let (_, _, content) = members
        .0
        .iter_mut()
        .find(|(_, name, _)| name == b"root/etc/a")
        .unwrap();
    content[0] ^= 1;
    assert!(matches!(members.error(), ArchiveError::Damaged(_)));
    let mut members = Members::good();
    members.0.pop();
    assert!(matches!(members.error(), ArchiveError::Damaged(_)));
    let mut members = Members::good();
    members.0.remove(0);
    assert!(matches!(members.error(), ArchiveError::NotOne(_)));
}

#[test]
fn other_files_are_not_taken_for_one() {
    for bytes in [
        &b""[..],
        b"hello",
        b"\x1f\x8b\x08\0",
        b"PK\x03\x04",
        b"\x28\xb5\x2f\xfd",
    ] {
        let error = unpack(bytes).unwrap_err();
        assert!(
            matches!(error, ArchiveError::NotOne(_)),
            "{bytes:?}: {error}"
        );
    }
    for text in [&b"no tar at all"[..], &[0; 4096], &[b'x'; 4096]] {
        assert!(unpack(&compress_to_vec(text, CompressionLevel::Fastest)).is_err());
    }
}

#[test]
fn a_cut_archive_is_never_a_smaller_one() {
    let packed = pack(&archive()).unwrap();
    for length in 0..packed.len() {
        assert!(
            unpack(&packed[..length]).is_err(),
            "cut at {length} of {}",
            packed.len()
        );
    }
    let mut longer = packed.clone();
    longer.push(0);
    assert!(unpack(&longer).is_err());
}

/// Names of megabytes and paths by thousands are an error or are read, in no time, and no message has all of them.
#[test]
fn giant_names_and_thousands_of_paths() {
    let short = |error: ArchiveError| {
        let text = error.to_string();
        assert!(
            text.len() < 400 && !text.contains('\u{1b}'),
            "{} bytes",
            text.len()
        );
    };
    let giant = |of: &str| format!("/{}", of.repeat((1 << 20) / of.len()));
    for path in [
        giant("x"),
        giant("\u{1b}[2J"),
        giant("d/").trim_end_matches('/').to_owned(),
    ] {
        // nobody has packed it
        let mut members = Members::good();
        members.manifest(|m| m["nodes"][&path] = m["nodes"]["/etc/a"].clone());
        short(members.error());
        // it is there
        let mut large = archive();
        large.tree.nodes.insert(path.clone(), file(b"x"));
        let packed = pack(&large);
        match packed.and_then(|packed| unpack(&packed)) {
            Ok(found) => assert_eq!(found, large),
            Err(error) => short(error),
        }
        let mut away = archive();
        away.tree
            .nodes
            .insert(path.clone(), link("../".repeat(600_000).as_str()));
        short(pack(&away).and_then(|packed| unpack(&packed)).unwrap_err());
    }
    let mut many = archive();
    for at in 0..20_000 {
        many.tree.nodes.insert(format!("/proc/{at}"), file(b""));
        many.tree.absent.insert(format!("/proc/{at}/environ"));
    }
    let packed = pack(&many).unwrap();
    assert_eq!(unpack(&packed).unwrap(), many);
}

/// A Zstandard frame of blocks that repeat one byte (RFC 8878 3.1.1.2): 1.25 GiB from 40 KB.
#[test]
fn bombs_do_not_go_off() {
    let mut bomb = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x38];
    for at in 0..10_000_u32 {
        let header = (128 << 10 << 3) | (1 << 1) | u32::from(at == 9_999);
        bomb.extend_from_slice(&header.to_le_bytes()[..3]);
        bomb.push(0);
    }
    let error = unpack(&bomb).unwrap_err();
    assert!(matches!(error, ArchiveError::TooLarge(_)), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Whatever is done to the bytes: an error, or what went in.
    #[test]
    fn bent_bytes_are_an_error(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)) {
        let good = pack(&archive()).unwrap();
        let mut bytes = good.clone();
        for (at, byte) in &changes {
            let at = at.index(bytes.len());
            bytes[at] = *byte;
        }
        if let Ok(found) = unpack(&bytes) {
            prop_assert_eq!(found, archive());
        }
    }

    /// The same below the packing, where more gets through.
    #[test]
    fn bent_members_are_an_error(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)) {
        let mut members = Members::good();
        for (at, byte) in &changes {
            let (_, _, content) = &mut members.0[0];
            let at = at.index(content.len());
            content[at] = *byte;
        }
        let _ = unpack(&members.pack());
    }
}
