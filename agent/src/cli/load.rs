//! Finding and reading the policy.

use gdr_policy::{Diagnostics, Loaded, Source};

use super::{CliError, Context, Exit};
use crate::plain::counted;
use crate::sys::{EntryKind, Root, SysError, write};

/// Where the policy is, unless the command line names another.
const FILE: &str = "/etc/gdr-agent/policy.toml";

/// A policy, with what has to be said about its files.
#[derive(Debug)]
pub(super) struct Policy {
    pub(super) loaded: Loaded,
    /// Files that somebody other than root can change.
    pub(super) untrusted: Vec<SysError>,
}

impl Policy {
    /// The policy's digest.
    pub(super) fn digest(&self) -> String {
        self.loaded.policy.digest()
    }

    /// Refuses a policy that somebody other than root can change.
    pub(super) fn trusted(self) -> Result<Self, CliError> {
        match self.untrusted.first() {
            None => Ok(self),
            Some(e) => Err(CliError::new(
                Exit::Unsafe,
                "policy-untrusted",
                e.to_string(),
            )),
        }
    }
}

/// Reads the policy that the command line names, or the root's own.
pub(super) fn policy(context: &Context) -> Result<Policy, CliError> {
    match &context.policy {
        None => from(&context.root, FILE),
        Some(path) => {
            let path = std::path::absolute(path).map_err(|e| {
                CliError::new(Exit::Usage, "usage", format!("{}: {e}", path.display()))
            })?;
            let Some(path) = path.to_str() else {
                return Err(CliError::new(
                    Exit::Usage,
                    "usage",
                    "the policy's path is not UTF-8",
                ));
            };
            from(&Root::open(std::path::Path::new("/"))?, path)
        }
    }
}

/// As [`policy`], from one file and its drop-ins.
pub(super) fn from(root: &Root, main: &str) -> Result<Policy, CliError> {
    let mut paths = vec![main.to_owned()];
    let drop_ins = format!("{}.d", main.strip_suffix(".toml").unwrap_or(main));
    for entry in root
        .list(&drop_ins)
        .map_err(|e| CliError::new(Exit::Policy, "policy-unreadable", e.to_string()))?
    {
        if entry.kind != EntryKind::Dir
            && entry.name.ends_with(".toml")
            && !entry.name.starts_with('.')
        {
            paths.push(format!("{drop_ins}/{}", entry.name));
        }
    }
    let mut sources = Vec::new();
    let mut untrusted = Vec::new();
    for path in &paths {
        let text = root.read(path).map_err(|e| unreadable(root, path, &e))?;
        untrusted.extend(write::only_root_writes(root, path).err());
        sources.push(Source {
            name: root.outside(path).to_string_lossy().into_owned(),
            text,
        });
    }
    match gdr_policy::load(&sources) {
        Ok(loaded) => Ok(Policy { loaded, untrusted }),
        Err(problems) => Err(invalid(&problems, &sources)),
    }
}

fn unreadable(root: &Root, path: &str, error: &SysError) -> CliError {
    if error.is_not_found() {
        let message = format!("there is no policy at {}", root.outside(path).display());
        let help =
            "`gdr-agent policy new` prints one to start from; or name one with --policy FILE";
        return CliError::new(Exit::Policy, "policy-missing", message).help(help);
    }
    CliError::new(Exit::Policy, "policy-unreadable", error.to_string())
}

fn invalid(problems: &Diagnostics, sources: &[Source]) -> CliError {
    let text = problems.render(sources, super::output::stderr_colour());
    let count = problems.0.len();
    let noun = counted(count, "problem");
    CliError::new(
        Exit::Policy,
        "policy-invalid",
        format!("the policy has {noun}\n{text}"),
    )
}
