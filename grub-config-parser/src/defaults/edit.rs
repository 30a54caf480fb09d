//! Taking kernel arguments out of assignments, byte for byte.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use super::lex::ParseError;
use super::syntax::{Command, Operator, Part, Simple, Word};
use super::{Document, Shell};
use crate::cmdline::{Arg, split_bytes};

/// Why an edit is not made. Nothing is changed then.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum EditError {
    /// The assignment's value is computed by running something: what is in it is not known.
    Computed {
        /// The variable.
        variable: String,
        /// The line of the assignment, from 1.
        line: usize,
    },
    /// The file has a syntax error, and what follows it is not read.
    Syntax {
        /// The line near which it is.
        line: usize,
    },
}

impl fmt::Display for EditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Computed { variable, line } => write!(
                f,
                "line {line}: {variable} is computed there and cannot be edited; change it by hand",
            ),
            Self::Syntax { line } => {
                write!(f, "line {line}: a syntax error; correct the file first")
            }
        }
    }
}

impl core::error::Error for EditError {}

impl EditError {
    /// What a file that is not read to its end means to an edit.
    pub(super) fn of(error: &ParseError, shell: Shell, variable: &str) -> Self {
        let line = error.line;
        if shell == Shell::Bash && !error.certain {
            let variable = variable.to_string();
            return Self::Computed { variable, line };
        }
        Self::Syntax { line }
    }
}

/// Stands for text that comes from elsewhere; no kernel argument has this byte.
const OPAQUE: u8 = 0xff;

impl Document {
    /// Takes every kernel argument that `pattern` covers out of the literal text that this file
    /// assigns to `variable` (`quiet` all of the name, `iommu=pt` only with that value). All other
    /// bytes stay. Text that a reference like `$GRUB_CMDLINE_LINUX` brings in belongs to the place
    /// where it is assigned.
    ///
    /// # Errors
    /// [`EditError::Computed`] where an assignment runs something, [`EditError::Syntax`] where the file
    /// cannot be read to its end.
    pub fn remove_words(&self, variable: &str, pattern: &str) -> Result<Document, EditError> {
        if let Some(error) = &self.error {
            return Err(EditError::of(error, self.shell, variable));
        }
        let pattern = Arg::new(pattern);
        let mut cuts = Vec::new();
        for unit in self.units().flatten() {
            let mut words = Vec::new();
            collect(&unit.command, variable.as_bytes(), &mut words);
            for (word, line) in words {
                let Some(bytes) = source_bytes(&word.assigned_value()) else {
                    return Err(EditError::Computed {
                        variable: variable.to_string(),
                        line,
                    });
                };
                cuts.extend(cuts_of(&bytes, &pattern));
            }
        }
        Ok(Document::parse_for(&self.without(cuts), self.shell))
    }

    /// The source less these ranges of the text that dash reads, where NULs are left out.
    fn without(&self, mut cuts: Vec<Range<usize>>) -> Vec<u8> {
        cuts.sort_by_key(|cut| cut.start);
        let mut cuts = cuts.into_iter().peekable();
        let mut out = Vec::with_capacity(self.source.len());
        let mut at = 0;
        for byte in &self.source {
            if *byte == 0 {
                out.push(0);
                continue;
            }
            while cuts.next_if(|cut| cut.end <= at).is_some() {}
            if !cuts.peek().is_some_and(|cut| cut.contains(&at)) {
                out.push(*byte);
            }
            at += 1;
        }
        out
    }
}

/// The value's bytes, each with its place in the source; `None` where something is run for it.
fn source_bytes(parts: &[Part]) -> Option<Vec<(u8, Range<usize>)>> {
    let mut bytes = Vec::new();
    for part in parts {
        match part {
            Part::Text {
                text,
                span,
                exact: true,
                ..
            } => {
                bytes.extend(
                    text.iter()
                        .zip(span.clone())
                        .map(|(byte, at)| (*byte, at..at + 1)),
                );
            }
            // Which byte of `$'...'` stands where is not kept.
            Part::Text { text, .. } if text.len() > 1 => return None,
            Part::Text { text, span, .. } => {
                bytes.extend(text.iter().map(|byte| (*byte, span.clone())));
            }
            Part::Parameter {
                operator,
                word,
                span,
                ..
            } => {
                let plain = matches!(
                    operator,
                    Operator::Normal | Operator::Minus { .. } | Operator::Plus { .. }
                );
                if !plain || source_bytes(word).is_none() {
                    return None;
                }
                bytes.push((OPAQUE, span.clone()));
            }
            Part::Command { .. } | Part::Arithmetic { .. } => return None,
        }
    }
    Some(bytes)
}

/// The ranges to cut for every matching argument, with the blanks that separate it.
fn cuts_of(bytes: &[(u8, Range<usize>)], pattern: &Arg) -> Vec<Range<usize>> {
    let text: Vec<u8> = bytes.iter().map(|(byte, _)| *byte).collect();
    let mut drop = alloc::vec![false; text.len()];
    let mut from = 0;
    for arg in split_bytes(&text) {
        let start = from + blanks(text.get(from..).unwrap_or(&[]));
        let end = start + arg.raw.len();
        from = end;
        let known = !arg.raw.contains(&OPAQUE);
        if !known || !pattern.matches(&Arg::new(&String::from_utf8_lossy(arg.raw))) {
            continue;
        }
        // The blanks before it go too, as far as they stand right there: not those before a joined
        // line. For the first argument, those behind it go.
        let blank = |at: usize| text.get(at).is_some_and(u8::is_ascii_whitespace);
        let joined = |at: usize| match (at.checked_sub(1).and_then(|b| bytes.get(b)), bytes.get(at))
        {
            (Some((_, before)), Some((_, behind))) => before.end == behind.start,
            _ => false,
        };
        let gone = |at: usize| drop.get(at).copied().unwrap_or(false);
        let (mut begin, mut stop) = (start, end);
        while begin > 0 && blank(begin - 1) && !gone(begin - 1) && joined(begin) {
            begin -= 1;
        }
        if (0..start).all(|at| gone(at) || blank(at)) {
            begin = start;
            while blank(stop) && joined(stop) {
                stop += 1;
            }
        }
        for slot in drop.iter_mut().take(stop).skip(begin) {
            *slot = true;
        }
    }
    let dropped = bytes.iter().zip(drop).filter(|(_, gone)| *gone);
    dropped.map(|((_, span), _)| span.clone()).collect()
}

/// How many bytes that separate arguments stand at the start.
fn blanks(text: &[u8]) -> usize {
    text.iter()
        .take_while(|byte| matches!(byte, b' ' | b'\t'..=b'\r' | 0xa0))
        .count()
}

pub(super) fn collect<'c>(command: &'c Command, variable: &[u8], out: &mut Vec<(&'c Word, usize)>) {
    match command {
        Command::Simple(simple) => collect_simple(simple, variable, out),
        Command::Pipeline { commands, .. } | Command::List(commands) => {
            for command in commands {
                collect(command, variable, out);
            }
        }
        Command::Not(command)
        | Command::Background(command)
        | Command::Subshell { body: command, .. }
        | Command::Redirected { command, .. }
        | Command::Function { body: command, .. }
        | Command::For { body: command, .. } => collect(command, variable, out),
        Command::Chain { first, rest } => {
            collect(first, variable, out);
            for (_, command) in rest {
                collect(command, variable, out);
            }
        }
        Command::If {
            branches,
            otherwise,
        } => {
            for (condition, body) in branches {
                collect(condition, variable, out);
                collect(body, variable, out);
            }
            if let Some(otherwise) = otherwise {
                collect(otherwise, variable, out);
            }
        }
        Command::While {
            condition, body, ..
        } => {
            collect(condition, variable, out);
            collect(body, variable, out);
        }
        Command::Case { arms, .. } => {
            for (_, body) in arms {
                collect(body, variable, out);
            }
        }
    }
}

fn collect_simple<'c>(simple: &'c Simple, variable: &[u8], out: &mut Vec<(&'c Word, usize)>) {
    let assigns = super::builtin::assigns(&simple.words);
    let arguments = if assigns {
        simple.words.as_slice()
    } else {
        &[]
    };
    for word in simple.assignments.iter().chain(arguments) {
        if word.assigned_name().as_deref() == Some(variable) {
            out.push((word, simple.line));
        }
    }
}
