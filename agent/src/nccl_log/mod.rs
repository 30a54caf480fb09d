//! Is GPUDirect RDMA engaged? The answer from the logs of a job: NCCL 2.3 to 2.31, RCCL, and the network plugins.
//!
//! The channel records decide: `via NET/IB/0/GDRDMA` is an edge with GPUDirect RDMA, `via NET/IB/0` one without.
//! Lines about what a NIC could do decide only where there is no record and all of them say no. What a log does not
//! hold is unknown. `docs/nccl-log.md` has the rules and the line formats by version.
//!
//! Pure and streaming: the crate `nccl-log-parser` reads, in bounded tables; here is what that means.

mod advice;
mod distance;
mod evidence;
mod findings;
mod reader;
pub mod render;
mod report;
mod verdict;

pub use evidence::Evidence;
pub use findings::Finding;
pub use nccl_log_parser::harmless;
pub use reader::Reader;
pub use report::{ByChannel, ByRank, Channels, Device, FileReport, Hca, Support, TransportCount};
pub use verdict::{Verdict, combine};
