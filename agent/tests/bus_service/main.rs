//! `org.gdr_agent.Agent1` on a message bus of the test's own, with the policy file, the unit's program and, for another
//! user, a real client.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs
)]

mod hostile;
mod leave;
mod read;
mod system_bus;
