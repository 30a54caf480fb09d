//! gdr-agent
#![forbid(unsafe_code)]

pub mod pci;
