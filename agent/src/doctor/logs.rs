//! What the logs of jobs say, as answers.

use super::Seen;
use crate::checks::{Answer, Outcome, registry};
use crate::nccl_log::{FileReport, Finding, Verdict};

const ENGAGED: &str = "nccl.not-engaged";

pub(super) fn ask(seen: &Seen) -> Vec<Answer> {
    seen.logs.iter().flat_map(one).collect()
}

/// NCCL's minor version, if logs name one: none where they name several.
pub(super) fn nccl_minor(logs: &[FileReport]) -> Option<Option<u32>> {
    let versions = logs.iter().flat_map(|log| &log.nccl_versions);
    let mut minors: Vec<u32> = versions
        .filter_map(|version| version.strip_prefix("2.")?.split('.').next()?.parse().ok())
        .collect();
    minors.sort_unstable();
    minors.dedup();
    match minors.as_slice() {
        [] => None,
        [one] => Some(Some(*one)),
        _ => Some(None),
    }
}

fn one(report: &FileReport) -> Vec<Answer> {
    let mut answers = vec![engaged(report)];
    answers.extend(
        report
            .findings
            .iter()
            .filter_map(|finding| answer(report, finding)),
    );
    answers
}

fn engaged(report: &FileReport) -> Answer {
    let channels = &report.channels;
    let evidence = format!(
        "{}: {}; {} of {} network records carry /GDRDMA",
        report.name,
        report.verdict.word(),
        channels.gdr,
        channels.net
    );
    let fix = registry::find(ENGAGED).map_or("", |(_, entry)| entry.fix);
    let subject = report.name.clone();
    let answer = match report.verdict {
        Verdict::Engaged | Verdict::NotApplicable => Answer::met(ENGAGED, subject, evidence),
        Verdict::Partial | Verdict::NotEngaged => Answer::failed(ENGAGED, subject, evidence, fix),
        Verdict::Unknown => Answer::unknown(ENGAGED, subject, evidence, fix),
    };
    match &report.error {
        // Half a log may be the half that says nothing.
        Some(error) if answer.outcome == Outcome::Met => Answer::unknown(
            ENGAGED,
            report.name.clone(),
            error.clone(),
            "give the whole log",
        ),
        _ => answer,
    }
}

fn answer(report: &FileReport, finding: &Finding) -> Option<Answer> {
    let (_, entry) = registry::find(&finding.id)?;
    let mut answer = Answer::failed(
        entry.id,
        report.name.clone(),
        finding.summary.clone(),
        finding.fix.clone(),
    );
    answer.evidence.extend(
        finding
            .evidence
            .iter()
            .map(|evidence| format!("{}:{}: {}", report.name, evidence.line, evidence.text)),
    );
    // The log lacks something: that is no fault of the node.
    if finding.id.starts_with("nccl.log-") {
        answer.outcome = Outcome::Unknown;
    }
    Some(answer)
}
