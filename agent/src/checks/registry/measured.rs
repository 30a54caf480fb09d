//! What perftest measured, or why it did not. `docs/bandwidth.md` has the messages.

use super::super::Severity;
use super::{Entry, Kind};

const fn perftest(
    id: &'static str,
    question: &'static str,
    symptom: &'static str,
    fix: &'static str,
) -> Entry {
    Entry {
        id,
        kind: Kind::Log,
        question,
        severity: Severity::Required,
        facts: &["perftest's output"],
        symptom,
        fix,
        explains: &[],
    }
}

pub(super) const ENTRIES: &[Entry] = &[
    perftest(
        "perftest.missing",
        "Is perftest installed?",
        "`ib_write_bw` is not found",
        "install the package perftest",
    ),
    perftest(
        "perftest.no-cuda",
        "Was perftest built with CUDA?",
        "`unrecognized option '--use_cuda'`",
        "the perftest of DOCA-OFED, or one built with CUDA_H_PATH",
    ),
    perftest(
        "perftest.no-dma-buf",
        "Can perftest and the node do DMA-BUF?",
        "`DMA-BUF is not supported on this GPU`",
        "the open GPU kernel modules and Linux 5.12, or nvidia-peermem without `--use_cuda_dmabuf`",
    ),
    perftest(
        "perftest.option-order",
        "Do perftest's options stand in an order that it takes?",
        "`CUDA DMA-BUF cannot be used without CUDA`",
        "write `--use_cuda=N` before `--use_cuda_dmabuf`",
    ),
    perftest(
        "perftest.option",
        "Has this perftest every option it was given?",
        "`unrecognized option`",
        "look at `ib_write_bw --help` for what this build has",
    ),
    perftest(
        "perftest.no-gpu",
        "Did CUDA find and start the GPU?",
        "`cuInit(0) returned`",
        "look at nvidia-smi and nvidia-fabricmanager; in a container give it the GPU",
    ),
    perftest(
        "perftest.other-gpu",
        "Did perftest use the GPU that was asked for?",
        "the output names another GPU",
        "use a perftest that has `--use_cuda_bus_id`",
    ),
    perftest(
        "perftest.no-device",
        "Did perftest find the RDMA device?",
        "`IB device mlx5_9 not found`",
        "look at /sys/class/infiniband, and in a container at /dev/infiniband",
    ),
    perftest(
        "perftest.port-down",
        "Is the RDMA device's port up?",
        "`Port number 1 state is Down`",
        "look at the cable and the switch; an InfiniBand port also needs a subnet manager",
    ),
    perftest(
        "perftest.memlock",
        "May perftest lock memory?",
        "`Couldn't allocate MR` for host memory as well",
        "raise the limit of locked memory",
    ),
    perftest(
        "perftest.mr-failed",
        "Could perftest register GPU memory with the NIC?",
        "`Couldn't allocate MR`",
        "load nvidia-peermem, or use DMA-BUF",
    ),
    perftest(
        "perftest.connection",
        "Did both sides of the test meet?",
        "`Couldn't connect to`",
        "start the other side first, with the same options; look at addresses, firewall and GID index",
    ),
    perftest(
        "perftest.completion-error",
        "Did every transfer of the test succeed?",
        "`Completion with error at client`",
        "where it happens with GPU memory only: ACS and the IOMMU",
    ),
    perftest(
        "perftest.hung",
        "Did the test end?",
        "no result after its time",
        "look at the kernel log for Xid and mlx5 messages",
    ),
    perftest(
        "perftest.no-result",
        "Does the output hold a result?",
        "no table in the file",
        "give the whole output of ib_write_bw or ib_read_bw, or its JSON file",
    ),
    perftest(
        "perftest.failed",
        "Did perftest end well?",
        "perftest ended with an error of its own",
        "run it again by hand, and look at the kernel log",
    ),
    Entry {
        explains: &["bandwidth.low"],
        ..perftest(
            "bandwidth.gpu-slower",
            "Is GPU memory as fast over the NIC as host memory?",
            "ib_write_bw with --use_cuda is slower than without",
            "see what stands first in the report: ACS, a far NIC, a narrow link",
        )
    },
    perftest(
        "bandwidth.low",
        "Is GPU memory as fast over the NIC as it has to be?",
        "a third of the link rate",
        "see what stands first in the report: ACS, a far NIC, a narrow link",
    ),
    Entry {
        severity: Severity::Warning,
        ..perftest(
            "bandwidth.link-low",
            "Does host memory reach the link's rate?",
            "ib_write_bw is slow without a GPU, too",
            "the link, its MTU, the NIC's PCIe width and speed, and the switch",
        )
    },
    perftest(
        "bandwidth.not-measured",
        "Was every GPU-NIC pair measured?",
        "a policy with `[verify.bandwidth]`, and a pair without a result",
        "look at the reason; where the time is too short, give `trial.deadline` more",
    ),
    Entry {
        severity: Severity::Warning,
        ..perftest(
            "bandwidth.not-gpu",
            "Was GPU memory measured?",
            "the output has host memory only",
            "measure with `--use_cuda=N`, and give the whole output",
        )
    },
    Entry {
        severity: Severity::Warning,
        ..perftest(
            "bandwidth.no-reference",
            "Is there something to compare the result with?",
            "a number alone",
            "give the output of a run on host memory too, or set [verify.bandwidth] min_gbps",
        )
    },
];
