//! The library behind the `gdr-agent` binary. `ARCHITECTURE.md` has the map.

pub mod cli;
pub mod facts;
pub mod machine;
pub mod pci;
pub mod reboot;
pub mod sys;
