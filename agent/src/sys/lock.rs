//! One agent at a time: an advisory lock that says who holds it.

use std::fs::File;
use std::io::Read;

use rustix::fs::{FlockOperation, OFlags};

use super::trust::place;
use super::{Root, SysError, disk};

/// The lock, held until it is dropped or the process ends.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// Takes the lock at `path` without waiting.
///
/// # Errors
/// [`SysError::Locked`] names the holder; other errors say why the lock file cannot be used.
pub fn acquire(root: &Root, path: &str, who: &str) -> Result<Lock, SysError> {
    let place = place(root, path, true)?;
    let fd = disk::create(root, &place.dir, &place.name, OFlags::RDWR, 0o600)
        .map_err(|e| root.error("open the lock", path, e))?;
    let locked = rustix::fs::flock(&fd, FlockOperation::NonBlockingLockExclusive);
    let mut file = File::from(fd);
    match locked {
        Ok(()) => {}
        Err(rustix::io::Errno::WOULDBLOCK) => {
            let mut holder = String::new();
            let read = file.read_to_string(&mut holder);
            if read.is_err() || holder.trim().is_empty() {
                "its name is not written yet".clone_into(&mut holder);
            }
            return Err(SysError::Locked {
                holder: holder.trim().to_owned(),
            });
        }
        Err(e) => return Err(root.error("take the lock", path, e)),
    }
    let text = format!("pid {}: {who}\n", std::process::id());
    // The text is a courtesy to the next one who comes; a full disk must not stop the work here.
    let _ = disk::truncate(root, &file).and_then(|()| disk::write(root, &file, 0, text.as_bytes()));
    Ok(Lock { _file: file })
}
