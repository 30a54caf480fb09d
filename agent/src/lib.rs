//! gdr-agent

pub mod reboot;
