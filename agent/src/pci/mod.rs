//! PCI Express as far as GPUDirect RDMA needs it: who is where in the tree, which ports lie between
//! a GPU and a NIC, what their ACS control words say, and which bits may be cleared.
//!
//! Everything here is pure: bytes and names in, answers out. Reading sysfs is `facts::pci`, writing
//! configuration space is `sys::pci_config`.
//!
//! ```text
//! RawFunction (as read) -> Decoded (config.rs) -> Tree -> Topology (paths, bridges) -> AcsPlan
//! ```

pub mod acs;
mod bdf;
pub mod by_kernel;
pub mod clear;
pub mod config;
pub mod generation;
mod image;
pub mod path;
pub mod picture;
pub mod platform;
mod raw;
pub mod render;
pub mod saved;
pub mod select;
pub mod topology;
pub mod tree;
pub mod walk;

pub use bdf::{Bdf, BdfError};
pub use image::{ConfigBytes, Gap, ReadConfig, Recorder};
pub use raw::{Bar, Link, RawFunction};
