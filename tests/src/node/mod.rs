//! A made-up GPU server: a root directory with everything in it that the agent reads, and a firmware,
//! a GRUB and a kernel that reboot it. It stands for hardware that a test machine does not have.
//!
//! Nothing here uses the agent's code, and nothing here is taken from a real machine: the bytes follow
//! from the description in [`NodeSpec`], the parts in [`model`] and their arrangement in [`layout`].
//!
//! ```no_run
//! use gdr_tests::node::{NodeSpec, Reboot, create, reboot};
//!
//! let root = std::path::Path::new("/tmp/node");
//! create(root, &NodeSpec { nics: false, ..NodeSpec::default() })?;
//! reboot(root, Reboot::default())?;
//! # Ok::<(), gdr_tests::node::PowerError>(())
//! ```
#![allow(
    clippy::disallowed_methods,
    reason = "the rules about files and processes are the agent's; this stands outside it"
)]

pub mod cmdline;
pub mod config_space;
mod distro;
pub mod drivers;
mod family;
pub mod grub;
mod grub_cfg;
mod kernel;
pub mod kmod;
pub mod layout;
mod mkconfig;
pub mod model;
mod power;
mod procfs;
mod spec;
mod sysfs;
mod tools;
mod tree;

pub use family::{Family, install_kernel, rewrite_entries};
pub use grub_cfg::Menu;
pub use kernel::Started;
pub use mkconfig::{MkconfigError, menu, regenerate};
pub use power::{Boot, PowerError, Reboot, create, reboot, start};
pub use spec::{Cpu, ESP_UUID, Lockdown, NodeSpec, POLICY, ROOT_UUID};
pub use tools::TOOLS;
pub use tree::{Tree, TreeError};

#[cfg(test)]
mod tests;
