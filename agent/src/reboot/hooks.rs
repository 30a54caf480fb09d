//! The operator's programs before a reboot: they drain the node, or look whether it is drained.

use std::time::Duration;

use super::gates::Gate;
use super::refusal::one_line;
use crate::sys::{Entry, EntryKind, Root, SysError, process, write};

pub(super) const NAME: &str = "pre-reboot.d";

/// Where they are.
pub(super) const DIR: &str = "/etc/gdr-agent/pre-reboot.d";

/// Every program of a directory, in the order of their names, until one says no.
#[derive(Debug)]
pub struct Hooks {
    root: Root,
    dir: String,
    limit: Duration,
}

impl Hooks {
    /// The programs in `dir`, each with `limit` to end.
    #[must_use]
    pub fn new(root: Root, dir: &str, limit: Duration) -> Self {
        Self {
            root,
            dir: dir.to_owned(),
            limit,
        }
    }

    /// Runs them.
    ///
    /// # Errors
    /// Which one did not exit with 0, or may not be run, and why.
    pub fn run(&self, back: bool) -> Result<(), String> {
        let what = if back { "back" } else { "trial" };
        for name in programs(&self.root, &self.dir).map_err(|e| e.to_string())? {
            let path = format!("{}/{name}", self.dir);
            self.trusted(&path)?;
            let env = [("GDR_AGENT_REBOOT", what)];
            let output = process::run_group(&self.root, &path, &env, self.limit)
                .map_err(|e| e.to_string())?;
            if output.status != Some(0) {
                let how = output.status.map_or("ended by a signal".to_owned(), |s| {
                    format!("exit status {s}")
                });
                return Err(format!("{path}: {how}{}", last_line(&output)));
            }
        }
        Ok(())
    }

    fn trusted(&self, path: &str) -> Result<(), String> {
        write::only_root_writes(&self.root, path).map_err(|e| e.to_string())?;
        let stat = self.root.stat(path).map_err(|e| e.to_string())?;
        match stat {
            Some(stat) if stat.kind == EntryKind::File && stat.mode & 0o100 != 0 => Ok(()),
            Some(stat) if stat.kind == EntryKind::File => Err(format!(
                "{path} is not executable; `chmod +x` it, or take it away"
            )),
            _ => Err(format!("{path} is not a file; take it away")),
        }
    }
}

impl Gate for Hooks {
    fn name(&self) -> &'static str {
        NAME
    }

    fn asks(&self) -> String {
        let names = programs(&self.root, &self.dir).unwrap_or_default();
        format!(
            "whether each of {} exits with 0 within {} s: {}",
            self.dir,
            self.limit.as_secs(),
            names.join(", ")
        )
    }

    fn open(&self, back: bool) -> Result<(), String> {
        self.run(back)
    }

    fn harmless(&self) -> bool {
        false
    }
}

/// Whether there are any.
///
/// # Errors
/// The directory cannot be listed.
pub(super) fn any(root: &Root) -> Result<bool, SysError> {
    Ok(!programs(root, DIR)?.is_empty())
}

/// The names that count: not hidden, and not what editors and package managers leave behind.
fn programs(root: &Root, dir: &str) -> Result<Vec<String>, SysError> {
    let left_over = |name: &str| {
        let endings = ["~", ".bak", ".rpmnew", ".rpmsave", ".rpmorig", ".swp"];
        name.starts_with('.')
            || name.contains(".dpkg-")
            || name.contains(".ucf-")
            || endings.iter().any(|ending| name.ends_with(ending))
    };
    let entries: Vec<Entry> = root.list(dir)?;
    let mut names: Vec<String> = entries
        .into_iter()
        .filter(|entry| entry.kind != EntryKind::Dir && !left_over(&entry.name))
        .map(|entry| entry.name)
        .collect();
    names.sort();
    Ok(names)
}

fn last_line(output: &process::Output) -> String {
    let said = [&output.stderr, &output.stdout];
    let line = said.iter().find_map(|bytes| {
        let text = String::from_utf8_lossy(bytes);
        let line = text.lines().rev().find(|line| !line.trim().is_empty());
        line.map(one_line)
    });
    line.map_or(String::new(), |line| format!(": {line}"))
}
