//! What is known while files are sourced.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::syntax::Command;
use super::{Kind, Location};

/// What is known about a variable's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    Unset,
    Known(Vec<u8>, Kind),
    /// Anything, or unset.
    Unknown,
}

#[derive(Debug, Clone)]
pub(super) struct Variable {
    pub(super) value: Value,
    pub(super) readonly: bool,
    pub(super) assignments: Vec<Location>,
}

impl Default for Variable {
    fn default() -> Self {
        Self {
            value: Value::Unset,
            readonly: false,
            assignments: Vec::new(),
        }
    }
}

/// The exit status of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    Ok,
    Fail,
    Unknown,
}

impl Status {
    pub(super) fn not(self) -> Self {
        match self {
            Self::Ok => Self::Fail,
            Self::Fail => Self::Ok,
            Self::Unknown => Self::Unknown,
        }
    }
}

/// Why running does not go on behind a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stop {
    /// The shell ends: an error, `exit`, or a failure under `set -e`.
    Abort { line: usize, message: &'static str },
    /// `return`
    Return(Status),
    /// `break` out of this many loops.
    Break(u32),
    /// `continue` of the loop so many levels out.
    Continue(u32),
}

/// Variables as they were, to be put back.
pub(super) type Saved = Vec<(Vec<u8>, Option<Variable>)>;

#[derive(Debug, Clone)]
pub(super) struct State {
    pub(super) variables: BTreeMap<Vec<u8>, Variable>,
    /// Something unknown has run that may have set or unset any variable that is not known since.
    pub(super) anything_set: bool,
    pub(super) functions: BTreeMap<Vec<u8>, Arc<Command>>,
    /// Names that may be functions or aliases by now.
    pub(super) maybe_commands: BTreeSet<Vec<u8>>,
    /// `set -e`, as far as it is known.
    pub(super) exit_on_error: Option<bool>,
    pub(super) unset_is_error: bool,
    pub(super) no_exec: bool,
    /// Commands that may still run: loops end.
    pub(super) fuel: u32,
    /// The file that is being read.
    pub(super) file: alloc::string::String,
    pub(super) calls: u32,
    pub(super) loops: u32,
    /// What `local` has changed, for each function call.
    pub(super) locals: Vec<Saved>,
}

impl State {
    pub(super) fn new() -> Self {
        Self {
            variables: BTreeMap::new(),
            anything_set: false,
            functions: BTreeMap::new(),
            maybe_commands: BTreeSet::new(),
            exit_on_error: Some(true),
            unset_is_error: false,
            no_exec: false,
            fuel: 200_000,
            file: alloc::string::String::new(),
            calls: 0,
            loops: 0,
            locals: Vec::new(),
        }
    }

    /// Uses up some of what may still be done. Without any left, commands are only looked at for
    /// what they may touch.
    pub(super) fn burn(&mut self, cost: usize) {
        self.fuel = self
            .fuel
            .saturating_sub(u32::try_from(cost).unwrap_or(u32::MAX));
    }

    /// What a name stands for. A `GRUB_` name that nothing has set is unset; any other may come from
    /// the environment or from the shell itself.
    pub(super) fn get(&self, name: &[u8]) -> Value {
        match self.variables.get(name) {
            Some(variable) => variable.value.clone(),
            None if self.anything_set || !name.starts_with(b"GRUB_") => Value::Unknown,
            None => Value::Unset,
        }
    }

    /// Sets a variable; false if it is read-only.
    pub(super) fn set(&mut self, name: &[u8], value: Value, line: usize) -> bool {
        let location = Location {
            file: self.file.clone(),
            line,
        };
        if let Value::Known(bytes, _) = &value {
            self.burn(bytes.len() >> 8);
        }
        let variable = self.variables.entry(name.to_vec()).or_default();
        if variable.readonly {
            return false;
        }
        variable.value = value;
        variable.assignments.push(location);
        true
    }

    /// Marks a variable as touched by something that is not followed.
    pub(super) fn taint(&mut self, name: &[u8], line: Option<usize>) {
        let location = line.map(|line| Location {
            file: self.file.clone(),
            line,
        });
        let variable = self.variables.entry(name.to_vec()).or_default();
        if !variable.readonly {
            variable.value = Value::Unknown;
        }
        variable.assignments.extend(location);
    }

    /// Something has run that can have done anything to the variables.
    pub(super) fn taint_all(&mut self) {
        self.anything_set = true;
        for variable in self.variables.values_mut() {
            if !variable.readonly {
                variable.value = Value::Unknown;
            }
        }
    }
}
