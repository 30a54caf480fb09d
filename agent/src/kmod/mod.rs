//! Kernel modules as files: what is in a `.ko`, and which of them `modprobe` would take for a name.
//!
//! Bytes in, data out. A module tells by itself whether it can work: its undefined symbols, the versions
//! that it was built with, the kernel that it was built for, and its signature. Nothing is loaded for that.

mod elf;
mod index;
mod message;
mod modprobe;
mod signature;
mod symvers;
mod unpack;

pub use elf::{Export, Header, Module, ModuleError};
pub use index::{Index, stem};
pub use message::{Attempt, LogFinding, Refused, classify, log_findings};
pub use modprobe::{Config, Lookup, Outcome};
pub use signature::Signature;
pub use symvers::{Exported, find_export};
pub use unpack::{LIMIT, Packing, UnpackError, unpack};

/// Module names are the same with `-` and `_`.
#[must_use]
pub fn fold(name: &str) -> String {
    name.replace('-', "_")
}
