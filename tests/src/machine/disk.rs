//! What a machine writes: a layer over the image that it started from.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::{Error, Image};

/// The layer's file. It goes with the value.
///
/// It lies among the temporary files, since `scripts/test` has those in memory. What the machine flushes is then cheap for the
/// host, and as safe: the plug that tests pull is QEMU's, never the host's.
#[derive(Debug)]
pub(crate) struct Disk(PathBuf);

impl Disk {
    pub(crate) fn over(image: &Image) -> Result<Self, Error> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("gdr-vm-{}-{count}.qcow2", std::process::id());
        let disk = Self(std::env::temp_dir().join(name));
        image.overlay(&disk.0)?;
        Ok(disk)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// A copy for whoever has to find out why something went wrong. QEMU must have ended.
    pub(crate) fn keep(&self, dir: &Path) -> Result<(), Error> {
        let to = dir.join("disk.qcow2");
        std::fs::copy(&self.0, &to)
            .map(|_| ())
            .map_err(Error::host("write", to))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // It may never have been made.
        let _ = std::fs::remove_file(&self.0);
    }
}
