//! The packages, with the real tools: built twice, linted, installed, upgraded, removed and purged in a real Debian root.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test looks at the machine from outside"
)]

mod common;
mod content;
mod deb;
mod images;
mod pages;
mod rpm;
#[path = "../support/mod.rs"]
mod support;
mod uninstall;
