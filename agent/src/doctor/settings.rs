//! Settings of each NIC that cost throughput: the largest read request, and relaxed ordering.

use super::Seen;
use crate::checks::Answer;
use crate::pci::config::{self, DeviceControl};
use crate::pci::{Bdf, ConfigBytes};

const READ_REQUEST: &str = "link.read-request";
const ORDERING: &str = "link.relaxed-ordering";

pub(super) fn ask(seen: &Seen) -> Vec<Answer> {
    let nics = &seen.node.topology.nics;
    if nics.is_empty() {
        let none = |id| {
            Answer::unknown(
                id,
                "NICs",
                "none was found by the selectors",
                "look at `gdr-agent topology`",
            )
        };
        return vec![none(READ_REQUEST), none(ORDERING)];
    }
    nics.iter()
        .flat_map(|nic| {
            let function = seen.node.functions.iter().find(|f| f.bdf == nic.bdf);
            one(nic.bdf, function.map(|f| &f.config))
        })
        .collect()
}

fn one(bdf: Bdf, config: Option<&ConfigBytes>) -> [Answer; 2] {
    let subject = bdf.to_string();
    let from = format!("/sys/bus/pci/devices/{bdf}/config");
    let control = config.and_then(|config| {
        let mut config = config;
        config::express(&mut config).ok().flatten()?.control
    });
    let Some(DeviceControl {
        read_request,
        relaxed_ordering,
        ..
    }) = control
    else {
        let unknown = |id| {
            let why = format!("{from}: the PCI Express capability could not be read");
            Answer::unknown(id, subject.clone(), why, "run it as root on the node")
        };
        return [unknown(READ_REQUEST), unknown(ORDERING)];
    };
    let evidence = format!("{from}: MaxReadReq {read_request} bytes");
    let read = if read_request > 512 {
        Answer::met(READ_REQUEST, subject.clone(), evidence)
    } else {
        let fix = "`setpci -s BDF CAP_EXP+8.w=5000:7000` sets 4096 bytes until the next reset; measure before and after";
        Answer::failed(READ_REQUEST, subject.clone(), evidence, fix)
    };
    let ordering = if relaxed_ordering {
        Answer::met(ORDERING, subject, format!("{from}: RlxdOrd+"))
    } else {
        let fix = "the firmware setup, or PCI_WR_ORDERING of mlxconfig; the kernel itself turns it off below some Intel root ports";
        Answer::failed(ORDERING, subject, format!("{from}: RlxdOrd-"), fix)
    };
    [read, ordering]
}
