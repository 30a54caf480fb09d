//! A message bus of the test's own.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use gdr_agent::reboot::Bus;

/// It ends with the value.
pub struct Daemon {
    pub child: Child,
    pub address: String,
    _dir: tempfile::TempDir,
}

impl Daemon {
    /// None, with a word about it, where `dbus-daemon` is not installed.
    pub fn start() -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("bus");
        let mut child = match Command::new("dbus-daemon")
            .args(["--session", "--nofork", "--nopidfile", "--print-address=1"])
            .arg(format!("--address=unix:path={}", socket.display()))
            .stdout(Stdio::piped())
            .spawn()
        {
            Ok(child) => child,
            Err(e) => {
                println!("SKIPPED: dbus-daemon cannot be started ({e}); install the package dbus");
                return None;
            }
        };
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        Some(Self {
            child,
            address: line.trim().to_owned(),
            _dir: dir,
        })
    }

    pub fn bus(&self) -> Bus {
        Bus::at(&self.address).with_limit(Duration::from_secs(20))
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
