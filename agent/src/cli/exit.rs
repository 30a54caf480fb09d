//! Exit codes: they are an interface, and none changes its meaning.

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Done, nothing to do, or everything is met.
    Done = 0,
    /// An internal error, or the machine failed us.
    Internal = 1,
    /// The command line was wrong.
    Usage = 2,
    /// Changes are pending, or the node has drifted.
    Pending = 3,
    /// The policy is not valid.
    Policy = 4,
    /// Applying failed; everything was undone.
    Undone = 5,
    /// Verification failed; rolled back or rolling back.
    RolledBack = 6,
    /// A person has to decide.
    Person = 7,
    /// Staged; the reboot is outstanding.
    Outstanding = 8,
    /// Refused as unsafe.
    Unsafe = 9,
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
