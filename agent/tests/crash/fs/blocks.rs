//! What is on a block device, block by block, at one moment.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

/// Bytes of a block.
const BLOCK: usize = 4096;

/// The blocks that are not all zeros, by number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Blocks(BTreeMap<u64, Box<[u8]>>);

/// How one content follows from another; `None` is a block of zeros.
pub type Delta = Vec<(u64, Option<Box<[u8]>>)>;

impl Blocks {
    /// Reads an image, its holes left out.
    pub fn read(image: &Path) -> io::Result<Self> {
        let file = File::open(image)?;
        let mut blocks = BTreeMap::new();
        let mut at = 0;
        loop {
            let from = match seek(&file, SeekFrom::Data(at)) {
                Ok(from) => from,
                Err(Errno::NXIO) => return Ok(Self(blocks)),
                Err(e) => return Err(e.into()),
            };
            at = seek(&file, SeekFrom::Hole(from))?;
            for number in from / BLOCK as u64..at.div_ceil(BLOCK as u64) {
                let mut block = vec![0; BLOCK];
                file.read_exact_at(&mut block, number * BLOCK as u64)?;
                if block.iter().any(|byte| *byte != 0) {
                    blocks.insert(number, block.into_boxed_slice());
                }
            }
        }
    }

    /// Makes an image of `size` bytes with this in it.
    pub fn write(&self, image: &Path, size: u64) -> io::Result<()> {
        let file = OpenOptions::new()
            .create(true)
            .write(true)
            .truncate(true)
            .open(image)?;
        file.set_len(size)?;
        for (number, block) in &self.0 {
            file.write_all_at(block, number * BLOCK as u64)?;
        }
        Ok(())
    }

    /// What makes `self` of `old`.
    pub fn since(&self, old: &Self) -> Delta {
        let gone = old.0.keys().filter(|number| !self.0.contains_key(number));
        let new = self
            .0
            .iter()
            .filter(|(number, block)| old.0.get(number) != Some(block));
        gone.map(|number| (*number, None))
            .chain(new.map(|(number, block)| (*number, Some(block.clone()))))
            .collect()
    }

    pub fn apply(&mut self, delta: &Delta) {
        for (number, block) in delta {
            match block {
                Some(block) => drop(self.0.insert(*number, block.clone())),
                None => drop(self.0.remove(number)),
            }
        }
    }
}
