//! Scenarios on a real machine: Debian, GRUB, systemd, logind, an IOMMU and PCIe ports with ACS, in QEMU, nothing mocked.
//!
//! `scripts/vm/build` makes the machine. Without it the scenarios are skipped with a line that says so; in CI they fail.
// A failed step ends a test, and the host's files and processes are its means.
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]
#![allow(clippy::print_stderr, clippy::indexing_slicing)]

mod baked;
mod bench;
mod cloud;
mod common;
mod denied;
mod dies;
mod fails;
mod good;
mod grubs;
mod lockdown;
mod logind;
mod modules;
mod one_shot;
mod policy;
mod power_cut;
mod stays;
