//! Scripts against `grub-script-check`.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests start programs, read files and panic"
)]

mod common;

use std::process::Command;

use grub_config_parser::cfg::{Context, Incomplete, Script, tokens};
use proptest::prelude::*;

/// The verdict of the real program; `None` for a script without commands, which it also refuses.
fn check(text: &[u8]) -> Option<bool> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("grub.cfg");
    std::fs::write(&path, text).unwrap();
    let program = common::program("grub-script-check").unwrap();
    let output = common::run(Command::new(program).arg(&path));
    if String::from_utf8_lossy(&output.stderr).contains("contains no commands") {
        return None;
    }
    Some(output.status.success())
}

fn compare(text: &[u8]) {
    let shown = String::from_utf8_lossy(text);
    let parsed = Script::parse(text);
    match check(text) {
        Some(accepted) => assert_eq!(parsed.is_ok(), accepted, "{shown:?}: {:?}", parsed.err()),
        None => assert!(
            !parsed.is_ok_and(|script| script.has_commands()),
            "{shown:?}"
        ),
    }
}

#[test]
fn any_pile_of_tokens_is_accepted_or_refused_as_grub_does() {
    if common::program("grub-script-check").is_none() {
        return;
    }
    let token = prop_oneof![
        4 => prop::sample::select(&[
            "{", "}", ";", "\n", " ", "if ", " then ", " else ", " elif ", " fi", "for x in ", " do ", " done",
            "while ", "until ", "function ", "f ", "true", "menuentry a ", "'", "\"", "\\", "\\\n", "$", "${a}",
            "$a", "$1", "$?", "${", "$\"", "#", "#c\n", "|", "&", "&&", "||", "<", ">", ";;", "[[", "]]", "[ ", " ]",
            "!", "=", "in", "case", "esac", "select", "\t", "\r", "\r\n", "\0", "é", "\u{b}", "a", "1", "*",
        ][..]).prop_map(str::to_string),
        1 => "[ -~]{0,3}",
    ];
    proptest!(common::cases(1500), |(tokens in prop::collection::vec(token, 0..16))| {
        compare(tokens.concat().as_bytes());
    });
}

fn command() -> BoxedStrategy<String> {
    let word = prop_oneof![
        "[a-z0-9=/._-]{1,6}",
        Just("'a \n b'".to_string()),
        Just("\"a $x ${y} \\\" \n b\"".to_string()),
        Just("$x".to_string()),
        Just("${x}y".to_string()),
        Just("$\"t\"".to_string()),
        Just("a\\\nb".to_string()),
        Just("\\\n".to_string()),
        Just("do".to_string()),
        Just("fi".to_string()),
    ];
    let simple = prop::collection::vec(word, 0..4)
        .prop_map(|words| format!("cmd {}", words.join(" ")))
        .boxed();
    simple
        .prop_recursive(4, 32, 3, |inner| {
            let end = prop::sample::select(&["\n", ";", "; ", "\n\n", " # c\n", ""][..]);
            let list = prop::collection::vec((inner, end), 0..3).prop_map(|items| {
                items
                    .into_iter()
                    .map(|(item, end)| format!("{item}{end}"))
                    .collect::<String>()
            });
            let start = prop::sample::select(&["", "\n", " "][..]);
            (list.clone(), list.clone(), list, start, 0..9).prop_map(
                |(a, b, c, s, kind)| match kind {
                    0 => format!("if {s}{a}then {s}{b}fi"),
                    1 => format!("if {s}{a}then {s}{b}else {s}{c}fi"),
                    2 => format!("if {a}then {b}elif {s}{c}then {b}fi"),
                    3 => format!("for x in a b; do {s}{a}done"),
                    4 => format!("while {s}{a}do {b}done"),
                    5 => format!("until {a}do {s}{b}done"),
                    6 => format!("menuentry 'x' {{{s}{a}}}"),
                    7 => format!("function f {{{s}{a}}}"),
                    _ => a,
                },
            )
        })
        .boxed()
}

#[test]
fn nested_constructs_are_accepted_or_refused_as_grub_does() {
    if common::program("grub-script-check").is_none() {
        return;
    }
    let end = prop::sample::select(&["\n", ";", ";\n", "\n\n", "", " # c\n"][..]);
    let script = prop::collection::vec((command(), end), 0..4);
    proptest!(common::cases(1000), |(items in script)| {
        let text: String = items.into_iter().map(|(item, end)| format!("{item}{end}")).collect();
        compare(text.as_bytes());
    });
}

/// The largest size that `accepts` takes, by halving.
fn limit(accepts: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (1, 20_000);
    assert!(accepts(low) && !accepts(high));
    while high - low > 1 {
        let middle = low.midpoint(high);
        *(if accepts(middle) { &mut low } else { &mut high }) = middle;
    }
    low
}

#[test]
fn the_limits_of_size_and_depth_are_grubs() {
    if common::program("grub-script-check").is_none() {
        return;
    }
    type Maker = (&'static str, fn(usize) -> String);
    let makers: &[Maker] = &[
        ("words", |n| format!("echo{}\n", " a".repeat(n))),
        ("words in a block", |n| {
            format!("menuentry a {{\necho{}\n}}\n", " a".repeat(n))
        }),
        ("words of for", |n| {
            format!("for x in{}\ndo true\ndone\n", " a".repeat(n))
        }),
        ("if", |n| {
            format!("{}true\n{}", "if true; then\n".repeat(n), "fi\n".repeat(n))
        }),
        ("else", |n| {
            format!(
                "{}true\n{}",
                "if a; then a; else\n".repeat(n),
                "fi\n".repeat(n)
            )
        }),
        ("condition", |n| {
            format!("{}true\n{}", "if ".repeat(n), "then a; fi\n".repeat(n))
        }),
        ("elif", |n| {
            format!("if a; then b\n{}fi\n", "elif a; then b\n".repeat(n))
        }),
        ("block", |n| {
            format!("{}true\n{}", "submenu a {\n".repeat(n), "}\n".repeat(n))
        }),
        ("second", |n| {
            format!(
                "{}true\n{}",
                "submenu a {\ntrue\n".repeat(n),
                "}\n".repeat(n)
            )
        }),
        ("while", |n| {
            format!("{}true\n{}", "while a; do\n".repeat(n), "done\n".repeat(n))
        }),
        ("for", |n| {
            format!(
                "{}true\n{}",
                "for a in b; do\n".repeat(n),
                "done\n".repeat(n)
            )
        }),
        ("in function", |n| {
            format!(
                "function f {{\n{}a\n{}}}\na\n",
                "x {\n".repeat(n),
                "}\n".repeat(n)
            )
        }),
        ("comment", |n| format!("true\n#{}\n", "a".repeat(n))),
        ("blanks", |n| format!("true{}\n", " ".repeat(n))),
        ("name", |n| format!("{}\n", "a".repeat(n))),
        ("text", |n| format!("a={}\n", "a".repeat(n))),
        ("single quotes", |n| format!("a='{}'\n", "a".repeat(n))),
        ("double quotes", |n| format!("a=\"{}\"\n", "a".repeat(n))),
        ("joined", |n| format!("{}\\\n b\n", "a".repeat(n))),
        ("joined in a word", |n| format!("{}\\\nb\n", "a".repeat(n))),
        ("quoted lines", |n| format!("\"{}\n\"\n", "a".repeat(n))),
        ("variable", |n| format!("a=${{{}}}\n", "a".repeat(n))),
    ];
    for (name, make) in makers {
        let ours = limit(|n| Script::parse(make(n).as_bytes()).is_ok());
        assert_eq!(check(make(ours).as_bytes()), Some(true), "{name}: {ours}");
        assert_eq!(
            check(make(ours + 1).as_bytes()),
            Some(false),
            "{name}: {}",
            ours + 1
        );
    }
}

#[test]
fn deep_scripts_also_run() {
    let menu = |deep: usize| {
        let text =
            "submenu a {\n".repeat(deep) + "menuentry b { linux /k; }\n" + &"}\n".repeat(deep);
        Script::parse(text.as_bytes())
            .unwrap()
            .menu(&Context::default())
    };
    let shallow = menu(80).complete().unwrap();
    assert_eq!(shallow.entries.len(), 1);
    assert_eq!(shallow.entries[0].submenu_path.len(), 80);
    // Each submenu has the variables and titles of all around it: the memory grows with the square.
    assert_eq!(menu(1500).incomplete, Some(Incomplete::TooLarge));
}

#[test]
fn scripts_that_do_not_end_are_stopped() {
    for text in [
        "while true; do true; done\nmenuentry a { linux /k; }\n",
        "function f { f; }\nf\n",
        "x=aa\nwhile true; do x=\"$x$x$x$x$x$x\"; done\n",
        "while true; do menuentry a { linux /k; }; done\n",
        "menuentry a { while true; do linux /k; done; }\n",
        "submenu a { while true; do eval 'x=1; menuentry b { true; }'; done; }\n",
    ] {
        Script::parse(text.as_bytes())
            .unwrap()
            .menu(&Context::default());
    }
}

proptest! {
    #[test]
    fn tokens_cover_every_byte(text in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut at = 0;
        for token in tokens(&text) {
            prop_assert_eq!(token.span.start, at);
            prop_assert!(token.span.end > at);
            at = token.span.end;
        }
        prop_assert_eq!(at, text.len());
        if let Ok(script) = Script::parse(&text) {
            prop_assert_eq!(script.source(), text.as_slice());
            script.menu(&Context::default());
        }
    }
}

#[test]
fn the_corpus_is_accepted_or_refused_as_grub_does() {
    if common::program("grub-script-check").is_none() {
        return;
    }
    for path in common::corpus_files("grub-cfg") {
        compare(&std::fs::read(path).unwrap());
    }
}
