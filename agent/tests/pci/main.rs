//! PCI Express: configuration space, the tree, paths, ACS and their picture, on made-up and collected
//! machines.
#![allow(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used
)]

mod acs_cli;
mod corpus;
mod layouts;
mod lspci;
mod picture;
mod speed;
mod sysfs;

mod drawing;
mod support;
