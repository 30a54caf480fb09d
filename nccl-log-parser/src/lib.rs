//! Logs of NCCL 2.3 to 2.31, RCCL and the network plugins, read as a stream: what their channels go through, what HCAs
//! can do, how far GPUs and NICs are apart, the environment, versions and errors.
//!
//! [`Reader`] takes a log in pieces of any size and keeps bounded tables, whatever the size. [`Log`] is what they hold
//! at its end; what that means for GPUDirect RDMA is the caller's to say.
//!
//! Nothing here reads a file or panics on any input. What walks over the bytes is compiled in this crate, whatever the
//! level of its caller: nothing generic is public.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]
#![forbid(unsafe_code)]

mod bytes;
mod evidence;
mod gathered;
mod lines;
mod messages;
mod needles;
mod reader;
mod record;
mod source;
mod tally;

pub use evidence::{Evidence, harmless, is_command};
pub use gathered::{Completions, Distances, Env, Gathered, Hca, Seen};
pub use needles::Trouble;
pub use reader::{Log, Reader};
pub use record::Kind;
pub use tally::{CHANNELS, Cell, Count, Key, Process, Tally, Transport};
