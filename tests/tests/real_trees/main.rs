//! The trees of real servers, rebuilt from files that NCCL, RCCL and hwloc wrote on them: the agent
//! must find the distances that each file implies, and clear the ports on GPU-NIC paths and no other.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test looks at the machine from outside"
)]

#[path = "../support/mod.rs"]
mod support;

mod compare;
mod expected;
mod hwloc;
mod nccl;
mod place;
mod sysfs;

use std::path::PathBuf;

/// A folder of collected files, from `GDR_CORPUS`; says so when it is not set.
fn corpus(folder: &str) -> Option<PathBuf> {
    match std::env::var_os("GDR_CORPUS") {
        Some(path) => Some(PathBuf::from(path).join(folder)),
        None => {
            assert!(std::env::var_os("CI").is_none(), "GDR_CORPUS is not set");
            println!("SKIPPED: GDR_CORPUS is not set, the collected {folder} files are not tested");
            None
        }
    }
}

fn text(folder: &str, file: &str) -> Option<String> {
    Some(std::fs::read_to_string(corpus(folder)?.join(file)).unwrap())
}
