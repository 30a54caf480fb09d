//! A node's raw files in one small archive, and such an archive as a root directory.
//!
//! What is kept is what was asked for: the root notes every path that is read while a report is made
//! ([`crate::sys::Root::noting`]), what was there, what was not, and what could not be read. The same questions
//! put to the archive so have the same answers, and a question that nobody asked then has none: it is unknown, and
//! not "absent". `docs/capture.md` has the format.

mod archive;
mod clean;
mod redact;
mod tree;

pub use archive::{Archive, ArchiveError, Log, MOST_PACKED, pack, unpack};
pub use clean::clean;
pub use redact::Redactor;
pub use tree::{Content, Missing, Node, Place, Tree};
pub(crate) use tree::{MOST_LINKS, parts};
