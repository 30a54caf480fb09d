//! `nccl-log` against collected logs, against logs that are generated from the specification of each version's
//! lines, and against hostile input.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    missing_docs,
    reason = "a test"
)]

mod corpus;
mod cuts;
mod findings;
mod hostile;
mod opinion;
mod versions;
mod writer;

use gdr_agent::nccl_log::{FileReport, Reader};

/// The answer for a whole log in one piece.
fn read(log: impl AsRef<[u8]>) -> FileReport {
    let mut reader = Reader::new();
    reader.push(log.as_ref());
    reader.report("log", None)
}

/// The ids of the findings, in order.
fn ids(report: &FileReport) -> Vec<&str> {
    report.findings.iter().map(|f| f.id.as_str()).collect()
}
