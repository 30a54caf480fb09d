//! Does each GPU's and NIC's link have its full width, and each NIC's its full speed? The speed of a
//! GPU drops when it idles, so of a GPU only the width is judged, by sysfs and by nvidia-smi where it was asked.

use super::{Answer, Input};
use crate::gpu;

const ID: &str = "link.degraded";

pub(super) fn ask(input: &Input) -> Vec<Answer> {
    let topology = input.topology;
    let devices = topology
        .gpus
        .iter()
        .map(|g| (g.bdf, false))
        .chain(topology.nics.iter().map(|n| (n.bdf, true)));
    devices.map(|(bdf, nic)| one(input, bdf, nic)).collect()
}

fn one(input: &Input, bdf: crate::pci::Bdf, nic: bool) -> Answer {
    let link = input
        .functions
        .iter()
        .find(|f| f.bdf == bdf)
        .map(|f| &f.link);
    let from = format!("/sys/bus/pci/devices/{bdf}/current_link_width");
    if nic && let Some((now, best)) = link.and_then(slow) {
        return Answer::failed(
            ID,
            bdf.to_string(),
            format!("/sys/bus/pci/devices/{bdf}/current_link_speed: {now} of {best}"),
            "put the card into a slot of its own generation, and look at the firmware's setting for the slot",
        );
    }
    let smi = input.more.gpus.smi.get();
    let smi = smi.and_then(|smi| smi.gpus.iter().find(|gpu| gpu.bdf == Some(bdf)));
    let told = smi.and_then(gpu::narrow);
    let fix = "reseat the card or the riser, and look for AER errors in the kernel log";
    let mut answer = match link.and_then(|l| Some((l.current_width?, l.max_width?))) {
        Some((now, best)) if now >= best && told.is_none() => {
            return Answer::met(ID, bdf.to_string(), format!("{from}: x{now}"));
        }
        Some((now, best)) => Answer::failed(
            ID,
            bdf.to_string(),
            format!("{from}: x{now} of x{best}"),
            fix,
        ),
        None if told.is_some() => Answer::failed(
            ID,
            bdf.to_string(),
            format!("{from} could not be read"),
            fix,
        ),
        None => Answer::unknown(
            ID,
            bdf.to_string(),
            format!("{from} could not be read"),
            "run it on the node",
        ),
    };
    answer.evidence.extend(told);
    answer
}

/// The speed now and the best one, where both are known and differ.
fn slow(link: &crate::pci::Link) -> Option<(&str, &str)> {
    let number = |text: &str| text.split(' ').next()?.parse::<f32>().ok();
    let (now, best) = (link.current_speed.as_deref()?, link.max_speed.as_deref()?);
    (number(now)? < number(best)?).then_some((now, best))
}
