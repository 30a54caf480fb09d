//! Expansion: what a word comes to, as far as it is known.

use alloc::vec::Vec;

use super::Kind;
use super::state::{HERE, State, Stop, Tracked, Value};
use super::syntax::{Operator, Part, Word};
use crate::trace::Runs;

/// A longer text counts as unknown: no kernel takes a line that is an eighth of it.
const MOST_BYTES: usize = 1 << 15;

/// Expanded text.
#[derive(Debug, Clone, Default)]
pub(super) struct Text {
    /// `None` where something unknown is in it.
    pub(super) known: Option<Tracked>,
    /// True if any expansion stands in the word.
    pub(super) expanded: bool,
    /// True if a command substitution has run: the status is that of its last one.
    pub(super) substituted: bool,
}

impl Text {
    fn known() -> Self {
        Self {
            known: Some(Tracked::default()),
            ..Self::default()
        }
    }

    /// Text that stands in the command itself.
    fn push(&mut self, bytes: &[u8]) {
        self.put(bytes, &Runs::one(bytes.len(), HERE));
    }

    fn put(&mut self, bytes: &[u8], runs: &Runs) {
        if let Some(own) = &mut self.known {
            own.bytes.extend_from_slice(bytes);
            own.runs.append(runs);
            // Values that double and double again are nobody's configuration.
            if own.bytes.len() > MOST_BYTES {
                self.known = None;
            }
        }
    }

    fn append(&mut self, other: Text) {
        self.expanded |= other.expanded;
        self.substituted |= other.substituted;
        match other.known {
            Some(text) => self.put(&text.bytes, &text.runs),
            None => self.known = None,
        }
    }

    /// The bytes alone, where they are known.
    pub(super) fn bytes(&self) -> Option<&[u8]> {
        self.known.as_ref().map(|text| text.bytes.as_slice())
    }

    /// The value of a variable that had one before and to which this is appended.
    pub(super) fn behind(self, before: Value) -> Value {
        let mut all = match before {
            Value::Known(text, _) => Text {
                known: Some(text),
                ..Text::default()
            },
            Value::Unset => Text::known(),
            Value::Unknown => Text::default(),
        };
        all.append(self);
        all.expanded = true;
        all.value()
    }

    pub(super) fn value(self) -> Value {
        let kind = if self.expanded {
            Kind::Derived
        } else {
            Kind::Literal
        };
        self.known
            .map_or(Value::Unknown, |text| Value::Known(text, kind))
    }
}

/// The words of a command.
#[derive(Debug, Default)]
pub(super) struct Fields {
    /// `None` where their number or text is not known.
    pub(super) words: Option<Vec<Vec<u8>>>,
    /// The first word, if that is known.
    pub(super) first: Option<Vec<u8>>,
    pub(super) substituted: bool,
    /// What each word as written has come to.
    pub(super) each: Vec<Expanded>,
}

/// What one word of a command has come to.
#[derive(Debug, Clone)]
pub(super) enum Expanded {
    /// `NAME=value`, for a command that takes assignments.
    Assignment(Vec<u8>, Value),
    Words(Vec<Vec<u8>>),
    Unknown,
}

impl State {
    /// Expands parts to one text, as in an assignment.
    pub(super) fn expand(&mut self, parts: &[Part], line: usize) -> Result<Text, Stop> {
        let mut text = Text::known();
        let mut tilde = true;
        for part in parts {
            match part {
                Part::Text {
                    text: own, quoted, ..
                } => {
                    // An unquoted `~name` at the start or behind `:` may be a home directory. Without
                    // HOME a bare `~` stays; other names come from the user database.
                    // bash puts in the user's home directory for a bare one too.
                    let bare = self.is_bash() && own.contains(&b'~');
                    if !quoted && (bare || names_home(own, tilde)) {
                        text.known = None;
                    }
                    tilde = !quoted && own.ends_with(b":");
                    text.push(own);
                }
                other => {
                    tilde = false;
                    let inner = self.expand_part(other, line)?;
                    text.append(inner);
                }
            }
        }
        Ok(text)
    }

    fn expand_part(&mut self, part: &Part, line: usize) -> Result<Text, Stop> {
        match part {
            Part::Text { text, .. } => {
                let mut known = Text::known();
                known.push(text);
                Ok(known)
            }
            Part::Command { .. } => Ok(Text {
                known: None,
                expanded: true,
                substituted: true,
            }),
            Part::Arithmetic { parts, .. } => {
                let text = self.expand(parts, line)?;
                self.taint_arithmetic(parts, line);
                Ok(Text {
                    known: None,
                    expanded: true,
                    substituted: text.substituted,
                })
            }
            Part::Parameter {
                name,
                operator,
                word,
                ..
            } => {
                let mut text = self.parameter(name, *operator, word, line)?;
                text.expanded = true;
                Ok(text)
            }
        }
    }

    /// Arithmetic can assign.
    fn taint_arithmetic(&mut self, parts: &[Part], line: usize) {
        for name in assigned_in_arithmetic(parts) {
            self.taint(&name, Some(line));
        }
    }

    fn parameter(
        &mut self,
        name: &[u8],
        operator: Operator,
        word: &[Part],
        line: usize,
    ) -> Result<Text, Stop> {
        let value = self.get(name);
        let unknown = Text::default();
        let colon = match operator {
            Operator::Bad => return Err(abort(line, "a bad substitution")),
            Operator::Other => {
                for name in assigned_in_word(word) {
                    self.taint(&name, Some(line));
                }
                return Ok(unknown);
            }
            Operator::Normal => {
                return match value {
                    Value::Known(text, _) => Ok(Text {
                        known: Some(text),
                        ..Text::default()
                    }),
                    Value::Unset if self.unset_is_error => {
                        Err(abort(line, "a variable is not set, and set -u is on"))
                    }
                    Value::Unset => Ok(Text::known()),
                    Value::Unknown => Ok(unknown),
                };
            }
            Operator::Minus { colon }
            | Operator::Plus { colon }
            | Operator::Assign { colon }
            | Operator::Question { colon } => colon,
        };
        let set = match &value {
            Value::Unset => Some(false),
            Value::Known(text, _) => Some(!colon || !text.bytes.is_empty()),
            Value::Unknown => None,
        };
        match (operator, set) {
            (Operator::Plus { .. }, Some(true)) | (Operator::Minus { .. }, Some(false)) => {
                self.expand(word, line)
            }
            (Operator::Plus { .. }, Some(false)) => Ok(Text::known()),
            (Operator::Assign { .. }, Some(false)) => {
                let text = self.expand(word, line)?;
                if !super::parse::is_name(name) {
                    return Err(abort(line, "a parameter that cannot be assigned"));
                }
                let known = text.known.clone();
                let value = known.map_or(Value::Unknown, |text| Value::Known(text, Kind::Derived));
                if !self.set(name, value, line) {
                    return Err(abort(line, "a read-only variable is assigned"));
                }
                Ok(text)
            }
            (Operator::Question { .. }, Some(false)) => Err(abort(
                line,
                "a variable is not set, and ${...?} asks for it",
            )),
            (_, Some(_)) => match value {
                Value::Known(text, _) => Ok(Text {
                    known: Some(text),
                    ..Text::default()
                }),
                _ => Ok(unknown),
            },
            (_, None) => {
                // The word may be expanded, and then may assign.
                for name in assigned_in_word(word) {
                    self.taint(&name, Some(line));
                }
                if matches!(operator, Operator::Assign { .. }) {
                    self.taint(name, Some(line));
                }
                Ok(unknown)
            }
        }
    }

    /// Expands a command's words. With `assigning`, a word that looks like an assignment is not split.
    pub(super) fn fields(
        &mut self,
        words: &[Word],
        assigning: bool,
        line: usize,
    ) -> Result<Fields, Stop> {
        let mut fields = Fields {
            words: Some(Vec::new()),
            ..Fields::default()
        };
        for word in words {
            self.lost |= self.is_bash() && (word.braces() || word.appends);
            let name = if assigning {
                word.assigned_name()
            } else {
                None
            };
            let own = if let Some(name) = name {
                let text = self.expand(&word.assigned_value(), line)?;
                fields.substituted |= text.substituted;
                let whole = text
                    .bytes()
                    .map(|bytes| [&name, b"=".as_slice(), bytes].concat());
                fields.each.push(Expanded::Assignment(name, text.value()));
                whole.map(|whole| alloc::vec![whole])
            } else {
                let (own, substituted) = self.split(word, line)?;
                fields.substituted |= substituted;
                fields
                    .each
                    .push(own.clone().map_or(Expanded::Unknown, Expanded::Words));
                own
            };
            match (&mut fields.words, own) {
                (Some(words), Some(own)) => words.extend(own),
                _ => fields.words = None,
            }
            if fields.first.is_none() {
                fields.first = fields
                    .words
                    .as_ref()
                    .and_then(|words| words.first().cloned());
            }
        }
        Ok(fields)
    }

    /// Expands a word and splits what is unquoted at blanks. `None` where that is not known: also
    /// where names of files may be put in.
    fn split(&mut self, word: &Word, line: usize) -> Result<Split, Stop> {
        let mut splitter = Splitter::default();
        let mut known = true;
        let mut substituted = false;
        for (i, part) in word.parts.iter().enumerate() {
            match part {
                Part::Text { text, quoted, .. } => {
                    let bare = self.is_bash() && text.contains(&b'~');
                    known &= *quoted || !(bare || names_home(text, i == 0) || globs(text));
                    splitter.keep(text, *quoted);
                }
                other => {
                    let text = self.expand_part(other, line)?;
                    substituted |= text.substituted;
                    let quoted = matches!(
                        other,
                        Part::Parameter { quoted: true, .. } | Part::Command { quoted: true, .. }
                    );
                    match text.bytes() {
                        Some(bytes) if quoted => splitter.keep(bytes, true),
                        Some(bytes) => {
                            known &=
                                !globs(bytes) && !self.variables.contains_key(b"IFS".as_slice());
                            splitter.split(bytes);
                        }
                        None => known = false,
                    }
                }
            }
        }
        Ok((known.then(|| splitter.finish()), substituted))
    }
}

/// The words that one word gives, and whether a command substitution has run for them.
type Split = (Option<Vec<Vec<u8>>>, bool);

#[derive(Default)]
struct Splitter {
    done: Vec<Vec<u8>>,
    current: Option<Vec<u8>>,
}

impl Splitter {
    fn keep(&mut self, text: &[u8], quoted: bool) {
        if quoted || !text.is_empty() {
            self.current.get_or_insert_default().extend_from_slice(text);
        }
    }

    fn split(&mut self, text: &[u8]) {
        for byte in text {
            if matches!(byte, b' ' | b'\t' | b'\n') {
                self.done.extend(self.current.take());
            } else {
                self.current.get_or_insert_default().push(*byte);
            }
        }
    }

    fn finish(mut self) -> Vec<Vec<u8>> {
        self.done.extend(self.current.take());
        self.done
    }
}

pub(super) fn abort(line: usize, message: &'static str) -> Stop {
    Stop::Abort { line, message }
}

/// True if unquoted text may name somebody's home directory.
fn names_home(text: &[u8], at_start: bool) -> bool {
    let mut starts = at_start;
    let mut rest = text;
    while let Some((first, tail)) = rest.split_first() {
        if starts && *first == b'~' && !matches!(tail.first(), None | Some(b'/' | b':')) {
            return true;
        }
        starts = matches!(first, b':' | b'=');
        rest = tail;
    }
    false
}

/// True if unquoted text may be replaced by file names.
fn globs(text: &[u8]) -> bool {
    text.iter().any(|byte| matches!(byte, b'*' | b'?'))
        || text.contains(&b'[') && text.contains(&b']')
}

/// The names that expanding a word may assign.
pub(super) fn assigned_in_word(parts: &[Part]) -> Vec<Vec<u8>> {
    let mut names = Vec::new();
    for part in parts {
        match part {
            Part::Parameter {
                name,
                operator,
                word,
                ..
            } => {
                if matches!(operator, Operator::Assign { .. }) {
                    names.push(name.clone());
                }
                names.extend(assigned_in_word(word));
            }
            Part::Arithmetic { parts, .. } => names.extend(assigned_in_arithmetic(parts)),
            _ => {}
        }
    }
    names
}

/// The names that an arithmetic expression may assign: all in it, if it has a `=`.
fn assigned_in_arithmetic(parts: &[Part]) -> Vec<Vec<u8>> {
    let mut names = assigned_in_word(parts);
    let mut assigns = false;
    for part in parts {
        if let Part::Text { text, .. } = part {
            assigns |= text.contains(&b'=');
            let words = text.split(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_');
            names.extend(
                words
                    .filter(|word| super::parse::is_name(word))
                    .map(<[u8]>::to_vec),
            );
        }
    }
    if assigns {
        names
    } else {
        assigned_in_word(parts)
    }
}
