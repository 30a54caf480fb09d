//! The report for a terminal.

use std::fmt::Write as _;

use super::{Cause, Report};
use crate::checks::registry::{Entry, Kind};
use crate::checks::{Outcome, Severity};
use crate::pci::render::Styles;
use crate::plain;
use crate::plain::counted;

/// Lines of evidence that are shown of a cause.
const EVIDENCE: usize = 6;
/// Subjects that are named.
const SUBJECTS: usize = 4;

/// The whole report.
#[must_use]
pub fn report(report: &Report, styles: Styles) -> String {
    let Styles {
        good,
        bad,
        warn,
        dim,
        ..
    } = styles;
    let mut text = String::new();
    let _ = writeln!(text, "{dim}{}{dim:#}\n", node_line(&report.node));
    let colour = match report.verdict {
        Outcome::Met => good,
        Outcome::Failed => bad,
        Outcome::Unknown => warn,
    };
    let _ = writeln!(text, "{colour}{}{colour:#}", headline(report));
    // What could not be read is told in full only where it decides.
    let aside = |c: &&Cause| c.outcome == Outcome::Unknown && c.severity != Severity::Required;
    let shown = report.causes.iter().filter(|c| !aside(c));
    for (at, cause) in shown.enumerate() {
        text.push('\n');
        one(&mut text, at + 1, cause, styles);
    }
    not_known(&mut text, report.causes.iter().filter(aside), styles);
    for log in &report.logs {
        // What is a cause is told above.
        let told = |id: &str| report.causes.iter().any(|cause| cause.id == id);
        let _ = write!(
            text,
            "\n{}",
            crate::nccl_log::render::file_without(log, styles, told)
        );
    }
    let met = report
        .checks
        .iter()
        .filter(|c| c.outcome == Outcome::Met)
        .count();
    let _ = writeln!(
        text,
        "\n{dim}{met} of {} answers are as they should be; `--format json` and `--format html` have them all.{dim:#}",
        report.checks.len()
    );
    text
}

fn one(text: &mut String, number: usize, cause: &Cause, styles: Styles) {
    let Styles {
        head,
        bad,
        warn,
        dim,
        ..
    } = styles;
    let colour = match (cause.outcome, cause.severity) {
        (Outcome::Failed, Severity::Required) => bad,
        (_, Severity::Note) => dim,
        _ => warn,
    };
    let word = match (cause.outcome, cause.severity) {
        (Outcome::Unknown, _) => "unknown",
        (_, Severity::Required) => "failed",
        (_, Severity::Warning) => "warning",
        (_, Severity::Note) => "note",
    };
    let _ = writeln!(
        text,
        "{head}{number:>2}{head:#}  {colour}{word:8}{colour:#} {head}{}{head:#}  {}",
        cause.id,
        some(&cause.subjects)
    );
    let answer = if cause.outcome == Outcome::Failed {
        "No."
    } else {
        "Not known."
    };
    wrap(text, "", &format!("{} {answer}", cause.question));
    let lines = alike(&cause.subjects, &cause.evidence);
    for line in lines.iter().take(EVIDENCE) {
        wrap(text, "-", line);
    }
    if lines.len() > EVIDENCE {
        let more = lines.len() - EVIDENCE;
        wrap(text, "-", &format!("and {more} more lines of evidence"));
    }
    for fix in &cause.fixes {
        wrap(text, "do:", fix);
    }
    if !cause.explains.is_empty() {
        let list: Vec<String> = cause
            .explains
            .iter()
            .map(|s| {
                // Of the same thing it is said above already.
                if s.subjects == cause.subjects {
                    s.id.clone()
                } else {
                    format!("{} ({})", s.id, some(&s.subjects))
                }
            })
            .collect();
        wrap(text, "explains:", &list.join(", "));
    }
    if let Some(see) = &cause.see {
        wrap(text, "see:", see);
    }
}

/// What the node is.
pub(super) fn node_line(node: &super::Node) -> String {
    let word = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".to_owned());
    format!(
        "{}, kernel {}, NVIDIA driver {}, {}, {}",
        word(&node.os),
        word(&node.kernel),
        word(&node.driver),
        counted(node.gpus, "GPU"),
        counted(node.nics, "NIC")
    )
}

/// The verdict in a sentence.
pub(super) fn headline(report: &Report) -> String {
    let failed = |c: &&Cause| c.outcome == Outcome::Failed && c.severity == Severity::Required;
    match report.verdict {
        Outcome::Met => "Everything that GPUDirect RDMA needs is there.".to_owned(),
        Outcome::Failed => {
            let what = counted(report.causes.iter().filter(failed).count(), "cause");
            let none = match report.node.gpus {
                0 => "No GPU was found here. ",
                _ => "",
            };
            format!("{none}GPUDirect RDMA is not right here: {what}, what to do first at the top.")
        }
        Outcome::Unknown if report.node.gpus == 0 => {
            "Not known: no GPU was found here, or the PCI devices could not be read.".to_owned()
        }
        Outcome::Unknown => {
            "Not known: something that GPUDirect RDMA needs could not be read.".to_owned()
        }
    }
}

/// Questions without an answer that have the same reason.
#[derive(Debug)]
pub(super) struct Reasons<'c> {
    pub(super) evidence: &'c [String],
    pub(super) fixes: &'c [String],
    pub(super) ids: Vec<&'c str>,
}

/// Questions without an answer, by their reasons.
pub(super) fn reasons<'c>(causes: impl Iterator<Item = &'c Cause>) -> Vec<Reasons<'c>> {
    let mut reasons: Vec<Reasons<'c>> = Vec::new();
    for cause in causes {
        let same = reasons
            .iter_mut()
            .find(|r| r.evidence == cause.evidence && r.fixes == cause.fixes);
        match same {
            Some(reason) => reason.ids.push(&cause.id),
            None => reasons.push(Reasons {
                evidence: &cause.evidence,
                fixes: &cause.fixes,
                ids: vec![&cause.id],
            }),
        }
    }
    reasons
}

/// One paragraph for each reason.
fn not_known<'c>(text: &mut String, causes: impl Iterator<Item = &'c Cause>, styles: Styles) {
    let Styles { head, warn, .. } = styles;
    for Reasons {
        evidence,
        fixes,
        ids,
    } in reasons(causes)
    {
        let _ = write!(text, "\n{warn}{head}");
        wrap(text, "unknown ", &ids.join(", "));
        let _ = write!(text, "{head:#}{warn:#}");
        for line in evidence.iter().take(EVIDENCE) {
            wrap(text, "-", line);
        }
        for fix in fixes {
            wrap(text, "do:", fix);
        }
    }
}

/// Lines of evidence; those of many devices that end in the same value are one, and a log's own say the line alone.
fn alike(subjects: &[String], evidence: &[String]) -> Vec<String> {
    let mut shown: Vec<(String, &str, usize)> = Vec::new();
    for line in evidence {
        if let [log] = subjects
            && let Some(rest) = line
                .strip_prefix(log.as_str())
                .and_then(|l| l.strip_prefix(':'))
            && rest.starts_with(|c: char| c.is_ascii_digit())
        {
            shown.push((format!("line {rest}"), "", 0));
            continue;
        }
        let value = line.rsplit_once(": ").map_or("", |(_, value)| value);
        let of_device = subjects.len() > 1 && subjects.iter().any(|s| line.contains(s.as_str()));
        let same = shown.iter_mut().find(|(_, other, _)| *other == value);
        match same.filter(|_| of_device && !value.is_empty()) {
            Some((_, _, more)) => *more += 1,
            None => shown.push((line.clone(), if of_device { value } else { "" }, 0)),
        }
    }
    let line = |(line, _, more)| match more {
        0 => line,
        more => format!("{line} (and {more} more alike)"),
    };
    shown.into_iter().map(line).collect()
}

fn some(subjects: &[String]) -> String {
    let shown = subjects
        .get(..SUBJECTS.min(subjects.len()))
        .unwrap_or_default()
        .join(", ");
    match subjects.len() - subjects.len().min(SUBJECTS) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Words below a label.
fn wrap(text: &mut String, label: &str, words: &str) {
    let start = match label {
        "" => "    ".to_owned(),
        label => format!("    {label} "),
    };
    plain::wrap(text, &start, words);
}

/// The registry, for `--list`.
#[must_use]
pub fn list(entries: &[&Entry], styles: Styles) -> String {
    let Styles { head, dim, .. } = styles;
    let mut text = String::new();
    let width = entries
        .iter()
        .map(|entry| entry.id.len())
        .max()
        .unwrap_or(0);
    for (kind, title) in [
        (Kind::Check, "Asked on every node"),
        (
            Kind::Cause,
            "Ways in which these fail, and what is said only where it is so",
        ),
        (
            Kind::Log,
            "Found in the log of a job, or in what perftest printed",
        ),
        (Kind::Plan, "Said by plan and acs"),
    ] {
        let _ = writeln!(text, "{head}{title}{head:#}");
        for entry in entries.iter().filter(|entry| entry.kind == kind) {
            let _ = writeln!(text, "  {:width$}  {}", entry.id, entry.question);
        }
        text.push('\n');
    }
    let _ = writeln!(
        text,
        "{dim}docs/failures.md describes each: symptom, evidence and fix.{dim:#}"
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_many_devices_say_alike_is_said_once() {
        let lines = |values: &[(&str, &str)]| -> (Vec<String>, Vec<String>) {
            let subjects = values.iter().map(|(s, _)| (*s).to_owned()).collect();
            let lines = values.iter().map(|(s, v)| format!("/sys/{s}/x: {v}"));
            (subjects, lines.collect())
        };
        let (subjects, evidence) = lines(&[("a", "1"), ("b", "2"), ("c", "1"), ("d", "1")]);
        assert_eq!(
            alike(&subjects, &evidence),
            ["/sys/a/x: 1 (and 2 more alike)", "/sys/b/x: 2"]
        );
        let (subjects, evidence) = lines(&[("job.log", "1")]);
        assert_eq!(alike(&subjects, &evidence), evidence);
        let of_a_log = [
            "job.log:17: NCCL: x".to_owned(),
            "job.log:18: NCCL: x".to_owned(),
        ];
        assert_eq!(
            alike(&["job.log".to_owned()], &of_a_log),
            ["line 17: NCCL: x", "line 18: NCCL: x"]
        );
    }
}
