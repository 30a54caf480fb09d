//! How much memory work on hostile input may take: ten times the input, or 1 MiB where that is more.

/// What small inputs may take too.
const LEAST: usize = 1 << 20;

/// Memory in use, as far as it is counted, and how much there may be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    held: usize,
    most: usize,
}

impl Room {
    /// For a run on so many bytes of input, of which `taken` bytes of memory are in use already.
    pub(crate) fn new(input: usize, taken: usize) -> Self {
        Self {
            held: taken,
            // The rest is for what is not counted.
            most: (input / 2 * 19).max(LEAST),
        }
    }

    /// Counts memory; false if there is not so much. It counts as taken either way.
    pub(crate) fn take(&mut self, bytes: usize) -> bool {
        self.held = self.held.saturating_add(bytes);
        self.held <= self.most
    }

    /// Counts memory as free again.
    pub(crate) fn give_back(&mut self, bytes: usize) {
        self.held = self.held.saturating_sub(bytes);
    }

    /// How much may still be taken.
    pub(crate) fn left(&self) -> usize {
        self.most.saturating_sub(self.held)
    }
}
