//! The one list of events: their ids never change, so that whoever watches for one goes on finding it.

use crate::machine::State;

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A transaction entered a state.
    Entered(State),
    /// A required check that was not met ends a trial, or a change that needed none.
    CheckNotMet,
    /// ACS redirection came back on a port within a boot and was cleared again.
    AcsCameBack,
}

/// How loud, as syslog(3) counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Priority {
    /// 4: somebody should look.
    Warning = 4,
    /// 5: normal, and worth knowing.
    Notice = 5,
    /// 6: a step on the way.
    Info = 6,
}

impl Priority {
    /// Its word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Warning => "warning",
            Self::Notice => "notice",
            Self::Info => "info",
        }
    }
}

/// An event of the list.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// What happened.
    pub kind: Kind,
    /// `MESSAGE_ID`: 32 lower-case hexadecimal digits.
    pub id: &'static str,
    /// How loud it is.
    pub priority: Priority,
}

const fn entry(kind: Kind, id: &'static str, priority: Priority) -> Entry {
    Entry { kind, id, priority }
}

/// All of them. Nothing enters `IDLE`.
pub const EVENTS: [Entry; 13] = {
    use Kind::{AcsCameBack, CheckNotMet, Entered};
    use Priority::{Info, Notice, Warning};
    [
        entry(
            Entered(State::Staged),
            "c25e8ee9c9c04a0bbc445b3286bbf96f",
            Info,
        ),
        entry(
            Entered(State::RebootRequested),
            "d0aeef407d80427caeb601abc246df0d",
            Notice,
        ),
        entry(
            Entered(State::Granted),
            "2e4d28a0d9d34ecf8243f9027b2f6e1d",
            Notice,
        ),
        entry(
            Entered(State::Armed),
            "39decf2405a64eadb3fd9b9668ab4b11",
            Info,
        ),
        entry(
            Entered(State::TrialBooted),
            "e48f076682f24505a2665f890a7671b7",
            Notice,
        ),
        entry(
            Entered(State::Verified),
            "0a2d7a5dcc144a20bbb37818706a3eaf",
            Info,
        ),
        entry(
            Entered(State::Committing),
            "35c9155bba0e49258cc60ab6007951d3",
            Info,
        ),
        entry(
            Entered(State::Committed),
            "9882c250979e447ba70c3e16dc9e589a",
            Notice,
        ),
        entry(
            Entered(State::RollingBack),
            "e2e9601873744e998cfe0b49f2e17531",
            Warning,
        ),
        entry(
            Entered(State::RolledBack),
            "ad3edcc2d8af47be8fd817c9992405c0",
            Notice,
        ),
        entry(
            Entered(State::Quarantined),
            "1341271377dd400ba00e68e78b9953d1",
            Warning,
        ),
        entry(CheckNotMet, "b8700cc3f3304cba8966df86c5bf8d6d", Warning),
        entry(AcsCameBack, "54689babd75e4b25a0a56db8a6b75d5b", Warning),
    ]
};

/// The entry of what happened; none for a state that nothing enters.
#[must_use]
pub fn find(kind: Kind) -> Option<&'static Entry> {
    EVENTS.iter().find(|entry| entry.kind == kind)
}
