//! Versions are ordered as dpkg and rpm order them, by their own word; and the table of packages is in order.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test looks at the machine from outside"
)]

use std::cmp::Ordering;
use std::fmt::Write as _;
use std::process::Command;

use gdr_agent::package::table::{RowFlavour, Source, Tested, parse, rows};
use gdr_agent::package::version;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};

/// Versions as packages of drivers and kernels have them, and what is at the edges of the rules.
const KNOWN: [&str; 28] = [
    "570.148.08-1",
    "570.148.08-0ubuntu1",
    "570.148.08-0ubuntu0.24.04.1",
    "570.148.8-1",
    "570.172.08-1~deb12u1",
    "570.172.08-1",
    "1:570.1-1",
    "0:570.1-1",
    "570.1",
    "570.1-0",
    "570.1~rc1",
    "570.1~~",
    "570.1+dfsg-2",
    "570.1a",
    "570.1^20260101",
    "570.1^",
    "570.1.0",
    "570.01",
    "6.8.0-45.45",
    "6.8.0-45.45+1",
    "580.65.06_k6.4.0_150600.21-150600.3.1",
    "580.65.06_k5.14.21_150500.55.116-150500.3.73.7",
    "3:570.148.08-1.el9",
    "3:570.148.08-1.fc41",
    "570",
    "0",
    "a",
    "1.0.0.0.0.0.00000000000000000000000001",
];

/// Pairs: all of the known ones, and random ones that are often alike.
fn pairs(alphabet: &str) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    for a in KNOWN {
        for b in KNOWN {
            pairs.push((a.to_owned(), b.to_owned()));
        }
    }
    let mut runner = TestRunner::new(Config::default());
    let random = (alphabet, alphabet, prop::bool::ANY);
    for _ in 0..800 {
        let (a, mut b, alike) = random.new_tree(&mut runner).unwrap().current();
        if alike {
            b = format!("{a}{}", b.get(..b.len().min(2)).unwrap_or_default());
        }
        pairs.push((a, b));
    }
    pairs
}

fn word(order: Ordering) -> &'static str {
    match order {
        Ordering::Less => "-1",
        Ordering::Equal => "0",
        Ordering::Greater => "1",
    }
}

/// Whether a program is here; in CI it has to be.
fn have(program: &str) -> bool {
    if Command::new(program).arg("--version").output().is_ok() {
        return true;
    }
    assert!(
        std::env::var_os("CI").is_none_or(|ci| ci != "true"),
        "{program} is not here"
    );
    println!("SKIPPED: {program} is not here");
    false
}

#[test]
fn dpkg_orders_them_so() {
    if !have("dpkg") {
        return;
    }
    // A version begins with a digit; dpkg would only warn, and order it all the same.
    let legal = |v: &str| {
        v.starts_with(|c: char| c.is_ascii_digit())
            && !v.contains(['^', '_'])
            && !v.ends_with(['-', ':'])
    };
    let pairs: Vec<_> = pairs("([0-3]:)?[0-9][0-9a-bz.+~]{0,7}(-[0-9a-bz.+~]{1,4})?")
        .into_iter()
        .filter(|(a, b)| legal(a) && legal(b))
        .collect();
    assert!(pairs.len() > 800);
    // One shell for all of them: a process each would take minutes.
    let mut script = String::new();
    for (a, b) in &pairs {
        writeln!(
            script,
            "if dpkg --compare-versions '{a}' lt '{b}'; then echo -1; elif dpkg --compare-versions '{a}' eq '{b}'; then echo 0; else echo 1; fi"
        )
        .unwrap();
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("ask.sh");
    std::fs::write(&file, script).unwrap();
    let output = Command::new("sh").arg(&file).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let said: Vec<&str> = said.lines().collect();
    assert_eq!(
        said.len(),
        pairs.len(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    for ((a, b), said) in pairs.iter().zip(said) {
        assert_eq!(word(version::dpkg(a, b)), said, "{a} {b}");
    }
}

#[test]
fn rpm_orders_them_so() {
    if !have("rpm") {
        return;
    }
    // rpm.vercmp of Lua takes whole EPOCH:VERSION-RELEASE since rpm 4.16.
    let pairs = pairs("([0-3]:)?[0-9a-b][0-9a-bZ.+~^_]{0,7}(-[0-9a-b.+~^]{1,4})?");
    let mut lua = String::from("%{lua:");
    for (a, b) in &pairs {
        write!(lua, "print(rpm.vercmp(\"{a}\",\"{b}\"))print(\"\\n\")").unwrap();
    }
    lua.push('}');
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("ask.lua");
    let body = lua.trim_start_matches("%{lua:").trim_end_matches('}');
    std::fs::write(&file, body.replace("print(\"\\n\")", "\n")).unwrap();
    let ask = format!("%{{lua:dofile(\"{}\")}}", file.display());
    let output = Command::new("rpm").arg("--eval").arg(ask).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    // Lua's print puts no line feed into a macro: the answers stand one behind the other.
    let said: Vec<&str> = split_answers(&said);
    assert_eq!(
        said.len(),
        pairs.len(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    for ((a, b), said) in pairs.iter().zip(said) {
        assert_eq!(word(version::rpm(a, b)), said, "{a} {b}");
    }
}

/// `-110` is -1, 1, 0.
fn split_answers(text: &str) -> Vec<&str> {
    let mut rest = text.trim();
    let mut answers = Vec::new();
    while !rest.is_empty() {
        let length = if rest.starts_with('-') { 2 } else { 1 };
        let (answer, more) = rest.split_at(length);
        answers.push(answer);
        rest = more.trim_start();
    }
    answers
}

proptest! {
    #[test]
    fn both_are_orders(a in "[0-9a-z.:~^+_-]{0,12}", b in "[0-9a-z.:~^+_-]{0,12}", any in "\\PC{0,12}") {
        for compare in [version::dpkg, version::rpm] {
            prop_assert_eq!(compare(&a, &b), compare(&b, &a).reverse());
            prop_assert_eq!(compare(&any, &any), Ordering::Equal);
        }
    }
}

#[test]
fn the_table_is_in_order_and_others_are_refused() {
    let rows = rows().unwrap();
    assert!(rows.len() > 20);
    // Every source and both flavours are there for each family that has packages.
    for (id, source, flavour) in [
        ("debian", Source::Distribution, RowFlavour::Open),
        ("debian", Source::NvidiaRepository, RowFlavour::Proprietary),
        ("ubuntu", Source::Distribution, RowFlavour::Proprietary),
        ("rocky", Source::NvidiaRepository, RowFlavour::Open),
        ("amzn", Source::NvidiaRepository, RowFlavour::Open),
        ("sles", Source::NvidiaRepository, RowFlavour::Open),
        ("*", Source::Runfile, RowFlavour::Any),
        ("*", Source::Container, RowFlavour::Any),
    ] {
        let mut all = rows.iter();
        assert!(
            all.any(|row| row.source == source
                && row.flavour == flavour
                && row.distribution.iter().any(|d| d == id)),
            "{id} {source:?} {flavour:?}"
        );
    }
    let row = "[[row]]\nid = \"a\"\ndistribution = [\"debian\"]\nreleases = [\"12\"]\nsource = \"distribution\"\nflavour = \"open\"\ndocumentation = \"https://example.org/\"\ntested = \"documentation\"\n";
    let apt = "manager = \"apt\"\npackages = [\"x\"]\npin = \"upstream\"\n";
    assert!(parse(&format!("{row}{apt}")).is_ok());
    for (bad, why) in [
        (row.to_owned(), "neither packages nor advice"),
        (format!("{row}{apt}{row}{apt}"), "two rows are called a"),
        (
            format!("{row}manager = \"apt\"\npackages = [\"x\"]\n"),
            "no pin",
        ),
        (
            format!("{row}{apt}dkms = true\n"),
            "`headers` goes with `dkms`",
        ),
        (format!("{row}{apt}advice = \"x\"\n"), "exclude each other"),
        (
            format!("{row}{}", apt.replace("\"x\"", "\"x;y\"")),
            "name of a package",
        ),
        (
            format!("{row}{}", apt.replace("upstream", "kmp")),
            "not one of its manager",
        ),
        (format!("{row}{apt}color = 1\n"), "unknown field"),
        (row.replace("https", "http") + apt, "no documentation"),
    ] {
        let error = parse(&bad).unwrap_err();
        assert!(error.contains(why), "{why}: {error}");
    }
}

/// `docs/packages.md` has a line for each row, with its packages, its documentation and how far it was tried.
#[test]
fn the_matrix_in_the_documents_is_the_table() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/packages.md");
    let text = std::fs::read_to_string(path).unwrap();
    let begin = "<!-- the table of agent/src/package/table.toml -->\n";
    let end = "<!-- end of the table -->";
    let (_, rest) = text.split_once(begin).unwrap();
    let (table, _) = rest.split_once(end).unwrap();
    let mut expected = String::from(
        "| distribution | release | driver from | flavour | packages | version | tested |\n|---|---|---|---|---|---|---|\n",
    );
    for row in rows().unwrap() {
        let all = |list: &[String]| list.join(", ").replace('*', "any");
        let source = match row.source {
            Source::Distribution => "distribution",
            Source::NvidiaRepository => "NVIDIA repository",
            Source::Runfile => "runfile",
            Source::Container => "container",
        };
        let dkms = if row.dkms { ", DKMS" } else { "" };
        let flavour = match row.flavour {
            RowFlavour::Open => "open",
            RowFlavour::Proprietary => "proprietary",
            RowFlavour::Any => "both",
        };
        let packages = match row.packages.is_empty() {
            true => "none".to_owned(),
            false => format!("`{}`", row.packages.join("`, `")),
        };
        let pin = row
            .pin
            .map_or("–".to_owned(), |pin| format!("{pin:?}").to_lowercase());
        let tested = match row.tested {
            Tested::Real => "real",
            Tested::Synthetic => "synthetic",
            Tested::Documentation => "documentation",
        };
        writeln!(
            expected,
            "| {} | {} | {source}{dkms} | {flavour} | {packages} | {pin} | {tested} ([source]({})) |",
            all(&row.distribution),
            all(&row.releases),
            row.documentation
        )
        .unwrap();
    }
    if std::env::var_os("GDR_WRITE_DOCS").is_some() {
        std::fs::write(path, text.replace(table, &expected)).unwrap();
        return;
    }
    assert_eq!(table, expected, "run this test with GDR_WRITE_DOCS=1");
}
