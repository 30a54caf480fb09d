//! What a page shows against what was said.

use regex::Regex;

/// Whether the shown lines are what was said: `...` stands for any lines, and what differs at every run is left
/// out of the comparison.
///
/// # Errors
/// The first line that was not said there.
pub fn check(shown: &str, said: &str) -> Result<(), String> {
    let shown: Vec<String> = lines(shown);
    let said: Vec<String> = lines(said);
    if shown.is_empty() {
        return Ok(());
    }
    let mut at = 0;
    let mut free = false;
    for line in &shown {
        if line.trim() == "..." {
            free = true;
            continue;
        }
        let rest = said.get(at..).unwrap_or_default();
        let found = match free {
            true => rest.iter().position(|one| one == line),
            false => (rest.first() == Some(line)).then_some(0),
        };
        let Some(found) = found else {
            let instead = rest.first().map_or("nothing", String::as_str);
            return Err(format!("shown: {line}\nsaid:  {instead}"));
        };
        at += found + 1;
        free = false;
    }
    match said.get(at) {
        Some(more) if !free => Err(format!("said, and neither shown nor left out: {more}")),
        _ => Ok(()),
    }
}

/// Lines without blanks at their ends and at the end of all, and with marks for what is new each time.
fn lines(text: &str) -> Vec<String> {
    let digits = Regex::new("[0-9a-f]{12,64}").unwrap();
    let mut out: Vec<String> = text
        .lines()
        .map(|line| digits.replace_all(line.trim_end(), "HEX").into_owned())
        .collect();
    while out.last().is_some_and(String::is_empty) {
        out.pop();
    }
    out
}

#[test]
fn a_line_that_was_not_said_is_found() {
    assert!(check("a\n...\nc\n", "a\nb\nb\nc\n").is_ok());
    assert!(check("a 0123456789ab\n", "a ba9876543210\n\n").is_ok());
    assert!(check("", "whatever\n").is_ok());
    for wrong in ["a\nc\n", "a\n", "...\nb\n", "a\n...\nd\n", "A\n...\n"] {
        assert!(check(wrong, "a\nb\nb\nc\n").is_err(), "{wrong}");
    }
}
