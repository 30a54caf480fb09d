//! Does the environment that NCCL starts in turn GPUDirect off? `nccl_env` reads it; `verify` looks at running processes too.

use super::{Answer, Input, Outcome};
use crate::nccl_env::{Known, findings};

pub(super) fn ask(input: &Input) -> Vec<Answer> {
    let env = &input.facts.nccl_env;
    let answers: Vec<Answer> = findings(env, Known::default())
        .into_iter()
        .map(|finding| Answer {
            id: intern(&finding.id),
            outcome: finding.outcome,
            subject: finding.subject,
            evidence: finding.evidence,
            fix: finding.fix,
        })
        .collect();
    if answers.iter().any(|answer| answer.outcome != Outcome::Met) {
        return answers;
    }
    let files = env.files.iter().map(|file| match file.lines.get() {
        Some(lines) => format!("{}: {} settings", file.lines.from, lines.len()),
        None => format!("{}: it is not there", file.lines.from),
    });
    let mut evidence: Vec<String> = files.collect();
    evidence.push(format!(
        "{} processes with variables of NCCL's",
        env.processes.len()
    ));
    let mut met = Answer::met("nccl.env-net-disabled", "NCCL's environment", String::new());
    met.evidence = evidence;
    vec![met]
}

/// Ids are constants in answers.
fn intern(id: &str) -> &'static str {
    const IDS: [&str; 12] = [
        "nccl.env-net-disabled",
        "nccl.env-gdr-level",
        "nccl.env-gdr-read",
        "nccl.env-bad-value",
        "nccl.env-dmabuf-disabled",
        "nccl.env-relaxed-ordering",
        "nccl.env-gdr-c2c",
        "nccl.env-p2p-disabled",
        "nccl.env-hca-none",
        "nccl.env-unknown-name",
        "nccl.env-bad-line",
        "nccl.env-unread",
    ];
    IDS.into_iter()
        .find(|known| *known == id)
        .unwrap_or("nccl.env-net-disabled")
}
