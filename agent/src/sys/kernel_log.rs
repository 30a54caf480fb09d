//! The kernel log: `/dev/kmsg`, a record a read (Linux Documentation/ABI/testing/dev-kmsg).

use std::os::fd::OwnedFd;

use rustix::fs::{OFlags, SeekFrom};
use rustix::io::Errno;

use super::{Root, SysError};

const KMSG: &str = "/dev/kmsg";

/// More records than the largest log buffer holds: a log that grows as fast as it is read must end.
const MOST: usize = 1 << 17;

/// The log from some point on.
#[derive(Debug)]
pub struct KernelLog {
    fd: OwnedFd,
}

impl KernelLog {
    /// From now on.
    ///
    /// # Errors
    /// The root is not the running system, or the log may not be read.
    pub fn from_now(root: &Root) -> Result<Self, SysError> {
        let log = Self::open(root)?;
        rustix::fs::seek(&log.fd, SeekFrom::End(0))
            .map_err(|e| root.error("read the end of", KMSG, e))?;
        Ok(log)
    }

    fn open(root: &Root) -> Result<Self, SysError> {
        if !root.is_live() {
            return Err(SysError::Refused {
                action: "read",
                path: root.outside(KMSG),
                why: "it is a directory and not the running system".to_owned(),
            });
        }
        let fd = root.open_file(KMSG, OFlags::RDONLY | OFlags::NONBLOCK, "read")?;
        Ok(Self { fd })
    }

    /// The messages since, without their prefixes.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn lines(&self, root: &Root) -> Result<Vec<String>, SysError> {
        let mut lines = Vec::new();
        let mut buffer = [0; 8192];
        while lines.len() < MOST {
            match rustix::io::read(&self.fd, &mut buffer) {
                Ok(0) | Err(Errno::AGAIN) => break,
                Ok(length) => {
                    let record = String::from_utf8_lossy(buffer.get(..length).unwrap_or_default())
                        .into_owned();
                    lines.push(message(&record).to_owned());
                }
                // PIPE: records were overwritten meanwhile; the next read goes on behind them.
                Err(Errno::INTR | Errno::PIPE) => {}
                Err(e) => return Err(root.error("read", KMSG, e)),
            }
        }
        Ok(lines)
    }
}

/// All that the running kernel still has in memory. In a directory it is what `/dev/kmsg` holds there.
///
/// # Errors
/// It may not be read.
pub fn whole(root: &Root) -> Result<Option<Vec<String>>, SysError> {
    if root.is_live() {
        let lines = KernelLog::open(root).and_then(|log| log.lines(root));
        root.note_lines(KMSG, &lines);
        return match lines {
            Ok(lines) => Ok(Some(lines)),
            Err(e) if e.is_not_found() => Ok(None),
            Err(e) => Err(e),
        };
    }
    let text = root.text_if_there(KMSG)?;
    Ok(text.map(|text| text.lines().map(|line| message(line).to_owned()).collect()))
}

/// `PRIORITY,NUMBER,MICROSECONDS,FLAGS;MESSAGE`, then lines that begin with a blank.
fn message(record: &str) -> &str {
    let line = record.lines().next().unwrap_or_default();
    match line.split_once(';') {
        Some((head, message)) if head.bytes().next().is_some_and(|b| b.is_ascii_digit()) => message,
        _ => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_its_message() {
        let record = "6,3973,227996636,-;nvidia-peermem: loaded; done\n SUBSYSTEM=pci\n";
        assert_eq!(message(record), "nvidia-peermem: loaded; done");
        assert_eq!(message("[ 1.0] a; b"), "[ 1.0] a; b");
        assert_eq!(message(""), "");
    }
}
