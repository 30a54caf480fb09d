//! Edits of a line as it stands in a file: only the bytes of the argument change.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use super::arg::Arg;
use super::line::{CommandLine, is_ascii_space_char};
use super::names::accumulates;
use super::split::arg_ranges;

/// A change of one argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edit<'a> {
    /// Make it hold, as [`CommandLine::set`] does.
    Set(&'a Arg),
    /// Take out all that this covers, as [`CommandLine::remove`] does.
    Remove(&'a str),
}

impl Edit<'_> {
    /// The same change of arguments that are not text of a file.
    pub fn apply(&self, line: &mut CommandLine) {
        match self {
            Self::Set(arg) => drop(line.set(arg)),
            Self::Remove(pattern) => drop(line.remove(pattern)),
        }
    }
}

/// A quote on the line is not closed, and the edit would not do what it shall: what is added would be
/// inside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenQuote;

impl fmt::Display for OpenQuote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a quote among the arguments is not closed; close it first")
    }
}

impl core::error::Error for OpenQuote {}

/// Edits a line, all other bytes kept: blanks, newlines and the order of arguments too. `None` where
/// there is nothing to change.
///
/// ```
/// use grub_config_parser::cmdline::{Arg, Edit, edit_line};
/// let pt = Arg::new("iommu=pt");
/// assert_eq!(edit_line("ro  quiet\n", &Edit::Set(&pt))?.as_deref(), Some("ro  quiet iommu=pt\n"));
/// assert_eq!(edit_line("ro  quiet x\n", &Edit::Remove("quiet"))?.as_deref(), Some("ro x\n"));
/// assert_eq!(edit_line("ro iommu=pt", &Edit::Set(&pt))?, None);
/// # Ok::<(), grub_config_parser::cmdline::OpenQuote>(())
/// ```
///
/// # Errors
/// [`OpenQuote`].
pub fn edit_line(line: &str, edit: &Edit<'_>) -> Result<Option<String>, OpenQuote> {
    let edited = match edit {
        Edit::Set(arg) => set(line, arg),
        Edit::Remove(pattern) => remove(line, &Arg::new(pattern)),
    };
    let Some(edited) = edited else {
        return Ok(None);
    };
    let mut wanted = CommandLine::parse(line);
    edit.apply(&mut wanted);
    if CommandLine::parse(&edited) == wanted {
        Ok(Some(edited))
    } else {
        Err(OpenQuote)
    }
}

/// The places of the kernel's own arguments, and where the first one that is not begins.
fn kernel_ranges(line: &str) -> (Vec<Range<usize>>, Option<usize>) {
    let mut ranges: Vec<Range<usize>> = arg_ranges(line).collect();
    let arg = |range: &Range<usize>| Arg::from_trimmed(line.get(range.clone()).unwrap_or(""));
    let separator = ranges.iter().position(|range| arg(range).is_separator());
    let behind = separator.and_then(|at| ranges.get(at)).map(|r| r.start);
    ranges.truncate(separator.unwrap_or(ranges.len()));
    (ranges, behind)
}

fn set(line: &str, wanted: &Arg) -> Option<String> {
    let (ranges, behind) = kernel_ranges(line);
    let own = |range: &Range<usize>| Arg::from_trimmed(line.get(range.clone()).unwrap_or(""));
    let mut named = ranges
        .iter()
        .map(own)
        .filter(|arg| arg.same_name(wanted.name()));
    let holds = if accumulates(wanted.name()) {
        named.any(|arg| arg.same(wanted))
    } else {
        named.next_back().is_some_and(|arg| arg.same(wanted))
    };
    if holds {
        return None;
    }
    let mut out = String::with_capacity(line.len() + wanted.raw().len() + 1);
    match (ranges.last(), behind) {
        (Some(last), _) => {
            let (head, tail) = line.split_at_checked(last.end)?;
            out.extend([head, " ", wanted.raw(), tail]);
        }
        (None, Some(behind)) => {
            let (head, tail) = line.split_at_checked(behind)?;
            out.extend([head, wanted.raw(), " ", tail]);
        }
        (None, None) => {
            let end = line.trim_end_matches(is_ascii_space_char).len();
            let (head, tail) = line.split_at_checked(end)?;
            out.extend([head, wanted.raw(), tail]);
        }
    }
    Some(out)
}

fn remove(line: &str, pattern: &Arg) -> Option<String> {
    let (ranges, _) = kernel_ranges(line);
    let mut out = String::with_capacity(line.len());
    let mut at = 0;
    let mut changed = false;
    let mut kept = false;
    for range in ranges {
        let hit = pattern.matches(&Arg::from_trimmed(line.get(range.clone())?));
        if !hit {
            kept = true;
            continue;
        }
        changed = true;
        let before = line.get(at..range.start)?;
        // The blanks before it go too; for the first argument, those behind it.
        let stays = if kept {
            before.trim_end_matches(is_ascii_space_char)
        } else {
            before
        };
        out.push_str(stays);
        at = range.end;
        if !kept {
            let rest = line.get(at..)?;
            let blank = |c| matches!(c, ' ' | '\t');
            at += rest.len() - rest.trim_start_matches(blank).len();
        }
    }
    out.push_str(line.get(at..)?);
    changed.then_some(out)
}
