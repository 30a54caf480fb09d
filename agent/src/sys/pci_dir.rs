//! The directories of PCI functions in sysfs, read with as few system calls as that takes: a big server
//! has thousands of functions, and the agent looks at them at every boot.

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::pci_config::{ConfigFile, DEVICES};
use super::{EntryKind, Root, SysError};

/// The list of functions.
#[derive(Debug)]
pub struct FunctionList<'r> {
    root: &'r Root,
    /// None where every path is asked of the root by itself: a capture, or one that is being taken.
    fd: Option<OwnedFd>,
}

impl<'r> FunctionList<'r> {
    /// Opens the list; `None` where there is no PCI.
    ///
    /// # Errors
    /// It is there and cannot be opened.
    pub fn open(root: &'r Root) -> Result<Option<Self>, SysError> {
        if root.by_path() {
            return Ok(root.stat(DEVICES)?.map(|_| Self { root, fd: None }));
        }
        match root.open_file(DEVICES, OFlags::RDONLY | OFlags::DIRECTORY, "list") {
            Ok(fd) => Ok(Some(Self { root, fd: Some(fd) })),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Where an entry leads, relative to `/sys`; `None` for a plain directory, and for a link that
    /// leads elsewhere.
    #[must_use]
    pub fn resolve(&self, name: &str) -> Option<String> {
        let Some(fd) = &self.fd else {
            let target = self.root.link(&format!("{DEVICES}/{name}")).ok()??;
            return below_sys(&target);
        };
        let target = rustix::fs::readlinkat(fd, name, Vec::new()).ok()?;
        below_sys(target.to_str().ok()?)
    }

    /// Opens a function's directory: `path` below `/sys` where that is known, else the entry.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn function(&self, name: &str, path: Option<&str>) -> Result<FunctionDir<'r>, SysError> {
        // The resolved path spares the kernel a walk through the link.
        let path = match path {
            Some(path) => format!("/sys/{path}"),
            None => format!("{DEVICES}/{name}"),
        };
        if self.fd.is_none() {
            let outside = self.root.outside(&path);
            let error = |errno: Errno| SysError::File {
                action: "open",
                path: outside.clone(),
                source: errno.into(),
            };
            return match self.root.stat(&path)? {
                Some(stat) if stat.kind == EntryKind::Dir => Ok(FunctionDir {
                    at: At::Path(self.root, path),
                    outside,
                }),
                Some(_) => Err(error(Errno::NOTDIR)),
                None => Err(error(Errno::NOENT)),
            };
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let fd = self.root.open_file(&path, flags, "open")?;
        Ok(FunctionDir {
            at: At::Fd(fd),
            outside: self.root.outside(&path),
        })
    }
}

/// One function's directory.
#[derive(Debug)]
pub struct FunctionDir<'r> {
    at: At<'r>,
    outside: PathBuf,
}

#[derive(Debug)]
enum At<'r> {
    Fd(OwnedFd),
    Path(&'r Root, String),
}

impl FunctionDir<'_> {
    fn open(&self, dir: &OwnedFd, name: &str) -> Result<OwnedFd, Errno> {
        // Attributes are files of this very directory (`name` is one component). A link in a
        // made-up root could lead anywhere, and is not followed.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        loop {
            match rustix::fs::openat(dir, name, flags, Mode::empty()) {
                Err(Errno::AGAIN | Errno::INTR) => {}
                result => return result,
            }
        }
    }

    /// Reads an attribute into `buffer`; `None` when it is not there or cannot be read. Attributes
    /// are one page at most, so more than 4096 bytes are cut.
    pub fn attribute<'b>(&self, name: &str, buffer: &'b mut [u8; 4096]) -> Option<&'b [u8]> {
        let dir = match &self.at {
            At::Fd(dir) => dir,
            At::Path(root, path) => {
                let path = format!("{path}/{name}");
                let stat = root.stat_link(&path).ok()??;
                let bytes = root
                    .read(&path)
                    .ok()
                    .filter(|_| stat.kind == EntryKind::File)?;
                let length = bytes.len().min(buffer.len());
                let place = buffer.get_mut(..length)?;
                place.copy_from_slice(bytes.get(..length)?);
                return Some(place);
            }
        };
        let fd = self.open(dir, name).ok()?;
        loop {
            return match rustix::io::read(&fd, &mut buffer[..]) {
                Ok(length) => buffer.get(..length),
                Err(Errno::INTR) => continue,
                Err(_) => None,
            };
        }
    }

    /// The last component of what a link beside the attributes points to: the driver's name, the
    /// number of the IOMMU group, the address of the physical function.
    #[must_use]
    pub fn link(&self, name: &str) -> Option<String> {
        let last = |target: &str| target.rsplit('/').next().map(str::to_owned);
        match &self.at {
            At::Fd(dir) => {
                let target = rustix::fs::readlinkat(dir, name, Vec::new()).ok()?;
                last(target.to_str().ok()?)
            }
            At::Path(root, path) => last(&root.link(&format!("{path}/{name}")).ok()??),
        }
    }

    /// Opens the configuration space for reading.
    ///
    /// # Errors
    /// It is not there, or may not be read.
    pub fn config(&self) -> Result<ConfigFile, SysError> {
        let outside = self.outside.join("config");
        let dir = match &self.at {
            At::Fd(dir) => dir,
            At::Path(root, path) => return root.config(&format!("{path}/config")),
        };
        match self.open(dir, "config") {
            Ok(fd) => ConfigFile::regular(fd, outside),
            Err(error) => Err(SysError::File {
                action: "open",
                path: outside,
                source: error.into(),
            }),
        }
    }
}

/// Where a link in `/sys/bus/pci/devices` leads, relative to `/sys`; `None` when that is outside.
fn below_sys(target: &str) -> Option<String> {
    let path = match target.strip_prefix("/sys/") {
        Some(rest) => rest.to_owned(),
        None if target.starts_with('/') => return None,
        None => format!("bus/pci/devices/{target}"),
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            _ => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_resolved_below_sys_only() {
        let path = "devices/pci0000:00/0000:00:01.0";
        assert_eq!(
            below_sys(&format!("../../../{path}")).as_deref(),
            Some(path)
        );
        assert_eq!(below_sys(&format!("/sys/{path}")).as_deref(), Some(path));
        assert_eq!(below_sys("../../../../etc"), None);
        assert_eq!(below_sys("/etc"), None);
    }
}
