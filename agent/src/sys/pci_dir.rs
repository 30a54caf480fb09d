//! The directories of PCI functions in sysfs, read with as few system calls as that takes: a big server
//! has thousands of functions, and the agent looks at them at every boot.

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::pci_config::{ConfigFile, DEVICES};
use super::{Root, SysError};

/// The list of functions.
#[derive(Debug)]
pub struct FunctionList<'r> {
    root: &'r Root,
    fd: OwnedFd,
}

impl<'r> FunctionList<'r> {
    /// Opens the list; `None` where there is no PCI.
    ///
    /// # Errors
    /// It is there and cannot be opened.
    pub fn open(root: &'r Root) -> Result<Option<Self>, SysError> {
        match root.open_file(DEVICES, OFlags::RDONLY | OFlags::DIRECTORY, "list") {
            Ok(fd) => Ok(Some(Self { root, fd })),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Where an entry leads, relative to `/sys`; `None` for a plain directory, and for a link that
    /// leads elsewhere.
    #[must_use]
    pub fn resolve(&self, name: &str) -> Option<String> {
        let target = rustix::fs::readlinkat(&self.fd, name, Vec::new()).ok()?;
        below_sys(target.to_str().ok()?)
    }

    /// Opens a function's directory: `path` below `/sys` where that is known, else the entry.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn function(&self, name: &str, path: Option<&str>) -> Result<FunctionDir, SysError> {
        // The resolved path spares the kernel a walk through the link.
        let path = match path {
            Some(path) => format!("/sys/{path}"),
            None => format!("{DEVICES}/{name}"),
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let fd = self.root.open_file(&path, flags, "open")?;
        Ok(FunctionDir {
            fd,
            outside: self.root.outside(&path),
        })
    }
}

/// One function's directory.
#[derive(Debug)]
pub struct FunctionDir {
    fd: OwnedFd,
    outside: PathBuf,
}

impl FunctionDir {
    fn open(&self, name: &str) -> Result<OwnedFd, Errno> {
        // Attributes are files of this very directory (`name` is one component). A link in a
        // made-up root could lead anywhere, and is not followed.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        loop {
            match rustix::fs::openat(&self.fd, name, flags, Mode::empty()) {
                Err(Errno::AGAIN | Errno::INTR) => {}
                result => return result,
            }
        }
    }

    /// Reads an attribute into `buffer`; `None` when it is not there or cannot be read. Attributes
    /// are one page at most, so more than 4096 bytes are cut.
    pub fn attribute<'b>(&self, name: &str, buffer: &'b mut [u8; 4096]) -> Option<&'b [u8]> {
        let fd = self.open(name).ok()?;
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
        let target = rustix::fs::readlinkat(&self.fd, name, Vec::new()).ok()?;
        target.to_str().ok()?.rsplit('/').next().map(str::to_owned)
    }

    /// Opens the configuration space for reading.
    ///
    /// # Errors
    /// It is not there, or may not be read.
    pub fn config(&self) -> Result<ConfigFile, SysError> {
        let outside = self.outside.join("config");
        match self.open("config") {
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
