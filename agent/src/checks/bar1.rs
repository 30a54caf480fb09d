//! Is the window into each GPU's memory placed, and large? `gpu` reads and judges it.

use super::{Answer, Input};
use crate::gpu::{self, Window};

const ID: &str = "bar1.small";

pub(super) fn ask(input: &Input) -> Vec<Answer> {
    if input.topology.gpus.is_empty() {
        return vec![Answer::unknown(
            ID,
            "GPUs",
            "none was found by the policy's selectors",
            "look at `gdr-agent topology`",
        )];
    }
    input
        .topology
        .gpus
        .iter()
        .map(|gpu| one(input, gpu.bdf))
        .collect()
}

fn one(input: &Input, bdf: crate::pci::Bdf) -> Answer {
    let Some(window) = window(input, bdf) else {
        return Answer::unknown(
            ID,
            bdf.to_string(),
            "the function was not read",
            "run it as root on the node",
        );
    };
    let smi = input.more.gpus.smi.get();
    let smi = smi.and_then(|smi| smi.gpus.iter().find(|gpu| gpu.bdf == Some(bdf)));
    if let Some(answer) = gpu::small(&window, smi).and_then(Answer::of) {
        return Answer {
            // what could not be read is as grave as what is wrong
            severity: answer
                .severity
                .filter(|_| answer.outcome == super::Outcome::Failed),
            ..answer
        };
    }
    let size = window.bytes.unwrap_or_default() >> 20;
    let from = format!("/sys/bus/pci/devices/{bdf}/resource");
    Answer::met(ID, bdf.to_string(), format!("{from}: {size} MiB"))
}

/// As it was read with the sizes that it could have, or from the function alone.
fn window(input: &Input, bdf: crate::pci::Bdf) -> Option<Window> {
    let read = input.more.gpus.windows.iter().find(|w| w.bdf == bdf);
    read.cloned().or_else(|| {
        let function = input.functions.iter().find(|f| f.bdf == bdf)?;
        Some(gpu::window(bdf, &function.bars).resizable(&function.config))
    })
}
