//! Problems of one file while it is being read, before lines and columns are known.

use std::ops::Range;

use crate::diagnostic::{Diagnostic, Severity};
use crate::escape::spell_out;
use crate::source::position;

/// A problem at a span of bytes.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    pub(crate) severity: Severity,
    pub(crate) span: Range<usize>,
    pub(crate) message: String,
    pub(crate) label: Option<String>,
    pub(crate) help: Option<String>,
    pub(crate) key: Option<String>,
}

impl Problem {
    pub(crate) fn error(span: Range<usize>, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            span,
            message: message.into(),
            label: None,
            help: None,
            key: None,
        }
    }

    pub(crate) fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    pub(crate) fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// The problem with its place in `text`, the text of `file`.
    fn locate(self, file: &str, text: &str) -> Diagnostic {
        let at = position(text, self.span);
        Diagnostic {
            severity: self.severity,
            file: file.to_owned(),
            line: at.line,
            column: at.column,
            width: at.width,
            message: spell_out(&self.message),
            label: self.label.as_deref().map(spell_out),
            help: self.help.as_deref().map(spell_out),
            key: self.key.as_deref().map(spell_out),
        }
    }
}

/// More problems than this in one file are counted, not kept: a file of another kind has one on
/// every line.
const LIMIT: usize = 100;

/// The problems of one file.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    kept: Vec<Problem>,
    dropped: usize,
}

impl Problems {
    pub(crate) fn push(&mut self, problem: Problem) {
        self.push_with(|| problem);
    }

    /// `push` for problems that take work to describe.
    pub(crate) fn push_with(&mut self, problem: impl FnOnce() -> Problem) {
        if self.kept.len() < LIMIT {
            self.kept.push(problem());
        } else {
            self.dropped += 1;
        }
    }

    /// Takes the problems of `other` that `wanted` picks.
    pub(crate) fn absorb(&mut self, other: Self, wanted: impl Fn(&Problem) -> bool) {
        other
            .kept
            .into_iter()
            .filter(|problem| wanted(problem))
            .for_each(|it| self.push(it));
        self.dropped += other.dropped;
    }

    /// All problems in the order of the text.
    pub(crate) fn locate(mut self, file: &str, text: &str) -> Vec<Diagnostic> {
        self.kept
            .sort_by_key(|problem| (problem.span.start, problem.severity));
        let mut out: Vec<Diagnostic> = self
            .kept
            .into_iter()
            .map(|problem| problem.locate(file, text))
            .collect();
        if self.dropped > 0 {
            let message = format!("{} more problems in this file are not shown", self.dropped);
            let help = "is this a policy file?".to_owned();
            out.push(Diagnostic::of_file(
                Severity::Error,
                file,
                message,
                Some(help),
            ));
        }
        out
    }
}
