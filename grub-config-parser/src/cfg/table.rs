//! A list that grows without being copied: a vector that doubles needs three times its size to do so.

use alloc::vec::Vec;

/// Items in one piece. The first piece grows as a vector does, for the many scripts that are short.
const PIECE: usize = 1024;

#[derive(Debug)]
pub(super) struct Table<T> {
    pieces: Vec<Vec<T>>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { pieces: Vec::new() }
    }
}

impl<T> Table<T> {
    pub(super) fn len(&self) -> usize {
        match self.pieces.split_last() {
            Some((last, full)) => full.len() * PIECE + last.len(),
            None => 0,
        }
    }

    /// About how many bytes it takes.
    pub(super) fn bytes(&self) -> usize {
        self.len() * size_of::<T>()
    }

    pub(super) fn get(&self, index: usize) -> Option<&T> {
        self.pieces.get(index / PIECE)?.get(index % PIECE)
    }

    pub(super) fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        self.pieces.get_mut(index / PIECE)?.get_mut(index % PIECE)
    }

    pub(super) fn last_mut(&mut self) -> Option<&mut T> {
        self.pieces.last_mut()?.last_mut()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.pieces.iter().flatten()
    }

    pub(super) fn push(&mut self, item: T) {
        match self.pieces.last_mut() {
            Some(last) if last.len() < PIECE => last.push(item),
            last => {
                let mut piece = last.map_or_else(Vec::new, |_| Vec::with_capacity(PIECE));
                piece.push(item);
                self.pieces.push(piece);
            }
        }
    }

    /// The first index whose item is not `before`, where those that are come first.
    pub(super) fn partition_point(&self, before: impl Fn(&T) -> bool) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.get(middle).is_some_and(&before) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}
