//! PCI configuration space of one function.
//!
//! Every write is a read-modify-write of one 16-bit register, read back afterwards; two bytes are
//! written and no more.

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;

use super::{Root, SysError};
use crate::pci::Bdf;

/// Where functions are listed.
pub const DEVICES: &str = "/sys/bus/pci/devices";

/// `SYSFS_MAGIC` of include/uapi/linux/magic.h.
const SYSFS: i64 = 0x6265_6572;

/// A register that could not be written, by what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The kernel refuses: lockdown.
    #[error("the kernel refuses to write {}: lockdown is in force", path.display())]
    Lockdown {
        /// The config file.
        path: PathBuf,
    },
    /// The function is gone, or another capability is where the register was.
    #[error("{}: the device is no longer there", path.display())]
    Vanished {
        /// The config file.
        path: PathBuf,
    },
    /// The file ends before the register.
    #[error("{} ends before byte {offset}", path.display())]
    Short {
        /// The config file.
        path: PathBuf,
        /// Offset of the register.
        offset: u16,
    },
    /// The register was written and reads otherwise.
    #[error("{}: wrote {wanted:#06x} at {offset:#05x} and read back {found:#06x}; the device does not take the value",
        path.display())]
    DidNotStick {
        /// The config file.
        path: PathBuf,
        /// Offset of the register.
        offset: u16,
        /// What was written.
        wanted: u16,
        /// What is there now.
        found: u16,
    },
    /// Anything else that the system says.
    #[error(transparent)]
    Sys(#[from] SysError),
}

impl ConfigError {
    /// A word that machines can compare.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Lockdown { .. } => "lockdown",
            Self::Vanished { .. } => "vanished",
            Self::Short { .. } => "short",
            Self::DidNotStick { .. } => "did-not-stick",
            Self::Sys(error) => error.kind(),
        }
    }
}

/// A register before and after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// What was there.
    pub old: u16,
    /// What was read back; equal to `old` when nothing had to be written.
    pub new: u16,
}

/// An open `config` file.
#[derive(Debug)]
pub struct ConfigFile {
    from: From,
    /// As the caller's file system names it.
    outside: PathBuf,
}

#[derive(Debug)]
enum From {
    Fd(OwnedFd),
    /// As a capture has it: its bytes, or the error of reading them.
    Bytes(Result<Vec<u8>, Errno>),
}

/// How changing a register can fail.
#[derive(Debug, PartialEq, Eq)]
enum Change<E> {
    Failed(E),
    Vanished,
    DidNotStick { wanted: u16, found: u16 },
}

/// Sets the bits of `mask` in a register that holds `old`, and reads it back.
fn change<E>(
    old: u16,
    mask: u16,
    value: u16,
    read: impl Fn() -> Result<u16, E>,
    write: impl FnOnce(u16) -> Result<(), E>,
) -> Result<Written, Change<E>> {
    let wanted = (old & !mask) | (value & mask);
    if wanted == old {
        return Ok(Written { old, new: old });
    }
    write(wanted).map_err(Change::Failed)?;
    let found = read().map_err(Change::Failed)?;
    // A device that fell off the bus takes every write and reads as all ones.
    if found == u16::MAX && wanted != u16::MAX {
        return Err(Change::Vanished);
    }
    if found & mask != wanted & mask {
        return Err(Change::DidNotStick { wanted, found });
    }
    Ok(Written { old, new: found })
}

impl ConfigFile {
    /// Opens a function's configuration space for writing.
    ///
    /// # Errors
    /// It is not there, or may not be written; on the running system also when it is not a file of
    /// sysfs.
    pub fn open_writable(root: &Root, bdf: Bdf) -> Result<Self, ConfigError> {
        let path = format!("{DEVICES}/{bdf}/config");
        let outside = root.outside(&path);
        let flags = OFlags::RDWR | OFlags::NONBLOCK;
        let fd = root.open_file(&path, flags, "open").map_err(|error| {
            if error.is_not_found() {
                ConfigError::Vanished {
                    path: outside.clone(),
                }
            } else {
                error.into()
            }
        })?;
        let file = Self::regular(fd, outside)?;
        let kind = rustix::fs::fstatfs(file.fd().map_err(|e| file.error("open", e))?)
            .map_err(|e| file.error("open", e))?;
        if root.is_live() && kind.f_type != SYSFS {
            let why = "it is not a file of sysfs".to_owned();
            return Err(SysError::Refused {
                action: "write",
                path: file.outside,
                why,
            }
            .into());
        }
        Ok(file)
    }

    /// Takes an open file after making sure that it is a regular one.
    pub(super) fn regular(fd: OwnedFd, outside: PathBuf) -> Result<Self, SysError> {
        let stat = rustix::fs::fstat(&fd);
        let file = Self {
            from: From::Fd(fd),
            outside,
        };
        let stat = stat.map_err(|e| file.error("open", e))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            let why = "it is not a regular file".to_owned();
            return Err(SysError::Refused {
                action: "read",
                path: file.outside,
                why,
            });
        }
        Ok(file)
    }

    /// What a capture has of one.
    pub(super) fn captured(bytes: Result<Vec<u8>, Errno>, outside: PathBuf) -> Self {
        Self {
            from: From::Bytes(bytes),
            outside,
        }
    }

    fn fd(&self) -> Result<&OwnedFd, Errno> {
        match &self.from {
            From::Fd(fd) => Ok(fd),
            From::Bytes(_) => Err(Errno::ROFS),
        }
    }

    fn error(&self, action: &'static str, source: Errno) -> SysError {
        SysError::File {
            action,
            path: self.outside.clone(),
            source: source.into(),
        }
    }

    /// The little-endian dword at `offset`; `None` past the end of the file.
    ///
    /// # Errors
    /// The read failed.
    pub fn dword(&self, offset: u16) -> Result<Option<u32>, SysError> {
        let mut bytes = [0; 4];
        Ok(self
            .read(offset, &mut bytes)?
            .then(|| u32::from_le_bytes(bytes)))
    }

    fn word(&self, offset: u16) -> Result<Option<u16>, SysError> {
        let mut bytes = [0; 2];
        Ok(self
            .read(offset, &mut bytes)?
            .then(|| u16::from_le_bytes(bytes)))
    }

    /// Fills `bytes`, or says that the file ends before that.
    fn read(&self, offset: u16, bytes: &mut [u8]) -> Result<bool, SysError> {
        let fd = match &self.from {
            From::Fd(fd) => fd,
            From::Bytes(Ok(all)) => {
                let part = all
                    .get(usize::from(offset)..)
                    .and_then(|rest| rest.get(..bytes.len()));
                if let Some(part) = part {
                    bytes.copy_from_slice(part);
                }
                return Ok(part.is_some());
            }
            From::Bytes(Err(errno)) => return Err(self.error("read", *errno)),
        };
        loop {
            return match rustix::io::pread(fd, &mut *bytes, u64::from(offset)) {
                Ok(got) => Ok(got == bytes.len()),
                Err(Errno::INTR) => continue,
                Err(error) => Err(self.error("read", error)),
            };
        }
    }

    /// Sets the bits of `mask` to those of `value` in a register of an extended capability: the
    /// 16 bits `register` bytes into the capability at `offset`, which must have the id
    /// `capability` there now. Nothing is written when the bits are as they should be.
    ///
    /// # Errors
    /// [`ConfigError`]; after `DidNotStick` the register holds what the error says.
    pub fn set_bits(
        &self,
        (capability, offset, register): (u16, u16, u16),
        mask: u16,
        value: u16,
    ) -> Result<Written, ConfigError> {
        let at = offset.saturating_add(register);
        let short = || ConfigError::Short {
            path: self.outside.clone(),
            offset: at,
        };
        let header = self.dword(offset)?.ok_or_else(short)?;
        let old = self.word(at)?.ok_or_else(short)?;
        if header & 0xffff != u32::from(capability) || (header == u32::MAX && old == u16::MAX) {
            return Err(ConfigError::Vanished {
                path: self.outside.clone(),
            });
        }
        let read = || self.word(at)?.ok_or_else(short);
        change(old, mask, value, read, |word| self.write(at, word)).map_err(|error| match error {
            Change::Failed(error) => error,
            Change::Vanished => ConfigError::Vanished {
                path: self.outside.clone(),
            },
            Change::DidNotStick { wanted, found } => ConfigError::DidNotStick {
                path: self.outside.clone(),
                offset: at,
                wanted,
                found,
            },
        })
    }

    fn write(&self, offset: u16, value: u16) -> Result<(), ConfigError> {
        let fd = self.fd().map_err(|e| self.error("write", e))?;
        loop {
            // An aligned write of two bytes is one word access to the device
            // (pci_write_config() in drivers/pci/pci-sysfs.c).
            match rustix::io::pwrite(fd, &value.to_le_bytes(), u64::from(offset)) {
                Ok(2) => return Ok(()),
                Ok(_) => {
                    return Err(ConfigError::Short {
                        path: self.outside.clone(),
                        offset,
                    });
                }
                Err(Errno::INTR) => {}
                // The file was opened for writing, so this is not about permission bits.
                Err(Errno::PERM) => {
                    return Err(ConfigError::Lockdown {
                        path: self.outside.clone(),
                    });
                }
                Err(Errno::NODEV | Errno::NXIO) => {
                    return Err(ConfigError::Vanished {
                        path: self.outside.clone(),
                    });
                }
                Err(error) => return Err(self.error("write", error).into()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// A register that takes a write as `take(old, written)` says.
    fn device(old: u16, take: impl Fn(u16, u16) -> u16) -> Result<Written, Change<()>> {
        let register = Cell::new(old);
        change(
            old,
            0x2c,
            0,
            || Ok(register.get()),
            |word| {
                register.set(take(register.get(), word));
                Ok(())
            },
        )
    }

    #[test]
    fn what_the_device_does_with_the_write_is_what_counts() {
        assert_eq!(
            device(0x1d, |_, word| word),
            Ok(Written {
                old: 0x1d,
                new: 0x11
            })
        );
        let ignored = Change::DidNotStick {
            wanted: 0x11,
            found: 0x1d,
        };
        assert_eq!(device(0x1d, |old, _| old), Err(ignored));
        let half = Change::DidNotStick {
            wanted: 0x11,
            found: 0x15,
        };
        assert_eq!(device(0x1d, |_, word| word | 0x04), Err(half));
        assert_eq!(device(0x1d, |_, _| 0xffff), Err(Change::Vanished));
        // Bits outside the mask may change under our hands: they were not asked for.
        assert_eq!(
            device(0x1d, |_, word| word | 0x40),
            Ok(Written {
                old: 0x1d,
                new: 0x51
            })
        );
    }

    #[test]
    fn nothing_is_written_when_the_bits_are_as_they_should_be() {
        let unused = |_| -> Result<(), &str> { Err("written") };
        let same = change(0x11, 0x2c, 0, || Ok(0), unused);
        assert_eq!(
            same,
            Ok(Written {
                old: 0x11,
                new: 0x11
            })
        );
    }
}
