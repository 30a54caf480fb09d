//! What can go wrong on the host's side of a machine.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// A machine that did not do what was asked, with the log to look into.
#[derive(thiserror::Error)]
pub enum Error {
    /// A file, socket or process of the host failed.
    #[error("cannot {what} {path}: {source}")]
    Host {
        /// What was tried, as a verb.
        what: &'static str,
        /// On which path.
        path: PathBuf,
        /// Why it failed.
        source: std::io::Error,
    },
    /// A script of `scripts/vm` ended with a failure.
    #[error("{script} failed: {stderr}")]
    Script {
        /// The script, with its arguments.
        script: String,
        /// The end of what it said.
        stderr: String,
    },
    /// QEMU is gone, and nobody pulled the plug.
    #[error("QEMU ended by itself ({status}), see {log}")]
    Ended {
        /// How it ended.
        status: String,
        /// The serial log.
        log: PathBuf,
    },
    /// What was waited for did not come.
    #[error("waited {} s for {what}, see {log}", waited.as_secs())]
    Timeout {
        /// What was waited for.
        what: String,
        /// How long.
        waited: Duration,
        /// The serial log.
        log: PathBuf,
    },
    /// The machine went down while it ran a command.
    #[error("the machine rebooted while it ran `{command}`, see {log}")]
    Rebooted {
        /// The command that got no answer.
        command: String,
        /// The serial log.
        log: PathBuf,
    },
    /// A command ended with another status than 0.
    #[error("`{command}` ended with status {status}: {stderr}")]
    Failed {
        /// The command.
        command: String,
        /// Its exit status.
        status: i32,
        /// Its standard error, and its standard output where that is empty.
        stderr: String,
    },
    /// The guest's shell said something that is not in its protocol.
    #[error("the guest's shell said {line:?}")]
    Protocol {
        /// The line.
        line: String,
    },
    /// The agent printed something else than the JSON object that it promises.
    #[error("`gdr-agent {verb}` printed no JSON object ({reason}): {stdout}")]
    Json {
        /// The arguments.
        verb: String,
        /// The parser's complaint.
        reason: String,
        /// What it printed.
        stdout: String,
    },
}

/// As `Display`: a test that returns an error is reported in this form.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error {
    pub(crate) fn host(
        what: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Host { what, path, source }
    }
}
