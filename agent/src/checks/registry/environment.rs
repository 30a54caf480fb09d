//! What the platform rules out, and what somebody has switched off.

use super::super::Severity;
use super::{Entry, Kind};

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        id: "platform.no-gdr",
        kind: Kind::Cause,
        question: "Does this platform have GPUDirect RDMA at all?",
        severity: Severity::Required,
        facts: &["/sys/bus/pci/devices/BDF/uevent"],
        symptom: "registering GPU memory fails with EINVAL, whatever is installed",
        fix: "there is none to be had on GB10: take `gdr-path` out of `verify.require`",
        explains: &[
            "nccl.not-engaged",
            "nccl.no-kernel-path",
            "nccl.registration-failed",
        ],
    },
    Entry {
        id: "nccl.env-net-disabled",
        kind: Kind::Check,
        question: "Does the NCCL configuration leave RDMA on?",
        severity: Severity::Required,
        facts: &["/etc/nccl.conf"],
        symptom: "NCCL says `Using network Socket`; one or two GB/s between nodes",
        fix: "unset NCCL_IB_DISABLE and NCCL_NET where the evidence names them",
        explains: &["nccl.socket-fallback", "nccl.not-engaged"],
    },
    Entry {
        id: "nccl.env-gdr-level",
        kind: Kind::Cause,
        question: "Does NCCL_NET_GDR_LEVEL let NICs near a GPU use GPUDirect RDMA?",
        severity: Severity::Required,
        facts: &["/etc/nccl.conf"],
        symptom: "`GPU Direct RDMA Disabled for GPU ... (distance 4 > 0)`, channels without /GDRDMA",
        fix: "unset NCCL_NET_GDR_LEVEL: a higher level allows more, 0 and LOC allow nothing",
        explains: &["path.far", "nccl.channels-without-gdr", "nccl.not-engaged"],
    },
    Entry {
        id: "nccl.env-gdr-read",
        kind: Kind::Cause,
        question: "Does NCCL_NET_GDR_READ leave GPUDirect RDMA on for sends?",
        severity: Severity::Warning,
        facts: &["/etc/nccl.conf"],
        symptom: "receives carry /GDRDMA, sends do not",
        fix: "unset NCCL_NET_GDR_READ",
        explains: &[
            "nccl.sends-without-gdr",
            "nccl.channels-without-gdr",
            "nccl.not-engaged",
        ],
    },
    Entry {
        id: "nccl.env-dmabuf-disabled",
        kind: Kind::Log,
        question: "Does the job let NCCL use DMA-BUF?",
        severity: Severity::Required,
        facts: &["the job's log"],
        symptom: "HCAs are `Disabled` although the node has DMA-BUF",
        fix: "unset NCCL_DMABUF_ENABLE, or load nvidia-peermem",
        explains: &["nccl.no-kernel-path", "nccl.not-engaged"],
    },
];
