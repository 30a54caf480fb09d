//! Writing what GRUB reads.
//!
//! GRUB does not replay the journal. So the old file's blocks must stay allocated until the new
//! file is visible outside the journal: a second name holds them over the rename, the file system
//! is frozen and thawed, and only then is that name removed.

use std::fs::File;
use std::os::unix::fs::FileExt;

use rustix::fs::OFlags;

use super::trust::place;
use super::{Root, SysError, disk, freeze, write};

/// The second name that keeps the old blocks; a leftover of a crash is replaced by the next write.
pub(super) const HOLD_SUFFIX: &str = ".gdr-agent-old";

/// Replaces a file that GRUB reads, as [`write::replace`], and settles its file system.
///
/// # Errors
/// As [`write::replace`]; the file is then the old one.
pub fn replace(
    root: &Root,
    path: &str,
    bytes: &[u8],
    attributes: Option<write::Attributes>,
) -> Result<(), SysError> {
    let place = place(root, path, true)?;
    let hold = format!("{}{HOLD_SUFFIX}", place.name);
    let unhold = || match disk::unlink(root, &place.dir, &hold) {
        Ok(()) | Err(rustix::io::Errno::NOENT) => Ok(()),
        Err(e) => Err(root.error("remove the old name of", path, e)),
    };
    unhold()?;
    match disk::link(root, &place.dir, &place.name, &hold) {
        // No hard links on FAT: there is no journal either.
        Ok(())
        | Err(rustix::io::Errno::NOENT | rustix::io::Errno::PERM | rustix::io::Errno::OPNOTSUPP) => {
        }
        Err(e) => return Err(root.error("hold the old blocks of", path, e)),
    }
    let written = write::replace_at(root, path, &place, bytes, attributes);
    let settled = written.and_then(|()| freeze::settle(root, parent(path)));
    let unheld = unhold();
    settled?;
    unheld?;
    // Nobody may come by here again to sweep a name that a power cut brings back.
    disk::sync_dir(root, &place.dir).map_err(|e| root.error("write", path, e))
}

/// Removes a file that GRUB reads and settles its file system.
///
/// # Errors
/// As [`write::remove`].
pub fn remove(root: &Root, path: &str) -> Result<(), SysError> {
    if root.stat_link(path)?.is_none() {
        return Ok(());
    }
    write::remove(root, path)?;
    freeze::settle(root, parent(path)).map(|_| ())
}

/// Overwrites a file's bytes in place, without changing its length, and settles its file system. Reads back what
/// it wrote.
///
/// Mostly GRUB sees the bytes as soon as they are synced. Not so where somebody has written the file anew before
/// (grub-editenv does, at each boot of Ubuntu) and the journal that says where is not written back; nor where the
/// file system puts new bytes elsewhere, as btrfs always does and xfs with a file that shares its blocks.
///
/// `expected` is what the caller based its edit on; anything else there means that somebody wrote
/// in between.
///
/// # Errors
/// The lengths differ, the file changed meanwhile, or the write or its sync failed.
pub fn overwrite(root: &Root, path: &str, expected: &[u8], bytes: &[u8]) -> Result<(), SysError> {
    overwrite_only(root, path, expected, bytes)?;
    freeze::settle(root, parent(path)).map(|_| ())
}

/// The same without settling, for what GRUB need not see before the file system is unmounted or something else in
/// the same directory is settled.
///
/// # Errors
/// As [`overwrite`].
pub fn overwrite_only(
    root: &Root,
    path: &str,
    expected: &[u8],
    bytes: &[u8],
) -> Result<(), SysError> {
    let refuse = |why: &str| SysError::Refused {
        action: "overwrite",
        path: root.outside(path),
        why: why.to_owned(),
    };
    if expected.len() != bytes.len() {
        return Err(refuse("the length would change"));
    }
    let place = place(root, path, false)?;
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let fd = rustix::fs::openat(
        &place.dir,
        place.name.as_str(),
        flags,
        rustix::fs::Mode::empty(),
    )
    .map_err(|e| root.error("write", path, e))?;
    let file = File::from(fd);
    let io = |e: std::io::Error| root.error("write", path, e);
    let meta = file.metadata().map_err(io)?;
    if !meta.is_file() || meta.len() != bytes.len() as u64 {
        return Err(refuse(
            "it is not a regular file of the length that was read",
        ));
    }
    let mut now = vec![0; bytes.len()];
    file.read_exact_at(&mut now, 0).map_err(io)?;
    if now != expected {
        return Err(refuse(
            "somebody else changed it meanwhile; run the command again",
        ));
    }
    disk::write(root, &file, 0, bytes)
        .and_then(|()| disk::sync_file(root, &file))
        .map_err(|e| root.error("write", path, e))?;
    file.read_exact_at(&mut now, 0).map_err(io)?;
    if now == bytes {
        Ok(())
    } else {
        Err(refuse("it does not read back what was written"))
    }
}

/// What a disk writes whole or not at all, at least.
const SECTOR: usize = 512;

/// `MSDOS_SUPER_MAGIC` (Linux include/uapi/linux/magic.h).
const FAT: u64 = 0x4d44;

/// Changes a file that GRUB reads as one block, as grubenv is, to bytes of the same length.
///
/// A change inside one sector is overwritten: the disk writes a sector whole or not at all. A larger one
/// could be torn by a power cut, half of it new and half of it old, and GRUB would put such a value into
/// every kernel's command line. So it is written as a new file, as [`replace`] does: GRUB finds the blocks
/// of its environment anew at each boot, so they may move as long as the length stays. Only GRUB itself
/// must write in place, because it cannot allocate. On FAT a rename is not safe against a power cut
/// either, and writing the two sectors is the smaller risk: they are neighbours in one cluster and go to
/// the disk in one request.
///
/// `expected` is as for [`overwrite`].
///
/// # Errors
/// As [`overwrite`] and [`replace`].
pub fn amend(root: &Root, path: &str, expected: &[u8], bytes: &[u8]) -> Result<(), SysError> {
    let sectors = expected.chunks(SECTOR).zip(bytes.chunks(SECTOR));
    let changed = sectors.filter(|(old, new)| old != new).count();
    if changed <= 1 || expected.len() != bytes.len() {
        return overwrite(root, path, expected, bytes);
    }
    let place = place(root, path, true)?;
    let kind = rustix::fs::fstatfs(&place.dir).map_err(|e| root.error("look at", path, e))?;
    #[allow(
        clippy::cast_sign_loss,
        clippy::unnecessary_cast,
        reason = "a number without a sign, of a type that differs by architecture"
    )]
    if kind.f_type as u64 == FAT {
        return overwrite(root, path, expected, bytes);
    }
    if root.read(path)? != expected {
        return Err(SysError::Refused {
            action: "overwrite",
            path: root.outside(path),
            why: "somebody else changed it meanwhile; run the command again".to_owned(),
        });
    }
    replace(root, path, bytes, None)
}

fn parent(path: &str) -> &str {
    match path.rfind('/') {
        Some(0) | None => "/",
        Some(at) => path.get(..at).unwrap_or("/"),
    }
}
