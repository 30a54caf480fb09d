//! The `gdr-agent` binary.
fn main() {}
