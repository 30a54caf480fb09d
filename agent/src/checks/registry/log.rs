//! What the log of a job shows. `docs/nccl-log.md` has the lines.

use super::super::Severity;
use super::{Entry, Kind};

const fn log(
    id: &'static str,
    severity: Severity,
    question: &'static str,
    symptom: &'static str,
    fix: &'static str,
    explains: &'static [&'static str],
) -> Entry {
    Entry {
        id,
        kind: Kind::Log,
        question,
        severity,
        facts: &["the job's log"],
        symptom,
        fix,
        explains,
    }
}

pub(super) const ENTRIES: &[Entry] = &[
    log(
        "nccl.no-libibverbs",
        Severity::Required,
        "Could NCCL open the verbs library?",
        "`Failed to open libibverbs.so[.1]`",
        "install rdma-core's libibverbs in the container",
        &[
            "nccl.no-rdma-device",
            "nccl.socket-fallback",
            "nccl.not-engaged",
        ],
    ),
    log(
        "nccl.efa-no-device",
        Severity::Required,
        "Did libfabric find an EFA device?",
        "the OFI plugin finds no efa provider",
        "EFA interfaces on the instance, and /dev/infiniband in the container",
        &[
            "nccl.no-rdma-device",
            "nccl.socket-fallback",
            "nccl.not-engaged",
        ],
    ),
    log(
        "nccl.no-rdma-device",
        Severity::Required,
        "Did NCCL find an RDMA device?",
        "`NET/IB : No device found.`",
        "/dev/infiniband in the container, NCCL_IB_HCA, and the state of the ports",
        &["nccl.socket-fallback", "nccl.not-engaged"],
    ),
    log(
        "nccl.ofi-gdr-disabled",
        Severity::Required,
        "Did the OFI plugin keep GPUDirect RDMA?",
        "the plugin says that it gives it up",
        "see the evidence: an old libfabric, or no DMA-BUF",
        &["nccl.channels-without-gdr", "nccl.not-engaged"],
    ),
    log(
        "nccl.too-old-for-peermem",
        Severity::Required,
        "Can this NCCL see nvidia-peermem on this kernel?",
        "HCAs are `Disabled` although nvidia-peermem is loaded, with NCCL 2.22 or older",
        "use NCCL 2.23 or later",
        &["nccl.channels-without-gdr", "nccl.not-engaged"],
    ),
    log(
        "nccl.no-kernel-path",
        Severity::Required,
        "Did NCCL find a way to GPU memory for every HCA?",
        "`GPU Direct RDMA Disabled for HCA 0 'mlx5_0'`",
        "neither nvidia-peermem nor DMA-BUF could be used: run `gdr-agent doctor` on the node",
        &["nccl.channels-without-gdr", "nccl.not-engaged"],
    ),
    log(
        "nccl.socket-fallback",
        Severity::Required,
        "Does NCCL use RDMA rather than sockets?",
        "`Using network Socket`, `via NET/Socket/0`",
        "see why RDMA was not used",
        &["nccl.not-engaged"],
    ),
    log(
        "nccl.registration-failed",
        Severity::Required,
        "Could memory be registered with the NIC?",
        "`Call to ibv_reg_mr failed`, `Bad address`, `Cannot allocate memory`",
        "the way to GPU memory, BAR1 and memlock, in this order",
        &[],
    ),
    log(
        "nccl.completion-error",
        Severity::Required,
        "Did all work requests of the job succeed?",
        "`Got completion from peer ... with status=4`",
        "status 4, 8, 9, 10, 11: ACS and IOMMU; 12, 13: the peer or the fabric",
        &[],
    ),
    log(
        "nccl.iommu-not-passthrough",
        Severity::Warning,
        "Did the library find the IOMMU in pass-through?",
        "`Missing \"iommu=pt\" from kernel command line`",
        "iommu=pt, then a reboot",
        &[],
    ),
    log(
        "nccl.topology-mismatch",
        Severity::Warning,
        "Does NCCL's topology file fit the node?",
        "a NIC is named that the node does not have",
        "unset NCCL_TOPO_FILE, or use the file of this machine type",
        &["nccl.channels-without-gdr"],
    ),
    log(
        "nccl.sends-without-gdr",
        Severity::Warning,
        "Do sends use GPUDirect RDMA as receives do?",
        "receives carry /GDRDMA, sends do not",
        "NCCL 2.20 or later, or NCCL_NET_GDR_READ=1, measured",
        &["nccl.not-engaged"],
    ),
    log(
        "nccl.channels-without-gdr",
        Severity::Required,
        "Do all network channels use GPUDirect RDMA?",
        "some channels carry /GDRDMA and some do not",
        "compare the NICs of those channels with `gdr-agent topology`",
        &["nccl.not-engaged"],
    ),
    Entry {
        kind: Kind::Check,
        ..log(
            "nccl.not-engaged",
            Severity::Required,
            "Did the job use GPUDirect RDMA?",
            "`via NET/IB/0` without /GDRDMA",
            "see the other findings; if there are none, run the job with NCCL_DEBUG_SUBSYS=INIT,ENV,NET,GRAPH",
            &[],
        )
    },
    log(
        "nccl.log-subsys",
        Severity::Note,
        "Does the log say why GPUDirect RDMA was not used?",
        "channels without /GDRDMA and no reason",
        "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV,NET,GRAPH",
        &[],
    ),
    log(
        "nccl.log-incomplete",
        Severity::Note,
        "Does the log hold channel records?",
        "no `via NET` in the log: since 2.22 it comes with the first collective",
        "let the job run a collective before the log is taken",
        &[],
    ),
    log(
        "nccl.log-empty",
        Severity::Note,
        "Was anything in the log printed by NCCL?",
        "no line of NCCL in it",
        "NCCL_DEBUG=INFO, and standard output and error of every rank",
        &[],
    ),
];
