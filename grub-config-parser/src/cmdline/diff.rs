//! Comparing two command lines by what the kernel makes of them.

use alloc::vec::Vec;
use core::fmt;

use super::arg::Arg;
use super::line::CommandLine;

/// One difference between two command lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DiffItem {
    /// Only the new line has it.
    Added(Arg),
    /// Only the old line has it.
    Removed(Arg),
    /// Both have the same arguments of this name, in another order. Shown is the one that is last in
    /// the new line.
    Reordered(Arg),
}

impl fmt::Display for DiffItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Added(arg) => write!(f, "+{arg}"),
            Self::Removed(arg) => write!(f, "-{arg}"),
            Self::Reordered(arg) => write!(f, "~{arg}"),
        }
    }
}

impl CommandLine {
    /// True if both lines have the same arguments, each as often, and the arguments of each name in
    /// the same order. The order between different names does not matter.
    pub fn equivalent(&self, other: &CommandLine) -> bool {
        self.diff(other).is_empty()
    }

    /// The differences from `self` (old) to `other` (new); empty if they are equivalent.
    pub fn diff(&self, other: &CommandLine) -> Vec<DiffItem> {
        let (old, new) = (self.kernel_args(), other.kernel_args());
        let mut items = Vec::new();
        items.extend(
            surplus(old, new)
                .into_iter()
                .cloned()
                .map(DiffItem::Removed),
        );
        items.extend(surplus(new, old).into_iter().cloned().map(DiffItem::Added));
        if items.is_empty() {
            items.extend(
                reordered(self, other)
                    .into_iter()
                    .cloned()
                    .map(DiffItem::Reordered),
            );
        }
        let (old, new) = (self.init_args(), other.init_args());
        if !old.iter().map(Arg::raw).eq(new.iter().map(Arg::raw)) {
            items.extend(old.iter().cloned().map(DiffItem::Removed));
            items.extend(new.iter().cloned().map(DiffItem::Added));
        }
        items
    }
}

/// What `a` has more often than `b`.
fn surplus<'a>(a: &'a [Arg], b: &[Arg]) -> Vec<&'a Arg> {
    let mut left: Vec<&Arg> = b.iter().collect();
    let mut more = Vec::new();
    for arg in a {
        match left.iter().position(|other| other.same(arg)) {
            Some(index) => {
                left.swap_remove(index);
            }
            None => more.push(arg),
        }
    }
    more
}

/// For two lines with the same arguments: the last one of each name whose order differs.
fn reordered<'a>(old: &CommandLine, new: &'a CommandLine) -> Vec<&'a Arg> {
    let mut items: Vec<&Arg> = Vec::new();
    for arg in new.kernel_args() {
        if items.iter().any(|seen| seen.same_name(arg.name())) {
            continue;
        }
        let differs = old
            .all(arg.name())
            .zip(new.all(arg.name()))
            .any(|(a, b)| !a.same(b));
        if differs {
            items.extend(new.last(arg.name()));
        }
    }
    items
}
