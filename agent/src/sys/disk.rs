//! Every change of a file that the agent makes on a node: one function each, so that tests can see, stop and repeat the
//! whole sequence of them.
//!
//! Who looks on is part of the [`Root`] and put there by [`Root::watched`], which the binary never calls: no
//! argument and no variable of the environment can switch it on. Without it a change is a system call behind one
//! comparison with null. The same one may have clocks and random numbers of his own.
//!
//! Not here: registers of devices (`pci_config`), archives outside of any root (`archive_file`), and what programs
//! do that the agent starts.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{AtFlags, Gid, Mode, OFlags, Timespec, Timestamps, Uid, XattrFlags};
use rustix::io::{Errno, Result};

use super::Root;

/// One change, as it is about to be made.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Change<'a> {
    /// A file is made, or opened for writing if it is there already.
    Create {
        /// The directory.
        dir: BorrowedFd<'a>,
        /// The name in it.
        name: &'a str,
    },
    /// A directory is made.
    MakeDir {
        /// The directory above.
        dir: BorrowedFd<'a>,
        /// The name in it.
        name: &'a str,
    },
    /// Bytes are written.
    Write {
        /// The file.
        file: BorrowedFd<'a>,
        /// Offset of the first.
        at: u64,
        /// What is written.
        bytes: &'a [u8],
    },
    /// A file becomes empty.
    Truncate {
        /// The file.
        file: BorrowedFd<'a>,
    },
    /// Owner, mode or an extended attribute is set.
    Attribute {
        /// The file.
        file: BorrowedFd<'a>,
    },
    /// A name takes the place of another in the same directory.
    Rename {
        /// The directory.
        dir: BorrowedFd<'a>,
        /// The old name.
        from: &'a str,
        /// The new one.
        to: &'a str,
    },
    /// A file gets a second name in the same directory.
    Link {
        /// The directory.
        dir: BorrowedFd<'a>,
        /// The name that is there.
        from: &'a str,
        /// The new one.
        to: &'a str,
    },
    /// A name goes.
    Unlink {
        /// The directory.
        dir: BorrowedFd<'a>,
        /// The name.
        name: &'a str,
    },
    /// An empty directory goes.
    RemoveDir {
        /// The directory above.
        dir: BorrowedFd<'a>,
        /// The name.
        name: &'a str,
    },
    /// A file's time is set to now.
    Touch {
        /// The directory.
        dir: BorrowedFd<'a>,
        /// The name.
        name: &'a str,
    },
    /// A file's bytes and attributes are made durable.
    SyncFile {
        /// The file.
        file: BorrowedFd<'a>,
    },
    /// A directory's names are made durable.
    SyncDir {
        /// The directory.
        dir: BorrowedFd<'a>,
    },
    /// Everything on the file system is made durable.
    SyncAll {
        /// A directory on it.
        dir: BorrowedFd<'a>,
    },
}

/// Somebody who looks on.
pub trait Watch: std::fmt::Debug + Send + Sync {
    /// Called in the place of a change; `make` makes it.
    ///
    /// # Errors
    /// What the agent is to be told that the system said.
    fn change(&self, change: Change<'_>, make: &mut dyn FnMut() -> Result<()>) -> Result<()>;

    /// Seconds since 1970; none is the system's clock.
    fn unix_now(&self) -> Option<u64> {
        None
    }

    /// Time since the machine booted; none is the system's.
    fn since_boot(&self) -> Option<Duration> {
        None
    }

    /// Lets that time pass; false if it has not, and the system is to wait.
    fn sleep(&self, _time: Duration) -> bool {
        false
    }

    /// Fills in random bytes; false if the system is to do that.
    fn random(&self, _bytes: &mut [u8]) -> bool {
        false
    }
}

impl Root {
    /// The same root; from now on `watch` is asked about every change that is made through it.
    #[must_use]
    pub fn watched(mut self, watch: Arc<dyn Watch>) -> Self {
        self.watch = Some(watch);
        self
    }

    fn change(&self, change: Change<'_>, mut make: impl FnMut() -> Result<()>) -> Result<()> {
        match &self.watch {
            None => make(),
            Some(watch) => watch.change(change, &mut make),
        }
    }
}

/// Opens a file for writing and makes it if `flags` say so.
pub(super) fn create(
    root: &Root,
    dir: &OwnedFd,
    name: &str,
    flags: OFlags,
    mode: u32,
) -> Result<OwnedFd> {
    let mut made = None;
    let flags = flags | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let dir = dir.as_fd();
    root.change(Change::Create { dir, name }, || {
        made = Some(rustix::fs::openat(
            dir,
            name,
            flags,
            Mode::from_raw_mode(mode),
        )?);
        Ok(())
    })?;
    made.ok_or(Errno::IO)
}

pub(super) fn make_dir(root: &Root, dir: &OwnedFd, name: &str, mode: u32) -> Result<()> {
    let dir = dir.as_fd();
    root.change(Change::MakeDir { dir, name }, || {
        rustix::fs::mkdirat(dir, name, Mode::from_raw_mode(mode))
    })
}

/// Writes all bytes from an offset on.
pub(super) fn write(root: &Root, file: &File, at: u64, bytes: &[u8]) -> Result<()> {
    let change = Change::Write {
        file: file.as_fd(),
        at,
        bytes,
    };
    root.change(change, || {
        file.write_all_at(bytes, at).map_err(|e| errno(&e))
    })
}

/// Adds bytes to the end of a file that was opened to be added to.
pub(super) fn append(root: &Root, file: &File, bytes: &[u8]) -> Result<()> {
    let at = file.metadata().map_err(|e| errno(&e))?.len();
    let change = Change::Write {
        file: file.as_fd(),
        at,
        bytes,
    };
    root.change(change, || {
        std::io::Write::write_all(&mut &*file, bytes).map_err(|e| errno(&e))
    })
}

pub(super) fn truncate(root: &Root, file: &File) -> Result<()> {
    root.change(Change::Truncate { file: file.as_fd() }, || {
        file.set_len(0).map_err(|e| errno(&e))
    })
}

pub(super) fn set_owner(root: &Root, file: &OwnedFd, uid: u32, gid: u32) -> Result<()> {
    let change = Change::Attribute { file: file.as_fd() };
    root.change(change, || {
        let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
        rustix::fs::fchown(file, Some(uid), Some(gid))
    })
}

pub(super) fn set_mode(root: &Root, file: &OwnedFd, mode: u32) -> Result<()> {
    let change = Change::Attribute { file: file.as_fd() };
    root.change(change, || {
        rustix::fs::fchmod(file, Mode::from_raw_mode(mode))
    })
}

pub(super) fn set_xattr(root: &Root, file: &OwnedFd, name: &[u8], value: &[u8]) -> Result<()> {
    let change = Change::Attribute { file: file.as_fd() };
    root.change(change, || {
        rustix::fs::fsetxattr(file, name, value, XattrFlags::empty())
    })
}

pub(super) fn rename(root: &Root, dir: &OwnedFd, from: &str, to: &str) -> Result<()> {
    let dir = dir.as_fd();
    root.change(Change::Rename { dir, from, to }, || {
        rustix::fs::renameat(dir, from, dir, to)
    })
}

pub(super) fn link(root: &Root, dir: &OwnedFd, from: &str, to: &str) -> Result<()> {
    let dir = dir.as_fd();
    root.change(Change::Link { dir, from, to }, || {
        rustix::fs::linkat(dir, from, dir, to, AtFlags::empty())
    })
}

pub(super) fn unlink(root: &Root, dir: &OwnedFd, name: &str) -> Result<()> {
    let dir = dir.as_fd();
    root.change(Change::Unlink { dir, name }, || {
        rustix::fs::unlinkat(dir, name, AtFlags::empty())
    })
}

pub(super) fn remove_dir(root: &Root, dir: &OwnedFd, name: &str) -> Result<()> {
    let dir = dir.as_fd();
    root.change(Change::RemoveDir { dir, name }, || {
        rustix::fs::unlinkat(dir, name, AtFlags::REMOVEDIR)
    })
}

pub(super) fn touch(root: &Root, dir: &OwnedFd, name: &str) -> Result<()> {
    let time = |tv_nsec| Timespec { tv_sec: 0, tv_nsec };
    let now = Timestamps {
        last_access: time(rustix::fs::UTIME_OMIT),
        last_modification: time(rustix::fs::UTIME_NOW),
    };
    let dir = dir.as_fd();
    root.change(Change::Touch { dir, name }, || {
        rustix::fs::utimensat(dir, name, &now, AtFlags::SYMLINK_NOFOLLOW)
    })
}

pub(super) fn sync_file(root: &Root, file: &File) -> Result<()> {
    let change = Change::SyncFile { file: file.as_fd() };
    root.change(change, || rustix::fs::fsync(file))
}

pub(super) fn sync_dir(root: &Root, dir: &OwnedFd) -> Result<()> {
    root.change(Change::SyncDir { dir: dir.as_fd() }, || {
        rustix::fs::fsync(dir)
    })
}

pub(super) fn sync_all(root: &Root, dir: &OwnedFd) -> Result<()> {
    root.change(Change::SyncAll { dir: dir.as_fd() }, || {
        rustix::fs::syncfs(dir)
    })
}

fn errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
