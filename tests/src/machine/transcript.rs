//! A readable record of what was done to a machine and what it answered.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use super::{Error, Ran};

/// Lines kept of one command's output: a list of all files would bury the rest.
const LINES: usize = 120;

/// `transcript.log` of a machine.
#[derive(Debug)]
pub(crate) struct Transcript {
    file: File,
    started: Instant,
}

impl Transcript {
    pub(crate) fn new(path: &Path) -> Result<Self, Error> {
        let file = File::create(path).map_err(Error::host("create", path))?;
        Ok(Self {
            file,
            started: Instant::now(),
        })
    }

    /// One line about the machine itself.
    pub(crate) fn note(&mut self, text: &str) {
        let at = self.started.elapsed().as_secs_f32();
        self.write(&format!("[{at:7.1}] -- {text}\n"));
    }

    /// A command, its answer and how long it took.
    pub(crate) fn command(&mut self, command: &str, ran: &Ran, took: Duration) {
        let at = self.started.elapsed().as_secs_f32();
        let took = took.as_secs_f32();
        let Ran {
            status,
            stdout,
            stderr,
        } = ran;
        self.write(&format!("[{at:7.1}] $ {command}\n"));
        for line in stdout.lines().take(LINES) {
            self.write(&format!("          {line}\n"));
        }
        if let more @ 1.. = stdout.lines().skip(LINES).count() {
            self.write(&format!("          ... {more} lines more\n"));
        }
        for line in stderr.lines() {
            self.write(&format!("        ! {line}\n"));
        }
        self.write(&format!("          = {status} after {took:.1} s\n"));
    }

    fn write(&mut self, text: &str) {
        // The record is for people; a test does not fail for a full disk here.
        let _ = self.file.write_all(text.as_bytes());
    }
}
