//! Shell files against dash itself: every value that is called literal or derived, and every abort.
#![allow(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "tests start programs, read files and panic"
)]

mod common;

use std::collections::BTreeMap;
use std::process::Command;

use grub_config_parser::defaults::{Document, Evaluation, File, Kind, evaluate};
use proptest::prelude::*;

const NAMES: &[&str] = &["GRUB_A", "GRUB_B", "GRUB_CMDLINE_LINUX", "GRUB_D", "OTHER"];

/// What dash has in its variables when it ends, and its status.
struct Dash {
    vars: BTreeMap<String, Vec<u8>>,
    status: i32,
    errors: String,
}

/// Sources the files in an empty folder, with an empty environment. A watchdog ends loops.
fn dash(files: &[Vec<u8>]) -> Dash {
    let dir = tempfile::tempdir().unwrap();
    let mut sources = String::new();
    for (i, text) in files.iter().enumerate() {
        std::fs::write(dir.path().join(format!("f{i}")), text).unwrap();
        sources.push_str(&format!(". ./f{i}\n"));
    }
    // The trap is a here-document, so that nothing in the files changes its text.
    let script = format!(
        "set -e\ntrap '\\unset -f printf eval; for v in {}; do \
         \\eval \"\\\\command test \\\"\\${{$v+s}}\\\" = s && \\\\command printf \\\"%s=%s\\\\0\\\" $v \\\"\\$$v\\\" >>out || :\"; \
         done' EXIT\n{sources}",
        NAMES.join(" "),
    );
    let output = common::run(
        Command::new(common::program("timeout").unwrap())
            .arg("10")
            .arg(common::program("dash").unwrap())
            .args(["-c", &script])
            .env_clear()
            // No programs: chance shall start none, and whether one is there decides nothing.
            .env("PATH", "/nonexistent")
            .stdin(std::process::Stdio::null())
            .current_dir(dir.path()),
    );
    let mut vars = BTreeMap::new();
    for item in std::fs::read(dir.path().join("out"))
        .unwrap_or_default()
        .split(|b| *b == 0)
    {
        if let Some(equals) = item.iter().position(|byte| *byte == b'=') {
            let name = String::from_utf8(item[..equals].to_vec()).unwrap();
            vars.insert(name, item[equals + 1..].to_vec());
        }
    }
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    Dash {
        vars,
        status: output.status.code().unwrap_or(-1),
        errors,
    }
}

fn ours(files: &[Vec<u8>]) -> Evaluation {
    let docs: Vec<Document> = files.iter().map(|text| Document::parse(text)).collect();
    let names: Vec<String> = (0..docs.len()).map(|i| format!("f{i}")).collect();
    let files: Vec<File<'_>> = names
        .iter()
        .zip(&docs)
        .map(|(name, doc)| File { name, doc })
        .collect();
    evaluate(&files)
}

/// `certain`: the files hold nothing whose outcome depends on the system.
fn compare(files: &[Vec<u8>], certain: bool) {
    let shown: Vec<_> = files
        .iter()
        .map(|text| String::from_utf8_lossy(text))
        .collect();
    let dash = dash(files);
    let ours = ours(files);
    if certain || ours.aborts.is_some() {
        assert_eq!(
            ours.aborts.is_some(),
            dash.status != 0,
            "{shown:#?}\nours: {:?}\ndash: {} {}",
            ours.aborts,
            dash.status,
            dash.errors
        );
    }
    // Where the outcome hangs on the system, both may stop, but at different places.
    if ours.aborts.is_some() != (dash.status != 0) || ours.aborts.is_some() && !certain {
        return;
    }
    for name in NAMES {
        let own = ours.vars.get(*name);
        let real = dash
            .vars
            .get(*name)
            .map(|value| String::from_utf8_lossy(value).into_owned());
        match own {
            Some(own) if own.kind == Kind::Computed => assert_eq!(own.value, None),
            Some(own) => assert_eq!(own.value, real, "{name} in {shown:#?}\nours {own:?}"),
            None => assert_eq!(None, real, "{name} in {shown:#?}"),
        }
    }
}

fn literal() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z=,.:/_-]{0,6}",
        Just("\\ ".to_string()),
        Just("\\\n".to_string()),
        Just("\\\"".to_string()),
        Just("\\$".to_string()),
        Just("\\\\".to_string()),
        Just("\\n".to_string()),
        Just("'a  b'".to_string()),
        Just("'\\'".to_string()),
        Just("'$GRUB_A\n\\\n'".to_string()),
        Just("\"\"".to_string()),
        Just("''".to_string()),
        Just("$".to_string()),
        Just("$'x'".to_string()),
        Just("~/x".to_string()),
        Just("}".to_string()),
        Just("{".to_string()),
        Just("#".to_string()),
        Just("é".to_string()),
        Just("\u{81}".to_string()),
        Just("*".to_string()),
        Just("!".to_string()),
    ]
}

fn in_double() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z= ,.:/'_-]{0,6}",
        Just("\\\"".to_string()),
        Just("\\$".to_string()),
        Just("\\`".to_string()),
        Just("\\\\".to_string()),
        Just("\\}".to_string()),
        Just("\\n".to_string()),
        Just("\\\n".to_string()),
        Just("\n".to_string()),
        Just("$".to_string()),
        Just("'".to_string()),
        Just("}".to_string()),
        Just("#".to_string()),
        Just(";".to_string()),
        Just("~".to_string()),
    ]
}

fn name() -> impl Strategy<Value = &'static str> {
    prop::sample::select(NAMES)
}

fn reference(word: BoxedStrategy<String>) -> BoxedStrategy<String> {
    prop_oneof![
        4 => name().prop_map(|name| format!("${{{name}}}")),
        2 => name().prop_map(|name| format!("${name}")),
        3 => (name(), prop::sample::select(&["-", ":-", "+", ":+"][..]), word.clone())
            .prop_map(|(name, op, word)| format!("${{{name}{op}{word}}}")),
        1 => (name(), prop::sample::select(&["=", ":=", "#", "##", "%", "%%"][..]), word)
            .prop_map(|(name, op, word)| format!("${{{name}{op}{word}}}")),
    ]
    .boxed()
}

/// A word of an assignment. `{` and `}` in it may well be wrong.
fn word() -> BoxedStrategy<String> {
    let leaf = prop_oneof![
        literal(),
        prop::collection::vec(in_double(), 0..4)
            .prop_map(|parts| format!("\"{}\"", parts.concat())),
    ]
    .boxed();
    leaf.prop_recursive(3, 12, 4, |inner| {
        let joined = prop::collection::vec(inner, 0..3)
            .prop_map(|parts| parts.concat())
            .boxed();
        prop_oneof![
            2 => joined.clone(),
            2 => reference(joined.clone()),
            2 => reference(joined.clone()).prop_map(|text| format!("\"a {text} b\"")),
            1 => (joined.clone(), reference(joined)).prop_map(|(a, b)| format!("{a}{b}")),
        ]
    })
    .boxed()
}

fn assignment() -> BoxedStrategy<String> {
    (name(), word())
        .prop_map(|(name, word)| format!("{name}={word}"))
        .boxed()
}

fn statement() -> BoxedStrategy<String> {
    prop_oneof![
        12 => assignment(),
        2 => (assignment(), assignment()).prop_map(|(a, b)| format!("{a} {b}")),
        3 => assignment().prop_map(|text| format!("export {text}")),
        1 => (assignment(), name()).prop_map(|(a, b)| format!("export {a} {b}")),
        1 => (assignment(), assignment()).prop_map(|(a, b)| format!("export {a} {b}")),
        1 => assignment().prop_map(|text| format!("readonly {text}")),
        1 => name().prop_map(|name| format!("unset {name}")),
        1 => assignment().prop_map(|text| format!("{text} true")),
        1 => assignment().prop_map(|text| format!("{text} :")),
        1 => Just("# a comment with 'quotes\" \\".to_string()),
        1 => Just(String::new()),
        1 => Just("true".to_string()),
        1 => Just("true && true".to_string()),
        1 => Just("false || true".to_string()),
        1 => Just("false && true".to_string()),
        1 => Just("! false".to_string()),
    ]
    .boxed()
}

/// Statements whose outcome dash and everybody else knows, nested.
fn compound() -> BoxedStrategy<String> {
    let condition = prop_oneof![
        Just("true".to_string()),
        Just("false".to_string()),
        Just("! true".to_string()),
        Just("true && false".to_string()),
        (name(), "[a-z]{0,2}").prop_map(|(name, text)| format!("[ \"${name}\" = \"{text}\" ]")),
        name().prop_map(|name| format!("[ -n \"${name}\" ]")),
        name().prop_map(|name| format!("test -z \"${name}\"")),
    ];
    // Not `readonly`: in a branch that may not run, it makes every later assignment uncertain.
    statement()
        .prop_filter("readonly", |text| !text.starts_with("readonly"))
        .prop_recursive(3, 24, 4, move |inner| {
            let body = prop::collection::vec(inner.clone(), 1..4)
                .prop_map(|lines| format!(":\n{}\n", lines.join("\n")))
                .boxed();
            prop_oneof![
                2 => (condition.clone(), body.clone(), body.clone())
                    .prop_map(|(c, a, b)| format!("if {c}; then {a} else {b} fi")),
                1 => (condition.clone(), body.clone()).prop_map(|(c, a)| format!("if {c}; then {a} fi")),
                1 => body.clone().prop_map(|a| format!("{{ {a} }}")),
                1 => body.clone().prop_map(|a| format!("( {a} )")),
                1 => body.clone().prop_map(|a| format!("f() {{ {a} }}\nf")),
                1 => body.clone().prop_map(|a| format!("for OTHER in a 'b c' \"\"; do {a} done")),
                1 => (name(), body.clone(), body.clone()).prop_map(|(n, a, b)|
                    format!("case \"${n}\" in a*|'') {a} ;; *b*) {b} ;; esac")),
                1 => (condition.clone(), inner.clone()).prop_map(|(c, a)| format!("{c} && {{ {a}\n}}")),
                1 => (condition.clone(), inner.clone()).prop_map(|(c, a)| format!("{c} || {{ {a}\n}}")),
                1 => inner.clone().prop_map(|a| format!("while true; do {a}\nbreak; done")),
                1 => inner.prop_map(|a| format!("eval '{}'", a.replace('\'', "'\\''"))),
            ]
        })
        .boxed()
}

#[test]
fn assignments_have_the_values_that_dash_gives_them() {
    if common::program("dash").is_none() {
        return;
    }
    let files = prop::collection::vec(prop::collection::vec(statement(), 0..8), 1..3);
    proptest!(common::cases(400), |(files in files)| {
        let files: Vec<Vec<u8>> =
            files.iter().map(|lines| (lines.join("\n") + "\n").into_bytes()).collect();
        // What the environment may have can be a command, or the value of a read-only variable.
        compare(&files, !String::from_utf8_lossy(&files.concat()).contains("OTHER"));
    });
}

#[test]
fn control_flow_that_is_known_is_followed_and_the_rest_is_not_guessed() {
    if common::program("dash").is_none() {
        return;
    }
    let file = prop::collection::vec(compound(), 0..5);
    proptest!(common::cases(300), |(lines in file)| {
        let text = lines.join("\n") + "\n";
        compare(&[text.clone().into_bytes()], !text.contains("OTHER"));
    });
}

#[test]
fn any_pile_of_tokens_is_read_as_dash_reads_it() {
    if common::program("dash").is_none() {
        return;
    }
    let token = prop_oneof![
        prop::sample::select(
            &[
                "GRUB_A=",
                "GRUB_B=x",
                "'",
                "\"",
                "\\",
                "\n",
                " ",
                ";",
                "$",
                "{",
                "}",
                "(",
                ")",
                "`",
                "#",
                "if ",
                "then ",
                "fi",
                "true",
                "false",
                "&&",
                "||",
                "|",
                "&",
                "<",
                ">",
                "<<E\n",
                "\nE\n",
                "${GRUB_A",
                ":-",
                "$((",
                "))",
                "$(",
                "case ",
                " in ",
                "esac",
                ";;",
                "!",
                "\t",
                "\r",
                "\0",
                "export ",
                "unset GRUB_A",
                "do ",
                "done",
                "while ",
                "for x in",
                "f()",
                "a",
                "b=c",
                "\\\n",
                "\u{feff}",
                "\x7f",
                "readonly ",
                "eval ",
                "~",
                "=",
                "+=",
                "[ ",
                " ]",
            ][..]
        )
        .prop_map(str::to_string),
        "[ -~]{0,3}",
    ];
    let file = prop::collection::vec(token, 0..14);
    proptest!(common::cases(500), |(tokens in file)| {
        let text = tokens.concat();
        // Not even in a folder of its own should chance start programs that write or wait.
        prop_assume!(!text.contains('>') || !text.contains('/'));
        compare(&[text.into_bytes()], false);
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
        let evaluation = ours(&[text.as_bytes().to_vec()]);
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
