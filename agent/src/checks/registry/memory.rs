//! The way to GPU memory: DMA-BUF, nvidia-peermem, and the window that both need.

use super::super::Severity;
use super::{Entry, Kind};

/// What a log shows where the kernel has no way to GPU memory.
const NO_WAY: &[&str] = &[
    "nccl.no-kernel-path",
    "nccl.registration-failed",
    "nccl.channels-without-gdr",
    "nccl.not-engaged",
    "nccl.too-old-for-peermem",
    "perftest.mr-failed",
    "perftest.no-dma-buf",
];

const fn peermem(
    id: &'static str,
    question: &'static str,
    symptom: &'static str,
    fix: &'static str,
) -> Entry {
    Entry {
        id,
        kind: Kind::Cause,
        question,
        severity: Severity::Required,
        facts: &["/lib/modules/KVER", "/dev/kmsg"],
        symptom,
        fix,
        explains: NO_WAY,
    }
}

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        id: "dma-buf.unavailable",
        kind: Kind::Check,
        question: "Can NIC drivers import GPU memory as DMA-BUF?",
        severity: Severity::Required,
        facts: &[
            "/proc/driver/nvidia/version",
            "/boot/config-KVER",
            "/lib/modules/KVER",
            "/sys/bus/pci/devices/BDF/uevent",
        ],
        symptom: "no `DMA-BUF is available on GPU device` in the log, and HCAs are `Disabled`",
        fix: "the open driver from 515.43.04 on, Linux 5.12, on-demand paging in the kernel; or nvidia-peermem",
        explains: NO_WAY,
    },
    peermem(
        "peermem.not-installed",
        "Is there an nvidia-peermem for this kernel?",
        "modprobe: `Module nvidia-peermem not found in directory /lib/modules/...`",
        "install the driver's kernel-module package of exactly this kernel and flavour",
    ),
    peermem(
        "peermem.stub",
        "Was nvidia-peermem built with the peer-memory interface?",
        "modprobe: `Invalid argument`, and the kernel log is silent",
        "use DMA-BUF; or install DOCA-OFED and then rebuild the driver's modules",
    ),
    peermem(
        "peermem.abi-mismatch",
        "Was nvidia-peermem built against the RDMA core that is there?",
        "`disagrees about version of symbol ib_register_peer_memory_client`",
        "rebuild the driver's modules for this kernel and this RDMA stack, then reboot",
    ),
    peermem(
        "peermem.no-api",
        "Has the RDMA core the peer-memory interface?",
        "`Unknown symbol ib_register_peer_memory_client (err -2)`",
        "use DMA-BUF; or install DOCA-OFED and then rebuild the driver's modules",
    ),
    peermem(
        "peermem.unsigned",
        "Does the kernel take the signature of nvidia-peermem?",
        "modprobe: `Key was rejected by service`",
        "install signed modules, or enrol the key that signs DKMS modules",
    ),
    peermem(
        "peermem.name-taken",
        "Is the client name nv_mem free for nvidia-peermem?",
        "modprobe: `Invalid argument`; `error while registering` in the kernel log",
        "unload nv_peer_mem and remove its package",
    ),
    peermem(
        "peermem.wrong-kernel",
        "Was nvidia-peermem built for this kernel?",
        "modprobe: `Exec format error`",
        "build or install the driver's modules for this kernel",
    ),
    peermem(
        "peermem.bad-option",
        "Does nvidia-peermem take the options that modprobe.d gives it?",
        "modprobe: `Invalid argument`; `ERROR invalid` in the kernel log",
        "correct the `options nvidia_peermem` line in modprobe.d",
    ),
    peermem(
        "peermem.blocked",
        "Does modprobe.d let nvidia-peermem load?",
        "modprobe does nothing or runs /bin/false",
        "take the `blacklist` or `install` line out",
    ),
    peermem(
        "peermem.unreadable",
        "Can the file of nvidia-peermem be read?",
        "the module's file is damaged or may not be read",
        "run it as root; if it still cannot be read, install the driver's modules again",
    ),
    peermem(
        "peermem.load-failed",
        "Does nvidia-peermem register with the RDMA core?",
        "modprobe fails and nothing tells why",
        "run `modprobe nvidia-peermem` and look at the end of `dmesg`",
    ),
    Entry {
        id: "peermem.not-loaded",
        kind: Kind::Check,
        question: "Is nvidia-peermem loaded where it is the way to GPU memory?",
        severity: Severity::Required,
        facts: &["/proc/modules", "/sys/kernel/mm/memory_peers"],
        symptom: "`lsmod | grep peermem` prints nothing; HCAs are `Disabled`",
        fix: "modprobe nvidia-peermem, and /etc/modules-load.d to have it at every boot",
        explains: NO_WAY,
    },
    Entry {
        id: "dma-buf.topology",
        kind: Kind::Check,
        question: "Did the driver export GPU memory to every NIC that asked?",
        severity: Severity::Warning,
        facts: &["/dev/kmsg"],
        symptom: "`NVRM: ... topology not supported` in the kernel log, registration fails for one NIC",
        fix: "use a NIC below the same switch as the GPU; on this platform the driver does not allow traffic across the root complex",
        explains: &["nccl.registration-failed"],
    },
    Entry {
        id: "modules.loaded",
        kind: Kind::Check,
        question: "Are the kernel modules loaded that the way to GPU memory takes?",
        severity: Severity::Required,
        facts: &["/proc/modules"],
        symptom: "no GPU or no RDMA device in the job",
        fix: "modprobe the module that the evidence names",
        explains: &["nccl.no-rdma-device"],
    },
    Entry {
        id: "platform.fabric-manager",
        kind: Kind::Check,
        question: "Does the fabric manager run where there are NVSwitches?",
        severity: Severity::Warning,
        facts: &[
            "/sys/bus/pci/devices/BDF/uevent",
            "/sys/fs/cgroup/system.slice/nvidia-fabricmanager.service",
        ],
        symptom: "CUDA: `system not yet initialized` (802); it has nothing to do with nvidia-peermem",
        fix: "systemctl start nvidia-fabricmanager, of exactly the driver's version",
        explains: &[],
    },
    Entry {
        id: "bar1.small",
        kind: Kind::Check,
        question: "Is the window into each GPU's memory placed, and large?",
        severity: Severity::Required,
        facts: &["/sys/bus/pci/devices/BDF/resource"],
        symptom: "BAR1 of 256 MiB; registering larger buffers fails with ENOMEM",
        fix: "Above 4G Decoding and a large MMIO window in the firmware setup, then a power cycle",
        explains: &[
            "nccl.registration-failed",
            "perftest.mr-failed",
            "bandwidth.low",
            "bandwidth.gpu-slower",
        ],
    },
];
