//! The rest of the node: boot, limits, the kernel log, a process.

use super::super::Severity;
use super::{Entry, Kind};

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        id: "cmdline.argument",
        kind: Kind::Check,
        question: "Was the kernel booted with what the policy sets, and without what it removes?",
        severity: Severity::Required,
        facts: &["/proc/cmdline"],
        symptom: "the node was reinstalled, or somebody edited the boot loader",
        fix: "gdr-agent plan",
        explains: &[],
    },
    Entry {
        id: "cmdline.pending-reboot",
        kind: Kind::Check,
        question: "Does the running kernel have the arguments of the next boot?",
        severity: Severity::Warning,
        facts: &[
            "/proc/cmdline",
            "/boot/grub/grub.cfg",
            "/run/reboot-required",
        ],
        symptom: "the configuration is right, and the node behaves as before",
        fix: "reboot",
        explains: &[],
    },
    Entry {
        id: "host.memlock",
        kind: Kind::Check,
        question: "May ordinary users lock memory without limit?",
        severity: Severity::Warning,
        facts: &[
            "/etc/security/limits.conf",
            "/etc/security/limits.d",
            "/proc/PID/limits",
        ],
        symptom: "ibv_reg_mr: `Cannot allocate memory`, for host memory too",
        fix: "`* - memlock unlimited` in /etc/security/limits.d, LimitMEMLOCK=infinity in the scheduler's unit",
        explains: &["nccl.registration-failed", "perftest.memlock"],
    },
    Entry {
        id: "kernel.xid",
        kind: Kind::Check,
        question: "Is the kernel log free of errors of the GPUs?",
        severity: Severity::Warning,
        facts: &["/dev/kmsg"],
        symptom: "`NVRM: Xid`; jobs that hang or die on one GPU",
        fix: "look the number up in NVIDIA's list of Xid errors; 79 and 119 take a reset or a power cycle",
        explains: &[],
    },
    Entry {
        id: "kernel.rdma-error",
        kind: Kind::Check,
        question: "Is the kernel log free of errors of memory regions and completions?",
        severity: Severity::Warning,
        facts: &["/dev/kmsg"],
        symptom: "`dump error cqe`, `Responder error cqe`, `CREATE_MKEY ... failed`",
        fix: "see what stands first in the report: ACS and IOMMU cause these, and so do a dead peer and a damaged cable",
        explains: &[],
    },
    Entry {
        id: "process.devices",
        kind: Kind::Check,
        question: "Has the process mapped a GPU and an RDMA device?",
        severity: Severity::Note,
        facts: &["/proc/PID/maps"],
        symptom: "weak evidence: every CUDA process maps /dev/nvidia*, with GPUDirect RDMA or without",
        fix: "look at the job's log instead: `gdr-agent nccl-log FILE`",
        explains: &[],
    },
];
