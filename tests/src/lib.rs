//! gdr-tests

pub mod machine;
pub mod node;
