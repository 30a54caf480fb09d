//! Writing files so that a crash at any instant leaves the old file or the new one, never a mixture.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};

use super::trust::{Place, place};
use super::{Entry, EntryKind, Root, SysError, disk};

/// Owner and permission bits of a file that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Attributes {
    /// Permission bits.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

/// Replaces (or makes) a file: temporary file beside it, fsync, rename, fsync of the directory.
///
/// An existing file keeps its owner, mode and extended attributes (SELinux label) unless
/// `attributes` says otherwise; a new one is root's with mode 0644.
///
/// # Errors
/// Nothing has changed when it fails. Untrusted directories and links are refused.
pub fn replace(
    root: &Root,
    path: &str,
    bytes: &[u8],
    attributes: Option<Attributes>,
) -> Result<(), SysError> {
    let place = place(root, path, true)?;
    replace_at(root, path, &place, bytes, attributes)
}

pub(super) fn replace_at(
    root: &Root,
    path: &str,
    place: &Place,
    bytes: &[u8],
    attributes: Option<Attributes>,
) -> Result<(), SysError> {
    let error = |e: rustix::io::Errno| root.error("write", path, e);
    let old = open_old(root, path, place)?;
    let temp = temp_name(root, path, &place.name)?;
    let flags = OFlags::WRONLY | OFlags::EXCL;
    let fd = disk::create(root, &place.dir, &temp, flags, 0o600).map_err(error)?;
    let result = fill(root, path, fd, old.as_ref(), bytes, attributes)
        .and_then(|()| disk::rename(root, &place.dir, &temp, &place.name).map_err(error));
    if let Err(e) = result {
        // The first error is the one to tell; a leftover is swept at the end of the transaction.
        let _ = disk::unlink(root, &place.dir, &temp);
        return Err(e);
    }
    disk::sync_dir(root, &place.dir).map_err(error)
}

fn fill(
    root: &Root,
    path: &str,
    fd: OwnedFd,
    old: Option<&OwnedFd>,
    bytes: &[u8],
    attributes: Option<Attributes>,
) -> Result<(), SysError> {
    let error = |e: rustix::io::Errno| root.error("write", path, e);
    if let Some(old) = old {
        copy_xattrs(root, old, &fd).map_err(error)?;
    }
    let wanted = match (attributes, old) {
        (Some(attributes), _) => Some(attributes),
        (None, Some(old)) => Some(attributes_of(old).map_err(error)?),
        (None, None) => None,
    };
    if let Some(Attributes { uid, gid, .. }) = wanted {
        let now = attributes_of(&fd).map_err(error)?;
        if (now.uid, now.gid) != (uid, gid) {
            disk::set_owner(root, &fd, uid, gid).map_err(error)?;
        }
    }
    let mode = wanted.map_or(0o644, |a| a.mode);
    disk::set_mode(root, &fd, mode).map_err(error)?;
    let file = File::from(fd);
    disk::write(root, &file, 0, bytes)
        .and_then(|()| disk::sync_file(root, &file))
        .map_err(error)
}

fn open_old(root: &Root, path: &str, place: &Place) -> Result<Option<OwnedFd>, SysError> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let fd = match rustix::fs::openat(&place.dir, place.name.as_str(), flags, Mode::empty()) {
        Ok(fd) => fd,
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        Err(e) => return Err(root.error("write", path, e)),
    };
    let stat = rustix::fs::fstat(&fd).map_err(|e| root.error("write", path, e))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        let why = "it is not a regular file".to_owned();
        return Err(SysError::Refused {
            action: "write",
            path: root.outside(path),
            why,
        });
    }
    Ok(Some(fd))
}

fn attributes_of(fd: &impl AsFd) -> rustix::io::Result<Attributes> {
    let stat = rustix::fs::fstat(fd)?;
    Ok(Attributes {
        mode: stat.st_mode & 0o7777,
        uid: stat.st_uid,
        gid: stat.st_gid,
    })
}

/// SELinux keeps a file's label in an extended attribute: a file that lost it is unreadable to
/// the daemons that need it at the next boot.
fn copy_xattrs(root: &Root, from: &OwnedFd, to: &OwnedFd) -> rustix::io::Result<()> {
    let mut names = vec![0_u8; 64 << 10];
    let length = match rustix::fs::flistxattr(from, &mut names[..]) {
        Ok(length) => length,
        Err(rustix::io::Errno::OPNOTSUPP) => return Ok(()),
        Err(e) => return Err(e),
    };
    names.truncate(length);
    for name in names.split(|b| *b == 0).filter(|n| !n.is_empty()) {
        let mut value = vec![0_u8; 64 << 10];
        let length = rustix::fs::fgetxattr(from, name, &mut value[..])?;
        value.truncate(length);
        match disk::set_xattr(root, to, name, &value) {
            Ok(()) | Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::PERM) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Temporary names start with this, so that leftovers of a crash are known: [`sweep`].
pub const TEMP_PREFIX: &str = ".gdr-agent-tmp.";

/// And end with this: no program reads a configuration file of such a name, not even one that does not
/// mind a leading dot.
const TEMP_SUFFIX: &str = ".tmp";

fn temp_name(root: &Root, path: &str, name: &str) -> Result<String, SysError> {
    let random = root
        .random::<8>()
        .map_err(|e| root.error("write", path, e))?;
    Ok(format!(
        "{TEMP_PREFIX}{:016x}.{name}{TEMP_SUFFIX}",
        u64::from_ne_bytes(random)
    ))
}

/// Removes a file and makes that durable; a missing file is done already.
///
/// # Errors
/// It cannot be removed, or its directory is not to be trusted.
pub fn remove(root: &Root, path: &str) -> Result<(), SysError> {
    let place = match place(root, path, false) {
        Ok(place) => place,
        Err(e) if e.is_not_found() => return Ok(()),
        Err(e) => return Err(e),
    };
    match disk::unlink(root, &place.dir, &place.name) {
        Ok(()) | Err(rustix::io::Errno::NOENT) => {}
        Err(e) => return Err(root.error("remove", path, e)),
    }
    disk::sync_dir(root, &place.dir).map_err(|e| root.error("remove", path, e))
}

/// Removes what writes that were interrupted have left in a directory; a missing one has nothing.
///
/// # Errors
/// The directory cannot be read, or is not to be trusted.
pub fn sweep(root: &Root, dir: &str) -> Result<(), SysError> {
    for entry in root.list(dir)? {
        if is_leftover(&entry) {
            remove(root, &format!("{dir}/{}", entry.name))?;
        }
    }
    Ok(())
}

/// Whether a write that was interrupted has left this.
#[must_use]
pub fn is_leftover(entry: &Entry) -> bool {
    entry.name.starts_with(TEMP_PREFIX) || entry.name.ends_with(super::boot_write::HOLD_SUFFIX)
}

/// Makes a file as new as the present moment; a missing one stays missing.
///
/// # Errors
/// Its time cannot be set.
pub fn touch(root: &Root, path: &str) -> Result<(), SysError> {
    if root.stat_link(path)?.is_none() {
        return Ok(());
    }
    let place = place(root, path, false)?;
    disk::touch(root, &place.dir, &place.name).map_err(|e| root.error("set the time of", path, e))
}

/// Adds bytes to the end of a file (mode 0644 unless it is there) in one write, so that nobody else's are lost.
///
/// # Errors
/// It cannot be opened or written, is a link, or something on the way is not to be trusted.
pub fn append(root: &Root, path: &str, bytes: &[u8]) -> Result<(), SysError> {
    let place = place(root, path, false)?;
    let flags = OFlags::WRONLY | OFlags::APPEND;
    let fd = disk::create(root, &place.dir, &place.name, flags, 0o644)
        .map_err(|e| root.error("open", path, e))?;
    disk::append(root, &File::from(fd), bytes).map_err(|e| root.error("add to", path, e))
}

/// Makes a directory (mode 0700 unless it is there) and its missing parents.
///
/// # Errors
/// It cannot be made, or something on the way is not to be trusted.
pub fn make_private_dir(root: &Root, path: &str) -> Result<(), SysError> {
    let place = place(root, path, true)?;
    match disk::make_dir(root, &place.dir, &place.name, 0o700) {
        Ok(()) => {
            disk::sync_dir(root, &place.dir).map_err(|e| root.error("make the directory", path, e))
        }
        Err(rustix::io::Errno::EXIST) => Ok(()),
        Err(e) => Err(root.error("make the directory", path, e)),
    }
}

/// Removes an empty directory; a missing one is done already, one that is not empty stays.
///
/// # Errors
/// It cannot be removed for another reason.
pub fn remove_dir(root: &Root, path: &str) -> Result<(), SysError> {
    let place = match place(root, path, false) {
        Ok(place) => place,
        Err(e) if e.is_not_found() => return Ok(()),
        Err(e) => return Err(e),
    };
    match disk::remove_dir(root, &place.dir, &place.name) {
        Ok(()) => disk::sync_dir(root, &place.dir)
            .map_err(|e| root.error("remove the directory", path, e)),
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTEMPTY) => Ok(()),
        Err(e) => Err(root.error("remove the directory", path, e)),
    }
}

/// Removes a directory with everything in it; a link in it is removed, not followed. A missing one is done already.
///
/// # Errors
/// Something cannot be removed, or something on the way is not to be trusted.
pub fn remove_tree(root: &Root, path: &str) -> Result<(), SysError> {
    for entry in root.list(path)? {
        let inside = format!("{path}/{}", entry.name);
        if entry.kind == EntryKind::Dir {
            remove_tree(root, &inside)?;
        } else {
            remove(root, &inside)?;
        }
    }
    remove_dir(root, path)
}

/// Who may change a file, for policies: its owner and mode, and whether its directories are safe.
///
/// # Errors
/// Says why somebody other than root could change the file.
pub fn only_root_writes(root: &Root, path: &str) -> Result<(), SysError> {
    let place = place(root, path, false)?;
    let stat = rustix::fs::statat(&place.dir, place.name.as_str(), AtFlags::empty())
        .map_err(|e| root.error("look at", path, e))?;
    let refuse = |why: String| {
        Err(SysError::Refused {
            action: "trust",
            path: root.outside(path),
            why,
        })
    };
    let me = rustix::process::geteuid().as_raw();
    if stat.st_uid != 0 && stat.st_uid != me {
        return refuse(format!(
            "it belongs to user {}; `chown root` it after reading it",
            stat.st_uid
        ));
    }
    if stat.st_mode & 0o022 != 0 {
        return refuse(format!(
            "others may write it (mode {:o}); `chmod go-w` it after reading it",
            stat.st_mode & 0o7777
        ));
    }
    Ok(())
}
