//! What people get to see.

use gdr_policy::{Diagnostic, Diagnostics, Severity, load};

use crate::source;

fn rendered(text: &str, color: bool) -> String {
    let sources = [source("policy.toml", text)];
    load(&sources).unwrap_err().render(&sources, color)
}

#[test]
fn place_line_mark_and_help() {
    let text = "version = 1\n\n[kernel]\niommu = \"passthru\"\n";
    let expected = "\
error: kernel.iommu: `passthru` is not one of passthrough, off and keep
 --> policy.toml:4:9
  |
4 | iommu = \"passthru\"
  |         ^^^^^^^^^^
  |
  = help: did you mean `passthrough`?
";
    assert_eq!(rendered(text, false), expected);
}

#[test]
fn labels_and_several_errors() {
    let text = "version = 1\n[trial]\n\tpanik = 1\npanic = \"a\" # ü\n";
    let expected = "\
error: unknown key `panik` in [trial]
 --> policy.toml:3:2
  |
3 |     panik = 1
  |     ^^^^^ unknown key
  |
  = help: did you mean `panic`?

error: trial.panic must be a whole number, found a string
 --> policy.toml:4:9
  |
4 | panic = \"a\" # ü
  |         ^^^ expected a whole number
";
    assert_eq!(rendered(text, false), expected);
}

#[test]
fn empty_files_and_files_that_are_no_text() {
    let empty = rendered("", false);
    assert!(empty.contains("error: version is missing") && empty.contains("policy.toml:1:1"));
    let sources = [source("policy.toml", "version = 1\nx\0y")];
    let nul = load(&sources).unwrap_err().render(&sources, false);
    assert!(
        nul.contains("NUL byte") && nul.contains("policy.toml:2:2"),
        "{nul}"
    );
}

/// No escape sequence of the policy or of a file's name reaches the terminal.
#[test]
fn control_characters_are_never_printed() {
    let escapes = "\u{1b}[31m\u{9b}2J\u{7}\u{202e}\u{200b}\r";
    let texts = [
        format!("version = 1\n# {escapes}\n[kernel]\niommu = \"{escapes}\"\n"),
        format!("version = 1\n\"{escapes}\" = 1 # {escapes}\n"),
        "version = 1\n[kernel]\nset = [\"\\u001b[2J\\u009b\\u202e\"]\n".to_owned(),
        "version = 1\n\"\\u001b[2J\\u009b\\u202e\" = 1\n[\"\\u001b\"]\nx = 1\n".to_owned(),
        format!("version = 1\nx = {escapes}\n[{escapes}]\n"),
    ];
    for text in &texts {
        let sources = [source(&format!("d/{escapes}.toml"), text)];
        let found = load(&sources).unwrap_err();
        let shown = format!("{}{found}", found.render(&sources, false));
        for c in shown.chars() {
            assert!(c == '\n' || !c.is_control(), "{c:?} in {shown:?}");
            assert!(!"\u{202e}\u{200b}".contains(c), "{c:?} in {shown:?}");
        }
        assert!(
            found
                .iter()
                .all(|one| !one.message.chars().any(char::is_control))
        );
    }
}

#[test]
fn colors_only_on_demand() {
    let text = "version = 2\n";
    assert!(!rendered(text, false).contains('\u{1b}'));
    assert!(rendered(text, true).contains("\u{1b}["));
}

#[test]
fn a_problem_of_a_whole_file() {
    let found = Diagnostics(vec![Diagnostic::of_file(
        Severity::Warning,
        "/etc/gdr-agent/policy.toml",
        "everybody may write this file",
        Some("chmod go-w /etc/gdr-agent/policy.toml".to_owned()),
    )]);
    let expected = "\
warning: everybody may write this file
--> /etc/gdr-agent/policy.toml
 = help: chmod go-w /etc/gdr-agent/policy.toml
";
    assert_eq!(found.render(&[], false), expected);
    assert_eq!(
        found.to_string(),
        "/etc/gdr-agent/policy.toml: warning: everybody may write this file"
    );
}

#[test]
fn a_very_long_line_is_named_and_not_shown() {
    let text = format!("version = 1\nx = [{}]\n", "1,".repeat(10_000));
    let shown = rendered(&text, false);
    assert!(
        shown.contains("policy.toml:2:1") && shown.len() < 500,
        "{}",
        shown.len()
    );
}
