//! Where a piece of configuration is written.

use alloc::string::String;
use core::fmt;
use core::ops::Range;

/// A line of a file that somebody can look at and change.
///
/// ```
/// use grub_config_parser::Origin;
/// let origin = Origin::new("/etc/default/grub", 6, Some("GRUB_CMDLINE_LINUX"));
/// assert_eq!(origin.to_string(), "/etc/default/grub:6 (GRUB_CMDLINE_LINUX)");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    /// The file's name, as the caller gave it.
    pub file: String,
    /// The line, from 1: where the command or key begins that holds the text.
    pub line: usize,
    /// The variable that the line sets; `None` for a `linux` command or an `options` key.
    pub variable: Option<String>,
}

impl Origin {
    /// Puts one together.
    pub fn new(file: &str, line: usize, variable: Option<&str>) -> Self {
        Self {
            file: String::from(file),
            line,
            variable: variable.map(String::from),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)?;
        match &self.variable {
            Some(variable) => write!(f, " ({variable})"),
            None => Ok(()),
        }
    }
}

/// A piece of a text and where it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// The bytes of the text.
    pub range: Range<usize>,
    /// Where they are written; `None` where that is not known.
    pub origin: Option<Origin>,
}
