use std::collections::BTreeMap;

use gdr_agent::capture::{Archive, Content, Node, Tree, pack, unpack};
use gdr_agent::sys::EntryKind;
use tar::{EntryType, Header};

/// Archives of `capture`: an error, or what is the same after it was packed again.
pub fn capture(data: &[u8]) {
    same_again(data);
    same_again(&stored(data));
    same_again(&stored(&bent(data)));
    same_again(&stored(&members(data)));
}

fn same_again(packed: &[u8]) {
    match unpack(packed) {
        Ok(archive) => {
            let again = pack(&archive).expect("what was unpacked can be packed");
            assert_eq!(unpack(&again).expect("its own archive"), archive);
            for path in archive.tree.nodes.keys() {
                let _ = archive.tree.resolve(path, true);
            }
        }
        Err(error) => super::shown(&error.to_string()),
    }
}

/// A Zstandard frame of blocks that are stored as they are (RFC 8878, 3.1.1).
fn stored(bytes: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x38];
    let mut blocks = bytes.chunks(64 << 10).peekable();
    while let Some(block) = blocks.next() {
        let last = u32::from(blocks.peek().is_none());
        let header = u32::try_from(block.len()).unwrap() << 3 | last;
        frame.extend_from_slice(&header.to_le_bytes()[..3]);
        frame.extend_from_slice(block);
    }
    frame
}

fn good() -> Vec<u8> {
    let file = |bytes: &[u8]| Node {
        size: bytes.len() as u64,
        content: Content::Whole(bytes.to_vec()),
        ..Node::bare(EntryKind::File)
    };
    let mut nodes = BTreeMap::new();
    for dir in ["", "/etc", "/sys"] {
        nodes.insert(dir.to_owned(), Node::bare(EntryKind::Dir));
    }
    nodes.insert("/etc/a".into(), file(b"text\n"));
    let link = Node {
        target: Some("../sys/b".into()),
        ..Node::bare(EntryKind::Link)
    };
    nodes.insert("/etc/l".into(), link);
    nodes.insert("/sys/b".into(), file(&[7; 300]));
    let archive = Archive {
        tree: Tree {
            nodes,
            ..Tree::default()
        },
        ..Archive::default()
    };
    let packed = pack(&archive).unwrap();
    let mut bytes = Vec::new();
    let mut rest = packed.as_slice();
    let mut decoder = ruzstd::decoding::StreamingDecoder::new(&mut rest).unwrap();
    std::io::Read::read_to_end(&mut decoder, &mut bytes).unwrap();
    bytes
}

/// A good archive with bytes of its members changed, three bytes of `data` for each; headers' checksums are right again.
fn bent(data: &[u8]) -> Vec<u8> {
    let good = good();
    let mut archive = tar::Archive::new(good.as_slice());
    let mut content = Vec::new();
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let mut bytes = entry.header().as_bytes().to_vec();
        let head = bytes.len();
        std::io::Read::read_to_end(&mut entry, &mut bytes).unwrap();
        content.push((head, bytes));
    }
    for change in data.chunks_exact(3) {
        let at = usize::from(change[0]) << 8 | usize::from(change[1]);
        let count = content.len();
        // most of them in the manifest
        let (_, bytes) = &mut content[if at % 3 > 0 { 0 } else { at % count }];
        let at = at % bytes.len();
        bytes[at] = change[2];
    }
    let mut builder = tar::Builder::new(Vec::new());
    for (head, bytes) in content {
        let mut header = Header::new_gnu();
        header.as_mut_bytes().copy_from_slice(&bytes[..head]);
        header.set_size((bytes.len() - head) as u64);
        header.set_cksum();
        builder.append(&header, &bytes[head..]).unwrap();
    }
    builder.into_inner().unwrap()
}

/// Members as `data` has them: kind, name and content, each ended by a 0.
fn members(data: &[u8]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    let mut parts = data.split(|b| *b == 0);
    while let (Some(kind), Some(name), Some(content)) = (parts.next(), parts.next(), parts.next()) {
        let mut header = Header::new_gnu();
        header.set_entry_type(EntryType::new(kind.first().copied().unwrap_or(b'0')));
        let name = name.get(..99).unwrap_or(name);
        header.as_mut_bytes()[..name.len()].copy_from_slice(name);
        let target = content.get(..99).unwrap_or(content);
        header.as_mut_bytes()[157..157 + target.len()].copy_from_slice(target);
        header.set_size(content.len() as u64);
        header.set_cksum();
        builder.append(&header, content).unwrap();
    }
    builder.into_inner().unwrap()
}
