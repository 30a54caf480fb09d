//! Something that is wrong, or that could not be found out, with its evidence and what to do about it.

use schemars::JsonSchema;
use serde::Serialize;

use crate::checks::{Outcome, Severity};

/// One finding of a reader.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Finding {
    /// A stable word with dots.
    pub id: String,
    /// `failed`, or `unknown` where what was read does not tell.
    pub outcome: Outcome,
    /// `required` if GPUDirect RDMA cannot work with it.
    pub severity: Severity,
    /// What it is about: a device, a file, a variable.
    pub subject: String,
    /// What was read, each with where from.
    pub evidence: Vec<String>,
    /// What to do.
    pub fix: Option<String>,
}

impl Finding {
    /// Something that keeps GPUDirect RDMA from working.
    pub fn failed(
        id: &str,
        subject: impl Into<String>,
        evidence: Vec<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self {
            id: id.to_owned(),
            outcome: Outcome::Failed,
            severity: Severity::Required,
            subject: subject.into(),
            evidence,
            fix: Some(fix.into()),
        }
    }

    /// Something that is worth knowing.
    pub fn warning(
        id: &str,
        subject: impl Into<String>,
        evidence: Vec<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::failed(id, subject, evidence, fix)
        }
    }

    /// Something that could not be found out.
    pub fn unknown(
        id: &str,
        subject: impl Into<String>,
        evidence: Vec<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self {
            outcome: Outcome::Unknown,
            severity: Severity::Warning,
            ..Self::failed(id, subject, evidence, fix)
        }
    }
}
