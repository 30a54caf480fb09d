//! The ordered list of arguments and its edits.

use alloc::vec::Vec;
use core::fmt;

use super::arg::Arg;
use super::names::accumulates;
use super::split::arg_ranges;

/// What [`CommandLine::set`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// The argument was in force already.
    Unchanged,
    /// The argument was added behind the others (but before `--`).
    Appended,
}

/// An ordered list of arguments. Order and repetitions are kept as they were.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandLine {
    args: Vec<Arg>,
}

pub(super) fn is_ascii_space_char(c: char) -> bool {
    matches!(c, ' ' | '\t'..='\r')
}

impl CommandLine {
    /// Splits a line by the kernel's rule. Only ASCII blanks separate here, so that no character is
    /// torn apart (the kernel itself also splits at byte 0xa0: see [`super::split_bytes`]).
    pub fn parse(line: &str) -> Self {
        // Two looks at it, so that the list does not grow by doubling.
        let ranges = || arg_ranges(line);
        let mut args = Vec::with_capacity(ranges().count());
        args.extend(ranges().map(|range| Arg::from_trimmed(line.get(range).unwrap_or_default())));
        Self { args }
    }

    /// Takes arguments in this order.
    pub fn from_args(args: impl IntoIterator<Item = Arg>) -> Self {
        Self {
            args: args.into_iter().collect(),
        }
    }

    /// All arguments, `--` and what follows it included.
    pub fn args(&self) -> &[Arg] {
        &self.args
    }

    /// How many bytes its arguments take.
    pub(crate) fn bytes(&self) -> usize {
        self.args.iter().map(Arg::bytes).sum()
    }

    /// The arguments that the kernel itself reads: those before `--`.
    pub fn kernel_args(&self) -> &[Arg] {
        self.args.get(..self.kernel_end()).unwrap_or(&self.args)
    }

    /// What init gets: `--` is left out.
    pub fn init_args(&self) -> &[Arg] {
        self.args.get(self.kernel_end() + 1..).unwrap_or(&[])
    }

    pub(super) fn kernel_end(&self) -> usize {
        self.args
            .iter()
            .position(Arg::is_separator)
            .unwrap_or(self.args.len())
    }

    /// The last kernel argument with this name, which is the one that counts unless the name
    /// [accumulates].
    pub fn last(&self, name: &str) -> Option<&Arg> {
        self.kernel_args()
            .iter()
            .rev()
            .find(|arg| arg.same_name(name))
    }

    /// Every kernel argument with this name, in order.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Arg> {
        self.kernel_args()
            .iter()
            .filter(move |arg| arg.same_name(name))
    }

    /// True if the kernel reads an argument of this name and value.
    pub fn contains_exact(&self, arg: &Arg) -> bool {
        self.kernel_args().iter().any(|own| own.same(arg))
    }

    /// Makes `arg` hold. A last-wins name is left alone if its last occurrence has that value, an
    /// [accumulating](accumulates) one if that exact argument is anywhere; else `arg` is appended.
    /// Nothing is ever reordered or dropped.
    pub fn set(&mut self, arg: &Arg) -> Change {
        let holds = if accumulates(arg.name()) {
            self.contains_exact(arg)
        } else {
            self.last(arg.name()).is_some_and(|last| last.same(arg))
        };
        if holds {
            return Change::Unchanged;
        }
        self.args.insert(self.kernel_end(), arg.clone());
        Change::Appended
    }

    /// Removes kernel arguments and returns them. `quiet` takes every occurrence of the name,
    /// `iommu=pt` only those with that value. What follows `--` is never touched.
    pub fn remove(&mut self, pattern: &str) -> Vec<Arg> {
        let pattern = Arg::new(pattern);
        let end = self.kernel_end();
        let mut index = 0;
        let mut removed = Vec::new();
        self.args.retain(|arg| {
            let hit = index < end && pattern.matches(arg);
            index += 1;
            if hit {
                removed.push(arg.clone());
            }
            !hit
        });
        removed
    }
}

impl Arg {
    /// True if this argument, read as a pattern, covers `arg`: a bare name covers all its values.
    pub fn matches(&self, arg: &Arg) -> bool {
        arg.same_name(self.name()) && (self.value().is_none() || self.value() == arg.value())
    }
}

impl fmt::Display for CommandLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, arg) in self.args.iter().enumerate() {
            if i > 0 {
                f.write_str(" ")?;
            }
            f.write_str(arg.raw())?;
        }
        Ok(())
    }
}
