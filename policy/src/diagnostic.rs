//! What is wrong with a policy, where, and what to do about it.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use crate::escape::spell_out;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The policy is invalid.
    Error,
    /// The policy is valid, and probably not what was meant.
    Warning,
}

/// One problem at one place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// The name of the source, as given.
    pub file: String,
    /// From 1; 0 where the problem is the file as a whole.
    pub line: usize,
    /// From 1, in characters; 0 where the problem is the file as a whole.
    pub column: usize,
    /// How many characters of the line are meant, at least 1.
    pub width: usize,
    /// What is wrong. One line, free of control characters.
    pub message: String,
    /// A word or two for below the marked text.
    pub label: Option<String>,
    /// What to do.
    pub help: Option<String>,
    /// The key, as in `kernel.iommu`, where the problem has one.
    pub key: Option<String>,
}

impl Diagnostic {
    /// A problem of a file as a whole, for instance of its owner or its mode.
    pub fn of_file(
        severity: Severity,
        file: impl Into<String>,
        message: impl Into<String>,
        help: Option<String>,
    ) -> Self {
        Self {
            severity,
            file: file.into(),
            line: 0,
            column: 0,
            width: 1,
            message: message.into(),
            label: None,
            help,
            key: None,
        }
    }
}

/// `file:line:column: error: message`, on one line.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", spell_out(&self.file))?;
        if self.line > 0 {
            write!(f, "{}:{}:", self.line, self.column)?;
        }
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        write!(f, " {severity}: {}", spell_out(&self.message))
    }
}

/// Problems, by file in the order given and then by place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Diagnostics(pub Vec<Diagnostic>);

impl Diagnostics {
    /// Whether there is nothing to report.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether one of them makes the policy invalid.
    pub fn has_errors(&self) -> bool {
        self.0
            .iter()
            .any(|diagnostic| diagnostic.severity == Severity::Error)
    }

    /// All of them, in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.0.iter()
    }
}

impl<'a> IntoIterator for &'a Diagnostics {
    type Item = &'a Diagnostic;
    type IntoIter = std::slice::Iter<'a, Diagnostic>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

/// One line per problem; [`Diagnostics::render`] shows the source too.
impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, diagnostic) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            diagnostic.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}
