//! Where the words of a `linux` command come from.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use super::ast::{Ast, Slice, offset};
use super::machine::Ran;
use crate::trace::Runs;

/// What has set a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Setter {
    /// The command at this place of the script's own tree.
    Script(u32),
    /// `load_env`
    Env,
}

/// Where a piece of a word comes from, in terms of the tree.
#[derive(Debug, Clone, Copy)]
pub(super) enum Mark {
    /// Text of the command.
    Text(Slice),
    /// The variable whose name stands there.
    Variable(Slice, Option<Setter>),
    Unknown,
}

/// The pieces of a command's arguments.
#[derive(Debug, Clone, Default)]
pub(super) struct Trace {
    pub(super) marks: Vec<Mark>,
    /// For each argument; its marks are numbers of `marks`.
    pub(super) args: Vec<Runs>,
}

impl Trace {
    /// About what it takes, and the trace of an entry's line that is made of it.
    pub(super) fn bytes(&self) -> usize {
        let runs: usize = self.args.iter().map(Runs::bytes).sum();
        2 * (runs + size_of_val(self.args.as_slice()) + size_of_val(self.marks.as_slice()))
    }
}

/// Where a variable got its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum SetAt {
    /// A command of the script on this line, from 1.
    Line(usize),
    /// The environment block, by `load_env`.
    Env,
    /// Somewhere else: given from outside, a loop, text that was run.
    #[default]
    Unknown,
}

/// A variable's value and where it got it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Setting {
    /// The value. Bytes that are not UTF-8 come as U+FFFD.
    pub value: String,
    /// What has set it.
    pub at: SetAt,
}

/// Where a piece of an entry's arguments comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Came {
    /// Text of the command: its bytes in the file.
    Text(Bytes),
    Variable(Box<(String, SetAt)>),
    Unknown,
}

/// A range of bytes of a file that is smaller than 4 GiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bytes {
    start: u32,
    end: u32,
}

impl Bytes {
    pub(crate) fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// The pieces of what a loader gives the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct LineTrace {
    /// The line of the `linux` command; `None` where it is not text of the file.
    pub(crate) line: Option<usize>,
    pub(crate) came: Box<[Came]>,
    runs: Option<Runs>,
}

/// The mark of what separates arguments.
const BETWEEN: u32 = u32::MAX;

/// What turns places of a tree into places of a file.
pub(super) struct Places<'a> {
    pub(super) own: &'a Arc<Ast>,
    pub(super) offset: &'a dyn Fn(usize) -> usize,
    pub(super) line: &'a dyn Fn(usize) -> usize,
}

impl Places<'_> {
    fn line_at(&self, at: u32) -> usize {
        (self.line)((self.offset)(at as usize))
    }

    fn set_at(&self, setter: Option<Setter>) -> SetAt {
        match setter {
            Some(Setter::Script(at)) => SetAt::Line(self.line_at(at)),
            Some(Setter::Env) => SetAt::Env,
            None => SetAt::Unknown,
        }
    }

    /// Every variable of an environment.
    pub(super) fn settings(
        &self,
        env: &super::env::Env,
    ) -> alloc::collections::BTreeMap<String, Setting> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let settings = env.iter().map(|(name, value, setter)| {
            let at = self.set_at(setter);
            let value = text(value);
            (text(name), Setting { value, at })
        });
        settings.collect()
    }

    /// The pieces of the line that [`super::loader_quote`] makes of a command's arguments from
    /// `skip` on.
    pub(super) fn line_trace(&self, ran: &Ran, skip: usize) -> LineTrace {
        let own = Arc::ptr_eq(&ran.ast, self.own);
        let Some(trace) = ran.trace.as_ref().filter(|_| own) else {
            return LineTrace::default();
        };
        let came = trace.marks.iter().map(|mark| match mark {
            Mark::Text(slice) => {
                let range = slice.range();
                let end = range
                    .end
                    .checked_sub(1)
                    .map_or(0, |at| (self.offset)(at) + 1);
                let start = (self.offset)(range.start);
                Came::Text(Bytes {
                    start: offset(start),
                    end: offset(end.max(start)),
                })
            }
            Mark::Variable(name, setter) => Came::Variable(Box::new((
                String::from_utf8_lossy(self.own.text(*name)).to_string(),
                self.set_at(*setter),
            ))),
            Mark::Unknown => Came::Unknown,
        });
        let args = ran.argv.iter().zip(&trace.args).skip(skip);
        LineTrace {
            line: Some(self.line_at(ran.at)),
            came: came.collect(),
            runs: quoted(args),
        }
    }
}

impl LineTrace {
    /// About how many bytes it takes.
    pub(super) fn bytes(&self) -> usize {
        let came = self.came.iter().map(|came| match came {
            Came::Variable(set) => size_of_val(came) + size_of_val(set.as_ref()) + set.0.len(),
            _ => size_of_val(came),
        });
        came.sum::<usize>() + self.runs.as_ref().map_or(0, Runs::bytes)
    }

    /// Where the bytes of a range come from, each source once; `None` where nothing is known.
    pub(crate) fn of(&self, range: &Range<usize>) -> Option<Vec<&Came>> {
        let marks = self.runs.as_ref()?.marks(range)?;
        marks
            .into_iter()
            .filter(|mark| *mark != BETWEEN)
            .map(|mark| self.came.get(mark as usize))
            .collect()
    }
}

/// Follows [`super::loader_quote`], piece by piece.
fn quoted<'a>(args: impl Iterator<Item = (&'a Vec<u8>, &'a Runs)>) -> Option<Runs> {
    let mut line = Runs::default();
    for (i, (arg, runs)) in args.enumerate() {
        if i > 0 {
            line.push(1, BETWEEN);
        }
        let mut marks = Vec::with_capacity(arg.len());
        for (range, mark) in runs.pieces() {
            marks.resize(range.end, mark);
        }
        if marks.len() != arg.len() {
            return None;
        }
        let edges = arg
            .contains(&b' ')
            .then(|| marks.first().copied())
            .flatten();
        line.push(usize::from(edges.is_some()), edges.unwrap_or(BETWEEN));
        let mut marks = marks.into_iter();
        for chunk in arg.utf8_chunks() {
            for byte in chunk.valid().bytes() {
                let escaped = matches!(byte, b'\\' | b'\'' | b'"');
                line.push(1 + usize::from(escaped), marks.next()?);
            }
            let invalid = chunk.invalid().len();
            if let Some(mark) = marks.by_ref().take(invalid).last() {
                line.push("\u{fffd}".len(), mark);
            }
        }
        line.push(usize::from(edges.is_some()), edges.unwrap_or(BETWEEN));
    }
    Some(line.finish())
}
