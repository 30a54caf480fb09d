//! `/etc/default/grub` and its drop-ins: shell files, as dash or bash reads them under `set -e`.
//!
//! [`Document`] keeps every byte of a file. [`evaluate`] says what `grub-mkconfig` gets from files that
//! it sources one after the other. Nothing is ever run: a value is *literal*, *derived* from known
//! ones, or *computed*, and a computed one is reported as such and never guessed.
//!
//! ```
//! use grub_config_parser::defaults::{Document, File, Kind, evaluate};
//! let grub = Document::parse(b"GRUB_CMDLINE_LINUX=quiet\n");
//! let drop_in = Document::parse(b"GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX iommu=pt\"\n");
//! let files = [File { name: "grub", doc: &grub }, File { name: "50-gpu.cfg", doc: &drop_in }];
//! let vars = evaluate(&files).vars;
//! let line = &vars["GRUB_CMDLINE_LINUX"];
//! assert_eq!(line.value.as_deref(), Some("quiet iommu=pt"));
//! assert_eq!(line.kind, Kind::Derived);
//! ```

mod add;
mod builtin;
mod compound;
mod dollar;
mod edit;
mod exec;
mod expand;
mod glob;
mod keywords;
mod lex;
mod names;
mod nested;
mod parse;
mod state;
mod syntax;
mod test;
mod touch;
mod word_state;

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

pub use edit::EditError;

use crate::origin::{Origin, Piece};
use crate::room::Room;
use state::{State, Status, Stop, Value};

/// The shell that sources the files: what `/bin/sh` is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Shell {
    /// dash, as on Debian and Ubuntu.
    #[default]
    Dash,
    /// bash that was called as `sh` and so follows POSIX, as on Red Hat's systems, Fedora and SUSE.
    /// `X+=y` appends, `$'...'` is a quote. What else only bash knows makes values computed.
    Bash,
}

/// What a token of a shell file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// Blanks, and newlines that a backslash takes away.
    Blank,
    /// `#` to the end of the line.
    Comment,
    /// A newline that ends a command.
    Newline,
    /// A word, an assignment too, with all its quotes.
    Word,
    /// `;`, `&&`, `>` and kin.
    Operator,
    /// The lines of a here-document.
    HereDocument,
    /// What follows a syntax error: not read.
    Unread,
}

/// One token: a kind and the bytes it stands on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: TokenKind,
    /// Its place in the source.
    pub span: Range<usize>,
}

/// A shell file, every byte kept.
#[derive(Debug, Clone)]
pub struct Document {
    source: Vec<u8>,
    shell: Shell,
    /// What dash reads, where that is not the source: it deletes NULs.
    read: Option<Vec<u8>>,
    error: Option<lex::ParseError>,
}

impl Document {
    /// Reads a file. A syntax error is kept and ends [`evaluate`] where dash would stop.
    ///
    /// ```
    /// use grub_config_parser::defaults::Document;
    /// let document = Document::parse(b"GRUB_TIMEOUT=5\nGRUB_DEFAULT='saved\n");
    /// assert_eq!(document.syntax_error().unwrap().0, 3);
    /// ```
    pub fn parse(source: &[u8]) -> Self {
        Self::parse_for(source, Shell::Dash)
    }

    /// Reads a file that this shell is to source. What only bash knows and is not followed counts as an
    /// error here too; [`evaluate_for`] tells the two apart.
    ///
    /// ```
    /// use grub_config_parser::defaults::{Document, File, Shell, evaluate_for};
    /// let doc = Document::parse_for(b"GRUB_CMDLINE_LINUX=quiet\nGRUB_CMDLINE_LINUX+=' iommu=pt'\n", Shell::Bash);
    /// let vars = evaluate_for(&[File { name: "grub", doc: &doc }], Shell::Bash).vars;
    /// assert_eq!(vars["GRUB_CMDLINE_LINUX"].value.as_deref(), Some("quiet iommu=pt"));
    /// ```
    pub fn parse_for(source: &[u8], shell: Shell) -> Self {
        let nuls = source.contains(&0);
        let read = nuls.then(|| source.iter().copied().filter(|byte| *byte != 0).collect());
        let mut document = Self {
            source: source.to_vec(),
            shell,
            read,
            error: None,
        };
        document.error = document.units().find_map(Result::err);
        document
    }

    /// The file's commands, read anew: only one at a time takes memory.
    fn units(&self) -> parse::Units<'_> {
        self.units_for(self.shell)
    }

    fn units_for(&self, shell: Shell) -> parse::Units<'_> {
        parse::Units::new(self.read.as_ref().unwrap_or(&self.source), 1, 0, shell)
    }

    /// The file as it was given.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.source.clone()
    }

    /// The file's tokens. Their spans follow each other and cover the whole file.
    pub fn tokens(&self) -> Vec<Token> {
        let end = self.source.len();
        let Some(read) = &self.read else {
            return complete(&parse::tokens(&self.source, self.shell), end, |at| at);
        };
        let bytes = self.source.iter().enumerate();
        let places: Vec<usize> = bytes.filter(|(_, b)| **b != 0).map(|(at, _)| at).collect();
        complete(&parse::tokens(read, self.shell), end, |at| {
            places.get(at).copied().unwrap_or(end)
        })
    }

    /// The line near which the shell would find a syntax error, and what is wrong there.
    pub fn syntax_error(&self) -> Option<(usize, &str)> {
        let error = self.error.as_ref()?;
        Some((error.line, error.message.as_str()))
    }
}

/// Fills the gaps between tokens and puts their places into the source.
fn complete(tokens: &[Token], end: usize, place: impl Fn(usize) -> usize) -> Vec<Token> {
    let mut all: Vec<Token> = Vec::with_capacity(tokens.len() * 2);
    let mut at = 0;
    for token in tokens {
        let start = place(token.span.start);
        let stop = token
            .span
            .end
            .checked_sub(1)
            .map_or(0, |last| place(last) + 1);
        if start < at || stop <= start {
            continue;
        }
        if start > at {
            all.push(Token {
                kind: TokenKind::Blank,
                span: at..start,
            });
        }
        all.push(Token {
            kind: token.kind,
            span: start..stop,
        });
        at = stop;
    }
    if at < end {
        all.push(Token {
            kind: TokenKind::Unread,
            span: at..end,
        });
    }
    all
}

/// A file to be sourced: its name as it shall be shown, and its text.
#[derive(Debug, Clone, Copy)]
pub struct File<'a> {
    /// The name.
    pub name: &'a str,
    /// The text.
    pub doc: &'a Document,
}

/// What sourcing files gives.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Evaluation {
    /// The variables that are set, or may be.
    pub vars: BTreeMap<String, Variable>,
    /// Where sourcing stops before the end, if it does; `vars` are as they stand there.
    pub aborts: Option<Abort>,
    /// Where bash does what is not followed, if it does: every variable that the files name is computed, and
    /// others may be set. Never with dash.
    pub lost: Option<Abort>,
}

/// One variable.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Variable {
    /// Its value; `None` if it is computed. Bytes that are not UTF-8 come as U+FFFD.
    pub value: Option<String>,
    /// How the value came about.
    pub kind: Kind,
    /// Every assignment that was met, in order, also those that may not have run.
    pub assignments: Vec<Location>,
    /// Where each byte of `value` is written: the assignment whose text it is, not the one that brought
    /// it here by a reference. Empty where nothing is known about any of it.
    pub pieces: Vec<Piece>,
}

/// How a value came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The last assignment has no expansion.
    Literal,
    /// It refers to known values only.
    Derived,
    /// It needs something to be run or looked up.
    Computed,
}

/// A line of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// The file's name.
    pub file: Arc<str>,
    /// The line, from 1; 0 where it is not known.
    pub line: usize,
}

/// The place where sourcing stops.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Abort {
    /// The file's name.
    pub file: String,
    /// The line where the failing command begins; for a syntax error one near it.
    pub line: usize,
    /// What is wrong there.
    pub message: String,
}

/// Sources the files one after the other, as `dash -e` does with an empty environment.
pub fn evaluate(files: &[File<'_>]) -> Evaluation {
    evaluate_for(files, Shell::Dash)
}

/// Sources the files one after the other, as this shell does under `set -e` with an empty environment,
/// whichever shell they were parsed for. What bash does is told only where it is certain: all else is
/// computed.
pub fn evaluate_for(files: &[File<'_>], shell: Shell) -> Evaluation {
    let input = files.iter().map(|file| file.doc.source.len()).sum();
    let mut state = State::new(Room::new(input, input), shell);
    let mut aborts = None;
    let mut lost = None;
    for (number, file) in files.iter().enumerate() {
        state.file_number = u32::try_from(number).unwrap_or(u32::MAX);
        // Whatever its size, a file without loops is followed to its end.
        state.fuel = state
            .fuel
            .saturating_add(u32::try_from(file.doc.source.len()).unwrap_or(u32::MAX));
        if let Some((line, message)) = source(&mut state, file.doc) {
            let stop = Some(Abort {
                file: file.name.to_string(),
                line,
                message,
            });
            *(if state.lost { &mut lost } else { &mut aborts }) = stop;
            break;
        }
    }
    if state.lost {
        state.know_nothing(files);
    }
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut vars = BTreeMap::new();
    let names: Vec<Arc<str>> = files.iter().map(|file| Arc::from(file.name)).collect();
    let location = |(file, line): &(u32, u32)| Location {
        file: names.get(*file as usize).cloned().unwrap_or_default(),
        line: *line as usize,
    };
    let marks = Marks::new(&state);
    for (name, variable) in state.variables {
        let mut pieces = Vec::new();
        let (value, kind) = match variable.value {
            Value::Unset => continue,
            Value::Known(value, kind) => {
                pieces = pieces_of(&value, &marks, files);
                (Some(text(&value.bytes)), kind)
            }
            Value::Unknown => (None, Kind::Computed),
        };
        vars.insert(
            text(&name),
            Variable {
                value,
                kind,
                assignments: variable.assignments.iter().map(location).collect(),
                pieces,
            },
        );
    }
    Evaluation { vars, aborts, lost }
}

/// What the marks of values stand for.
struct Marks {
    places: Arc<Vec<state::Place>>,
    names: BTreeMap<u32, Vec<u8>>,
}

impl Marks {
    fn new(state: &State) -> Self {
        let names = state.names.iter();
        Self {
            places: Arc::clone(&state.places),
            names: names
                .map(|(name, number)| (*number, name.clone()))
                .collect(),
        }
    }
}

/// Names the places of a value's bytes.
fn pieces_of(value: &state::Tracked, marks: &Marks, files: &[File<'_>]) -> Vec<Piece> {
    // What is shown of other text has other offsets.
    if core::str::from_utf8(&value.bytes).is_err() {
        return Vec::new();
    }
    let origin = |mark| {
        let place = state::place_of(&marks.places, mark)?;
        let file = files.get(place.file as usize)?;
        let variable = String::from_utf8_lossy(marks.names.get(&place.variable)?);
        Some(Origin::new(file.name, place.line as usize, Some(&variable)))
    };
    let pieces = value.runs.pieces();
    pieces
        .map(|(range, mark)| Piece {
            range,
            origin: origin(mark),
        })
        .collect()
}

const TOO_MUCH: &str = "so much is set by here that its memory is more than ten times the files";

/// Sources one file; gives where and why the shell ends, if it does.
fn source(state: &mut State, doc: &Document) -> Option<(usize, String)> {
    let mut last = (Status::Ok, 0);
    if state.is_bash() && doc.source.iter().any(|byte| matches!(byte, 0 | 1 | 0x7f)) {
        state.lost = true;
        return Some((1, lex::FOREIGN.to_string()));
    }
    for unit in doc.units_for(state.shell) {
        let unit = match unit {
            Ok(unit) => unit,
            Err(error) => {
                state.lost |= state.is_bash() && !error.certain;
                return Some((error.line, error.message));
            }
        };
        if state.no_exec {
            continue;
        }
        let ran = state.run(&unit.command, false);
        if state.is_full() {
            state.lost |= state.is_bash();
            return Some((unit.line, TOO_MUCH.to_string()));
        }
        match ran {
            Ok(status) => last = (status, unit.line),
            Err(Stop::Abort { line, message }) => {
                let line = if line == 0 { unit.line } else { line };
                return Some((line, message.to_string()));
            }
            Err(Stop::Return(status)) => {
                return fails(state, status, unit.line);
            }
            Err(Stop::Lost) => {
                state.lost = true;
                return Some((unit.line, lex::FOREIGN.to_string()));
            }
            Err(Stop::Break(_) | Stop::Continue(_)) => last = (Status::Ok, unit.line),
        }
    }
    fails(state, last.0, last.1)
}

/// The status of the last command is that of sourcing the file.
fn fails(state: &State, status: Status, line: usize) -> Option<(usize, String)> {
    let fails = status == Status::Fail && state.exit_on_error == Some(true);
    fails.then(|| (line, "the last command of the file fails".to_string()))
}

impl State {
    /// Makes every variable that the files may name unknown, as far as there is memory for their names.
    fn know_nothing(&mut self, files: &[File<'_>]) {
        for file in files {
            let source = &file.doc.source;
            let words = source.split(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_');
            for name in words.filter(|word| word.starts_with(b"GRUB_")) {
                if self.is_full() {
                    break;
                }
                self.taint(name, None);
            }
        }
        for variable in self.variables.values_mut() {
            variable.value = Value::Unknown;
        }
    }
}
