//! gdr-tests

pub mod node;
