//! One agent at a time: an advisory lock that says who holds it.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::fd::OwnedFd;

use rustix::fs::{FlockOperation, Mode, OFlags};

use super::trust::place;
use super::{Root, SysError};

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
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd: OwnedFd = rustix::fs::openat(
        &place.dir,
        place.name.as_str(),
        flags,
        Mode::from_raw_mode(0o600),
    )
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
    let _ = file
        .set_len(0)
        .and_then(|()| file.rewind())
        .and_then(|()| file.write_all(text.as_bytes()));
    Ok(Lock { _file: file })
}
