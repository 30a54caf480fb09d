//! Every boot configuration format of a GRUB machine: text in, text out.
//!
//! * [`cmdline`]: the kernel command line, with the kernel's quoting;
//! * [`grubenv`]: GRUB's environment block, edited in place;
//! * [`defaults`]: `/etc/default/grub` and its drop-ins, as dash evaluates them;
//! * [`mod@cfg`]: `grub.cfg` scripts and the menu that they make;
//! * [`bls`]: Boot Loader Specification entries, in the order of the GRUB that is installed;
//! * [`kernel_cmdline`]: `/etc/kernel/cmdline`, which `kernel-install` gives new kernels;
//! * [`effective`]: which arguments an entry boots with, and where each of them is written.
//!
//! Nothing here reads a file, starts a process or panics on any input. The crate is `no_std` and needs
//! only `alloc`.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod bls;
pub mod cfg;
pub mod cmdline;
pub mod defaults;
pub mod effective;
pub mod grubenv;
pub mod kernel_cmdline;
mod lines;
mod origin;
mod room;
mod trace;

pub use origin::{Origin, Piece};
