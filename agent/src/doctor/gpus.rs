//! What nvidia-smi says, where it was asked. What it says of windows and links belongs to the checks of those.

use super::Seen;
use crate::checks::Answer;
use crate::gpu::{Asked, findings, topo};
use crate::pci::Bdf;
use crate::plain::counted;

const MISSING: &str = "gpu.missing";

pub(super) fn ask(seen: &Seen) -> Vec<Answer> {
    let more = seen.node.more;
    let gpus = &more.gpus;
    let of_others = ["bar1.small", "link.degraded"];
    let found = findings(gpus).into_iter();
    let mut answers: Vec<Answer> = found
        .filter(|finding| !of_others.contains(&finding.id.as_str()))
        .filter_map(Answer::of)
        .collect();
    let Asked::Said(smi) = &gpus.smi else {
        return answers;
    };
    let subject = "nvidia-smi -q -x";
    let count = smi.gpus.len();
    if count == 0 {
        let fix = "look whether the nvidia module is loaded, and for Xid in the kernel log";
        answers.push(Answer::unknown(
            MISSING,
            subject,
            "nvidia-smi: it names no GPU",
            fix,
        ));
    } else if !answers.iter().any(|answer| answer.id == MISSING) {
        answers.push(Answer::met(
            MISSING,
            subject,
            format!("nvidia-smi: {}", counted(count, "GPU")),
        ));
    }
    if let Asked::Said(matrix) = &gpus.topo {
        let order: Option<Vec<Bdf>> = smi.gpus.iter().map(|gpu| gpu.bdf).collect();
        let devices = more.known().devices.unwrap_or_default();
        let compared = topo::compare(
            matrix,
            seen.node.topology,
            &order.unwrap_or_default(),
            devices,
        );
        answers.extend(compared.finding().and_then(Answer::of));
    }
    answers
}
