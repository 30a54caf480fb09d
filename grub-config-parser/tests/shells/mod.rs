//! Shell files against the shells themselves: what is generated, how it is run, what is compared.
#![allow(
    dead_code,
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "each test binary uses its own part; tests start programs, read files and panic"
)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

use grub_config_parser::defaults::{Document, Evaluation, File, Kind, Shell, evaluate_for};
use proptest::prelude::*;

use crate::common;

const NAMES: &[&str] = &["GRUB_A", "GRUB_B", "GRUB_CMDLINE_LINUX", "GRUB_D", "OTHER"];

/// The files of one machine.
pub(crate) type Files = Vec<Vec<u8>>;

/// What a shell has in its variables when it ends, and its status.
struct Real {
    vars: BTreeMap<String, Vec<u8>>,
    status: i32,
}

fn program(shell: Shell) -> &'static str {
    match shell {
        Shell::Dash => "dash",
        Shell::Bash => "bash",
    }
}

/// True if the shell is there. In CI it must be.
pub(crate) fn is_there(shell: Shell) -> bool {
    let there = common::program(program(shell)).is_some();
    assert!(
        there || std::env::var_os("CI").is_none(),
        "{} is not installed, and CI must compare with it",
        program(shell)
    );
    there
}

/// Sources each machine's files in a folder and a subshell of their own, with an empty environment. A
/// limit ends loops.
fn run(shell: Shell, all: &[Files]) -> Vec<Real> {
    let dir = tempfile::tempdir().unwrap();
    let mut script = String::new();
    for (number, files) in all.iter().enumerate() {
        let own = dir.path().join(number.to_string());
        std::fs::create_dir(&own).unwrap();
        let mut sources = String::new();
        for (i, text) in files.iter().enumerate() {
            std::fs::write(own.join(format!("f{i}")), text).unwrap();
            writeln!(sources, ". ./f{i}").unwrap();
        }
        // Nothing in the files changes the trap's text.
        write!(
            script,
            "(cd {number}; ulimit -t 2; set -e\ntrap '\\unset -f printf eval; for v in {}; do \
             \\eval \"\\\\command test \\\"\\${{$v+s}}\\\" = s && \\\\command printf \\\"%s=%s\\\\0\\\" $v \\\"\\$$v\\\" >>out || :\"; \
             done' EXIT\n{sources})\necho $? >{number}/status\n",
            NAMES.join(" "),
        )
        .unwrap();
    }
    std::fs::write(dir.path().join("script"), script).unwrap();
    // bash follows POSIX where it is called so.
    let sh = dir.path().join("sh");
    symlink(common::program(program(shell)).unwrap(), &sh).unwrap();
    common::run(
        Command::new(common::program("timeout").unwrap())
            .arg("60")
            .arg(&sh)
            .arg("script")
            .env_clear()
            // No programs: chance shall start none, and whether one is there decides nothing.
            .env("PATH", "/nonexistent")
            .stdin(Stdio::null())
            .current_dir(dir.path()),
    );
    let read = |number: usize| {
        let own = dir.path().join(number.to_string());
        let status = std::fs::read_to_string(own.join("status")).unwrap();
        let out = std::fs::read(own.join("out")).unwrap_or_default();
        let mut vars = BTreeMap::new();
        for item in out.split(|byte| *byte == 0) {
            if let Some(equals) = item.iter().position(|byte| *byte == b'=') {
                let name = String::from_utf8(item[..equals].to_vec()).unwrap();
                vars.insert(name, item[equals + 1..].to_vec());
            }
        }
        Real {
            vars,
            status: status.trim().parse().unwrap(),
        }
    };
    (0..all.len()).map(read).collect()
}

pub(crate) fn ours(shell: Shell, files: &[Vec<u8>]) -> Evaluation {
    let docs: Vec<Document> = files
        .iter()
        .map(|text| Document::parse_for(text, shell))
        .collect();
    let names: Vec<String> = (0..docs.len()).map(|i| format!("f{i}")).collect();
    let files: Vec<File<'_>> = names
        .iter()
        .zip(&docs)
        .map(|(name, doc)| File { name, doc })
        .collect();
    evaluate_for(&files, shell)
}

/// Compares each machine's files. `certain`: the outcome of those that [`is_certain`] is known. Gives how many
/// were followed to their end.
pub(crate) fn compare(shell: Shell, all: &[Files], certain: bool) -> usize {
    let reals = run(shell, all);
    let mut followed = 0;
    for (files, real) in all.iter().zip(reals) {
        let certain = certain && is_certain(&String::from_utf8_lossy(&files.concat()));
        followed += usize::from(compare_one(shell, files, &real, certain));
    }
    followed
}

/// True if no outcome depends on the system or on what is computed.
fn is_certain(text: &str) -> bool {
    let asks = ["[ ", "test ", "case "]
        .iter()
        .any(|word| text.contains(word));
    let computes = ["%", "~", "^^", ":0:1", "/x/y", "//a", "*"];
    let computed = computes.iter().any(|sign| text.contains(sign))
        || NAMES.iter().any(|name| text.contains(&format!("{name}#")));
    !(text.contains("OTHER") || asks && computed)
}

fn compare_one(shell: Shell, files: &Files, real: &Real, certain: bool) -> bool {
    let shown: Vec<_> = files
        .iter()
        .map(|text| String::from_utf8_lossy(text))
        .collect();
    let ours = ours(shell, files);
    let lost = ours.lost.is_some();
    let ends = real.status != 0;
    if certain && !lost || ours.aborts.is_some() {
        assert_eq!(
            ours.aborts.is_some(),
            ends,
            "{shown:#?}\nours: {:?}\n{shell:?}: {}",
            ours.aborts,
            real.status,
        );
    }
    // Where the outcome hangs on the system, both may stop, but at different places.
    if !lost && (ours.aborts.is_some() != ends || ours.aborts.is_some() && !certain) {
        return true;
    }
    for name in NAMES {
        let own = ours.vars.get(*name);
        let value = real.vars.get(*name);
        let value = value.map(|value| String::from_utf8_lossy(value).into_owned());
        match own {
            Some(own) if own.kind == Kind::Computed => assert_eq!(own.value, None),
            Some(own) => assert_eq!(own.value, value, "{name} in {shown:#?}\nours {own:?}"),
            None if lost => {}
            None => assert_eq!(None, value, "{name} in {shown:#?}"),
        }
    }
    !lost
}

fn literal(shell: Shell) -> BoxedStrategy<String> {
    let both = prop_oneof![
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
    ];
    let bash = prop::sample::select(
        &[
            "$'a\\tb'",
            "$'\\x41\\101 \\'\\\\'",
            "$'a  b'",
            "$\"a b\"",
            "$\"${GRUB_A-x}\"",
            "${GRUB_A/x/y}",
            "${GRUB_A:0:1}",
            "${GRUB_A^^}",
            "\"${GRUB_B//a}\"",
        ][..],
    );
    match shell {
        Shell::Dash => both.boxed(),
        Shell::Bash => prop_oneof![15 => both, 2 => bash.prop_map(str::to_string)].boxed(),
    }
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
fn word(shell: Shell) -> BoxedStrategy<String> {
    let leaf = prop_oneof![
        literal(shell),
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

fn assignment(shell: Shell) -> BoxedStrategy<String> {
    let appends = match shell {
        Shell::Dash => 0,
        Shell::Bash => 3,
    };
    (name(), 0..10, word(shell))
        .prop_map(move |(name, dice, word)| {
            let sign = if dice < appends { "+=" } else { "=" };
            format!("{name}{sign}{word}")
        })
        .boxed()
}

/// What only bash knows.
const OF_BASH: &[&str] = &[
    "GRUB_A=(a b)",
    "GRUB_A[1]=x",
    "[[ a = a ]]",
    "((GRUB_A=1))",
    "declare -u GRUB_A=x",
    ": ${!GRUB_A}",
    ": <<<x",
    ": <(:)",
    ": {a,b}",
    "let GRUB_B=1",
    "export GRUB_A+=x",
];

pub(crate) fn statement(shell: Shell) -> BoxedStrategy<String> {
    let both = prop_oneof![
        12 => assignment(shell),
        2 => (assignment(shell), assignment(shell)).prop_map(|(a, b)| format!("{a} {b}")),
        3 => assignment(shell).prop_map(|text| format!("export {text}")),
        1 => (assignment(shell), name()).prop_map(|(a, b)| format!("export {a} {b}")),
        1 => (assignment(shell), assignment(shell)).prop_map(|(a, b)| format!("export {a} {b}")),
        1 => assignment(shell).prop_map(|text| format!("readonly {text}")),
        1 => name().prop_map(|name| format!("unset {name}")),
        1 => assignment(shell).prop_map(|text| format!("{text} true")),
        1 => assignment(shell).prop_map(|text| format!("{text} :")),
        1 => Just("# a comment with 'quotes\" \\".to_string()),
        1 => Just(String::new()),
        1 => Just("true".to_string()),
        1 => Just("true && true".to_string()),
        1 => Just("false || true".to_string()),
        1 => Just("false && true".to_string()),
        1 => Just("! false".to_string()),
    ];
    match shell {
        Shell::Dash => both.boxed(),
        Shell::Bash => prop_oneof![
            60 => both,
            1 => prop::sample::select(OF_BASH).prop_map(str::to_string),
        ]
        .boxed(),
    }
}

/// Statements whose outcome every shell knows, nested.
pub(crate) fn compound(shell: Shell) -> BoxedStrategy<String> {
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
    statement(shell)
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
                1 => body.clone().prop_map(|a| format!("f() {{ {a} }}\nif f; then :; fi")),
                1 => body.clone().prop_map(|a| format!("( {a} ) || true")),
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

/// Tokens that make no sense together, or do by chance.
pub(crate) fn pile() -> BoxedStrategy<String> {
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
    prop::collection::vec(token, 0..14)
        .prop_map(|tokens| tokens.concat())
        // Not even in a folder of its own should chance start programs that write or wait.
        .prop_filter("writes", |text| !text.contains('>') || !text.contains('/'))
        .boxed()
}
