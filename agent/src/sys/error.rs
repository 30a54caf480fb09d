//! One error type for everything that touches the machine: what was tried, where, why it failed.

use std::path::{Path, PathBuf};

use crate::nccl_log::harmless;

/// An operation on the machine that failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SysError {
    /// A file operation failed.
    #[error("cannot {action} {}: {source}", shown(path))]
    File {
        /// What was tried, as a verb phrase ("read", "write", "list").
        action: &'static str,
        /// The path as a person would type it, root directory included.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The operation was refused before it was tried.
    #[error("will not {action} {}: {why}", shown(path))]
    Refused {
        /// What was not done.
        action: &'static str,
        /// The path that it was for.
        path: PathBuf,
        /// Why it would be unsafe, and what to do.
        why: String,
    },
    /// A program could not be run, failed, or took too long.
    #[error("{program}: {why}")]
    Process {
        /// The command line that was run.
        program: String,
        /// How it failed, with the end of what it printed.
        why: String,
    },
    /// Another agent holds the lock.
    #[error("another gdr-agent is at work ({holder}); wait for it to end, or look at what it does")]
    Locked {
        /// Who holds it: pid and command, as written into the lock file.
        holder: String,
    },
}

/// The path in one line: a name may have a line break in it.
fn shown(path: &Path) -> String {
    harmless(path.as_os_str().as_encoded_bytes())
}

impl SysError {
    /// Whether the failure means that the file is not there.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::File { source, .. } if source.kind() == std::io::ErrorKind::NotFound)
    }

    /// The system's error number, where there is one.
    #[must_use]
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::File { source, .. } => source.raw_os_error(),
            _ => None,
        }
    }

    /// A word that machines can compare: the kind of failure.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::File { source, .. } => match source.kind() {
                std::io::ErrorKind::NotFound => "not-found",
                std::io::ErrorKind::PermissionDenied => "permission-denied",
                std::io::ErrorKind::StorageFull => "disk-full",
                std::io::ErrorKind::ReadOnlyFilesystem => "read-only",
                _ => "io",
            },
            Self::Refused { .. } => "refused",
            Self::Process { .. } => "process",
            Self::Locked { .. } => "locked",
        }
    }
}
