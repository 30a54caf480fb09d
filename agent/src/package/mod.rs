//! The package that brings nvidia-peermem: which one it is, whether it can be installed without touching the driver
//! or the kernel, and installing it with the node's own package manager from the node's own repositories.
//!
//! `docs/packages.md` has the matrix and the findings. Nothing here is asked where nothing is needed.

mod apt;
mod back;
mod candidates;
mod choice;
mod dnf;
mod dpkg;
mod driver;
mod harm;
mod install;
mod outcome;
pub mod outputs;
mod rpm;
mod simulate;
mod survey;
pub mod table;
pub mod version;
mod zypper;

use serde::Deserialize;

use crate::nccl_log::harmless;

pub use dpkg::parse_status;
pub use driver::{is_driver, is_kernel, sets};
pub(crate) use install::{install, refresh};
pub(crate) use rpm::FORMAT as RPM_FORMAT;
pub(crate) use survey::survey;
pub use survey::{Need, need};

/// A package manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Manager {
    /// apt on dpkg.
    Apt,
    /// dnf 4 or 5 on rpm.
    Dnf,
    /// zypper on rpm.
    Zypper,
}

impl Manager {
    /// As a person calls it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Apt => "apt",
            Self::Dnf => "dnf",
            Self::Zypper => "zypper",
        }
    }
}

/// What is in the way, with what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The finding's id.
    pub id: &'static str,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub fix: String,
}

impl Problem {
    fn new(id: &'static str, message: impl Into<String>, fix: impl Into<String>) -> Self {
        let message: String = message.into();
        Self {
            id,
            // names, versions and reasons are the package manager's
            message: harmless(message.as_bytes()),
            fix: fix.into(),
        }
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}; {}", self.id, self.message, self.fix)
    }
}

/// An installed package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Its version, with epoch where it has one that counts.
    pub version: String,
    /// Why it is not in order, such as `half-configured`.
    pub broken: Option<String>,
    /// Whether a person holds it at its version.
    pub held: bool,
}

/// What is installed, by the package manager's own database.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Installed {
    /// All packages.
    pub packages: Vec<Package>,
}

impl Installed {
    /// Whether a package of that name is there, in whichever state.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// The package of that name; of several (kernels), the first.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Package> {
        self.packages.iter().find(|package| package.name == name)
    }
}

/// What a transaction does with one package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The package.
    pub name: String,
    /// What it is now; none where it is not installed.
    pub old: Option<String>,
    /// What it becomes; none where it is removed.
    pub new: Option<String>,
}

impl std::fmt::Display for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = harmless(self.name.as_bytes());
        let version = |version: &Option<String>| version.as_ref().map(|v| harmless(v.as_bytes()));
        match (version(&self.old), version(&self.new)) {
            (None, Some(new)) => write!(f, "{name} {new}"),
            (Some(old), Some(new)) => write!(f, "{name} {old} -> {new}"),
            (Some(old), None) => write!(f, "{name} {old} removed"),
            (None, None) => write!(f, "{name} removed"),
        }
    }
}

/// A transaction that was simulated and found harmless.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Install {
    /// Who does it.
    pub manager: Manager,
    /// Exactly what is asked for, in the manager's words: name and version.
    pub specs: Vec<String>,
    /// The kernels that it is for.
    pub kernels: Vec<String>,
    /// Everything that it does.
    pub changes: Vec<Change>,
}

/// What was found out about the package that a node lacks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Survey {
    /// What can be installed.
    pub install: Option<Install>,
    /// What is in the way.
    pub problems: Vec<Problem>,
    /// What a person should know.
    pub notes: Vec<String>,
}
