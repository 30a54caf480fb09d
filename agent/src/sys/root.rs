//! The root directory that everything is read from and written under.
//!
//! Paths are given as on the node itself (`/etc/default/grub`). Absolute links inside another
//! root resolve inside it: the kernel does that with `openat2(RESOLVE_IN_ROOT)`.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags};

use super::SysError;
use super::disk::Watch;
use super::noted::Source;
use super::reader::Reader;

/// There once systemd runs the machine: sd_booted(3).
pub const BOOTED: &str = "/run/systemd/system";

/// Files larger than this are not read whole: nothing that facts come from is this big.
pub(super) const MAX_READ: u64 = 64 << 20;

/// A root directory: the running system's `/`, an image, or a capture of another node.
#[derive(Debug)]
pub struct Root {
    pub(super) path: PathBuf,
    pub(super) dir: OwnedFd,
    pub(super) live: bool,
    /// What errors name paths by.
    pub(super) shown: PathBuf,
    /// Whether what is read comes from the directory, is noted as well, or comes from a capture.
    pub(super) source: Source,
    /// Who looks on when something is changed; nobody in the binary.
    pub(super) watch: Option<Arc<dyn Watch>>,
}

/// What a directory entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Dir,
    /// A symbolic link.
    Link,
    /// Anything else.
    Other,
}

/// One name in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The name, without a path; names that are not UTF-8 are left out of listings.
    pub name: String,
    /// What it is, not following links.
    pub kind: EntryKind,
}

/// The part of `stat(2)` that decisions are made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// Permission bits, 0 to 0o7777.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Size in bytes.
    pub size: u64,
    /// What it is.
    pub kind: EntryKind,
}

impl Root {
    /// Opens a root directory. `/` is the running system.
    ///
    /// # Errors
    /// The directory is not there, is not a directory, or may not be searched.
    pub fn open(path: &Path) -> Result<Self, SysError> {
        let error = |source| SysError::File {
            action: "open the root directory",
            path: path.into(),
            source,
        };
        let path = std::fs::canonicalize(path).map_err(error)?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = rustix::fs::open(&path, flags, Mode::empty()).map_err(|e| error(e.into()))?;
        let live = path == Path::new("/");
        Ok(Self {
            shown: path.clone(),
            path,
            dir,
            live,
            source: Source::Plain,
            watch: None,
        })
    }

    /// The same root, with every path as it is on the node: a report then says the same of a node, of a copy
    /// and of a capture of it.
    #[must_use]
    pub fn speaking_of_the_node(mut self) -> Self {
        self.shown = PathBuf::from("/");
        self
    }

    /// Whether this is the running system.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.live
    }

    /// Whether that is a running system with systemd as its first process (sd_booted(3)), and no chroot with the builder's
    /// `/proc` and `/sys`. Not known counts as yes.
    #[must_use]
    pub fn is_booted(&self) -> bool {
        self.is_live() && !matches!(self.stat(BOOTED), Ok(None))
    }

    /// The directory, as the caller's file system names it.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A node's path as a person outside that root would type it.
    #[must_use]
    pub fn outside(&self, path: &str) -> PathBuf {
        self.shown.join(path.trim_start_matches('/'))
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }

    pub(super) fn error(
        &self,
        action: &'static str,
        path: &str,
        source: impl Into<std::io::Error>,
    ) -> SysError {
        SysError::File {
            action,
            path: self.outside(path),
            source: source.into(),
        }
    }

    /// Opens a file below the root; links resolve inside it.
    ///
    /// # Errors
    /// As `openat2(2)`.
    pub fn open_file(
        &self,
        path: &str,
        flags: OFlags,
        action: &'static str,
    ) -> Result<OwnedFd, SysError> {
        if let Source::Captured { .. } = self.source {
            return Err(SysError::Refused {
                action,
                path: self.outside(path),
                why: "it is in a capture, which is only read".to_owned(),
            });
        }
        let flags = flags | OFlags::CLOEXEC;
        let inside = path.trim_start_matches('/');
        let inside = if inside.is_empty() { "." } else { inside };
        loop {
            // On `/` there is nothing to be kept in, and systemd's RestrictSUIDSGID= takes openat2(2)
            // away from its units, since it cannot look into the call's flags.
            let opened = if self.live {
                rustix::fs::openat(&self.dir, inside, flags, Mode::empty())
            } else {
                rustix::fs::openat2(
                    &self.dir,
                    inside,
                    flags,
                    Mode::empty(),
                    ResolveFlags::IN_ROOT,
                )
            };
            match opened {
                // A rename somewhere in the tree raced with the walk: openat2(2) says try again.
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
                result => return result.map_err(|e| self.error(action, path, e)),
            }
        }
    }

    /// Opens a regular file for reading in parts.
    ///
    /// # Errors
    /// It cannot be opened, or is no regular file.
    pub fn reader(&self, path: &str) -> Result<Reader<'_>, SysError> {
        match &self.source {
            Source::Plain => self.regular(path).map(Reader::file),
            Source::Noting(_) => self.noting_reader(path),
            Source::Captured { tree, .. } => self.captured_reader(tree, path),
        }
    }

    pub(super) fn regular(&self, path: &str) -> Result<File, SysError> {
        // A fifo or a device in a hostile root must not block or act.
        let fd = self.open_file(path, OFlags::RDONLY | OFlags::NONBLOCK, "read")?;
        let stat = rustix::fs::fstat(&fd).map_err(|e| self.error("read", path, e))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(self.not_regular(path));
        }
        Ok(File::from(fd))
    }

    pub(super) fn not_regular(&self, path: &str) -> SysError {
        SysError::Refused {
            action: "read",
            path: self.outside(path),
            why: "it is not a regular file".to_owned(),
        }
    }

    pub(super) fn too_large(&self, path: &str) -> SysError {
        SysError::Refused {
            action: "read",
            path: self.outside(path),
            why: format!("it is larger than {} MiB", MAX_READ >> 20),
        }
    }

    /// Reads a whole file.
    ///
    /// # Errors
    /// It cannot be opened or read, or is larger than 64 MiB.
    pub fn read(&self, path: &str) -> Result<Vec<u8>, SysError> {
        match &self.source {
            Source::Plain => self.plain_read(path),
            Source::Noting(_) => {
                let result = self.plain_read(path);
                self.note_read(path, &result);
                result
            }
            Source::Captured { tree, .. } => self.captured_read(tree, path),
        }
    }

    pub(super) fn plain_read(&self, path: &str) -> Result<Vec<u8>, SysError> {
        let file = self.regular(path)?;
        let size = rustix::fs::fstat(&file).map_or(0, |stat| stat.st_size);
        // As much as it will take, or as a first guess where the kernel makes the content.
        let size = usize::try_from(size).unwrap_or(0).min(4 << 20);
        let mut bytes = Vec::with_capacity(size + 1);
        let mut file = file.take(MAX_READ + 1);
        file.read_to_end(&mut bytes)
            .map_err(|e| self.error("read", path, e))?;
        if bytes.len() as u64 > MAX_READ {
            return Err(self.too_large(path));
        }
        Ok(bytes)
    }

    /// Reads a whole file, `None` when it is not there.
    ///
    /// # Errors
    /// As [`Root::read`], except that a missing file is none.
    pub fn read_if_there(&self, path: &str) -> Result<Option<Vec<u8>>, SysError> {
        match self.read(path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(e)
                if e.is_not_found()
                    || e.errno() == Some(rustix::io::Errno::NOTDIR.raw_os_error()) =>
            {
                Ok(None)
            }
            Err(e) => Err(e),
        }
    }

    /// Reads a small text file, without the white space around it; bytes that are not UTF-8 become U+FFFD.
    ///
    /// # Errors
    /// As [`Root::read_if_there`].
    pub fn text_if_there(&self, path: &str) -> Result<Option<String>, SysError> {
        Ok(self
            .read_if_there(path)?
            .map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned()))
    }

    /// The names in a directory, sorted; empty when it is not there.
    ///
    /// # Errors
    /// It cannot be opened or read.
    pub fn list(&self, path: &str) -> Result<Vec<Entry>, SysError> {
        match &self.source {
            Source::Plain => self.plain_list(path),
            Source::Noting(_) => {
                let result = self.plain_list(path);
                self.note_list(path, &result);
                result
            }
            Source::Captured { tree, .. } => self.captured_list(tree, path),
        }
    }

    fn plain_list(&self, path: &str) -> Result<Vec<Entry>, SysError> {
        let fd = match self.open_file(path, OFlags::RDONLY | OFlags::DIRECTORY, "list") {
            Ok(fd) => fd,
            Err(e) if e.is_not_found() => return Ok(Vec::new()),
            Err(e) => return Err(e),
        };
        let mut entries = Vec::new();
        let dir = rustix::fs::Dir::new(fd).map_err(|e| self.error("list", path, e))?;
        for entry in dir {
            let entry = entry.map_err(|e| self.error("list", path, e))?;
            let Ok(name) = entry.file_name().to_str() else {
                continue;
            };
            if name == "." || name == ".." {
                continue;
            }
            let kind = match entry.file_type() {
                // Some file systems do not say in the directory what an entry is.
                FileType::Unknown => match self.plain_stat(&format!("{path}/{name}"), false)? {
                    Some(stat) => stat.kind,
                    None => continue,
                },
                kind => entry_kind(kind),
            };
            entries.push(Entry {
                name: name.to_owned(),
                kind,
            });
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    /// Where a symbolic link points, as written; `None` when it is not there or not a link.
    ///
    /// # Errors
    /// Anything else that `readlink(2)` says.
    pub fn link(&self, path: &str) -> Result<Option<String>, SysError> {
        match &self.source {
            Source::Plain => self.plain_link(path),
            Source::Noting(_) => {
                self.note_path(path, false);
                self.plain_link(path)
            }
            Source::Captured { tree, .. } => self.captured_link(tree, path),
        }
    }

    pub(super) fn plain_link(&self, path: &str) -> Result<Option<String>, SysError> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW;
        let fd = match self.open_file(path, flags, "read the link") {
            Ok(fd) => fd,
            Err(e) if e.is_not_found() => return Ok(None),
            Err(e) => return Err(e),
        };
        match rustix::fs::readlinkat(&fd, "", Vec::new()) {
            Ok(target) => Ok(Some(target.to_string_lossy().into_owned())),
            Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOENT) => Ok(None),
            Err(e) => Err(self.error("read the link", path, e)),
        }
    }

    /// What a path is, following links; `None` when it is not there.
    ///
    /// # Errors
    /// Anything else that `stat(2)` says.
    pub fn stat(&self, path: &str) -> Result<Option<Stat>, SysError> {
        self.stat_following(path, true)
    }

    /// As [`Root::stat`], of the link itself.
    ///
    /// # Errors
    /// As [`Root::stat`].
    pub fn stat_link(&self, path: &str) -> Result<Option<Stat>, SysError> {
        self.stat_following(path, false)
    }

    fn stat_following(&self, path: &str, last: bool) -> Result<Option<Stat>, SysError> {
        match &self.source {
            Source::Plain => self.plain_stat(path, last),
            Source::Noting(_) => {
                self.note_path(path, last);
                self.plain_stat(path, last)
            }
            Source::Captured { tree, .. } => self.captured_stat(tree, path, last),
        }
    }

    pub(super) fn plain_stat(&self, path: &str, last: bool) -> Result<Option<Stat>, SysError> {
        let flags = if last {
            OFlags::PATH
        } else {
            OFlags::PATH | OFlags::NOFOLLOW
        };
        let fd = match self.open_file(path, flags, "look at") {
            Ok(fd) => fd,
            Err(e)
                if e.is_not_found()
                    || e.errno() == Some(rustix::io::Errno::NOTDIR.raw_os_error()) =>
            {
                return Ok(None);
            }
            Err(e) => return Err(e),
        };
        let stat = rustix::fs::statat(&fd, "", AtFlags::EMPTY_PATH)
            .map_err(|e| self.error("look at", path, e))?;
        Ok(Some(Stat {
            mode: stat.st_mode & 0o7777,
            uid: stat.st_uid,
            gid: stat.st_gid,
            size: u64::try_from(stat.st_size).unwrap_or(0),
            kind: entry_kind(FileType::from_raw_mode(stat.st_mode)),
        }))
    }
}

pub(super) fn entry_kind(kind: FileType) -> EntryKind {
    match kind {
        FileType::RegularFile => EntryKind::File,
        FileType::Directory => EntryKind::Dir,
        FileType::Symlink => EntryKind::Link,
        _ => EntryKind::Other,
    }
}
