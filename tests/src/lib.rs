//! gdr-tests

pub mod kmod;
pub mod machine;
pub mod node;
