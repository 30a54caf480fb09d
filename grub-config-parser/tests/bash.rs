//! Shell files against bash called as `sh`: every value that is called literal or derived, and every abort.
#![allow(clippy::indexing_slicing, clippy::panic, reason = "tests panic")]

mod common;
mod shells;

use std::cell::Cell;

use grub_config_parser::defaults::{Kind, Shell};
use proptest::prelude::*;
use shells::{Files, compare, compound, is_there, pile, statement};

/// Compares this many batches. At least one file in so many hundred must be followed to its end, or little
/// has been compared.
fn check(batches: u32, files: BoxedStrategy<Files>, certain: bool, percent: usize) {
    if !is_there(Shell::Bash) {
        return;
    }
    let (count, followed) = (Cell::new(0), Cell::new(0));
    proptest!(common::cases(batches), |(all in prop::collection::vec(files, 1..100))| {
        count.set(count.get() + all.len());
        followed.set(followed.get() + compare(Shell::Bash, &all, certain));
    });
    let (count, followed) = (count.get(), followed.get());
    assert!(
        followed * 100 >= count * percent,
        "only {followed} of {count} were followed"
    );
}

#[test]
fn assignments_have_the_values_that_bash_gives_them() {
    let lines = prop::collection::vec(statement(Shell::Bash), 0..8)
        .prop_map(|lines| (lines.join("\n") + "\n").into_bytes());
    check(40, prop::collection::vec(lines, 1..3).boxed(), true, 40);
}

#[test]
fn control_flow_that_is_known_is_followed_and_the_rest_is_not_guessed() {
    let file = prop::collection::vec(compound(Shell::Bash), 0..5)
        .prop_map(|lines| vec![(lines.join("\n") + "\n").into_bytes()]);
    check(25, file.boxed(), true, 40);
}

#[test]
fn any_pile_of_tokens_is_read_as_bash_reads_it_or_not_at_all() {
    let file = pile().prop_map(|text| vec![text.into_bytes()]);
    check(40, file.boxed(), false, 20);
}

#[test]
fn what_bash_knows_and_dash_does_not() {
    let known: &[(&str, &str)] = &[
        ("GRUB_A=a\nGRUB_A+=' b'\n", "a b"),
        ("GRUB_A+=b\n", "b"),
        ("GRUB_A=$'a\\tb\\x41\\101'\n", "a\tbAA"),
        ("GRUB_A=$\"a b\"\n", "a b"),
        ("GRUB_A=\"$'a'\"\n", "$'a'"),
        ("GRUB_B='x y'\nexport GRUB_A=$GRUB_B\n", "x y"),
        ("GRUB_A={a,b}\n", "{a,b}"),
    ];
    for (text, value) in known {
        let evaluation = shells::ours(Shell::Bash, &[text.as_bytes().to_vec()]);
        assert_eq!(evaluation.aborts, None, "{text:?}");
        let variable = &evaluation.vars["GRUB_A"];
        assert_eq!(variable.value.as_deref(), Some(*value), "{text:?}");
    }
    let computed = [
        "GRUB_A=(a b)\n",
        "GRUB_A=a\nGRUB_A=${GRUB_A/a/b}\n",
        "GRUB_A=a\nGRUB_A=${GRUB_A:0:1}\n",
        "GRUB_A=a\nGRUB_A=${GRUB_A^^}\n",
        "GRUB_A=${!GRUB_B}\n",
        "GRUB_A=a\n[[ a = b ]] || GRUB_A=b\n",
        "GRUB_A=a\n((GRUB_A=2))\n",
        "GRUB_A=a\nread GRUB_A <<<b\n",
        "export GRUB_A={a,b}\n",
        "GRUB_A=<(:)\n",
        "GRUB_A=a\ndeclare -u GRUB_A\nGRUB_A=b\n",
        "GRUB_A=~\n",
    ];
    for text in computed {
        let evaluation = shells::ours(Shell::Bash, &[text.as_bytes().to_vec()]);
        assert_eq!(evaluation.aborts, None, "{text:?}");
        let variable = &evaluation.vars["GRUB_A"];
        assert_eq!(variable.kind, Kind::Computed, "{text:?}");
        assert_eq!(variable.value, None, "{text:?}");
    }
}

#[test]
fn what_only_changes_a_text_leaves_other_values_known() {
    let text = b"GRUB_B=x\nGRUB_A=${GRUB_B/x/y}\nGRUB_D=z\n".to_vec();
    let evaluation = shells::ours(Shell::Bash, &[text]);
    assert_eq!(evaluation.lost, None);
    assert_eq!(evaluation.vars["GRUB_D"].value.as_deref(), Some("z"));
}
