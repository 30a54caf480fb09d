//! A file's content: shared by all who have the same, its hash worked out once.

use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

/// Content that costs nothing to clone.
#[derive(Clone)]
pub struct Bytes(Arc<(Vec<u8>, OnceLock<u64>)>);

impl Bytes {
    /// The same bytes for one owner, to be changed.
    pub fn to_mut(&mut self) -> &mut Vec<u8> {
        if Arc::get_mut(&mut self.0).is_none() {
            self.0 = Arc::new((self.0.0.clone(), OnceLock::new()));
        }
        let inner = Arc::get_mut(&mut self.0).unwrap();
        inner.1 = OnceLock::new();
        &mut inner.0
    }

    pub fn hash_once(&self) -> u64 {
        *self.0.1.get_or_init(|| hash(&self.0.0))
    }
}

/// Blocks at the end that repeat, as padding does, are only counted.
fn hash(bytes: &[u8]) -> u64 {
    const BLOCK: usize = 4096;
    let mut end = bytes.len();
    while end >= 2 * BLOCK && bytes[end - BLOCK..end] == bytes[end - 2 * BLOCK..end - BLOCK] {
        end -= BLOCK;
    }
    let mut hash = std::hash::DefaultHasher::new();
    bytes.len().hash(&mut hash);
    hash.write(&bytes[..end]);
    hash.finish()
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Arc::new((bytes, OnceLock::new())))
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0.0
    }
}

impl PartialEq for Bytes {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.0 == other.0.0
    }
}

impl Eq for Bytes {}

impl Hash for Bytes {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash_once());
    }
}

impl std::fmt::Debug for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(&self.0.0))
    }
}
