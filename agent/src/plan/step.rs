//! A step as data.

use schemars::JsonSchema;
use serde::Serialize;

use crate::package::Install;

/// When a step acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Now, in the running system.
    Live,
    /// In the one boot that tries the new command line.
    Trial,
    /// When it is made permanent.
    Commit,
    /// Again at each boot, since it is volatile.
    EveryBoot,
}

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Step {
    /// A stable name.
    pub id: String,
    /// Which executor does it.
    pub kind: String,
    /// What it does, for people.
    pub summary: String,
    /// The file that it changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The change, as a unified diff or, for registers, a line each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// When it acts.
    pub phase: Phase,
    /// How it is taken back.
    pub undo: String,
    /// What the executor does.
    #[serde(skip)]
    #[schemars(skip)]
    pub action: Action,
}

/// What an executor does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Write a file, or remove it.
    Write {
        /// The file.
        path: String,
        /// Its new bytes; `None` removes it.
        bytes: Option<Vec<u8>>,
        /// Whether GRUB reads it, without replaying the file system's journal.
        boot: bool,
    },
    /// Set a variable in grubenv, in place.
    SetEnv {
        /// Its name.
        name: String,
        /// Its new value.
        value: String,
    },
    /// Check that the menu, as it is now, boots by default what was tried.
    CheckMenu,
    /// Install packages.
    Install(Install),
    /// Load a module.
    LoadModule(String),
    /// Unload one that nothing uses and that is in the way.
    UnloadModule(String),
    /// Write the hook and the trial entry, and reserve room in grubenv.
    TrialEntry,
    /// Regenerate GRUB's menu.
    Menu,
    /// Clear ACS redirect bits on the ports that the clear plan names.
    ClearAcs,
    /// Remember the policy.
    Record,
}

/// Why nothing is done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Refusal {
    /// A stable name.
    pub id: String,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub fix: String,
    /// Whether a person has to decide, rather than that it is unsafe.
    #[serde(skip)]
    #[schemars(skip)]
    pub person: bool,
}

impl Refusal {
    /// A refusal because it would be unsafe.
    pub(super) fn new(id: &str, message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            id: id.to_owned(),
            message: message.into(),
            fix: fix.into(),
            person: false,
        }
    }
}
