//! gdr-tests

pub mod machine;
