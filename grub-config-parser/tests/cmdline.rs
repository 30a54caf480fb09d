//! The kernel command line against a plain port of the kernel's own loop, and its edits.
#![allow(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "tests read files and panic"
)]

mod common;

use grub_config_parser::cmdline::{
    Arg, Change, CommandLine, DiffItem, Effect, accumulates, names_equal, split_bytes,
};
use proptest::prelude::*;

/// `next_arg()` on a C string, index by index.
fn kernel(line: &str) -> Vec<(String, Option<String>)> {
    let mut text: Vec<u8> = line.bytes().collect();
    text.push(0);
    let space = |byte: u8| matches!(byte, b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r' | 0xa0);
    let string = |text: &[u8], at: usize| {
        let end = at + text[at..].iter().position(|byte| *byte == 0).unwrap();
        String::from_utf8_lossy(&text[at..end]).into_owned()
    };
    let mut out = Vec::new();
    let mut args = 0;
    loop {
        while space(text[args]) {
            args += 1;
        }
        if text[args] == 0 {
            return out;
        }
        let (mut equals, mut in_quote, mut quoted) = (0, false, false);
        if text[args] == b'"' {
            args += 1;
            in_quote = true;
            quoted = true;
        }
        let mut i = 0;
        while text[args + i] != 0 {
            if space(text[args + i]) && !in_quote {
                break;
            }
            if equals == 0 && text[args + i] == b'=' {
                equals = i;
            }
            if text[args + i] == b'"' {
                in_quote = !in_quote;
            }
            i += 1;
        }
        let param = args;
        let mut val = None;
        if equals > 0 {
            text[args + equals] = 0;
            let mut at = args + equals + 1;
            if text[at] == b'"' {
                at += 1;
                if text[args + i - 1] == b'"' {
                    text[args + i - 1] = 0;
                }
            }
            val = Some(at);
        }
        if quoted && i > 0 && text[args + i - 1] == b'"' {
            text[args + i - 1] = 0;
        }
        let next = if text[args + i] != 0 {
            text[args + i] = 0;
            args + i + 1
        } else {
            args + i
        };
        out.push((string(&text, param), val.map(|at| string(&text, at))));
        args = next;
    }
}

proptest! {
    #[test]
    fn splitting_is_the_kernels(line in "[a-c=\" _\t-]{0,24}") {
        let ours: Vec<(String, Option<String>)> = split_bytes(line.as_bytes())
            .iter()
            .map(|arg| {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                (text(arg.name), arg.value.map(text))
            })
            .collect();
        prop_assert_eq!(ours, kernel(&line));
        let parsed = CommandLine::parse(&line);
        let names: Vec<(String, Option<String>)> = parsed
            .args()
            .iter()
            .map(|arg| (arg.name().to_string(), arg.value().map(str::to_string)))
            .collect();
        prop_assert_eq!(names, kernel(&line));
        // Printing and reading again changes nothing, unless a quote stays open.
        if line.bytes().filter(|byte| *byte == b'"').count() % 2 == 0 {
            prop_assert_eq!(CommandLine::parse(&parsed.to_string()), parsed);
        }
    }

    #[test]
    fn any_bytes_are_split_without_a_panic(line in prop::collection::vec(any::<u8>(), 0..60)) {
        let end = line.iter().position(|byte| *byte == 0).unwrap_or(line.len());
        for arg in split_bytes(&line) {
            prop_assert!(arg.raw.len() <= end);
        }
    }

    #[test]
    fn setting_holds_and_setting_again_changes_nothing(
        line in "([abc](=[xy])? ){0,6}(-- [abc])?",
        arg in prop::sample::select(&["a", "a=x", "b=y", "console=x", "pci=a"][..]),
    ) {
        let before = CommandLine::parse(&line);
        let mut after = before.clone();
        let arg = Arg::new(arg);
        let change = after.set(&arg);
        if accumulates(arg.name()) {
            prop_assert!(after.contains_exact(&arg));
        } else {
            prop_assert_eq!(after.last(arg.name()).unwrap().value(), arg.value());
        }
        // What was there is still there, in its order.
        let grown = after.args().len() - before.args().len();
        prop_assert_eq!(grown, usize::from(change == Change::Appended));
        let mut rest = after.args().iter();
        prop_assert!(before.args().iter().all(|own| rest.any(|arg| arg == own)));
        prop_assert_eq!(after.init_args(), before.init_args());
        let settled = after.clone();
        prop_assert_eq!(after.set(&arg), Change::Unchanged);
        prop_assert_eq!(after, settled);
    }

    #[test]
    fn removing_takes_all_that_match_and_nothing_else(
        line in "([abc](=[xy])? ){0,6}(-- a( b=x)?)?",
        pattern in prop::sample::select(&["a", "a=x", "b=y", "c="][..]),
    ) {
        let before = CommandLine::parse(&line);
        let mut after = before.clone();
        let removed = after.remove(pattern);
        let (name, value) = pattern.split_once('=').map_or((pattern, None), |(n, v)| (n, Some(v)));
        let hit = |arg: &Arg| arg.name() == name && (value.is_none() || arg.value() == value);
        let kept: Vec<&Arg> = before.kernel_args().iter().filter(|arg| !hit(arg)).collect();
        prop_assert_eq!(after.kernel_args().iter().collect::<Vec<_>>(), kept);
        prop_assert_eq!(removed.len() + after.args().len(), before.args().len());
        prop_assert_eq!(after.init_args(), before.init_args());
    }

    #[test]
    fn equivalence_is_blind_to_the_order_of_different_names_only(
        mut args in prop::collection::vec("[a-d]=[xy]", 0..8),
        seed in any::<prop::sample::Index>(),
    ) {
        let line = CommandLine::parse(&args.join(" "));
        prop_assert!(line.equivalent(&line));
        if args.len() < 2 {
            return Ok(());
        }
        let at = seed.index(args.len() - 1);
        args.swap(at, at + 1);
        let swapped = CommandLine::parse(&args.join(" "));
        let (a, b) = (&args[at], &args[at + 1]);
        let same = a == b || a.as_bytes()[0] != b.as_bytes()[0];
        prop_assert_eq!(line.equivalent(&swapped), same, "{:?}", line.diff(&swapped));
        args.pop();
        prop_assert!(!line.equivalent(&CommandLine::parse(&args.join(" "))));
    }
}

#[test]
fn names_fold_and_values_do_not() {
    let line = CommandLine::parse("intel-iommu=on nvme_core.io-timeout=1 Quiet");
    assert!(line.last("intel_iommu").is_some() && line.last("nvme_core.io_timeout").is_some());
    assert!(line.last("quiet").is_none());
    assert!(names_equal("modprobe.blacklist", "modprobe.blacklist") && !names_equal("a", "ab"));
    assert!(!line.contains_exact(&Arg::new("intel_iommu=off")));
    assert!(accumulates("console") && accumulates("modprobe.blacklist") && !accumulates("iommu"));
}

#[test]
fn a_diff_names_what_was_added_removed_and_turned_round() {
    let old = CommandLine::parse("console=tty0 console=ttyS0 quiet a=1");
    let new = CommandLine::parse("console=ttyS0 console=tty0 a=1 quiet");
    assert_eq!(
        old.diff(&new),
        [DiffItem::Reordered(Arg::new("console=tty0"))]
    );
    let new = CommandLine::parse("console=tty0 console=ttyS0 a=2 quiet");
    assert_eq!(
        old.diff(&new),
        [
            DiffItem::Removed(Arg::new("a=1")),
            DiffItem::Added(Arg::new("a=2"))
        ]
    );
}

#[test]
fn real_command_lines_are_split_and_printed_again() {
    let mut seen = 0;
    for path in common::corpus_files("kernel-cmdline") {
        let text = std::fs::read_to_string(&path).unwrap();
        for line in text
            .lines()
            .filter(|line| line.starts_with("BOOT_IMAGE=") || line.contains("root="))
        {
            let parsed = CommandLine::parse(line);
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            assert_eq!(parsed.to_string(), words.join(" "), "{}", path.display());
            assert!(parsed.last("root").is_some(), "{}: {line}", path.display());
            seen += 1;
        }
    }
    assert!(seen > 5 || std::env::var_os("GDR_CORPUS").is_none());
}

#[test]
fn each_argument_is_told_what_it_does() {
    let line = CommandLine::parse(
        "ro iommu=off console=a i_x=1 console=b i-x=2 nvme.a=1 rd.break ro -- ro",
    );
    let effects: Vec<Effect> = line.explain().iter().map(|one| one.effect).collect();
    let wanted = [
        Effect::Overridden { by: 8 },
        Effect::Counts,
        Effect::Adds,
        Effect::Overridden { by: 5 },
        Effect::Adds,
        Effect::Counts,
        Effect::Counts,
        Effect::Adds,
        Effect::Counts,
        Effect::Separator,
        Effect::ForInit,
    ];
    assert_eq!(effects, wanted);
    let modules: Vec<&str> = line.explain().iter().filter_map(|one| one.module).collect();
    assert_eq!(modules, ["nvme"]);
    let long = CommandLine::parse(&"x".repeat(2047));
    assert_eq!(long.excess("x86_64"), Some(0));
    let long = CommandLine::parse(&"x".repeat(2049));
    assert_eq!(long.excess("x86_64"), Some(2));
    assert_eq!(long.excess("s390x"), Some(0));
    assert_eq!(long.excess("vax"), None);
    assert_eq!(CommandLine::default().excess("x86_64"), Some(0));
}
