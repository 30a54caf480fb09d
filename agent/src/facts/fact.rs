//! One thing that was read, or not: unknown is never shown as absent.

use schemars::JsonSchema;
use serde::Serialize;

use crate::sys::{Root, SysError};

/// A value with where it came from. No value and no `unknown` means: known not to be there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Fact<T> {
    /// What was read.
    pub value: Option<T>,
    /// The path that it was read from, as on the node.
    pub from: String,
    /// Why it could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
}

impl<T> Fact<T> {
    /// A value that was read.
    pub fn known(value: T, from: impl Into<String>) -> Self {
        Self {
            value: Some(value),
            from: from.into(),
            unknown: None,
        }
    }

    /// Known not to be there.
    pub fn absent(from: impl Into<String>) -> Self {
        Self {
            value: None,
            from: from.into(),
            unknown: None,
        }
    }

    /// Could not be read.
    pub fn unknown(from: impl Into<String>, why: impl Into<String>) -> Self {
        Self {
            value: None,
            from: from.into(),
            unknown: Some(why.into()),
        }
    }

    /// From a read that may have failed.
    pub fn read(from: &str, result: Result<Option<T>, SysError>) -> Self {
        match result {
            Ok(Some(value)) => Self::known(value, from),
            Ok(None) => Self::absent(from),
            Err(e) => Self::unknown(from, e.to_string()),
        }
    }

    /// The value, if it was read.
    pub fn get(&self) -> Option<&T> {
        self.value.as_ref()
    }

    /// Whether reading failed.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        self.unknown.is_some()
    }

    /// Why there is no value: it could not be read, or it is not there.
    #[must_use]
    pub fn why_missing(&self) -> String {
        self.unknown
            .clone()
            .unwrap_or_else(|| format!("{} is not there", self.from))
    }

    /// The same fact, its value turned into another.
    pub fn and_then<U>(self, f: impl FnOnce(T) -> Option<U>) -> Fact<U> {
        let Self {
            value,
            from,
            unknown,
        } = self;
        match value {
            Some(value) => match f(value) {
                Some(value) => Fact::known(value, from),
                None => Fact::unknown(from, "its content is not what it should be"),
            },
            None => Fact {
                value: None,
                from,
                unknown,
            },
        }
    }
}

/// A small text file, trimmed.
pub(super) fn text(root: &Root, path: &str) -> Fact<String> {
    Fact::read(path, root.text_if_there(path))
}
