//! A log from its bytes to the answer.

use super::FileReport;

/// A log that is being read. Feed it with [`Reader::push`], in pieces of any size.
#[derive(Debug, Default)]
pub struct Reader(nccl_log_parser::Reader);

impl Reader {
    /// Nothing read yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The next piece of the log.
    pub fn push(&mut self, piece: &[u8]) {
        self.0.push(piece);
    }

    /// Bytes read so far.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.0.bytes()
    }

    /// The answer. `error` says why the log could not be read to its end.
    #[must_use]
    pub fn report(self, name: &str, error: Option<String>) -> FileReport {
        FileReport::of(&self.0.finish(), name, error)
    }
}
