//! Can NIC drivers reach GPU memory here, and by which way?

use super::{Answer, Input};
use crate::facts::fold;
use crate::plan::{GdrPath, decide};

pub(super) fn ask(input: &Input) -> Vec<Answer> {
    let decision = decide(input.policy, input.facts);
    let evidence = decision.evidence.join("; ");
    let loaded = &input.facts.modules.loaded;
    match decision.path {
        GdrPath::DmaBuf => vec![Answer::met("dma-buf.unavailable", "DMA-BUF", evidence)],
        GdrPath::Peermem => vec![match loaded.get() {
            Some(names) if names.contains(&fold("nvidia-peermem")) => Answer::met(
                "peermem.not-loaded",
                "nvidia-peermem",
                format!("{}: it is loaded", loaded.from),
            ),
            Some(_) => Answer::failed(
                "peermem.not-loaded",
                "nvidia-peermem",
                format!("{evidence}; {}: it is not loaded", loaded.from),
                "modprobe nvidia-peermem, and look at what the kernel log says about it",
            ),
            None => Answer::unknown(
                "peermem.not-loaded",
                "nvidia-peermem",
                loaded.why_missing(),
                "run it on the booted node",
            ),
        }],
        GdrPath::None => {
            let missing = decision.missing.unwrap_or_default();
            let (id, fix) = if missing == "dma-buf.unavailable" {
                (
                    "dma-buf.unavailable",
                    "use the open NVIDIA driver on Linux 5.12 or later, or set `gdr.path = \"peermem\"`",
                )
            } else {
                (
                    "peermem.not-installed",
                    "install the NVIDIA driver's kernel modules for this kernel",
                )
            };
            vec![Answer::failed(id, "GPU memory", evidence, fix)]
        }
    }
}
