//! Does each GPU's and NIC's link have its full width, and each NIC's its full speed? The speed of a
//! GPU drops when it idles, so of a GPU only the width is judged.

use super::{Answer, Input};

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

/// The speed now and the best one, where both are known and differ.
fn slow(link: &crate::pci::Link) -> Option<(&str, &str)> {
    let number = |text: &str| text.split(' ').next()?.parse::<f32>().ok();
    let (now, best) = (link.current_speed.as_deref()?, link.max_speed.as_deref()?);
    (number(now)? < number(best)?).then_some((now, best))
}
