//! The report as one page that needs nothing but itself: no script, no font, nothing to load, and it forbids itself to.
//!
//! What to do stands first, evidence is folded in, and everything that comes from a node or a log is printable ASCII
//! with every sign that HTML reads escaped.

mod heat;
mod style;

use std::fmt::Write as _;

use super::render::{Reasons, headline, node_line, reasons};
use super::{Cause, Report};
use crate::checks::{Check, Outcome, Severity};
use crate::nccl_log::{FileReport, Verdict};
use crate::pci::picture::{escaped, printable, svg};
use crate::plain::counted;

const HEAD: &str = "<!DOCTYPE html>
<html lang=\"en\">
<head>
<meta charset=\"utf-8\"/>
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>
<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\"/>
<meta name=\"color-scheme\" content=\"light dark\"/>
<title>gdr-agent doctor</title>
<style>
";

/// The whole page.
#[must_use]
pub fn page(report: &Report) -> String {
    let mut out = String::from(HEAD);
    out.push_str(style::SHEET);
    out.push_str("</style>\n</head>\n<body>\n<main>\n<header>\n<h1>GPUDirect RDMA</h1>\n");
    let _ = writeln!(
        out,
        "<p class=\"node\">{}</p>\n<p class=\"verdict {}\">{}</p>\n</header>",
        safe(&node_line(&report.node)),
        class(report.verdict, Severity::Required),
        safe(&headline(report))
    );
    to_do(&mut out, report);
    if report.topology.gpus.len() + report.topology.nics.len() > 0 {
        let _ = write!(
            out,
            "<h2>Paths between GPUs and NICs</h2>\n<figure tabindex=\"0\">\n{}</figure>\n",
            svg(&report.topology)
        );
    }
    if !report.logs.is_empty() {
        out.push_str("<h2>Logs</h2>\n");
        for log in &report.logs {
            one_log(&mut out, log);
        }
    }
    checks(&mut out, &report.checks);
    let _ = write!(
        out,
        "<footer><p>gdr-agent {}. Each finding is described in <code>docs/failures.md</code> under its id.</p></footer>\n</main>\n</body>\n</html>\n",
        env!("CARGO_PKG_VERSION")
    );
    out
}

/// Text from outside, fit for a page.
fn safe(text: &str) -> String {
    escaped(&printable(text))
}

/// Our own sentences mark what is to be typed by backquotes.
fn prose(text: &str) -> String {
    let text = safe(text);
    let mut parts = text.split('`').peekable();
    let mut out = String::new();
    let mut code = false;
    while let Some(part) = parts.next() {
        match (code, parts.peek().is_some()) {
            (true, true) => {
                let _ = write!(out, "<code>{part}</code>");
            }
            // the last backquote has no other
            (true, false) => {
                let _ = write!(out, "`{part}");
            }
            (false, _) => out.push_str(part),
        }
        code = !code;
    }
    out
}

const fn class(outcome: Outcome, severity: Severity) -> &'static str {
    match (outcome, severity) {
        (Outcome::Met, _) => "good",
        (Outcome::Failed, Severity::Required) => "bad",
        (_, Severity::Note) => "note",
        (Outcome::Failed, Severity::Warning) => "warn",
        (Outcome::Unknown, _) => "unknown",
    }
}

const fn word(outcome: Outcome, severity: Severity) -> &'static str {
    match (outcome, severity) {
        (Outcome::Met, _) => "met",
        (Outcome::Unknown, _) => "unknown",
        (Outcome::Failed, Severity::Required) => "failed",
        (Outcome::Failed, Severity::Warning) => "warning",
        (Outcome::Failed, Severity::Note) => "note",
    }
}

fn to_do(out: &mut String, report: &Report) {
    out.push_str("<h2>What to do</h2>\n");
    let aside = |c: &&Cause| c.outcome == Outcome::Unknown && c.severity != Severity::Required;
    let mut shown = report.causes.iter().filter(|c| !aside(c)).peekable();
    if shown.peek().is_none() {
        out.push_str("<p>Nothing.</p>\n");
    } else {
        out.push_str("<ol class=\"causes\">\n");
        for cause in shown {
            one(out, cause);
        }
        out.push_str("</ol>\n");
    }
    let not_known = reasons(report.causes.iter().filter(aside));
    if not_known.is_empty() {
        return;
    }
    out.push_str("<h3>Not known</h3>\n");
    for Reasons {
        evidence,
        fixes,
        ids,
    } in not_known
    {
        let ids: Vec<String> = ids
            .iter()
            .map(|id| format!("<code>{}</code>", safe(id)))
            .collect();
        let _ = writeln!(
            out,
            "<section class=\"aside unknown\"><p>{}</p>",
            ids.join(", ")
        );
        list(out, evidence);
        steps(out, fixes);
        out.push_str("</section>\n");
    }
}

fn one(out: &mut String, cause: &Cause) {
    let _ = writeln!(
        out,
        "<li class=\"cause {}\" id=\"{}\">\n<h3><code>{}</code> <span class=\"tag\">{}</span></h3>\n<p>{} <strong>{}</strong></p>",
        class(cause.outcome, cause.severity),
        safe(&cause.id.replace('.', "-")),
        safe(&cause.id),
        word(cause.outcome, cause.severity),
        safe(&cause.question),
        if cause.outcome == Outcome::Failed {
            "No."
        } else {
            "Not known."
        }
    );
    steps(out, &cause.fixes);
    let _ = writeln!(out, "<p class=\"about\">{}</p>", subjects(&cause.subjects));
    if !cause.explains.is_empty() {
        let symptoms = cause.explains.iter().map(|symptom| {
            format!(
                "<code>{}</code> ({})",
                safe(&symptom.id),
                subjects(&symptom.subjects)
            )
        });
        let symptoms: Vec<String> = symptoms.collect();
        let _ = writeln!(
            out,
            "<p class=\"about\">This explains {}.</p>",
            symptoms.join(", ")
        );
    }
    let _ = writeln!(
        out,
        "<details><summary>Evidence ({})</summary>",
        cause.evidence.len()
    );
    list(out, &cause.evidence);
    out.push_str("</details>\n</li>\n");
}

/// Subjects that are named; evidence has all of them.
const SUBJECTS: usize = 8;

fn subjects(subjects: &[String]) -> String {
    let shown: Vec<String> = subjects.iter().take(SUBJECTS).map(|s| safe(s)).collect();
    match subjects.len().saturating_sub(SUBJECTS) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

fn steps(out: &mut String, fixes: &[String]) {
    for fix in fixes {
        let _ = writeln!(out, "<p class=\"do\"><b>Do:</b> {}</p>", prose(fix));
    }
}

/// Lines of evidence of one cause that a page holds.
const LINES: usize = 200;

fn list(out: &mut String, lines: &[String]) {
    out.push_str("<ul class=\"lines\">\n");
    for line in lines.iter().take(LINES) {
        let _ = writeln!(out, "<li>{}</li>", safe(line));
    }
    if lines.len() > LINES {
        let _ = writeln!(
            out,
            "<li>and {}; <code>--format json</code> has them all</li>",
            counted(lines.len() - LINES, "more line")
        );
    }
    out.push_str("</ul>\n");
}

fn one_log(out: &mut String, log: &FileReport) {
    let class = match log.verdict {
        Verdict::Engaged | Verdict::NotApplicable => "good",
        Verdict::Partial | Verdict::NotEngaged => "bad",
        Verdict::Unknown => "unknown",
    };
    let version = log.nccl_version.as_deref().unwrap_or("version not told");
    let _ = writeln!(
        out,
        "<h3><code>{}</code></h3>\n<p><span class=\"tag {class}\">{}</span> NCCL {}; {} of {} network records carry GPUDirect RDMA.</p>",
        safe(&log.name),
        log.verdict.word(),
        safe(version),
        log.channels.gdr,
        log.channels.net
    );
    if let Some(error) = &log.error {
        let _ = writeln!(
            out,
            "<p class=\"warn\">The log was not read to its end: {}</p>",
            safe(error)
        );
    }
    heat::map(out, log);
}

/// By group, in the order of the registry.
fn checks(out: &mut String, checks: &[Check]) {
    let mut groups: Vec<(&str, Vec<&Check>)> = Vec::new();
    for check in checks {
        match groups.iter_mut().find(|(name, _)| *name == check.group) {
            Some((_, of_it)) => of_it.push(check),
            None => groups.push((&check.group, vec![check])),
        }
    }
    let met = checks.iter().filter(|c| c.outcome == Outcome::Met).count();
    let _ = writeln!(
        out,
        "<h2>Every answer</h2>\n<p>{met} of {} are as they should be.</p>",
        checks.len()
    );
    for (name, of_it) in groups {
        let count = |outcome| of_it.iter().filter(|c| c.outcome == outcome).count();
        let mut told = vec![format!("{} met", count(Outcome::Met))];
        for (outcome, word) in [(Outcome::Failed, "not met"), (Outcome::Unknown, "unknown")] {
            if count(outcome) > 0 {
                told.push(format!("{} {word}", count(outcome)));
            }
        }
        let _ = writeln!(
            out,
            "<details><summary>{} <small>{}</small></summary>\n<div class=\"wide\" tabindex=\"0\"><table class=\"checks\">\n<thead><tr><th scope=\"col\">Answer</th><th scope=\"col\">Check</th><th scope=\"col\">About</th><th scope=\"col\">Evidence</th></tr></thead>\n<tbody>",
            safe(name),
            told.join(", ")
        );
        for check in of_it {
            let evidence: Vec<String> = check.evidence.iter().map(|line| safe(line)).collect();
            let _ = writeln!(
                out,
                "<tr><td class=\"{}\">{}</td><td><code>{}</code><br/>{}</td><td>{}</td><td>{}</td></tr>",
                class(check.outcome, check.severity),
                word(check.outcome, check.severity),
                safe(&check.id),
                safe(&check.question),
                safe(&check.subject),
                evidence.join("<br/>")
            );
        }
        out.push_str("</tbody>\n</table></div></details>\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backquotes_are_code_and_nothing_else_is() {
        assert_eq!(prose("run `a <b>` now"), "run <code>a &lt;b&gt;</code> now");
        assert_eq!(prose("one ` alone"), "one ` alone");
        assert_eq!(prose("`a` and `b`"), "<code>a</code> and <code>b</code>");
        assert_eq!(
            safe("\u{1b}[2J\u{202e}<script>"),
            "\\u{1b}[2J\\u{202e}&lt;script&gt;"
        );
    }
}
