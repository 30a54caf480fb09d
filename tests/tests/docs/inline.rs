//! The agent's commands within sentences: `gdr-agent VERB --option`.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Mutex;

use crate::support;

/// Commands with a verb or an option that the program does not have.
pub fn unknown(page: &str, text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    for (at, line) in text.lines().enumerate() {
        for code in line.split('`').skip(1).step_by(2) {
            let Some(rest) = code.strip_prefix("gdr-agent ") else {
                continue;
            };
            if let Some(why) = fault(rest) {
                wrong.push(format!("{page}:{}: `{code}`: {why}", at + 1));
            }
        }
    }
    wrong
}

fn fault(rest: &str) -> Option<String> {
    let words: Vec<&str> = rest.split_whitespace().collect();
    let verb: Vec<&str> = words
        .iter()
        .copied()
        .take_while(|word| word.chars().all(|c| c.is_ascii_lowercase() || c == '-'))
        .take_while(|word| !word.starts_with('-'))
        .take(2)
        .collect();
    let (help, taken) = match verb.as_slice() {
        [] => (help(&[])?, 0),
        [one] => (help(&[one]).or_else(|| help(&[]))?, 1),
        [one, two, ..] => match help(&[one, two]) {
            Some(text) => (text, 2),
            None => (help(&[one]).unwrap_or_default(), 1),
        },
    };
    if taken > 0
        && verb
            .first()
            .is_some_and(|one| crate::inline::help(&[one]).is_none())
    {
        return Some("there is no such verb".to_owned());
    }
    let options = words.iter().filter(|word| word.starts_with("--"));
    options
        .map(|word| word.split('=').next().unwrap_or(word))
        .find(|option| !help.contains(option))
        .map(|option| format!("{option} is not in its --help"))
}

/// What `--help` says; none where there is no such verb.
fn help(verb: &[&str]) -> Option<String> {
    static SEEN: Mutex<BTreeMap<String, Option<String>>> = Mutex::new(BTreeMap::new());
    let mut seen = SEEN.lock().unwrap();
    let found = seen.entry(verb.join(" ")).or_insert_with(|| {
        let output = Command::new(support::binary())
            .args(verb)
            .arg("--help")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        output.status.success().then_some(text)
    });
    found.clone()
}

#[test]
fn a_wrong_verb_and_a_wrong_option_are_found() {
    let page =
        "`gdr-agent plan --format diff`, `gdr-agent status` and `gdr-agent policy check FILE`";
    assert!(
        unknown("page", page).is_empty(),
        "{:?}",
        unknown("page", page)
    );
    for wrong in [
        "`gdr-agent plam`",
        "`gdr-agent apply --rebot`",
        "`gdr-agent acs clear --all`",
    ] {
        assert_eq!(unknown("page", wrong).len(), 1, "{wrong}");
    }
}
