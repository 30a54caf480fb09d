//! The only place that touches files, processes, clocks and config space.
//!
//! Everything else in the crate is pure or goes through these types; `clippy.toml` forbids the
//! standard library's file, process and clock calls elsewhere.
#![allow(clippy::disallowed_methods)]

mod captured;
mod disk;
mod error;
mod noted;
mod reader;
mod root;
mod said;
mod trust;

pub mod archive_file;
pub mod boot_write;
pub mod capabilities;
pub mod clock;
pub mod env;
pub mod freeze;
pub mod journald;
pub mod kernel_log;
pub mod last_resort;
pub mod lock;
pub mod log_file;
pub mod module;
pub mod notify;
pub mod pci_config;
pub mod pci_dir;
pub mod process;
pub mod write;

pub use disk::{Change, Watch};
pub use error::SysError;
pub use reader::Reader;
pub use root::{BOOTED, Entry, EntryKind, Root, Stat};
pub use said::{Ask, DIR as SAID, PACKAGES, Said, note_packages, said};
