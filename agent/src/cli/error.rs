//! An error as the command line shows it: the text, its kind for machines, and the exit code.

use crate::sys::SysError;

use super::exit::Exit;

/// A command that could not be done.
#[derive(Debug)]
pub struct CliError {
    /// The exit code.
    pub exit: Exit,
    /// A stable word for machines.
    pub kind: &'static str,
    /// What was tried, why it failed.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

impl CliError {
    /// An error with its exit code.
    pub fn new(exit: Exit, kind: &'static str, message: impl Into<String>) -> Self {
        Self {
            exit,
            kind,
            message: message.into(),
            help: None,
        }
    }

    /// The same, with advice.
    #[must_use]
    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.help = Some(text.into());
        self
    }
}

impl From<crate::apply::EngineError> for CliError {
    fn from(e: crate::apply::EngineError) -> Self {
        use crate::apply::EngineError;
        match e {
            EngineError::Sys(e) => e.into(),
            EngineError::Journal(e) => e.into(),
            EngineError::State(e) => e.into(),
        }
    }
}

impl From<crate::journal::JournalError> for CliError {
    fn from(e: crate::journal::JournalError) -> Self {
        match e {
            crate::journal::JournalError::Sys(e) => e.into(),
            e => Self::new(Exit::Person, "journal", e.to_string())
                .help("the node boots its known-good entry; keep /var/lib/gdr-agent for a report, then move it away"),
        }
    }
}

impl From<crate::state::StateError> for CliError {
    fn from(e: crate::state::StateError) -> Self {
        match e {
            crate::state::StateError::Sys(e) => e.into(),
            e @ crate::state::StateError::Content { .. } => {
                Self::new(Exit::Person, "state", e.to_string())
            }
        }
    }
}

impl From<SysError> for CliError {
    fn from(e: SysError) -> Self {
        let exit = match &e {
            SysError::Refused { .. } => Exit::Unsafe,
            SysError::Locked { .. } => Exit::Person,
            SysError::File { .. } | SysError::Process { .. } => Exit::Internal,
        };
        let error = Self::new(exit, e.kind(), e.to_string());
        match e.kind() {
            "permission-denied" if !rustix::process::geteuid().is_root() => {
                error.help("run it as root: this command reads or writes what only root may")
            }
            "disk-full" => {
                error.help("free some space there and run the command again; nothing was changed")
            }
            "read-only" => {
                error.help("mount it writable and run the command again; nothing was changed")
            }
            _ => error,
        }
    }
}
