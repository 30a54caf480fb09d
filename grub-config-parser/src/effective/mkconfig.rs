//! What `grub-mkconfig` has copied from shell variables into `grub.cfg`.
//!
//! `10_linux` writes `ro $GRUB_CMDLINE_LINUX $GRUB_CMDLINE_LINUX_DEFAULT` for an entry, and
//! `ro $GRUB_CMDLINE_LINUX_RECOVERY $GRUB_CMDLINE_LINUX` for a recovery entry, byte for byte. So the text
//! is looked for as a whole, and only between the marks of that script.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::Range;

use super::Chain;
use crate::cfg::{Entry, Script};
use crate::cmdline::arg_ranges;
use crate::defaults::{Evaluation, Variable};
use crate::origin::{Origin, Piece};

/// Text of shell variables, put together, with the place of each byte.
#[derive(Debug, Clone, Default)]
struct Joined {
    text: Vec<u8>,
    pieces: Vec<Piece>,
}

impl Joined {
    /// Adds a value; false if it is not known.
    fn push(&mut self, variable: Option<&Variable>) -> bool {
        let Some(variable) = variable else {
            return true;
        };
        let Some(value) = &variable.value else {
            return false;
        };
        let start = self.text.len();
        self.text.extend_from_slice(value.as_bytes());
        let moved = |range: &Range<usize>| range.start + start..range.end + start;
        self.pieces
            .extend(variable.pieces.iter().map(|piece| Piece {
                range: moved(&piece.range),
                origin: piece.origin.clone(),
            }));
        true
    }
}

/// What the generator writes, and where in the file it does.
#[derive(Debug)]
pub(super) struct Generated {
    normal: Option<Joined>,
    recovery: Option<Joined>,
    sections: Vec<Section>,
}

/// A part of the file that one script has written.
#[derive(Debug)]
struct Section {
    range: Range<usize>,
    lines: Range<usize>,
    script: String,
}

/// The place of copied text in the file.
pub(super) struct Copied<'a> {
    joined: &'a Joined,
    /// Where the file has `joined.text[skip..]`.
    range: Range<usize>,
    skip: usize,
}

impl Generated {
    pub(super) fn new(script: &Script, defaults: Option<&Evaluation>) -> Self {
        // A run that stops has not made this file.
        let usable = defaults.filter(|defaults| defaults.aborts.is_none());
        let join = |names: [&str; 2]| {
            let defaults = usable?;
            let mut joined = Joined::default();
            for (i, name) in names.into_iter().enumerate() {
                if i > 0 {
                    joined.text.push(b' ');
                }
                if !joined.push(defaults.vars.get(name)) {
                    return None;
                }
            }
            Some(joined)
        };
        Self {
            normal: join(["GRUB_CMDLINE_LINUX", "GRUB_CMDLINE_LINUX_DEFAULT"]),
            // Where the word for recovery comes from is the distribution's affair.
            recovery: join(["", "GRUB_CMDLINE_LINUX"]),
            sections: sections(script.source()),
        }
    }

    /// The script that has written this line, from 1.
    pub(super) fn script_at_line(&self, line: usize) -> Option<String> {
        let section = self
            .sections
            .iter()
            .find(|section| section.lines.contains(&line))?;
        Some(section.script.clone())
    }

    /// The script that has written what stands at this place of the file.
    pub(super) fn script_at(&self, at: usize) -> Option<String> {
        let section = self
            .sections
            .iter()
            .find(|section| section.range.contains(&at))?;
        Some(section.script.clone())
    }

    /// Where an argument in EL8's `kernelopts` was copied from. `grub2-mkconfig` sets that variable, in the
    /// environment block and in `grub.cfg`, to `root=... ro` and the same text as in an entry.
    pub(super) fn kernelopts(&self, value: &str, arg: &str) -> Option<Vec<Origin>> {
        let joined = self.normal.as_ref()?;
        let (_, rest) = value.trim().strip_prefix("root=")?.split_once(' ')?;
        let text = core::str::from_utf8(&joined.text).ok()?;
        if text.trim().is_empty() || rest.strip_prefix("ro ")?.trim() != text.trim() {
            return None;
        }
        let words = arg_ranges(text);
        let mut found: Option<Vec<Origin>> = None;
        for word in words.filter(|word| text.get(word.clone()) == Some(arg)) {
            let pieces = joined.pieces.iter();
            let inside = |range: &Range<usize>| range.start < word.end && word.start < range.end;
            let own = pieces.filter(|piece| inside(&piece.range));
            let origins: Vec<Origin> = own
                .map(|piece| piece.origin.clone())
                .collect::<Option<_>>()?;
            // The same word from two places: either may be meant.
            if found.as_ref().is_some_and(|other| *other != origins) {
                return None;
            }
            found = Some(origins);
        }
        found.filter(|origins| !origins.is_empty())
    }

    /// Where the arguments of this entry were copied from, if they were and still are the same.
    pub(super) fn copied(&self, script: &Script, entry: &Entry) -> Option<Copied<'_>> {
        let span = entry.linux_line.as_ref()?.args_span.clone();
        let by = self.script_at(span.start)?;
        let name = by.rsplit('/').next().unwrap_or(&by);
        if !name.starts_with("10_linux") {
            return None;
        }
        let recovery = entry.id.contains("-recovery-") || entry.title.contains("recovery mode");
        let joined = if recovery {
            self.recovery.as_ref()?
        } else {
            self.normal.as_ref()?
        };
        let wanted = joined.text.trim_ascii();
        let skip = joined.text.len() - joined.text.trim_ascii_start().len();
        let text = script.source().get(span.clone())?;
        let at = last_words(text, wanted)?;
        let start = span.start + at;
        Some(Copied {
            joined,
            range: start..start + wanted.len(),
            skip,
        })
    }
}

impl Copied<'_> {
    /// Adds the places that the text in this range of the file was copied from; false if it was not.
    pub(super) fn add(&self, range: &Range<usize>, chain: &mut Chain) -> bool {
        if range.start >= self.range.end || range.end <= self.range.start {
            return false;
        }
        let place = |at: usize| at.clamp(self.range.start, self.range.end) - self.range.start;
        let wanted = place(range.start) + self.skip..place(range.end) + self.skip;
        let mut covered = wanted.start;
        for piece in &self.joined.pieces {
            let own = &piece.range;
            if own.start < wanted.end && wanted.start < own.end {
                chain.step(piece.origin.clone());
                if own.start <= covered {
                    covered = covered.max(own.end);
                }
            }
        }
        if covered < wanted.end {
            chain.step(None);
        }
        true
    }
}

/// The parts of the file that stand between the marks of `grub-mkconfig`.
fn sections(source: &[u8]) -> Vec<Section> {
    let mut sections = Vec::new();
    let mut open = None;
    let mut at = 0;
    for (number, line) in source.split_inclusive(|byte| *byte == b'\n').enumerate() {
        if let Some(rest) = line.strip_prefix(b"### BEGIN ") {
            let path = rest.split(|byte| *byte == b' ').next().unwrap_or(rest);
            let script = String::from_utf8_lossy(path).trim_end().to_string();
            open = Some((at, number + 1, script));
        } else if line.starts_with(b"### END ")
            && let Some((start, first, script)) = open.take()
        {
            sections.push(Section {
                range: start..at,
                lines: first..number + 1,
                script,
            });
        }
        at += line.len();
    }
    sections
}

/// The last place where `text` has `wanted` as whole words.
fn last_words(text: &[u8], wanted: &[u8]) -> Option<usize> {
    if wanted.is_empty() {
        return None;
    }
    let blank = |byte: Option<&u8>| byte.is_none_or(u8::is_ascii_whitespace);
    let at = (0..=text.len().checked_sub(wanted.len())?).rev();
    at.into_iter().find(|at| {
        let before = at.checked_sub(1).and_then(|before| text.get(before));
        text.get(*at..).is_some_and(|rest| rest.starts_with(wanted))
            && blank(before)
            && blank(text.get(at + wanted.len()))
    })
}
