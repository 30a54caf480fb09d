//! Does the environment that NCCL starts in turn GPUDirect off? `nccl_env` reads and judges it.

use super::{Answer, Input, Outcome};
use crate::finding::Finding;
use crate::nccl_env::findings;
use crate::plain::counted;

const ID: &str = "nccl.env-net-disabled";

pub(super) fn ask(input: &Input) -> Vec<Answer> {
    let env = &input.facts.nccl_env;
    let found = findings(env, input.more.known());
    let mut answers: Vec<Answer> = found.into_iter().filter_map(answer).collect();
    if answers.iter().any(|answer| answer.id == ID) {
        return answers;
    }
    let files = env.files.iter().map(|file| match file.lines.get() {
        Some(lines) => format!("{}: {}", file.lines.from, counted(lines.len(), "setting")),
        None => format!("{}: it is not there", file.lines.from),
    });
    let mut evidence: Vec<String> = files.collect();
    evidence.push(format!(
        "{} with variables of NCCL's",
        counted(env.processes.len(), "process")
    ));
    let mut met = Answer::met(ID, "NCCL's environment", String::new());
    met.evidence = evidence;
    answers.push(met);
    answers
}

/// A file that could not be read may hold anything, and so leaves the question itself open.
fn answer(finding: Finding) -> Option<Answer> {
    if finding.id == "nccl.env-unread" && finding.subject.starts_with('/') {
        return Some(Answer {
            id: ID,
            outcome: Outcome::Unknown,
            subject: finding.subject,
            evidence: finding.evidence,
            fix: finding.fix,
            severity: None,
        });
    }
    Answer::of(finding)
}
