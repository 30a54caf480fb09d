//! Does each GPU have a NIC near it? NCCL uses GPUDirect up to PXB by default.

use super::{Answer, Input};
use crate::pci::path::PathKind;

const ID: &str = "path.far";

pub(super) fn ask(input: &Input) -> Vec<Answer> {
    let topology = input.topology;
    if topology.gpus.is_empty() || topology.nics.is_empty() {
        return vec![Answer::unknown(
            ID,
            "GPU-NIC paths",
            "no GPU or no NIC was found",
            "look at `gdr-agent topology`",
        )];
    }
    let answer = |gpu: crate::pci::Bdf| {
        let best = topology
            .paths
            .iter()
            .filter(|p| p.gpu == gpu)
            .min_by_key(|p| p.kind);
        match best {
            Some(path) if path.kind <= PathKind::Pxb => Answer::met(
                ID,
                gpu.to_string(),
                format!("{} to {}", path.kind, path.nic),
            ),
            Some(path) => Answer::failed(
                ID,
                gpu.to_string(),
                format!("its nearest NIC {} is {} away", path.nic, path.kind),
                "put a NIC below the same PCIe switch, or set NCCL_NET_GDR_LEVEL with care",
            ),
            None => Answer::unknown(
                ID,
                gpu.to_string(),
                "no path was found",
                "look at `gdr-agent topology`",
            ),
        }
    };
    topology.gpus.iter().map(|g| answer(g.bdf)).collect()
}
