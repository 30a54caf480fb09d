//! What can happen to a transaction and what is to be done about it.

/// Something happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Live changes and the trial entry are there.
    Staged,
    /// They could not be made.
    StageFailed(String),
    /// A reboot is wanted: by a person, by policy, or again after a refusal.
    RebootWanted,
    /// The coordinator said yes, and the machine has not gone down yet.
    Granted,
    /// The coordinator said no.
    Denied(String),
    /// The machine is going down; `reboot` means through the firmware, so that GRUB runs.
    Shutdown {
        /// False for power-off, halt, kexec, soft-reboot and unknown.
        reboot: bool,
    },
    /// GRUB could not be told.
    ArmFailed(String),
    /// The granted shutdown did not happen: the same boot is still up and nothing is pending.
    StillUp,
    /// The machine booted, or the agent looks again in the same boot.
    Booted(Boot),
    /// Every required check is met.
    VerifyPassed,
    /// An image is made, and its policy commits without a trial: nothing can be verified in it.
    Baked,
    /// A required check is not met.
    VerifyFailed(String),
    /// The policy's deadline is over and nothing was verified.
    DeadlineOver,
    /// The commit begins.
    CommitStarted,
    /// Everything is permanent.
    CommitDone,
    /// Something could not be made permanent.
    CommitFailed(String),
    /// The pre-images are back; the files listed were changed by somebody else and left alone.
    Undone(Vec<String>),
    /// A pre-image could not be put back.
    UndoFailed(String),
    /// A person wants it undone.
    RollbackAsked,
}

/// Where the machine is, from boot id, marker and grubenv alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boot {
    /// `/proc/sys/kernel/random/boot_id`.
    pub boot_id: String,
    /// The marker in `/proc/cmdline`.
    pub marker: Marker,
    /// What GRUB left in grubenv.
    pub grub: GrubView,
}

/// The `gdr.txn=` argument of the running kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marker {
    /// Not there.
    None,
    /// This transaction's.
    Ours,
    /// Another transaction's.
    Foreign,
}

/// The two variables in grubenv, as they concern this transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrubView {
    /// `gdr_trial` still names it: GRUB's hook did not run.
    Armed,
    /// `gdr_taken` names it: GRUB disarmed it and went on to boot it.
    Taken,
    /// Neither does.
    Neither,
    /// grubenv could not be read.
    Unreadable,
}

/// Something is to be done. Each is idempotent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Make the live changes and write the trial entry; then `Staged` or `StageFailed`.
    Stage,
    /// Ask the coordinator; then `Granted` or `Denied`.
    AskReboot,
    /// Write the transaction's id into grubenv; then nothing or `ArmFailed`.
    Arm,
    /// Clear it from grubenv.
    Disarm,
    /// Run the policy's checks; then `VerifyPassed` or `VerifyFailed`.
    Verify,
    /// Say `CommitStarted`.
    BeginCommit,
    /// Make it permanent; then `CommitDone` or `CommitFailed`.
    Commit,
    /// Put the pre-images back; then `Undone` or `UndoFailed`.
    Undo,
    /// Reset the machine at once.
    ForceReboot,
    /// Write the digest into the quarantine list.
    Quarantine,
    /// Give the coordinator's lock back.
    Release,
}
