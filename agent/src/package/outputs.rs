//! What package managers print, given to every reader of it: for tests, which have no package manager that prints anything.

use super::{Change, Manager, Problem, apt, dnf, dpkg, outcome, zypper};

/// The changes that a simulation announces, as each manager's reader understands it.
#[must_use]
pub fn changes(text: &str) -> Vec<Change> {
    let mut all = apt::parse_simulation(text);
    all.extend(dnf::parse_simulation(text));
    all.extend(zypper::parse_simulation(text).unwrap_or_default());
    all
}

/// The versions of a package that can be installed, likewise.
#[must_use]
pub fn versions(text: &str, name: &str) -> Vec<String> {
    let offered = apt::parse_policy(text).into_iter();
    let mut all: Vec<String> = offered.map(|offered| offered.version).collect();
    all.extend(dnf::parse_candidates(text, name));
    all.extend(zypper::parse_candidates(text, name).unwrap_or_default());
    let driver = all.first().and_then(|version| apt::depends(text, version));
    all.extend(driver.and_then(|depends| dpkg::needed_driver(&depends, name)));
    all
}

/// What is made of a manager's last words.
#[must_use]
pub fn problems(text: &str) -> Vec<Problem> {
    vec![
        outcome::explain(Manager::Apt, "install", text),
        outcome::explain(Manager::Dnf, "install", text),
        outcome::explain(Manager::Zypper, "install", &zypper::messages(text)),
    ]
}
