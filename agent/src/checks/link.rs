//! Does each GPU's and NIC's link have its full width? Speed drops when a GPU idles, so only the
//! width is judged.

use super::{Answer, Input};

const ID: &str = "link.degraded";

pub(super) fn ask(input: &Input) -> Vec<Answer> {
    let topology = input.topology;
    let devices = topology
        .gpus
        .iter()
        .map(|g| g.bdf)
        .chain(topology.nics.iter().map(|n| n.bdf));
    devices.map(|bdf| one(input, bdf)).collect()
}

fn one(input: &Input, bdf: crate::pci::Bdf) -> Answer {
    let link = input
        .functions
        .iter()
        .find(|f| f.bdf == bdf)
        .map(|f| &f.link);
    let from = format!("/sys/bus/pci/devices/{bdf}/current_link_width");
    match link.and_then(|l| Some((l.current_width?, l.max_width?))) {
        Some((now, best)) if now >= best => {
            Answer::met(ID, bdf.to_string(), format!("{from}: x{now}"))
        }
        Some((now, best)) => Answer::failed(
            ID,
            bdf.to_string(),
            format!("{from}: x{now} of x{best}"),
            "reseat the card or the riser, and look for AER errors in the kernel log",
        ),
        None => Answer::unknown(
            ID,
            bdf.to_string(),
            format!("{from} could not be read"),
            "run it on the node",
        ),
    }
}
