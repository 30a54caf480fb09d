//! A line of the log in the report.

use schemars::JsonSchema;
use serde::Serialize;

/// Where something was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Evidence {
    /// The line, counted from 1.
    pub line: u64,
    /// Its text: shortened, control characters as escapes.
    pub text: String,
}

impl From<&nccl_log_parser::Evidence> for Evidence {
    fn from(read: &nccl_log_parser::Evidence) -> Self {
        Self {
            line: read.line,
            text: read.text.clone(),
        }
    }
}
