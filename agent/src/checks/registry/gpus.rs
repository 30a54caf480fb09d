//! What the driver says of the GPUs, where nvidia-smi is there and was asked.

use super::super::Severity;
use super::{Entry, Kind};

const fn gpu(
    id: &'static str,
    severity: Severity,
    question: &'static str,
    symptom: &'static str,
    fix: &'static str,
) -> Entry {
    Entry {
        id,
        kind: Kind::Cause,
        question,
        severity,
        facts: &["nvidia-smi -q -x"],
        symptom,
        fix,
        explains: &[],
    }
}

pub(super) const ENTRIES: &[Entry] = &[
    gpu(
        "gpu.smi-hung",
        Severity::Required,
        "Does nvidia-smi answer?",
        "nvidia-smi hangs, and so does whatever opens the GPU",
        "look for Xid in the kernel log, drain the node, reset the GPU or reboot",
    ),
    gpu(
        "gpu.lost",
        Severity::Required,
        "Does every GPU answer its driver?",
        "`GPU is lost`, `Unknown Error` or `GPU requires reset` in nvidia-smi",
        "look for Xid in the kernel log, drain the node and reset the GPU (`nvidia-smi -r`) or reboot",
    ),
    Entry {
        kind: Kind::Check,
        facts: &["/sys/bus/pci/devices", "nvidia-smi -q -x"],
        ..gpu(
            "gpu.missing",
            Severity::Required,
            "Has the driver every GPU that is on the bus?",
            "a GPU is in lspci and not in nvidia-smi",
            "look for `RmInitAdapter failed` and Xid in the kernel log",
        )
    },
    gpu(
        "gpu.fabric",
        Severity::Required,
        "Is every GPU in the NVSwitch fabric?",
        "CUDA: `system not yet initialized` (802)",
        "start nvidia-fabricmanager, in the driver's very version, and look at its log",
    ),
    gpu(
        "gpu.smi-failed",
        Severity::Warning,
        "Can nvidia-smi talk to the driver?",
        "`NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver`",
        "look whether the nvidia module is loaded and has the version of the user-space driver",
    ),
    gpu(
        "gpu.topo-differs",
        Severity::Warning,
        "Does nvidia-smi see the same distances as PCI shows?",
        "`nvidia-smi topo -m` and `gdr-agent topology` disagree about a pair",
        "measure the pair with `gdr-agent bandwidth`",
    ),
    gpu(
        "gpu.persistence-off",
        Severity::Warning,
        "Does the driver stay loaded when nothing uses the GPU?",
        "the first job waits for seconds, and settings are lost between jobs",
        "start nvidia-persistenced",
    ),
];
