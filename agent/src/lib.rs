//! The library behind the `gdr-agent` binary. `ARCHITECTURE.md` has the map.

pub mod acs;
pub mod apply;
pub mod bandwidth;
pub mod capture;
pub mod checks;
pub mod cli;
pub mod doctor;
pub mod effective;
pub mod events;
pub mod facts;
pub mod finding;
pub mod gpu;
pub mod journal;
pub mod kmod;
pub mod machine;
pub mod measure;
pub mod nccl_env;
pub mod nccl_log;
pub mod package;
pub mod pci;
mod plain;
pub mod plan;
pub mod reboot;
pub mod service;
pub mod state;
pub mod sys;
pub mod world;
