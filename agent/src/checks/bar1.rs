//! Is the window into each GPU's memory placed, and large?

use super::{Answer, Input};

const ID: &str = "bar1.small";

/// Resource flags (include/linux/ioport.h): prefetchable, 64-bit memory.
const PREFETCH: u64 = 0x2000;
const MEM_64: u64 = 0x0010_0000;

/// 256 MiB is what firmware leaves when it places no large BAR.
const SMALL: u64 = 256 << 20;

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

/// The largest prefetchable 64-bit BAR is the window: region 1 up to Ada, region 2 from Hopper on.
fn one(input: &Input, bdf: crate::pci::Bdf) -> Answer {
    let subject = bdf.to_string();
    let from = format!("/sys/bus/pci/devices/{bdf}/resource");
    let Some(function) = input.functions.iter().find(|f| f.bdf == bdf) else {
        return Answer::unknown(
            ID,
            subject,
            "the function was not read",
            "run it as root on the node",
        );
    };
    let bars = function.bars.iter().filter(|b| b.index < 6);
    let windows = bars.filter(|b| b.flags & PREFETCH != 0 && b.flags & MEM_64 != 0);
    let size = windows
        .map(|b| b.end.saturating_sub(b.start).saturating_add(1))
        .max();
    match size {
        None => Answer::unknown(
            ID,
            subject,
            format!("{from}: no prefetchable 64-bit BAR"),
            "run it on the node; an unassigned BAR is the firmware's doing",
        ),
        Some(size) if size <= SMALL => Answer::failed(
            ID,
            subject,
            format!("{from}: {} MiB", size >> 20),
            "enable Above 4G Decoding and a large MMIO window in the firmware, then power-cycle",
        ),
        Some(size) => Answer::met(ID, subject, format!("{from}: {} MiB", size >> 20)),
    }
}
