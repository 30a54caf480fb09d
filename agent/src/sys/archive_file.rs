//! Archives where the caller wants them: outside of any root.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::SysError;

/// Reads a whole regular file of at most `most` bytes.
///
/// # Errors
/// It is not there, may not be read, is no regular file, or is larger.
pub fn read(path: &Path, most: u64) -> Result<Vec<u8>, SysError> {
    let error = |source| SysError::File {
        action: "read",
        path: path.into(),
        source,
    };
    let refuse = |why: &str| SysError::Refused {
        action: "read",
        path: path.into(),
        why: why.to_owned(),
    };
    // A pipe must not block.
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed())
        .open(path)
        .map_err(error)?;
    if !file.metadata().map_err(error)?.is_file() {
        return Err(refuse("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes).map_err(error)?;
    if bytes.len() as u64 > most {
        return Err(refuse("it is larger than any capture"));
    }
    Ok(bytes)
}

/// Writes a new file that only its owner can read. Nothing is ever replaced: a link or a file that is there is an error.
///
/// # Errors
/// It is there already, or cannot be written; then nothing is left of it.
pub fn write_new(path: &Path, bytes: &[u8]) -> Result<(), SysError> {
    let error = |source| SysError::File {
        action: "write",
        path: path.into(),
        source,
    };
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(error)?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    written.map_err(|e| {
        remove(path, file);
        error(e)
    })
}

fn remove(path: &Path, file: File) {
    drop(file);
    let _ = std::fs::remove_file(path);
}
