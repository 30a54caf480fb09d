use grub_config_parser::cmdline::{CommandLine, Edit};
use grub_config_parser::grubenv::EnvBlock;

use super::{done, edits};

/// An environment block.
pub fn grubenv(data: &[u8]) {
    let Ok(block) = EnvBlock::parse(data) else {
        return;
    };
    assert_eq!(block.as_bytes(), data);
    let names: Vec<String> = block.iter().map(|(name, _)| name).collect();
    for name in &names {
        let line = block.line(name).unwrap();
        assert!(line >= 2 && line <= 1 + data.iter().filter(|byte| **byte == b'\n').count());
    }
    for (name, value) in [
        ("saved_entry", "0>x"),
        ("kernelopts", "a \\ \n b"),
        ("x", ""),
    ] {
        let mut edited = block.clone();
        if edited.set(name, value).is_ok() {
            assert_eq!(edited.as_bytes().len(), data.len());
            // The first line of the name is edited, the last one counts.
            if names.iter().filter(|own| *own == name).count() < 2 && sound(&block) {
                assert_eq!(edited.get(name).as_deref(), Some(value));
                others(&block, &edited, name);
            }
        } else {
            assert_eq!(edited, block);
        }
        let mut edited = block.clone();
        edited.unset(name);
        assert_eq!(edited.as_bytes().len(), data.len());
    }
    for name in names.iter().take(3) {
        let (set, remove) = edits(&CommandLine::parse(&block.get(name).unwrap_or_default()));
        for arg in &set {
            argument(&block, name, &Edit::Set(arg));
        }
        for pattern in &remove {
            argument(&block, name, &Edit::Remove(pattern));
        }
    }
}

fn argument(block: &EnvBlock, name: &str, edit: &Edit<'_>) {
    let mut edited = block.clone();
    match edited.edit_argument(name, edit) {
        Ok(true) => {
            assert_eq!(edited.as_bytes().len(), block.as_bytes().len());
            let value = edited.get(name).unwrap();
            assert!(done(&CommandLine::parse(&value), edit), "{value:?}");
            if sound(block) {
                others(block, &edited, name);
            }
        }
        Ok(false) => assert_eq!(&edited, block),
        Err(error) => {
            assert_eq!(&edited, block, "{error}");
            assert_ne!(error.missing(), Some(0));
        }
    }
}

/// True if every line is a comment or has a name: names may else run over lines.
fn sound(block: &EnvBlock) -> bool {
    let text = block.as_bytes();
    !text.contains(&b'\\')
        && text.split(|byte| *byte == b'\n').all(|line| {
            line.first() == Some(&b'#')
                || line
                    .iter()
                    .position(|b| *b == b'=')
                    .is_some_and(|at| at > 0)
        })
}

fn others(before: &EnvBlock, after: &EnvBlock, name: &str) {
    let rest = |block: &EnvBlock| {
        block
            .iter()
            .filter(|(own, _)| own != name)
            .collect::<Vec<_>>()
    };
    assert_eq!(rest(before), rest(after));
}
