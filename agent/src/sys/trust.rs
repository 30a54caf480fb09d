//! Where a write really goes: a walk from the root that follows links by hand and refuses any
//! directory or link that somebody other than root (or the running user) could change.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, FileType, Mode, OFlags};

use super::{Root, SysError, disk};

/// As many links as the kernel follows in one path (`MAXSYMLINKS`).
const MAX_LINKS: usize = 40;

/// A directory, held open, and the name in it that a path finally means.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) dir: OwnedFd,
    pub(super) name: String,
}

/// Finds the place of `path`, making missing directories (mode 0755) when `make_dirs` is set.
pub(super) fn place(root: &Root, path: &str, make_dirs: bool) -> Result<Place, SysError> {
    let mut todo: VecDeque<String> = components(path);
    let mut stack: Vec<OwnedFd> = vec![open_dir(root, path, root.fd(), ".")?];
    let mut links = 0;
    let refuse = |why: String| SysError::Refused {
        action: "write",
        path: root.outside(path),
        why,
    };
    while let Some(name) = todo.pop_front() {
        let here = stack
            .last()
            .ok_or_else(|| refuse("it leads out of the root".to_owned()))?;
        if name == ".." {
            if stack.len() > 1 {
                stack.pop();
            }
            continue;
        }
        trusted_dir(here)
            .map_err(|why| refuse(format!("the directory that holds `{name}` {why}")))?;
        let stat = match rustix::fs::statat(here, name.as_str(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Some(stat),
            Err(rustix::io::Errno::NOENT) => None,
            Err(e) => return Err(root.error("look at", path, e)),
        };
        let kind = stat.as_ref().map(|s| FileType::from_raw_mode(s.st_mode));
        match kind {
            Some(FileType::Symlink) => {
                links += 1;
                let owner = stat.as_ref().map_or(u32::MAX, |s| s.st_uid);
                if links > MAX_LINKS {
                    return Err(refuse("it goes through too many links".to_owned()));
                }
                if !trusted_owner(owner) {
                    return Err(refuse(format!(
                        "`{name}` is a link that belongs to user {owner}"
                    )));
                }
                let target = rustix::fs::readlinkat(here, name.as_str(), Vec::new())
                    .map_err(|e| root.error("read the link", path, e))?;
                let target = target
                    .to_str()
                    .map_err(|_| refuse(format!("the link `{name}` is not UTF-8")))?;
                if target.starts_with('/') {
                    stack.truncate(1);
                }
                for part in components(target).into_iter().rev() {
                    todo.push_front(part);
                }
            }
            _ if todo.is_empty() => {
                let dir = stack
                    .pop()
                    .ok_or_else(|| refuse("it leads out of the root".to_owned()))?;
                return Ok(Place { dir, name });
            }
            Some(FileType::Directory) => {
                let next = open_dir(root, path, here, &name)?;
                stack.push(next);
            }
            None if make_dirs => {
                disk::make_dir(root, here, &name, 0o755)
                    .map_err(|e| root.error("make a directory for", path, e))?;
                disk::sync_dir(root, here)
                    .map_err(|e| root.error("make durable the directory of", path, e))?;
                let next = open_dir(root, path, here, &name)?;
                stack.push(next);
            }
            None => {
                return Err(root.error("open the directory of", path, rustix::io::Errno::NOENT));
            }
            Some(_) => {
                return Err(root.error("open the directory of", path, rustix::io::Errno::NOTDIR));
            }
        }
    }
    Err(refuse("it names a directory".to_owned()))
}

fn components(path: &str) -> VecDeque<String> {
    path.split('/')
        .filter(|c| !c.is_empty() && *c != ".")
        .map(str::to_owned)
        .collect()
}

fn open_dir(
    root: &Root,
    path: &str,
    dir: impl std::os::fd::AsFd,
    name: &str,
) -> Result<OwnedFd, SysError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(dir, name, flags, Mode::empty())
        .map_err(|e| root.error("open the directory of", path, e))
}

fn trusted_owner(uid: u32) -> bool {
    uid == 0 || uid == rustix::process::geteuid().as_raw()
}

fn trusted_dir(dir: &OwnedFd) -> Result<(), String> {
    let stat = rustix::fs::fstat(dir).map_err(|e| format!("cannot be looked at: {e}"))?;
    if !trusted_owner(stat.st_uid) {
        return Err(format!(
            "belongs to user {}; give it to root first",
            stat.st_uid
        ));
    }
    // Group or world may write: somebody else could swap the name between our steps.
    if stat.st_mode & 0o022 != 0 {
        return Err(format!(
            "is writable by others (mode {:o}); chmod go-w it first",
            stat.st_mode & 0o7777
        ));
    }
    Ok(())
}
