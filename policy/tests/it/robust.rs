//! Properties that hold for any input.

use std::str::FromStr;

use gdr_policy::{
    Duration, FleetlockGroup, FleetlockUrl, KernelArg, ModuleName, PackageName, Peer, Selector,
    Source, load,
};
use proptest::prelude::*;

use crate::SAMPLE;

/// What no accepted text may hold, whatever its type. `*` alone is left to selectors.
const FORBIDDEN: &str = "$`\"'\\<>|&(){}#!?;^ \t\n\r";

fn safe<T: FromStr + std::fmt::Display>(text: &str, also: &str) -> Result<(), TestCaseError> {
    let Ok(value) = text.parse::<T>() else {
        return Ok(());
    };
    let shown = value.to_string();
    prop_assert!(!shown.is_empty());
    for c in shown.chars() {
        prop_assert!(c.is_ascii_graphic(), "{c:?} in {shown:?}");
        prop_assert!(
            !FORBIDDEN.contains(c) && !also.contains(c),
            "{c:?} in {shown:?}"
        );
    }
    Ok(())
}

/// A text that could be an option is refused where it may stand in an argv. A FleetLock group goes
/// into a request's body only, and the protocol lets it start with a dash.
fn no_option<T: FromStr>(text: &str) -> Result<(), TestCaseError> {
    prop_assert!(
        !text.starts_with('-') || text.parse::<T>().is_err(),
        "{text:?}"
    );
    Ok(())
}

fn all_safe(text: &str) -> Result<(), TestCaseError> {
    no_option::<KernelArg>(text)?;
    no_option::<ModuleName>(text)?;
    no_option::<PackageName>(text)?;
    no_option::<FleetlockUrl>(text)?;
    no_option::<Peer>(text)?;
    safe::<KernelArg>(text, "*~[]")?;
    safe::<ModuleName>(text, "*~[]=/")?;
    safe::<PackageName>(text, "*~[]=/")?;
    safe::<FleetlockUrl>(text, "*@")?;
    safe::<FleetlockGroup>(text, "*~[]/")?;
    safe::<Peer>(text, "*~[]/")?;
    safe::<Duration>(text, "*~[]/")?;
    safe::<Selector>(text, "~[]")
}

/// Loads and shows; neither may panic, and an error always has something to show.
fn survives(text: Vec<u8>) -> Result<(), TestCaseError> {
    let sources = [Source {
        name: "policy.toml".to_owned(),
        text,
    }];
    let found = match load(&sources) {
        Ok(loaded) => loaded.warnings,
        Err(found) => {
            prop_assert!(found.has_errors());
            found
        }
    };
    let shown = found.render(&sources, false);
    prop_assert!(
        shown.chars().all(|c| c == '\n' || !c.is_control()),
        "{shown:?}"
    );
    Ok(())
}

/// Pieces that TOML and the format give a meaning to, in any order.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        prop::sample::select(vec![
            "version",
            "kernel",
            "iommu",
            "reboot",
            "fleetlock",
            "acs",
            "clear",
            "verify",
            "a",
        ])
        .prop_map(str::to_owned),
        prop::sample::select(vec![
            "=",
            " = ",
            ".",
            "[",
            "]",
            "[[",
            "]]",
            "{",
            "}",
            ",",
            "\n",
            "\r\n",
            "\"",
            "'",
            "\"\"\"",
            "#",
            "\\",
            "\\u001b",
            "1",
            "1.5",
            "true",
            "inf",
            "\"RR\"",
            "\"off\"",
            "é",
            "\u{feff}",
            "\t",
            "2026-01-01",
            "0x",
            "\u{1b}[0m",
        ])
        .prop_map(str::to_owned),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn any_bytes(text in prop::collection::vec(any::<u8>(), 0..300)) {
        survives(text)?;
    }

    #[test]
    fn almost_toml(text in pieces()) {
        survives(text.clone().into_bytes())?;
        survives(format!("version = 1\n{text}").into_bytes())?;
    }

    #[test]
    fn damaged_sample(at in 0..SAMPLE.len(), length in 0..20_usize, with in pieces()) {
        let mut text = SAMPLE.as_bytes().to_vec();
        let end = (at + length).min(text.len());
        text.splice(at..end, with.into_bytes());
        survives(text)?;
    }

    #[test]
    fn accepted_texts_are_safe(text in "\\PC{0,12}|[ -~]{0,12}|[\\x00-\\x7f]{1,4}") {
        all_safe(&text)?;
    }

    /// One foreign character in a good text makes it bad or leaves it safe.
    #[test]
    fn good_texts_with_one_foreign_character(
        text in prop::sample::select(vec![
            "pci=realloc=off", "nvidia-peermem", "http://h:1/p", "gpu", "10m", "10de:*/0302",
        ]),
        at in 0..20_usize,
        c in any::<char>(),
    ) {
        let mut text = text.to_owned();
        text.insert(at.min(text.len()), c);
        all_safe(&text)?;
    }
}
