//! Freezing and thawing a file system, so that what GRUB must read is on the disk outside the journal.
//!
//! GRUB reads file systems without replaying their journal: a file that was renamed into place
//! and synced is invisible to it until the journal is written back. Freezing does that. Dying
//! between freeze and thaw would stop the machine, so a guard process holds the other end of a
//! pipe: when this process ends in whatever way, the guard thaws.
#![allow(unsafe_code)]

use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::ioctl::{IntegerSetter, Opcode, opcode};

use super::{Root, SysError, clock, disk};

/// `FIFREEZE` and `FITHAW` (include/uapi/linux/fs.h).
const FIFREEZE: Opcode = opcode::read_write::<std::ffi::c_int>(b'X', 119);
const FITHAW: Opcode = opcode::read_write::<std::ffi::c_int>(b'X', 120);

/// Longer than any freeze of ours lasts.
const GUARD_TIME: Duration = Duration::from_secs(30);

fn freeze(fd: &impl AsFd) -> rustix::io::Result<()> {
    // SAFETY: both opcodes take an integer that the kernel ignores; no memory is passed.
    unsafe { rustix::ioctl::ioctl(fd, IntegerSetter::<FIFREEZE>::new_usize(0)) }
}

fn thaw(fd: &impl AsFd) -> rustix::io::Result<()> {
    // SAFETY: as above.
    unsafe { rustix::ioctl::ioctl(fd, IntegerSetter::<FITHAW>::new_usize(0)) }
}

/// Brings everything under a directory's file system to where GRUB can read it.
///
/// On the running system the file system is frozen and thawed; where it cannot be (FAT, a
/// container, somebody else froze it), for another root or in a chroot, whose file system is the
/// builder's, it is synced. Returns whether it was frozen.
///
/// # Errors
/// The directory cannot be opened, or the sync failed.
pub fn settle(root: &Root, dir: &str) -> Result<bool, SysError> {
    let fd = root.open_file(dir, OFlags::RDONLY | OFlags::DIRECTORY, "open")?;
    disk::sync_all(root, &fd).map_err(|e| root.error("sync the file system of", dir, e))?;
    if !root.is_booted() {
        return Ok(false);
    }
    let Some(guard) = Guard::start(&root.outside(dir).to_string_lossy()) else {
        tracing::warn!(
            "no guard process could be started: the file system of {dir} was synced, not frozen"
        );
        return Ok(false);
    };
    let frozen = freeze(&fd);
    if frozen.is_ok() {
        let mut thawed = thaw(&fd);
        // EINVAL: the guard, or a person, was faster.
        while !matches!(thawed, Ok(()) | Err(rustix::io::Errno::INVAL)) {
            clock::sleep(Duration::from_millis(10));
            thawed = thaw(&fd);
        }
    }
    guard.end();
    match frozen {
        Ok(()) => Ok(true),
        Err(e) => {
            tracing::info!("the file system of {dir} was synced, not frozen: {e}");
            Ok(false)
        }
    }
}

/// The process that thaws when this one dies.
struct Guard {
    child: Child,
}

impl Guard {
    fn start(dir: &str) -> Option<Self> {
        let program = std::env::current_exe().ok()?;
        // Another program that links this library has no such verb.
        if program.file_name()? != "gdr-agent" {
            return None;
        }
        let mut child = Command::new(program)
            .args(["boot", "thaw-guard", dir])
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let mut ready = [0; 1];
        let told = child
            .stdout
            .take()
            .is_some_and(|mut out| out.read_exact(&mut ready).is_ok());
        let guard = Self { child };
        if told {
            Some(guard)
        } else {
            guard.end();
            None
        }
    }

    /// There is nothing to thaw any more: from here on a freeze is somebody else's.
    fn end(mut self) {
        if let Some(mut stdin) = self.child.stdin.take() {
            let _ = stdin.write_all(b"x");
        }
        let _ = self.child.wait();
    }
}

unsafe extern "C" {
    /// signal(2), of the C library that `std` is linked with.
    fn signal(number: std::ffi::c_int, handler: usize) -> usize;
}

/// systemd ends a unit by a signal to each of its processes, and a closed terminal does the same: the guard has to outlive the one
/// that it guards.
fn ignore_signals() {
    const SIG_IGN: usize = 1;
    // SIGHUP, SIGINT and SIGTERM (signal(7)), the same numbers on every architecture.
    for number in [1, 2, 15] {
        // SAFETY: the numbers are valid, and SIG_IGN is no address: no code of this process ever runs for the signal.
        unsafe {
            signal(number, SIG_IGN);
        }
    }
}

/// The guard's own work: say ready, wait for a byte, which ends it, or for the end of standard input, and thaw then. Thaws after
/// 30 seconds too, and goes on waiting: a freeze that took so long to begin may still succeed.
///
/// # Errors
/// The directory cannot be opened; nothing has been frozen then, since the parent waits for ready.
pub fn guard(dir: &str) -> std::io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let fd: OwnedFd = rustix::fs::open(dir, flags, Mode::empty())?;
    ignore_signals();
    // A signal for the whole group (a shutdown, a closed terminal) must not end the guard first.
    rustix::process::setsid().ok();
    rustix::io::write(rustix::stdio::stdout(), b"r")?;
    let stdin = rustix::stdio::stdin();
    loop {
        let mut poll = [rustix::event::PollFd::new(
            &stdin,
            rustix::event::PollFlags::IN,
        )];
        let timeout = rustix::event::Timespec::try_from(GUARD_TIME).ok();
        match rustix::event::poll(&mut poll, timeout.as_ref()) {
            Err(rustix::io::Errno::INTR) => {}
            // The time is over: the parent hangs, or has not come to its freeze yet.
            Ok(0) => {
                let _ = thaw(&fd);
            }
            Ok(_) => match rustix::io::read(stdin, &mut [0; 1]) {
                Ok(1) => return Ok(()),
                Err(rustix::io::Errno::INTR) => {}
                _ => break,
            },
            Err(_) => break,
        }
    }
    match thaw(&fd) {
        Ok(()) | Err(rustix::io::Errno::INVAL) => Ok(()),
        Err(e) => Err(e.into()),
    }
}
