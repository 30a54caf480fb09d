//! From answers to causes: what several answers say is said once, what follows from something else is put
//! below it, and what is to be done first comes first. Pure.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;

use crate::checks::registry;
use crate::checks::{Check, Outcome, Severity};

/// Something to deal with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Cause {
    /// The finding.
    pub id: String,
    /// Failed, or unknown: then finding it out comes before everything that stands below.
    pub outcome: Outcome,
    /// The highest of its answers.
    pub severity: Severity,
    /// The question that was answered with no.
    pub question: String,
    /// What it is about; one for each answer.
    pub subjects: Vec<String>,
    /// What was read, each line once.
    pub evidence: Vec<String>,
    /// What to do, the first thing first; usually one.
    pub fixes: Vec<String>,
    /// What follows from it.
    pub explains: Vec<Symptom>,
    /// Where it is described.
    pub see: Option<String>,
}

/// A finding that a cause explains.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Symptom {
    /// The finding.
    pub id: String,
    /// What it is about.
    pub subjects: Vec<String>,
}

/// All causes, what is to be done first at the front.
#[must_use]
pub fn causes(checks: &[Check]) -> Vec<Cause> {
    let mut by_id: BTreeMap<(usize, &str, Outcome), Vec<&Check>> = BTreeMap::new();
    for check in checks {
        if check.outcome == Outcome::Met {
            continue;
        }
        let place = registry::find(&check.id).map_or(usize::MAX, |(at, _)| at);
        by_id
            .entry((place, check.id.as_str(), check.outcome))
            .or_default()
            .push(check);
    }
    let failed: BTreeSet<&str> = by_id
        .keys()
        .filter(|(_, _, outcome)| *outcome == Outcome::Failed)
        .map(|(_, id, _)| *id)
        .collect();
    // What a failed finding explains is its symptom, and so is what that explains.
    let mut explained: BTreeMap<&str, &str> = BTreeMap::new();
    for (_, id, outcome) in by_id.keys() {
        if *outcome == Outcome::Failed {
            let mut seen = BTreeSet::new();
            below(id, &failed, checks, &mut seen);
            for symptom in seen {
                explained.entry(symptom).or_insert(id);
            }
        }
    }
    let mut causes: Vec<(usize, Cause)> = Vec::new();
    for ((place, id, outcome), answers) in &by_id {
        if *outcome == Outcome::Failed && explained.contains_key(id) {
            continue;
        }
        let mut seen = BTreeSet::new();
        if *outcome == Outcome::Failed {
            below(id, &failed, checks, &mut seen);
        }
        let explains = seen.iter().map(|symptom| Symptom {
            id: (*symptom).to_owned(),
            subjects: subjects(
                checks
                    .iter()
                    .filter(|c| c.id == *symptom && c.outcome == Outcome::Failed),
            ),
        });
        let mut found = cause(id, *outcome, answers, explains.collect());
        // What brings about something grave is as grave.
        let symptoms = checks
            .iter()
            .filter(|c| c.outcome == Outcome::Failed && seen.contains(c.id.as_str()));
        found.severity = symptoms
            .map(|check| check.severity)
            .chain([found.severity])
            .min_by_key(|severity| order(*severity))
            .unwrap_or(found.severity);
        causes.push((*place, found));
    }
    causes.sort_by_key(|(place, cause)| {
        let unknown = cause.outcome == Outcome::Unknown;
        (order(cause.severity), unknown, *place)
    });
    causes.into_iter().map(|(_, cause)| cause).collect()
}

fn order(severity: Severity) -> u8 {
    match severity {
        Severity::Required => 0,
        Severity::Warning => 1,
        Severity::Note => 2,
    }
}

/// The failed findings that follow from one, and what follows from those.
fn below<'c>(
    id: &str,
    failed: &BTreeSet<&'c str>,
    checks: &'c [Check],
    seen: &mut BTreeSet<&'c str>,
) {
    let Some((_, entry)) = registry::find(id) else {
        return;
    };
    for next in entry.explains {
        let Some(next) = failed.get(next).copied() else {
            continue;
        };
        if can_be_explained(id, next, checks) && seen.insert(next) {
            below(next, failed, checks, seen);
        }
    }
}

/// A peer that did not answer is no work of ACS or IOMMU, although it has the same id.
fn can_be_explained(by: &str, id: &str, checks: &[Check]) -> bool {
    if id != "nccl.completion-error" || !(by.starts_with("acs.") || by.starts_with("iommu.")) {
        return true;
    }
    let mut answers = checks
        .iter()
        .filter(|c| c.id == id && c.outcome == Outcome::Failed);
    answers.all(|c| {
        c.evidence
            .iter()
            .any(|line| line.contains("ACS redirection"))
    })
}

fn cause(id: &str, outcome: Outcome, answers: &[&Check], explains: Vec<Symptom>) -> Cause {
    let mut evidence: Vec<String> = Vec::new();
    let mut fixes: Vec<String> = Vec::new();
    for check in answers {
        // Several subjects: each line has to say which it is about, unless it does already.
        for line in &check.evidence {
            let line = if answers.len() == 1 || line.contains(&check.subject) {
                line.clone()
            } else {
                format!("{}: {line}", check.subject)
            };
            if !evidence.contains(&line) {
                evidence.push(line);
            }
        }
        if let Some(fix) = check.fix.as_ref().filter(|fix| !fix.is_empty())
            && !fixes.contains(fix)
        {
            fixes.push(fix.clone());
        }
    }
    let severities = answers.iter().map(|check| check.severity);
    Cause {
        id: id.to_owned(),
        outcome,
        severity: severities
            .min_by_key(|severity| order(*severity))
            .unwrap_or(Severity::Note),
        question: answers
            .first()
            .map_or_else(String::new, |check| check.question.clone()),
        subjects: subjects(answers.iter().copied()),
        evidence,
        fixes,
        explains,
        see: answers.first().and_then(|check| check.see.clone()),
    }
}

fn subjects<'c>(checks: impl Iterator<Item = &'c Check>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for check in checks {
        if !found.contains(&check.subject) {
            found.push(check.subject.clone());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(id: &str, outcome: Outcome, subject: &str, evidence: &str) -> Check {
        let (_, entry) = registry::find(id).unwrap();
        Check {
            group: "test".into(),
            id: id.into(),
            question: entry.question.into(),
            outcome,
            subject: subject.into(),
            evidence: vec![evidence.into()],
            fix: Some(entry.fix.into()),
            severity: entry.severity,
            see: Some(entry.anchor()),
        }
    }

    fn ids(causes: &[Cause]) -> Vec<&str> {
        causes.iter().map(|c| c.id.as_str()).collect()
    }

    fn symptoms(cause: &Cause) -> Vec<&str> {
        cause.explains.iter().map(|s| s.id.as_str()).collect()
    }

    #[test]
    fn a_stub_explains_what_the_log_shows() {
        let causes = causes(&[
            answer(
                "nccl.not-engaged",
                Outcome::Failed,
                "job.log",
                "job.log: not-engaged",
            ),
            answer(
                "nccl.no-kernel-path",
                Outcome::Failed,
                "job.log",
                "job.log:3: Disabled for HCA 0",
            ),
            answer(
                "peermem.stub",
                Outcome::Failed,
                "nvidia-peermem",
                "it uses no symbol",
            ),
            answer("acs.redirect", Outcome::Met, "0000:15:01.0", "0x0011"),
        ]);
        assert_eq!(ids(&causes), ["peermem.stub"]);
        assert_eq!(
            symptoms(&causes[0]),
            ["nccl.no-kernel-path", "nccl.not-engaged"]
        );
    }

    #[test]
    fn many_ports_are_one_cause_and_warnings_come_last() {
        let causes = causes(&[
            answer("link.read-request", Outcome::Failed, "0000:18:00.0", "512"),
            answer("path.far", Outcome::Failed, "0000:17:00.0", "SYS"),
            answer(
                "acs.redirect",
                Outcome::Failed,
                "0000:15:01.0",
                "ACS control word 0x001d",
            ),
            answer(
                "acs.redirect",
                Outcome::Failed,
                "0000:16:01.0",
                "ACS control word 0x001d",
            ),
            answer("acs.redirect", Outcome::Unknown, "0000:19:01.0", "not read"),
            answer("bar1.small", Outcome::Failed, "0000:17:00.0", "256 MiB"),
        ]);
        let all = ids(&causes);
        assert_eq!(
            all,
            [
                "bar1.small",
                "acs.redirect",
                "acs.redirect",
                "path.far",
                "link.read-request"
            ]
        );
        assert_eq!(causes[1].subjects, ["0000:15:01.0", "0000:16:01.0"]);
        assert_eq!(
            causes[1].evidence[0],
            "0000:15:01.0: ACS control word 0x001d"
        );
        assert_eq!(causes[1].fixes.len(), 1);
        assert_eq!(causes[2].outcome, Outcome::Unknown);
    }

    #[test]
    fn what_an_unknown_would_explain_stays_a_cause() {
        let causes = causes(&[
            answer("acs.redirect", Outcome::Unknown, "0000:15:01.0", "not read"),
            answer(
                "nccl.completion-error",
                Outcome::Failed,
                "a.log",
                "which ACS redirection causes; status: 4",
            ),
        ]);
        assert_eq!(ids(&causes), ["nccl.completion-error", "acs.redirect"]);
    }

    #[test]
    fn a_dead_peer_is_no_work_of_acs() {
        let acs = answer("acs.redirect", Outcome::Failed, "0000:15:01.0", "0x001d");
        let dead = answer(
            "nccl.completion-error",
            Outcome::Failed,
            "a.log",
            "the peer did not answer; status: 12",
        );
        let hit = answer(
            "nccl.completion-error",
            Outcome::Failed,
            "a.log",
            "which ACS redirection and a translating IOMMU cause; status: 4",
        );
        assert_eq!(
            ids(&causes(&[acs.clone(), dead])),
            ["acs.redirect", "nccl.completion-error"]
        );
        assert_eq!(ids(&causes(&[acs, hit])), ["acs.redirect"]);
    }
}
