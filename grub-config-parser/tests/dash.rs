//! Shell files against dash itself: every value that is called literal or derived, and every abort.
#![allow(clippy::indexing_slicing, clippy::panic, reason = "tests panic")]

mod common;
mod shells;

use grub_config_parser::defaults::Shell;
use proptest::prelude::*;
use shells::{compare, compound, is_there, pile, statement};

#[test]
fn assignments_have_the_values_that_dash_gives_them() {
    if !is_there(Shell::Dash) {
        return;
    }
    let lines = prop::collection::vec(statement(Shell::Dash), 0..8)
        .prop_map(|lines| (lines.join("\n") + "\n").into_bytes());
    let files = prop::collection::vec(lines, 1..3);
    proptest!(common::cases(20), |(all in prop::collection::vec(files, 1..40))| {
        compare(Shell::Dash, &all, true);
    });
}

#[test]
fn control_flow_that_is_known_is_followed_and_the_rest_is_not_guessed() {
    if !is_there(Shell::Dash) {
        return;
    }
    let file = prop::collection::vec(compound(Shell::Dash), 0..5)
        .prop_map(|lines| vec![(lines.join("\n") + "\n").into_bytes()]);
    proptest!(common::cases(15), |(all in prop::collection::vec(file, 1..40))| {
        compare(Shell::Dash, &all, true);
    });
}

#[test]
fn any_pile_of_tokens_is_read_as_dash_reads_it() {
    if !is_there(Shell::Dash) {
        return;
    }
    let file = pile().prop_map(|text| vec![text.into_bytes()]);
    proptest!(common::cases(25), |(all in prop::collection::vec(file, 1..40))| {
        compare(Shell::Dash, &all, false);
    });
}

#[test]
fn what_must_abort_is_reported_with_its_line() {
    let cases: &[(&str, usize)] = &[
        ("GRUB_A=1\nfalse\n", 2),
        ("GRUB_A=1\n\nfalse && true\n# end\n", 3),
        ("GRUB_A=1\nGRUB_B=quiet splash\n", 2),
        ("GRUB_A = 1\n", 1),
        ("GRUB_A=1\nGRUB-B=1\n", 2),
        ("\u{feff}GRUB_A=1\n", 1),
        ("GRUB_A=1\r\n\r\n", 2),
        ("GRUB_A=1\nGRUB_A+=2\n", 2),
        ("GRUB_A=1\nif true; then\n", 3),
        ("GRUB_A=1\nGRUB_B='x\n", 3),
        ("source x\n", 1),
        ("GRUB_A=1\n! true\n", 2),
        ("readonly GRUB_A=1\nGRUB_A=2\n", 2),
        ("local GRUB_A=1\n", 1),
        ("GRUB_A=1\nexit 0\n", 2),
        ("return 1\n", 1),
        ("set -u\nGRUB_A=$GRUB_B\n", 2),
        ("GRUB_A=${GRUB_B?}\n", 1),
        ("GRUB_A=${GRUB_B:0:1}\n", 1),
        ("GRUB_A=(a b)\n", 1),
    ];
    for (text, line) in cases {
        let evaluation = shells::ours(Shell::Dash, &[text.as_bytes().to_vec()]);
        let abort = evaluation
            .aborts
            .unwrap_or_else(|| panic!("{text:?} does not abort"));
        assert_eq!((abort.file.as_str(), abort.line), ("f0", *line), "{text:?}");
        if text.starts_with("GRUB_A=1\n") {
            assert_eq!(
                evaluation.vars["GRUB_A"].value.as_deref(),
                Some("1"),
                "{text:?}"
            );
        }
    }
}
