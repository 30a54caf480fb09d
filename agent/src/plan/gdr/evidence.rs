//! A link of the chain from what was read to what was decided.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

/// What a fact says about the way that was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Says {
    /// It allows it.
    Yes,
    /// It rules it out.
    No,
    /// It could not be read.
    Unknown,
    /// It decides nothing and is worth knowing.
    Note,
}

/// A fact, its value, and where it was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Evidence {
    /// What was asked.
    pub fact: String,
    /// What was found.
    pub value: String,
    /// Where.
    pub from: String,
    /// What it says.
    pub says: Says,
}

impl Evidence {
    fn new(says: Says, fact: &str, value: impl Into<String>, from: impl Into<String>) -> Self {
        Self {
            fact: fact.to_owned(),
            value: value.into(),
            from: from.into(),
            says,
        }
    }

    pub(super) fn yes(fact: &str, value: impl Into<String>, from: impl Into<String>) -> Self {
        Self::new(Says::Yes, fact, value, from)
    }

    pub(super) fn no(fact: &str, value: impl Into<String>, from: impl Into<String>) -> Self {
        Self::new(Says::No, fact, value, from)
    }

    pub(super) fn unknown(fact: &str, value: impl Into<String>, from: impl Into<String>) -> Self {
        Self::new(Says::Unknown, fact, value, from)
    }

    pub(super) fn note(fact: &str, value: impl Into<String>, from: impl Into<String>) -> Self {
        Self::new(Says::Note, fact, value, from)
    }
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} [{}]", self.fact, self.value, self.from)
    }
}
