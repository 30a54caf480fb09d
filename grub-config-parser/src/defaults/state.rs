//! What is known while files are sourced.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::syntax::Command;
use super::{Kind, Shell};
use crate::room::Room;
use crate::trace::Runs;

/// The mark of text that stands in the command that is being run; [`State::set`] puts a place in.
pub(super) const HERE: u32 = 0;
/// The mark of text whose place is not known.
pub(super) const NOWHERE: u32 = 1;
/// The marks from here on are places.
const FIRST_PLACE: u32 = 2;

/// A value and where its bytes were written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Tracked {
    pub(super) bytes: Vec<u8>,
    pub(super) runs: Runs,
}

impl Tracked {
    pub(super) fn nowhere(bytes: Vec<u8>) -> Self {
        let runs = Runs::one(bytes.len(), NOWHERE);
        Self { bytes, runs }
    }
}

/// Where an assignment writes text.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) file: u32,
    pub(super) line: u32,
    /// Its number in [`State::names`].
    pub(super) variable: u32,
}

/// What a value takes here and as it is told.
fn size(value: &Tracked) -> usize {
    2 * value.bytes.len() + 8 * value.runs.count()
}

/// What is known about a variable's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    Unset,
    Known(Tracked, Kind),
    /// Anything, or unset.
    Unknown,
}

#[derive(Debug, Clone)]
pub(super) struct Variable {
    pub(super) value: Value,
    pub(super) readonly: bool,
    /// Files, by number, and lines.
    pub(super) assignments: Vec<(u32, u32)>,
}

/// What an assignment takes: here, in what is told of it, and while a list of them grows.
const ASSIGNMENT: usize = 96;
/// What a variable takes besides its name and value, here and in what is told of it.
const VARIABLE: usize = 640;

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
    /// bash does something here that is not followed: nothing is known any more.
    Lost,
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
    pub(super) shell: Shell,
    /// bash has done something that is not followed, see [`Stop::Lost`].
    pub(super) lost: bool,
    /// What runs is a part of somebody's condition: a failure ends nothing.
    pub(super) condition: bool,
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
    /// The number of the file that is being read.
    pub(super) file_number: u32,
    /// What the marks of values stand for, from [`FIRST_PLACE`] on.
    pub(super) places: Arc<Vec<Place>>,
    /// The numbers of the variables that places name.
    pub(super) names: Arc<BTreeMap<Vec<u8>, u32>>,
    room: Room,
    /// What this shell holds, as far as it is counted.
    size: usize,
    full: bool,
    /// The text that is run was made by expansion: where it stands is not known.
    pub(super) made_up: bool,
    pub(super) calls: u32,
    pub(super) loops: u32,
    /// What `local` has changed, for each function call.
    pub(super) locals: Vec<Saved>,
}

impl State {
    pub(super) fn new(room: Room, shell: Shell) -> Self {
        Self {
            shell,
            lost: false,
            condition: false,
            variables: BTreeMap::new(),
            anything_set: false,
            functions: BTreeMap::new(),
            maybe_commands: BTreeSet::new(),
            exit_on_error: Some(true),
            unset_is_error: false,
            no_exec: false,
            fuel: 200_000,
            file_number: 0,
            places: Arc::new(Vec::new()),
            names: Arc::default(),
            room,
            size: 0,
            full: false,
            made_up: false,
            calls: 0,
            loops: 0,
            locals: Vec::new(),
        }
    }

    pub(super) fn is_bash(&self) -> bool {
        self.shell == Shell::Bash
    }

    /// Counts memory that is kept.
    pub(super) fn hold(&mut self, bytes: usize) {
        self.size += bytes;
        self.full |= !self.room.take(bytes);
    }

    /// True once there is no more memory: what follows is not followed.
    pub(super) fn is_full(&self) -> bool {
        self.full
    }

    /// A shell of its own, with all that this one has; `None` where there is no memory for it.
    pub(super) fn copy(&mut self) -> Option<Self> {
        if !self.room.take(self.size) {
            self.full = true;
            return None;
        }
        Some(self.clone())
    }

    /// Back from a shell of its own.
    pub(super) fn back_from(&mut self, inner: &Self) {
        self.fuel = inner.fuel;
        self.full |= inner.full;
        self.room.give_back(self.size);
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
    pub(super) fn set(&mut self, name: &[u8], mut value: Value, line: usize) -> bool {
        self.lost |= self.is_bash() && super::names::is_of_bash(name);
        let location = (self.file_number, u32::try_from(line).unwrap_or(0));
        let new = if self.variables.contains_key(name) {
            0
        } else {
            VARIABLE + 3 * name.len()
        };
        self.hold(ASSIGNMENT + new);
        if let Value::Known(value, _) = &mut value {
            self.hold(size(value));
            self.burn((value.bytes.len() >> 8) + (value.runs.count() >> 3));
            if value.runs.contains(HERE) {
                let mark = self.place(name, line);
                value.runs.replace(HERE, mark);
            }
        }
        let variable = self.variables.entry(name.to_vec()).or_default();
        if variable.readonly {
            return false;
        }
        let before = core::mem::replace(&mut variable.value, value);
        variable.assignments.push(location);
        if let Value::Known(before, _) = before {
            let size = size(&before).min(self.size);
            self.size -= size;
            self.room.give_back(size);
        }
        true
    }

    /// The mark of text that an assignment to `name` on this line writes.
    fn place(&mut self, name: &[u8], line: usize) -> u32 {
        if line == 0 || self.made_up {
            return NOWHERE;
        }
        let (Ok(mark), Ok(line)) = (u32::try_from(self.places.len()), u32::try_from(line)) else {
            return NOWHERE;
        };
        let variable = match self.names.get(name) {
            Some(number) => *number,
            None => {
                let names = Arc::make_mut(&mut self.names);
                let number = u32::try_from(names.len()).unwrap_or(u32::MAX);
                names.insert(name.to_vec(), number);
                number
            }
        };
        Arc::make_mut(&mut self.places).push(Place {
            file: self.file_number,
            line,
            variable,
        });
        mark.saturating_add(FIRST_PLACE)
    }

    /// Marks a variable as touched by something that is not followed.
    pub(super) fn taint(&mut self, name: &[u8], line: Option<usize>) {
        self.lost |= self.is_bash() && super::names::is_of_bash(name);
        let location = line.map(|line| (self.file_number, u32::try_from(line).unwrap_or(0)));
        self.hold(if self.variables.contains_key(name) {
            0
        } else {
            VARIABLE + 3 * name.len()
        });
        self.hold(location.map_or(0, |_| ASSIGNMENT));
        let variable = self.variables.entry(name.to_vec()).or_default();
        if !variable.readonly {
            variable.value = Value::Unknown;
        }
        variable.assignments.extend(location);
    }

    /// Something has run that can have done anything to the variables.
    pub(super) fn taint_all(&mut self) {
        // Attributes that only bash has would change what later assignments do.
        self.lost |= self.is_bash();
        self.anything_set = true;
        for variable in self.variables.values_mut() {
            if !variable.readonly {
                variable.value = Value::Unknown;
            }
        }
    }
}

/// The place that a mark stands for.
pub(super) fn place_of(places: &[Place], mark: u32) -> Option<&Place> {
    places.get(mark.checked_sub(FIRST_PLACE)? as usize)
}
