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
        kind: Kind::Cause,
        question: "Does the job let NCCL use DMA-BUF?",
        severity: Severity::Required,
        facts: &["/etc/nccl.conf", "/proc/PID/environ", "the job's log"],
        symptom: "HCAs are `Disabled` although the node has DMA-BUF",
        fix: "unset NCCL_DMABUF_ENABLE, or load nvidia-peermem",
        explains: &["nccl.no-kernel-path", "nccl.not-engaged"],
    },
];

const fn variable(
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
        facts: &["/etc/nccl.conf", "/proc/PID/environ"],
        symptom,
        fix,
        explains: &[],
    }
}

/// What is slower, or has no effect.
pub(super) const OTHERS: &[Entry] = &[
    Entry {
        explains: &[
            "nccl.no-rdma-device",
            "nccl.socket-fallback",
            "nccl.not-engaged",
        ],
        ..variable(
            "nccl.env-hca-none",
            Severity::Required,
            "Does NCCL_IB_HCA leave NCCL an RDMA device?",
            "`NET/IB : No device found.` on a node that has RDMA devices",
            "name devices that are there, or unset NCCL_IB_HCA",
        )
    },
    variable(
        "nccl.env-unread",
        Severity::Warning,
        "Could the environment of every process be read?",
        "a job's variables are not in the report",
        "run it as root",
    ),
    variable(
        "nccl.env-bad-value",
        Severity::Warning,
        "Has every NCCL variable a value that NCCL understands?",
        "a setting has no effect, or the opposite one",
        "write levels in capitals, and switches as 0 or 1",
    ),
    variable(
        "nccl.env-bad-line",
        Severity::Warning,
        "Does NCCL read every line of its configuration files?",
        "a line of nccl.conf has no effect",
        "write NAME=VALUE from the first column on",
    ),
    variable(
        "nccl.env-unknown-name",
        Severity::Warning,
        "Is every NCCL variable one that NCCL reads?",
        "a setting has no effect",
        "correct the name or take it away",
    ),
    variable(
        "nccl.env-relaxed-ordering",
        Severity::Warning,
        "Does NCCL leave relaxed ordering on?",
        "lower bandwidth, in virtual machines above all",
        "unset NCCL_IB_PCI_RELAXED_ORDERING",
    ),
    variable(
        "nccl.env-gdr-c2c",
        Severity::Warning,
        "Does NCCL leave the way over C2C on?",
        "on Grace machines a NIC at the CPU has no GPUDirect RDMA",
        "unset NCCL_NET_GDR_C2C",
    ),
    variable(
        "nccl.env-p2p-disabled",
        Severity::Warning,
        "Does NCCL leave copies between the GPUs of a node on?",
        "slow inside the node; GPUDirect RDMA does not change",
        "unset NCCL_P2P_DISABLE and NCCL_P2P_LEVEL",
    ),
];
