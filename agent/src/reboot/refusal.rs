//! Why a reboot was not granted, by kind, each with what to do about it.

use std::fmt;

/// A no, or no answer. `Display` is for people and says what to do; [`Refusal::kind`] is for
/// machines.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Somebody holds the machine up, or nobody is there to grant a reboot.
    #[error("reboot denied: {text}{}", Held(by))]
    Denied {
        /// Who holds it up; empty when it is not about inhibitors.
        by: Vec<Holder>,
        /// The reason and the remedy.
        text: String,
    },
    /// A shutdown of some kind is under way already.
    #[error("reboot not asked for: {text}")]
    Busy {
        /// The reason and the remedy.
        text: String,
    },
    /// A gate of the policy is closed, so that nobody was asked.
    #[error("reboot held back by {gate}: {text}")]
    Gate {
        /// Which one.
        gate: &'static str,
        /// Why.
        text: String,
    },
    /// The coordinator could not be reached, or did not answer in time.
    #[error("reboot coordinator out of reach: {text}")]
    Unreachable {
        /// The reason and the remedy.
        text: String,
    },
    /// This process may not reboot this machine.
    #[error("reboot not permitted: {text}")]
    NotPermitted {
        /// The reason and the remedy.
        text: String,
    },
    /// The coordinator said something that it should not say.
    #[error("reboot coordinator answered strangely: {text}")]
    Protocol {
        /// What was asked, and what came back.
        text: String,
    },
    /// The grant could not be recorded before the machine would have gone down.
    #[error("reboot could not be recorded: {text}; {reboot}")]
    Record {
        /// Why not.
        text: String,
        /// What became of the reboot.
        reboot: Fate,
    },
}

impl Refusal {
    /// The kind, for machines.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Self::Denied { .. } => Kind::Denied,
            Self::Busy { .. } => Kind::Busy,
            Self::Gate { .. } => Kind::Gate,
            Self::Unreachable { .. } => Kind::Unreachable,
            Self::NotPermitted { .. } => Kind::NotPermitted,
            Self::Protocol { .. } => Kind::Protocol,
            Self::Record { .. } => Kind::Record,
        }
    }

    /// The reason and the remedy, without what was asked for.
    #[must_use]
    pub fn reason(&self) -> &str {
        match self {
            Self::Denied { text, .. }
            | Self::Busy { text }
            | Self::Gate { text, .. }
            | Self::Unreachable { text }
            | Self::NotPermitted { text }
            | Self::Protocol { text }
            | Self::Record { text, .. } => text,
        }
    }

    /// Who holds the machine up, if that is why.
    #[must_use]
    pub fn holders(&self) -> &[Holder] {
        match self {
            Self::Denied { by, .. } => by,
            _ => &[],
        }
    }

    pub(crate) fn denied(text: impl Into<String>) -> Self {
        Self::Denied {
            by: Vec::new(),
            text: text.into(),
        }
    }
}

/// The kinds of [`Refusal`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Held up; ask again later.
    Denied,
    /// A shutdown is under way.
    Busy,
    /// A gate is closed.
    Gate,
    /// No coordinator, or no answer.
    Unreachable,
    /// Not allowed.
    NotPermitted,
    /// A strange answer.
    Protocol,
    /// The grant could not be recorded.
    Record,
}

impl Kind {
    /// The word for JSON and metrics; stays the same for ever.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Denied => "denied",
            Self::Busy => "busy",
            Self::Gate => "gate",
            Self::Unreachable => "unreachable",
            Self::NotPermitted => "not-permitted",
            Self::Protocol => "protocol",
            Self::Record => "record",
        }
    }
}

/// What became of a reboot that was granted but not recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It was never asked for.
    NotAsked,
    /// It was called back and the coordinator confirms that none is under way.
    CalledBack,
    /// It cannot be called back and will happen.
    GoesOn,
    /// The coordinator no longer says.
    Unknown,
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotAsked => "no reboot was asked for",
            Self::CalledBack => "the reboot was called back",
            Self::GoesOn => {
                "the reboot cannot be called back on this systemd (before 257) and will happen, without a recorded grant"
            }
            Self::Unknown => {
                "whether the reboot was called back is not known; `systemctl list-jobs` shows what is under way"
            }
        })
    }
}

/// One inhibitor lock that holds up a shutdown, as its holder describes itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The program's name for itself.
    pub who: String,
    /// Its reason.
    pub why: String,
    /// What it holds up: words joined by colons, such as `shutdown:sleep`.
    pub what: String,
    /// `block` or `block-weak`.
    pub mode: String,
    /// The user id of the holder.
    pub uid: u32,
    /// The process id of the holder.
    pub pid: u32,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} (pid {}, uid {}, {} of {}): {}",
            self.who, self.pid, self.uid, self.mode, self.what, self.why
        )
    }
}

struct Held<'a>(&'a [Holder]);

impl fmt::Display for Held<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|holder| write!(f, "\n  held by {holder}"))
    }
}

/// Text from another process, made safe for one line of a terminal or log: no control characters,
/// a bounded length.
pub(super) fn one_line(text: &str) -> String {
    const LONGEST: usize = 200;
    let mut line: String = text
        .chars()
        .take(LONGEST)
        .map(|c| {
            if nccl_log_parser::is_command(c) {
                ' '
            } else {
                c
            }
        })
        .collect();
    if text.chars().nth(LONGEST).is_some() {
        line.push('…');
    }
    line
}
