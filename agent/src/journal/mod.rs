//! The durable record of a transaction: numbered, padded, checksummed files, each one whole.
//!
//! `docs/journal.md` has the format. A record holds everything that is needed to go on, so only
//! the last one is read.

mod image;
pub mod leftovers;
mod record;
mod store;

pub(crate) use image::sha256;
pub use image::{Image, Intent, image_of};
#[cfg(test)]
pub(crate) use record::tests::sample;
pub use record::{DecodeError, EnvIntent, Record, Trial, Work, decode, encode};
pub use store::{DIR, Journal, JournalError, last_of};
