//! GPUs as sysfs, `nvidia-smi -q -x` and `nvidia-smi topo -m` show them.
//!
//! Pure: [`Window`] is made from a function's BARs, [`Smi`] and [`topo::Matrix`] from what the program printed. `facts::gpus`
//! reads; [`findings`] says what is wrong.

mod judge;
mod query;
mod smi;
pub mod topo;
mod window;

use schemars::JsonSchema;
use serde::Serialize;

pub use judge::findings;
pub(crate) use judge::{narrow, small};
pub use smi::{Link, Smi, SmiGpu};
pub use window::{Window, resizes, window};

/// What was read about the GPUs of a node.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Gpus {
    /// The window into each GPU's memory, from sysfs.
    pub windows: Vec<Window>,
    /// `nvidia-smi -q -x`.
    pub smi: Asked<Smi>,
    /// `nvidia-smi topo -m`.
    pub topo: Asked<topo::Matrix>,
}

/// What a program was asked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Asked<T> {
    /// It was not run, or it is not installed.
    #[default]
    No,
    /// It did not end within so many seconds.
    Hung(u64),
    /// It ended, but with no answer: what it said.
    Failed(String),
    /// Its answer.
    Said(T),
}

impl<T> Asked<T> {
    /// The answer, if there is one.
    #[must_use]
    pub const fn get(&self) -> Option<&T> {
        match self {
            Self::Said(answer) => Some(answer),
            Self::No | Self::Hung(_) | Self::Failed(_) => None,
        }
    }
}
