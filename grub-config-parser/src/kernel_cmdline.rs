//! `/etc/kernel/cmdline` and `/usr/lib/kernel/cmdline`: the arguments that a newly installed kernel gets.
//!
//! systemd's `90-loaderentry.install` and Red Hat's `20-grub.install` both take every word of the file:
//! blanks and newlines separate alike, and **there are no comments**. Other readers (mkinitcpio among them)
//! skip lines that start with `#`, so what such a line means depends on who reads it: it is reported by
//! [`KernelCmdline::comments`], and edits leave it alone.
//!
//! ```
//! use grub_config_parser::cmdline::{Arg, Edit};
//! use grub_config_parser::kernel_cmdline::KernelCmdline;
//! let file = KernelCmdline::parse(b"root=/dev/sda1 ro\nquiet\n")?;
//! assert_eq!(file.options(), "root=/dev/sda1 ro quiet");
//! let edited = file.edit(&Edit::Set(&Arg::new("iommu=pt")))?.unwrap();
//! assert_eq!(edited.as_bytes(), b"root=/dev/sda1 ro\nquiet iommu=pt\n");
//! # Ok::<(), grub_config_parser::kernel_cmdline::KernelCmdlineError>(())
//! ```

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use crate::cmdline::{Arg, CommandLine, Edit, edit_line};

/// Why a file is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum KernelCmdlineError {
    /// It is not UTF-8.
    NotText {
        /// The line of the first byte that is not, from 1.
        line: usize,
    },
    /// A quote is not closed, or goes over a line that starts with `#`: what an edit would do is not
    /// clear.
    Quote {
        /// The line of the last quote, from 1.
        line: usize,
    },
    /// It has a NUL byte: one reader drops it, another stops there.
    Nul {
        /// The line, from 1.
        line: usize,
    },
}

impl fmt::Display for KernelCmdlineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotText { line } => {
                write!(f, "line {line}: not UTF-8 text; correct the file first")
            }
            Self::Quote { line } => write!(
                f,
                "line {line}: a quote is not closed, or a comment is inside; correct the file first",
            ),
            Self::Nul { line } => write!(f, "line {line}: a NUL byte; correct the file first"),
        }
    }
}

impl core::error::Error for KernelCmdlineError {}

/// The file, every byte kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelCmdline {
    text: String,
}

impl KernelCmdline {
    /// Reads a file.
    ///
    /// # Errors
    /// [`KernelCmdlineError`], with the line.
    pub fn parse(bytes: &[u8]) -> Result<Self, KernelCmdlineError> {
        let line = |at: usize| {
            let before = bytes.get(..at).unwrap_or(bytes);
            1 + before.iter().filter(|byte| **byte == b'\n').count()
        };
        if let Some(at) = bytes.iter().position(|byte| *byte == 0) {
            return Err(KernelCmdlineError::Nul { line: line(at) });
        }
        match core::str::from_utf8(bytes) {
            Ok(text) => Ok(Self {
                text: text.to_string(),
            }),
            Err(error) => Err(KernelCmdlineError::NotText {
                line: line(error.valid_up_to()),
            }),
        }
    }

    /// The file as it is.
    pub fn as_bytes(&self) -> &[u8] {
        self.text.as_bytes()
    }

    /// What `kernel-install` writes behind `options`: every word, one blank between each two, whatever a
    /// `#` may have been meant to be.
    pub fn options(&self) -> String {
        let words = self
            .text
            .split([' ', '\t', '\n'])
            .filter(|word| !word.is_empty());
        words.collect::<Vec<_>>().join(" ")
    }

    /// [`KernelCmdline::options`], split as the kernel does.
    pub fn cmdline(&self) -> CommandLine {
        CommandLine::parse(&self.options())
    }

    /// The lines, from 1, that start with `#`. `kernel-install` takes their words for arguments.
    pub fn comments(&self) -> Vec<usize> {
        let lines = self
            .lines()
            .enumerate()
            .filter(|(_, (_, comment))| *comment);
        lines.map(|(number, _)| number + 1).collect()
    }

    /// Changes one argument, all other bytes kept; `None` where there is nothing to change. An added
    /// argument goes behind the last one that is not in a comment.
    ///
    /// # Errors
    /// [`KernelCmdlineError::Quote`].
    pub fn edit(&self, edit: &Edit<'_>) -> Result<Option<Self>, KernelCmdlineError> {
        let parts = self.parts();
        let lines = || {
            parts
                .iter()
                .map(|(text, comment)| (CommandLine::parse(text), *comment))
        };
        let before = self.plain();
        let mut after = before.clone();
        edit.apply(&mut after);
        if after == before {
            return Ok(None);
        }
        // Nothing behind `--` is the kernel's.
        let last = lines()
            .position(|(line, comment)| !comment && line.args().iter().any(Arg::is_separator));
        let filled = lines()
            .enumerate()
            .filter(|(_, (line, comment))| !comment && !line.args().is_empty());
        let mut filled = filled.map(|(at, _)| at);
        let last = last.or_else(|| filled.next_back());
        let mut text = String::with_capacity(self.text.len());
        for (at, (part, comment)) in parts.iter().enumerate() {
            let here = match edit {
                Edit::Set(_) => last == Some(at),
                Edit::Remove(_) => !comment && last.is_none_or(|last| at <= last),
            };
            let edited = if here {
                edit_line(part, edit).map_err(|_| self.quote())?
            } else {
                None
            };
            text.push_str(edited.as_deref().unwrap_or(part));
        }
        if let (Edit::Set(arg), None) = (edit, last) {
            // No argument yet: a line of its own.
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(arg.raw());
            text.push('\n');
        }
        let edited = Self { text };
        if edited.plain() == after {
            Ok(Some(edited))
        } else {
            Err(self.quote())
        }
    }

    fn quote(&self) -> KernelCmdlineError {
        let before = self.text.rsplit_once('"').map_or("", |(before, _)| before);
        KernelCmdlineError::Quote {
            line: 1 + before.matches('\n').count(),
        }
    }

    /// The arguments that are not in comments.
    fn plain(&self) -> CommandLine {
        let parts = self.parts().into_iter().filter(|(_, comment)| !comment);
        CommandLine::parse(&parts.map(|(text, _)| text).collect::<String>())
    }

    /// The text, cut where comments begin and end.
    fn parts(&self) -> Vec<(&str, bool)> {
        let mut parts: Vec<(Range<usize>, bool)> = Vec::new();
        for (range, comment) in self.lines() {
            match parts.last_mut() {
                Some((last, own)) if *own == comment => last.end = range.end,
                _ => parts.push((range, comment)),
            }
        }
        let text = |range: Range<usize>| self.text.get(range).unwrap_or("");
        parts
            .into_iter()
            .map(|(range, comment)| (text(range), comment))
            .collect()
    }

    /// The lines with their newlines, and whether each is a comment.
    fn lines(&self) -> impl Iterator<Item = (Range<usize>, bool)> {
        let mut at = 0;
        self.text.split_inclusive('\n').map(move |line| {
            let start = at;
            at += line.len();
            (
                start..at,
                line.trim_start_matches([' ', '\t']).starts_with('#'),
            )
        })
    }
}
