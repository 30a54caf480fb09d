//! What is remembered about a transaction.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where a transaction stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum State {
    /// There is no transaction.
    Idle,
    /// Its undo is durable; the changes that need no reboot and the trial entry are being made or are there.
    Staged,
    /// A reboot is wanted; nobody has said yes.
    RebootRequested,
    /// The coordinator said yes; the machine is about to go down.
    Granted,
    /// GRUB was told to boot the trial entry once.
    Armed,
    /// The trial's command line is running.
    TrialBooted,
    /// Every required check was met on the trial's command line.
    Verified,
    /// The change is being made permanent; from here it only rolls forward.
    Committing,
    /// Permanent.
    Committed,
    /// Being undone.
    RollingBack,
    /// Undone; the policy may be tried again.
    RolledBack,
    /// Undone, and this policy is not tried again by itself.
    Quarantined,
}

impl State {
    /// Whether nothing more happens by itself.
    #[must_use]
    pub fn is_final(self) -> bool {
        matches!(
            self,
            Self::Idle | Self::Committed | Self::RolledBack | Self::Quarantined
        )
    }

    /// The name that JSON and people see.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Idle => "IDLE",
            Self::Staged => "STAGED",
            Self::RebootRequested => "REBOOT_REQUESTED",
            Self::Granted => "GRANTED",
            Self::Armed => "ARMED",
            Self::TrialBooted => "TRIAL_BOOTED",
            Self::Verified => "VERIFIED",
            Self::Committing => "COMMITTING",
            Self::Committed => "COMMITTED",
            Self::RollingBack => "ROLLING_BACK",
            Self::RolledBack => "ROLLED_BACK",
            Self::Quarantined => "QUARANTINED",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Names a transaction: 16 lower-case hexadecimal digits, so that grubenv values keep their width.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct TxnId(String);

impl TxnId {
    /// The value that stands for "none" in grubenv.
    pub const NONE: &'static str = "0000000000000000";

    /// Number `seq` with random bits behind it: names sort in the order of the transactions.
    #[must_use]
    pub fn new(seq: u32, random: [u8; 4]) -> Self {
        // An id of zeros would read as "not armed".
        Self(format!(
            "{:08x}{:08x}",
            seq.max(1),
            u32::from_be_bytes(random)
        ))
    }

    /// The transaction's number.
    #[must_use]
    pub fn seq(&self) -> u32 {
        self.0
            .get(..8)
            .and_then(|s| u32::from_str_radix(s, 16).ok())
            .unwrap_or(u32::MAX)
    }

    /// The sixteen digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TxnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for TxnId {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        let hex = s
            .bytes()
            .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        if s.len() == 16 && hex && s != Self::NONE {
            Ok(Self(s.to_owned()))
        } else {
            Err(format!(
                "`{}` is not a transaction id (16 hexadecimal digits, not all zero)",
                s.escape_debug()
            ))
        }
    }
}

impl TryFrom<String> for TxnId {
    type Error = String;

    fn try_from(s: String) -> Result<Self, String> {
        s.parse()
    }
}

impl From<TxnId> for String {
    fn from(id: TxnId) -> Self {
        id.0
    }
}

/// How many reboots the transaction's policy may cause before it waits for a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Whether the agent may ask for reboots by itself: by policy, or because a person said `--reboot`.
    pub allowed: bool,
    /// Granted so far.
    pub used: u32,
    /// The most that may be granted.
    pub max: u32,
}

impl Budget {
    /// Whether one more reboot may be asked for.
    #[must_use]
    pub fn open(self) -> bool {
        self.allowed && self.used < self.max
    }
}

/// Why a transaction is rolled back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FailureKind {
    /// A change before the trial could not be made.
    Apply,
    /// The machine went down while the changes were being made.
    Interrupted,
    /// GRUB took the trial, and it never came up far enough to be seen: panic, hang or power cut.
    Died,
    /// GRUB could not record that it took the trial, so it booted the known-good entry.
    Refused,
    /// GRUB did not look at the trial at all, twice.
    NotTaken,
    /// A required check was not met.
    Verify,
    /// The trial was not healthy before the policy's deadline.
    TooLate,
    /// The trial booted, and the machine went down before it was verified.
    Unproven,
    /// Making the change permanent failed.
    Commit,
    /// A person asked for it.
    Asked,
}

impl FailureKind {
    /// Whether the policy is not tried again by itself: its one trial was used.
    #[must_use]
    pub fn quarantines(self) -> bool {
        match self {
            Self::Died
            | Self::Refused
            | Self::NotTaken
            | Self::Verify
            | Self::TooLate
            | Self::Unproven => true,
            Self::Apply | Self::Interrupted | Self::Commit | Self::Asked => false,
        }
    }
}

/// Why a transaction is rolled back, in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// The kind.
    pub kind: FailureKind,
    /// What happened, for people.
    pub text: String,
}

/// What the machine remembers; what the executors need lies beside it in the journal's records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Txn {
    /// Its name.
    pub id: TxnId,
    /// Where it stands.
    pub state: State,
    /// The policy's digest.
    pub digest: String,
    /// The boot in which `state` was entered.
    pub boot_id: String,
    /// Whether it needs a trial boot.
    pub trial: bool,
    /// Whether the changes of the stage are all there.
    pub ready: bool,
    /// Whether the command line that runs is one that this transaction is taking back.
    pub on_trial: bool,
    /// Whether a reboot was granted in this boot and has not happened yet.
    pub granted: bool,
    /// Reboots.
    pub budget: Budget,
    /// How often an armed trial was not taken.
    pub not_taken: u32,
    /// Why it is rolled back.
    pub failure: Option<Failure>,
    /// What the coordinator last said against a reboot.
    pub denial: Option<String>,
    /// Files that somebody else changed since, which were left alone, with what to do.
    pub conflicts: Vec<String>,
}

impl Txn {
    /// Whether a reboot was granted in the boot of this id and has not happened yet.
    #[must_use]
    pub fn awaits_reboot(&self, boot_id: &str) -> bool {
        self.granted && self.boot_id == boot_id
    }
}
