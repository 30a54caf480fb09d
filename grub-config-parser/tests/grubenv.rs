//! Environment blocks against `grub-editenv`.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests start programs, read files and panic"
)]

mod common;

use std::collections::BTreeMap;
use std::process::{Command, Output};

use grub_config_parser::cmdline::{Arg, Edit};
use grub_config_parser::grubenv::{EnvBlock, EnvError, SIGNATURE};
use proptest::prelude::*;

/// Runs the real program on a copy of the block; gives its output and the block afterwards.
fn editenv(block: &[u8], args: &[&str]) -> (Output, Vec<u8>) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("grubenv");
    std::fs::write(&path, block).unwrap();
    let program = common::program("grub-editenv").unwrap();
    let output = common::run(Command::new(program).arg(&path).args(args));
    (output, std::fs::read(&path).unwrap())
}

fn block() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        4 => "[a-c]{0,2}=[a-z\\\\]{0,8}\n".prop_map(String::into_bytes),
        1 => Just(b"# a comment\n".to_vec()),
        1 => Just(b"a=x\\\ny\n".to_vec()),
        1 => Just(b"no equals\n".to_vec()),
        1 => Just(b"a=no newline".to_vec()),
        1 => Just(b"\n".to_vec()),
        1 => prop::collection::vec(1u8..=255, 0..6),
    ];
    (
        prop::collection::vec(line, 0..6),
        0usize..40,
        prop::bool::weighted(0.95),
    )
        .prop_map(|(lines, padding, signed)| {
            let mut block = if signed {
                SIGNATURE.to_vec()
            } else {
                b"# GRUB Environment\n".to_vec()
            };
            block.extend(lines.concat());
            block.resize(block.len() + padding, b'#');
            block
        })
}

/// The values as `list` prints them, last one wins; only for blocks whose values have no newline.
fn listed(output: &Output) -> Vec<u8> {
    output.stdout.clone()
}

proptest! {
    #![proptest_config(common::cases(600))]

    #[test]
    fn reading_finds_what_grub_editenv_lists(block in block()) {
        if common::program("grub-editenv").is_none() {
            return Ok(());
        }
        let (output, _) = editenv(&block, &["list"]);
        match EnvBlock::parse(&block) {
            Ok(parsed) => {
                prop_assert!(output.status.success());
                let shown: String = parsed.iter().map(|(name, value)| format!("{name}={value}\n")).collect();
                prop_assert_eq!(shown, String::from_utf8_lossy(&listed(&output)).into_owned());
            }
            Err(_) => prop_assert!(!output.status.success()),
        }
    }

    #[test]
    fn editing_makes_the_bytes_that_grub_editenv_makes(
        block in block(),
        name in "[a-d]{0,2}",
        value in "[a-z\\\\\n]{0,12}",
        unset in any::<bool>(),
    ) {
        if common::program("grub-editenv").is_none() {
            return Ok(());
        }
        let Ok(mut parsed) = EnvBlock::parse(&block) else { return Ok(()) };
        if unset {
            // An empty name cannot be given on the command line of `unset`; it can here.
            let (output, after) = editenv(&block, &["unset", &name]);
            prop_assert!(output.status.success());
            parsed.unset(&name);
            prop_assert_eq!(parsed.as_bytes(), after.as_slice());
            return Ok(());
        }
        let before = parsed.clone();
        let (output, after) = editenv(&block, &["set", &format!("{name}={value}")]);
        match parsed.set(&name, &value) {
            Ok(()) => {
                prop_assert!(output.status.success(), "{output:?}");
                prop_assert_eq!(parsed.as_bytes(), after.as_slice());
            }
            Err(error) => {
                prop_assert!(!output.status.success(), "{error}");
                prop_assert_eq!(parsed, before);
            }
        }
    }

    #[test]
    fn a_value_that_was_set_is_read_back_and_nothing_else_changes(
        values in prop::collection::btree_map("[a-z_]{1,8}", "[ -~\n]{0,40}", 0..12),
    ) {
        let mut block = EnvBlock::empty();
        for (name, value) in &values {
            block.set(name, value).unwrap();
        }
        prop_assert_eq!(block.as_bytes().len(), 1024);
        let read: BTreeMap<String, String> = block.iter().collect();
        prop_assert_eq!(&read, &values);
        for name in values.keys() {
            prop_assert!(block.unset(name));
            prop_assert_eq!(block.get(name), None);
        }
        prop_assert_eq!(block, EnvBlock::empty());
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
        let bytes = [SIGNATURE, &bytes].concat();
        if let Ok(mut block) = EnvBlock::parse(&bytes) {
            prop_assert_eq!(block.as_bytes(), bytes.as_slice());
            let _ = block.set("a", "b");
            block.unset("a");
            prop_assert_eq!(block.as_bytes().len(), bytes.len());
        }
    }
}

#[test]
fn a_value_that_does_not_fit_is_refused_and_changes_nothing() {
    let mut block = EnvBlock::parse(&[SIGNATURE, b"a=1\n####"].concat()).unwrap();
    let before = block.clone();
    let error = block.set("b", "12345").unwrap_err();
    assert_eq!(
        error,
        EnvError::NoSpace {
            name: "b".into(),
            needed: 8,
            left: 4
        }
    );
    assert_eq!(block, before);
    block.set("b", "1").unwrap();
    assert_eq!(block.as_bytes(), [SIGNATURE, b"a=1\nb=1\n"].concat());
    assert_eq!(
        EnvBlock::parse(SIGNATURE),
        Err(EnvError::TooShort { size: 25 })
    );
    assert_eq!(EnvBlock::parse(&[0; 1024]), Err(EnvError::Signature));
}

#[test]
fn every_block_of_the_corpus_is_read_as_grub_editenv_reads_it() {
    if common::program("grub-editenv").is_none() {
        return;
    }
    for path in common::corpus_files("grubenv") {
        let bytes = std::fs::read(&path).unwrap();
        let (output, _) = editenv(&bytes, &["list"]);
        let block = EnvBlock::parse(&bytes).unwrap();
        let shown: String = block
            .iter()
            .map(|(name, value)| format!("{name}={value}\n"))
            .collect();
        assert_eq!(shown.as_bytes(), listed(&output), "{}", path.display());
    }
}

#[test]
fn arguments_of_a_variable_are_edited_where_there_is_room() {
    let mut block =
        EnvBlock::parse(b"# GRUB Environment Block\nkernelopts=root=/dev/sda1 ro\n######").unwrap();
    let set = |block: &mut EnvBlock, text: &str| {
        block.edit_argument("kernelopts", &Edit::Set(&Arg::new(text)))
    };
    let before = block.clone();
    let error = set(&mut block, "iommu=pt").unwrap_err();
    assert_eq!(error.missing(), Some(3), "{error}");
    assert!(error.to_string().contains("3 missing"), "{error}");
    assert_eq!(block, before);
    assert_eq!(set(&mut block, "quiet"), Ok(true));
    assert_eq!(block.free(), 0);
    assert_eq!(set(&mut block, "quiet"), Ok(false));
    assert_eq!(
        block.edit_argument("kernelopts", &Edit::Remove("ro")),
        Ok(true)
    );
    assert_eq!(
        block.get("kernelopts").as_deref(),
        Some("root=/dev/sda1 quiet")
    );
    assert_eq!(block.line("kernelopts"), Some(2));
    let error = block
        .edit_argument("tuned_params", &Edit::Remove("x"))
        .unwrap_err();
    assert!(matches!(error, EnvError::NotSet { .. }));
    for (text, wrong) in [
        ("a=1\na=2\n##", "more than once"),
        ("a=\u{1}\"b\n######################", "quote"),
    ] {
        let mut block =
            EnvBlock::parse(format!("# GRUB Environment Block\n{text}").as_bytes()).unwrap();
        let error = block
            .edit_argument("a", &Edit::Set(&Arg::new("q")))
            .unwrap_err();
        assert!(error.to_string().contains(wrong), "{error}");
    }
    let mut block = EnvBlock::parse(b"# GRUB Environment Block\na=\xff\n#####").unwrap();
    let error = block
        .edit_argument("a", &Edit::Set(&Arg::new("q")))
        .unwrap_err();
    assert!(matches!(error, EnvError::NotText { .. }));
}
