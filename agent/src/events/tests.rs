#![allow(clippy::disallowed_methods, reason = "a test reads the source tree")]

use std::collections::BTreeSet;
use std::path::Path;

use super::*;

fn file(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)).unwrap()
}

fn name(kind: Kind) -> String {
    match kind {
        Kind::Entered(state) => format!("`{state}`"),
        Kind::CheckNotMet => "check not met".to_owned(),
        Kind::AcsCameBack => "ACS came back".to_owned(),
    }
}

#[test]
fn ids_are_ids_and_each_is_there_once() {
    let ids: BTreeSet<&str> = EVENTS.iter().map(|e| e.id).collect();
    assert_eq!(ids.len(), EVENTS.len());
    for id in ids {
        assert_eq!(id.len(), 32);
        assert!(
            id.bytes()
                .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)),
            "{id}"
        );
    }
}

#[test]
fn the_page_has_the_same_list() {
    let page = file("docs/events.md");
    let rows: Vec<String> = page
        .lines()
        .filter(|line| line.get(35..39) == Some("` | "))
        .map(|line| line.split(" | ").take(3).collect::<Vec<_>>().join(" | "))
        .collect();
    let wanted: Vec<String> = EVENTS
        .iter()
        .map(|e| format!("| `{}` | {} | {}", e.id, name(e.kind), e.priority.name()))
        .collect();
    assert_eq!(rows, wanted);
}

#[test]
fn the_catalog_explains_each_and_names_only_fields_that_it_has() {
    let catalog = file("systemd/gdr-agent.catalog");
    let mut ids = Vec::new();
    for entry in catalog.split("\n-- ").skip(1) {
        let (id, text) = entry.split_once('\n').unwrap();
        ids.push(id.to_owned());
        assert!(
            text.contains("Subject: ") && text.contains("Documentation: "),
            "{id}"
        );
        let (_, body) = text.split_once("\n\n").unwrap();
        assert!(body.len() > 100, "{id}");
        let kind = EVENTS.iter().find(|e| e.id == id).unwrap().kind;
        let fields: BTreeSet<&str> = sample(kind)
            .fields()
            .iter()
            .map(|(name, _)| *name)
            .collect();
        for named in text.split('@').skip(1).step_by(2) {
            assert!(fields.contains(named), "{id} names {named}");
        }
    }
    let wanted: Vec<&str> = EVENTS.iter().map(|e| e.id).collect();
    assert_eq!(ids, wanted);
}

fn record(state: State) -> Record {
    let mut record = crate::journal::sample();
    record.txn.state = state;
    record
}

fn check(subject: &str, evidence: Vec<String>) -> Check {
    Check {
        group: "acs".into(),
        id: "acs.redirect".into(),
        question: "?".into(),
        outcome: Outcome::Failed,
        subject: subject.into(),
        evidence,
        fix: Some("do".into()),
        severity: Severity::Required,
        see: None,
    }
}

fn sample(kind: Kind) -> Event {
    match kind {
        Kind::Entered(state) => entered(&record(state), State::Idle).unwrap(),
        Kind::CheckNotMet => not_met(
            &record(State::TrialBooted),
            &[check("0000:17:00.0", vec!["a".into()])],
        )
        .remove(0),
        Kind::AcsCameBack => acs_came_back("0000:17:00.0".parse().unwrap(), "b").unwrap(),
    }
}

fn value<'e>(event: &'e Event, name: &str) -> &'e str {
    let mut all = event.fields().iter().filter(|(n, _)| *n == name);
    let one = all.next().unwrap();
    assert!(all.next().is_none(), "{name} twice");
    &one.1
}

#[test]
fn every_state_that_is_entered_has_its_event() {
    for state in [
        State::Staged,
        State::RebootRequested,
        State::Granted,
        State::Armed,
        State::TrialBooted,
        State::Verified,
        State::Committing,
        State::Committed,
        State::RollingBack,
        State::RolledBack,
        State::Quarantined,
    ] {
        let event = sample(Kind::Entered(state));
        assert_eq!(value(&event, "GDR_STATE"), state.name());
        assert_eq!(value(&event, "GDR_STATE_BEFORE"), "IDLE");
        assert_eq!(value(&event, "GDR_TRANSACTION"), "0000000100000000");
    }
    assert!(entered(&record(State::Idle), State::Idle).is_none());
}

#[test]
fn what_hostile_devices_say_stays_small_and_harmless() {
    let long = format!("x{}", "ü\n".repeat(1 << 20));
    let mut checks = vec![check("a\nPRIORITY=0\u{1b}[2J", vec![long.clone(), long]); 1000];
    checks[0].severity = Severity::Warning;
    checks[1].outcome = Outcome::Met;
    checks[2].outcome = Outcome::Unknown;
    let events = not_met(&record(State::TrialBooted), &checks);
    assert_eq!(events.len(), 32);
    assert_eq!(value(&events[0], "GDR_OUTCOME"), "unknown");
    assert_eq!(value(&events[1], "GDR_OUTCOME"), "failed");
    for event in &events {
        let message = value(event, "MESSAGE");
        assert!(!message.contains(['\n', '\u{1b}']), "{message}");
        let size: usize = event
            .fields()
            .iter()
            .map(|(n, v)| n.len() + v.len() + 10)
            .sum();
        assert!(size < crate::sys::journald::LIMIT / 2, "{size}");
        assert_eq!(
            value(event, "GDR_EVIDENCE").len(),
            2048 - 1,
            "cut between characters"
        );
    }
}
