//! The QEMU process of a machine.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::image::scripts;
use super::monitor::Monitor;
use super::shell::Shell;
use super::{Error, Image};

/// A running QEMU. Dropping it kills it, as a power cut does.
#[derive(Debug)]
pub(crate) struct Qemu {
    child: Child,
    shell: Shell,
    socket: PathBuf,
    qmp: PathBuf,
}

impl Qemu {
    /// Starts `scripts/vm/qemu` with its logs in `dir` and connects to the shell's port before the guest opens it.
    pub(crate) fn start(image: &Image, dir: &Path, disk: &Path, ports: u32) -> Result<Self, Error> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        // Socket paths are limited to some hundred bytes, and a checkout may lie deep.
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("gdr-vm-{}-{count}.sock", std::process::id());
        let socket = std::env::temp_dir().join(name);
        let qmp = socket.with_extension("qmp");
        let log = dir.join("qemu.log");
        let errors = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&log)
            .map_err(Error::host("open", &log))?;
        let script = scripts().join("qemu");
        let child = Command::new(&script)
            .arg("--base")
            .arg(&image.base)
            .arg("--disk")
            .arg(disk)
            .arg("--serial")
            .arg(dir.join("serial.log"))
            .arg("--shell")
            .arg(&socket)
            .arg("--qmp")
            .arg(&qmp)
            .arg("--ports")
            .arg(ports.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(errors)
            .spawn()
            .map_err(Error::host("run", script))?;
        let mut child = Reaped(Some(child));
        let stream = connect(&socket, &mut child, &log)?;
        let child = child
            .0
            .take()
            .ok_or_else(|| ended("it was never started", &log))?;
        Ok(Self {
            child,
            shell: Shell::new(stream),
            socket,
            qmp,
        })
    }

    pub(crate) fn shell(&mut self) -> &mut Shell {
        &mut self.shell
    }

    pub(crate) fn monitor(&self) -> Result<Monitor, Error> {
        Monitor::connect(&self.qmp)
    }

    /// How it ended, if it did.
    pub(crate) fn ended(&mut self) -> Option<String> {
        self.child
            .try_wait()
            .ok()
            .flatten()
            .map(|status| status.to_string())
    }
}

impl Drop for Qemu {
    fn drop(&mut self) {
        // Both fail only when it is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.socket);
        let _ = std::fs::remove_file(&self.qmp);
    }
}

/// A child that is killed unless it is taken out.
struct Reaped(Option<Child>);

impl Drop for Reaped {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn ended(status: &str, log: &Path) -> Error {
    Error::Ended {
        status: status.to_owned(),
        log: log.to_owned(),
    }
}

/// Connects as soon as QEMU listens.
fn connect(socket: &Path, child: &mut Reaped, log: &Path) -> Result<UnixStream, Error> {
    let started = Instant::now();
    loop {
        match UnixStream::connect(socket) {
            Ok(stream) => return Ok(stream),
            Err(e) if started.elapsed() > Duration::from_secs(60) => {
                return Err(Error::host("connect to", socket)(e));
            }
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
        if let Some(status) = child.0.as_mut().and_then(|c| c.try_wait().ok().flatten()) {
            return Err(ended(&status.to_string(), log));
        }
    }
}
