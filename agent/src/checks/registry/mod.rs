//! The list of everything that can be asked and found. `verify`, `doctor`, `metrics` and
//! `docs/failures.md` are all made from it, in this order: what is to be done first stands first.

mod environment;
mod gpus;
mod host;
mod log;
mod measured;
mod memory;
mod package;
mod pcie;
mod plan;

use schemars::JsonSchema;
use serde::Serialize;

use super::Severity;

/// How an id comes about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// It is asked, and the answer is met, failed or unknown.
    Check,
    /// It is a way in which another check can fail, or is said only where it is so.
    Cause,
    /// It is found in the log of a job, or in what perftest printed.
    Log,
    /// It is said by `plan` and `acs` about what they would do.
    Plan,
}

/// One thing that can be asked or found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Entry {
    /// Its id, which stays the same for ever.
    pub id: &'static str,
    /// How it comes about.
    pub kind: Kind,
    /// The question that "yes" is the good answer to.
    pub question: &'static str,
    /// How much it matters where no policy says.
    pub severity: Severity,
    /// The facts that it takes: paths, with `BDF`, `KVER`, `N` and `PID` for what varies.
    pub facts: &'static [&'static str],
    /// What somebody notices who has this.
    pub symptom: &'static str,
    /// What to do, where the finding itself does not say it more exactly.
    pub fix: &'static str,
    /// Findings that follow from it.
    pub explains: &'static [&'static str],
}

impl Entry {
    /// Where the failure is described: a file of the source tree and the anchor of a headline in it.
    #[must_use]
    pub fn anchor(&self) -> String {
        format!("docs/failures.md#{}", self.id.replace('.', ""))
    }
}

/// The list, by what has to be in order first. Whoever adds findings adds a line here.
const LISTS: &[&[Entry]] = &[
    environment::ENTRIES,
    gpus::ENTRIES,
    memory::ENTRIES,
    pcie::ENTRIES,
    host::ENTRIES,
    environment::OTHERS,
    log::ENTRIES,
    measured::ENTRIES,
    plan::ENTRIES,
    package::ENTRIES,
];

/// All entries, what is to be done first at the front.
pub fn all() -> impl Iterator<Item = &'static Entry> {
    LISTS.iter().flat_map(|list| list.iter())
}

/// An entry and its place in the list.
#[must_use]
pub fn find(id: &str) -> Option<(usize, &'static Entry)> {
    all().enumerate().find(|(_, entry)| entry.id == id)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ids_are_unique_and_well_formed() {
        let mut seen = BTreeSet::new();
        let mut anchors = BTreeSet::new();
        for entry in all() {
            assert!(seen.insert(entry.id), "{} is there twice", entry.id);
            assert!(anchors.insert(entry.anchor()), "{}", entry.anchor());
            let (family, name) = entry.id.split_once('.').unwrap();
            for part in [family, name] {
                let right = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
                assert!(!part.is_empty() && part.bytes().all(right), "{}", entry.id);
            }
            assert!(entry.question.ends_with('?'), "{}", entry.id);
            assert!(!entry.fix.is_empty() && !entry.symptom.is_empty() && !entry.facts.is_empty());
        }
    }

    /// A cause that is explained by what it explains would make both disappear from the report.
    #[test]
    fn explanations_are_known_and_go_round_nowhere() {
        fn reach(id: &str, path: &mut Vec<String>) {
            assert!(!path.iter().any(|p| p == id), "{path:?} comes back to {id}");
            path.push(id.to_owned());
            let (_, entry) = find(id).unwrap_or_else(|| panic!("{id} is not in the list"));
            for next in entry.explains {
                reach(next, path);
            }
            path.pop();
        }
        for entry in all() {
            reach(entry.id, &mut Vec::new());
        }
    }
}
