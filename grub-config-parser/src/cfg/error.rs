//! What a script that GRUB refuses gives.

use alloc::string::String;
use core::fmt;

/// A script that `grub-script-check` refuses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    /// The line, from 1.
    pub line: usize,
    /// What was expected and what was found.
    pub message: String,
}

impl SyntaxError {
    pub(super) fn at(source: &[u8], at: usize, message: impl Into<String>) -> Self {
        let before = source.get(..at).unwrap_or(source);
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        Self {
            line,
            message: message.into(),
        }
    }
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl core::error::Error for SyntaxError {}
