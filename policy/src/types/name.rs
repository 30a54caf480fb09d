//! Names of kernel modules and of packages.

use std::fmt;
use std::str::FromStr;

use super::{Invalid, checked_text, string_form};
use crate::escape::{character, quote};

checked_text! {
    /// A kernel module's name, as modprobe takes it.
    ModuleName,
    check_module,
    "A kernel module's name: letters, digits, - and _.",
    "^[A-Za-z0-9_][A-Za-z0-9_-]{0,54}$"
}

checked_text! {
    /// A package's name, in the characters that dpkg and rpm have in common.
    PackageName,
    check_package,
    "A package's name: letters, digits and + - . _, a letter or digit first.",
    "^[A-Za-z0-9][A-Za-z0-9+._-]{0,127}$"
}

impl ModuleName {
    /// The name as /proc/modules and /sys/module spell it, with `_` for `-`.
    pub fn canonical(&self) -> String {
        self.as_str().replace('-', "_")
    }
}

/// `MODULE_NAME_LEN` of a 64-bit kernel, less the final NUL.
const MODULE_LENGTH: usize = 55;
const PACKAGE_LENGTH: usize = 128;

fn check_module(text: &str) -> Result<(), Invalid> {
    check(text, "module name", MODULE_LENGTH, "_", "_-")
}

fn check_package(text: &str) -> Result<(), Invalid> {
    check(text, "package name", PACKAGE_LENGTH, "", "+-._")
}

fn check(text: &str, what: &str, limit: usize, first: &str, rest: &str) -> Result<(), Invalid> {
    let Some(head) = text.chars().next() else {
        return Err(Invalid::new(format!("a {what} cannot be empty")));
    };
    if text.len() > limit {
        return Err(Invalid::new(format!(
            "a {what} of {} bytes is too long, the limit is {limit}",
            text.len()
        )));
    }
    if let Some(bad) = text
        .chars()
        .find(|c| !c.is_ascii_alphanumeric() && !rest.contains(*c))
    {
        return Err(Invalid::new(format!(
            "{what} {} has {} in it",
            quote(text),
            character(bad)
        )));
    }
    if !head.is_ascii_alphanumeric() && !first.contains(head) {
        return Err(Invalid::new(format!(
            "{what} {} starts with {}",
            quote(text),
            character(head)
        ))
        .help("start with a letter or a digit"));
    }
    Ok(())
}

/// Which package brings nvidia-peermem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeermemPackage {
    /// The agent finds out whether one is needed, and which.
    Auto,
    /// No package is installed.
    None,
    /// This one.
    Name(PackageName),
}

impl FromStr for PeermemPackage {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        match text {
            "auto" => Ok(Self::Auto),
            "none" => Ok(Self::None),
            name => name.parse().map(Self::Name),
        }
    }
}

impl fmt::Display for PeermemPackage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::None => f.write_str("none"),
            Self::Name(name) => name.fmt(f),
        }
    }
}

string_form!(
    PeermemPackage,
    "`auto`, `none`, or the exact name of a package.",
    "^[A-Za-z0-9][A-Za-z0-9+._-]{0,127}$"
);
