//! What NCCL is told by its environment: configuration files and processes' environments, in NCCL's own order, with the meaning
//! that values have for GPUDirect RDMA.
//!
//! Pure: [`conf`] reads a file's text, [`effective`] brings the sources of one process in order, [`findings`] says what is
//! wrong. `facts::nccl_env` reads. `docs/nccl-env.md` has the rules.

mod conf;
mod hca;
mod judge;
mod names;
mod scope;
mod value;

use schemars::JsonSchema;
use serde::Serialize;

use crate::facts::Fact;

pub use conf::{Line, conf, environ};
pub use judge::{Known, findings};
pub use names::{Name, lookup, suggestion};
pub use scope::{Scope, effective, scopes};
pub use value::{Level, integer, level};

/// A variable that is set, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Setting {
    /// Its name, as NCCL takes it.
    pub name: String,
    /// Its value, as NCCL takes it.
    pub value: String,
    /// File and line, or process.
    pub from: String,
}

/// A configuration file of NCCL's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ConfFile {
    /// Its lines.
    pub lines: Fact<Vec<Line>>,
    /// Whose it is: the user's id; null for the node's own, and for one that `NCCL_CONF_FILE` names.
    pub uid: Option<u32>,
}

/// A process that has variables of NCCL's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Process {
    /// Its id.
    pub pid: u32,
    /// Its user's id.
    pub uid: u32,
    /// Its name.
    pub name: String,
    /// Names that begin with `NCCL_`, and their values.
    pub environment: Vec<(String, String)>,
}

/// What was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NcclEnv {
    /// Files: the node's, those of users, those that processes name.
    pub files: Vec<ConfFile>,
    /// Running processes with variables of NCCL's; empty if they were not looked at.
    pub processes: Vec<Process>,
    /// Processes whose environment may not be read.
    pub denied: u64,
}
