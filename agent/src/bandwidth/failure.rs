//! What perftest says when it fails. It has no codes: it prints a line, the lines of its callers, and ends with 1.
//!
//! The messages are those of `src/perftest_parameters.c`, `perftest_resources.c`, `perftest_communication.c`, `cuda_memory.c` and
//! of libibverbs, over all versions that have `--use_cuda`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Memory;
use crate::finding::Finding;
use crate::plain::{clean, shown};

/// One line of perftest's that says that it failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// What kind of failure that is.
    pub kind: Kind,
    /// The line.
    pub message: String,
}

/// Kinds of failure, the cause before what follows from it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// There is no such program.
    Missing,
    /// It was built without CUDA.
    NoCuda,
    /// It was built without CUDA's DMA-BUF, or the GPU or the RDMA stack has none.
    NoDmaBuf,
    /// `--use_cuda_dmabuf` stands before `--use_cuda`.
    OptionOrder,
    /// An option that this build does not have.
    Option,
    /// CUDA does not find or start the GPU.
    NoGpu,
    /// Another GPU than the one that was asked for.
    OtherGpu,
    /// There is no RDMA device, or not this one.
    NoDevice,
    /// The port is not active.
    PortDown,
    /// The memory could not be registered with the NIC.
    Registration,
    /// The other side could not be reached.
    Connection,
    /// A transfer failed.
    Completion,
    /// It did not end in time.
    Hung,
    /// The output holds no result.
    NoResult,
    /// A line that only follows from another.
    Other,
}

/// Part of a message and its kind; the first that fits counts.
const MESSAGES: &[(&str, Kind)] = &[
    ("unrecognized option '--use_cuda_dmabuf", Kind::NoDmaBuf),
    ("unrecognized option '--use_cuda", Kind::NoCuda),
    ("Unsupported memory type", Kind::NoCuda),
    ("unrecognized option", Kind::Option),
    ("invalid option -- ", Kind::Option),
    (
        "CUDA DMA-BUF cannot be used without CUDA",
        Kind::OptionOrder,
    ),
    ("DMA-BUF is not supported on this GPU", Kind::NoDmaBuf),
    ("OFED stack does not support DMA-BUF", Kind::NoDmaBuf),
    ("cuMemGetHandleForAddressRange error=", Kind::NoDmaBuf),
    (
        "CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE",
        Kind::NoDmaBuf,
    ),
    ("libcuda.so.1: cannot open shared object file", Kind::NoGpu),
    ("cuInit(0) returned", Kind::NoGpu),
    ("cuDeviceGetCount() returned", Kind::NoGpu),
    (
        "There are no available device(s) that support CUDA",
        Kind::NoGpu,
    ),
    ("No such device ID (", Kind::NoGpu),
    ("cuDeviceGetByPCIBusId failed", Kind::NoGpu),
    ("cuCtxCreate() error=", Kind::NoGpu),
    ("cuMemAlloc error=", Kind::NoGpu),
    ("Couldn't init GPU context", Kind::NoGpu),
    ("Did not detect devices", Kind::NoDevice),
    ("Unable to find the Infiniband/RoCE device", Kind::NoDevice),
    ("Failed to get IB devices list", Kind::NoDevice),
    ("No IB devices found", Kind::NoDevice),
    ("IB device ", Kind::NoDevice),
    (" state is Down", Kind::PortDown),
    ("Port number ", Kind::PortDown),
    ("Couldn't allocate MR", Kind::Registration),
    ("failed to create mr", Kind::Registration),
    ("Failed to create MR", Kind::Registration),
    ("Couldn't connect to ", Kind::Connection),
    ("Unable to init the socket connection", Kind::Connection),
    (
        "Unable to open file descriptor for socket connection",
        Kind::Connection,
    ),
    ("Couldn't listen to port", Kind::Connection),
    ("Unable to perform rdma_client function", Kind::Connection),
    ("Unexpected CM event", Kind::Connection),
    ("ADDR_ERROR", Kind::Connection),
    ("Failed to modify QP", Kind::Connection),
    (
        "Unable to Connect the HCA's through the link",
        Kind::Connection,
    ),
    (
        "Failed to exchange data between server and clients",
        Kind::Connection,
    ),
    ("Couldn't read remote address", Kind::Connection),
    ("Completion with error at", Kind::Completion),
    ("Failed status ", Kind::Completion),
    ("Parser function exited with Error", Kind::Other),
    ("Invalid Command or flag", Kind::Other),
    ("Couldn't create IB resources", Kind::Other),
    ("Couldn't get context for the device", Kind::Other),
    ("Problems with warm up", Kind::Other),
    ("Failed to complete run_iter_bw function", Kind::Other),
];

/// How other lines begin that say that something failed.
const BEGINNINGS: &[&str] = &[
    "Couldn't ",
    "Could not ",
    "Failed to ",
    "failed to ",
    "Unable to ",
    "unable to ",
    "Error: ",
    "ERROR: ",
    "error: ",
];

/// The failure that a line tells, if it tells one.
pub(super) fn of(line: &str) -> Option<Failure> {
    let text = line.trim();
    let known = MESSAGES.iter().find(|(part, kind)| match kind {
        // these two begin the line, and would be found in prose
        Kind::PortDown if *part == "Port number " => {
            text.starts_with(part) && text.contains("Down")
        }
        Kind::NoDevice if *part == "IB device " => {
            text.starts_with(part) && text.contains("not found")
        }
        _ => text.contains(part),
    });
    let kind = match known {
        Some((_, kind)) => *kind,
        None if BEGINNINGS.iter().any(|b| text.starts_with(b)) => Kind::Other,
        None => return None,
    };
    Some(Failure {
        kind,
        message: shown(text),
    })
}

/// The failure of a run that ended without a result and without a message that is known.
pub(super) fn no_result(output: &[u8]) -> Failure {
    let mut lines = output.split(|b| *b == b'\n').map(clean);
    let last = lines.rfind(|line| !line.trim().is_empty());
    let message = match last {
        None => "the output is empty".to_owned(),
        Some(last) if last.trim().parse::<f64>().is_ok() => {
            "a bare number, from `--output=bandwidth`: it has no unit".to_owned()
        }
        Some(last) => format!(
            "the output has no row of results and none of perftest's error messages; it ends with `{}`",
            shown(&last)
        ),
    };
    Failure {
        kind: Kind::NoResult,
        message,
    }
}

/// The failure of a run that was ended from outside.
#[must_use]
pub fn stopped(seconds: u64) -> Failure {
    Failure {
        kind: Kind::Hung,
        message: format!("it did not end within {seconds} s and was stopped"),
    }
}

/// The finding that failures of one run come to: their first cause, with all of them as evidence.
pub(super) fn finding(name: &str, failures: &[Failure], memory: Memory) -> Option<Finding> {
    let kind = failures.iter().map(|f| f.kind).min()?;
    let evidence = failures
        .iter()
        .map(|f| format!("{name}: {}", f.message))
        .collect();
    let (id, fix) = remedy(kind, memory);
    Some(match kind {
        Kind::Registration | Kind::NoDmaBuf | Kind::Completion | Kind::PortDown | Kind::Hung => {
            Finding::failed(id, name, evidence, fix)
        }
        // these say nothing about the way between GPU and NIC
        _ => Finding::unknown(id, name, evidence, fix),
    })
}

fn remedy(kind: Kind, memory: Memory) -> (&'static str, &'static str) {
    match kind {
        Kind::Missing => (
            "perftest.missing",
            "install the package perftest; for GPU memory it has to be built with CUDA",
        ),
        Kind::NoCuda => (
            "perftest.no-cuda",
            "distributions build perftest without CUDA: use the one of DOCA-OFED, or build it with `./configure CUDA_H_PATH=.../cuda.h`",
        ),
        Kind::NoDmaBuf => (
            "perftest.no-dma-buf",
            "DMA-BUF needs the open GPU kernel modules, kernel 5.12 or later, an RDMA stack that has it and a perftest built with it; without it load nvidia-peermem and leave `--use_cuda_dmabuf` out",
        ),
        Kind::OptionOrder => (
            "perftest.option-order",
            "write `--use_cuda=N` before `--use_cuda_dmabuf`",
        ),
        Kind::Option => (
            "perftest.option",
            "look at `ib_write_bw --help` for what this build has",
        ),
        Kind::NoGpu => (
            "perftest.no-gpu",
            "look at `nvidia-smi`, and on NVSwitch systems at nvidia-fabricmanager; in a container give it the GPU",
        ),
        Kind::OtherGpu => (
            "perftest.other-gpu",
            "use a perftest that has `--use_cuda_bus_id`",
        ),
        Kind::NoDevice => (
            "perftest.no-device",
            "look at `ls /sys/class/infiniband`, and in a container at /dev/infiniband; load the NIC's RDMA driver (mlx5_ib)",
        ),
        Kind::PortDown => (
            "perftest.port-down",
            "look at the cable and the switch; an InfiniBand port also needs a subnet manager",
        ),
        Kind::Registration if memory == Memory::Host => (
            "perftest.memlock",
            "raise the limit of locked memory: `ulimit -l unlimited`, LimitMEMLOCK=infinity in the unit",
        ),
        Kind::Registration => (
            "perftest.mr-failed",
            "the NIC's driver cannot reach GPU memory: load nvidia-peermem, or use DMA-BUF (`--use_cuda_dmabuf`); `gdr-agent plan` says which of them this node can have. If host memory cannot be registered either, raise the limit of locked memory (`ulimit -l`)",
        ),
        Kind::Connection => (
            "perftest.connection",
            "start the other side first, with the same options; look at addresses, firewall and GID index",
        ),
        Kind::Completion => (
            "perftest.completion-error",
            "where it happens with GPU memory only, PCIe peer traffic does not get through: look at `gdr-agent acs show` and the IOMMU. Status 4 is a local protection error, 10 a remote access error, 12 and 13 are retries that were used up",
        ),
        Kind::Hung => (
            "perftest.hung",
            "look at the kernel log for Xid and mlx5 messages; with an IOMMU that translates and ACS redirection, peer traffic can be lost without an error",
        ),
        Kind::NoResult => (
            "perftest.no-result",
            "give the whole output of ib_write_bw or ib_read_bw, with its heading, or its JSON file",
        ),
        Kind::Other => (
            "perftest.failed",
            "run it again by hand, and look at the kernel log",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_and_prose() {
        let kind = |line: &str| of(line).map(|f| f.kind);
        assert_eq!(
            kind("Couldn't allocate MR with error=14"),
            Some(Kind::Registration)
        );
        assert_eq!(
            kind("ib_write_bw: unrecognized option '--use_cuda=0'"),
            Some(Kind::NoCuda)
        );
        assert_eq!(kind(" Unsupported memory type"), Some(Kind::NoCuda));
        assert_eq!(kind(" Port number 1 state is Down"), Some(Kind::PortDown));
        assert_eq!(kind(" Unable to write to socket"), Some(Kind::Other));
        assert_eq!(
            kind("Perftest doesn't supports CUDA tests with inline messages: inline size set to 0"),
            None
        );
        assert_eq!(kind("* Make sure that IB device drivers are found"), None);
    }

    #[test]
    fn the_cause_leads() {
        let lines = [
            "Couldn't create IB resources",
            "failed to create mr",
            "OFED stack does not support DMA-BUF",
        ];
        let failures: Vec<Failure> = lines.iter().filter_map(|l| of(l)).collect();
        let found = finding("x", &failures, Memory::DmaBuf).unwrap();
        assert_eq!(found.id, "perftest.no-dma-buf");
        assert_eq!(found.evidence.len(), 3);
    }
}
