//! Adding kernel arguments to an assignment, byte for byte.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::edit::{EditError, collect};
use super::{Document, File, Kind, Shell, evaluate_for};

impl Document {
    /// Adds words at the end of what this file assigns to `variable`: inside the last assignment's
    /// quotes where it has some, else behind it, and as a new line at the end where there is none. All
    /// other bytes stay. Words must be as they are to stand in the value: grub-mkconfig copies it
    /// unquoted into `grub.cfg`.
    ///
    /// # Errors
    /// [`EditError::Computed`] where the value is not known, or cannot be added to without changing how
    /// the rest is read; [`EditError::Syntax`] where the file cannot be read to its end.
    pub fn add_words(&self, variable: &str, words: &[String]) -> Result<Document, EditError> {
        if let Some(error) = &self.error {
            return Err(EditError::of(error, self.shell, variable));
        }
        if words.is_empty() {
            return Ok(self.clone());
        }
        let text = words.join(" ");
        let old = value_of(self, variable);
        let wanted = match &old {
            Value::Unset => text.clone(),
            Value::Computed => String::new(),
            Value::Known(value) if value.is_empty() => text.clone(),
            Value::Known(value) => alloc::format!("{value} {text}"),
        };
        let mut place = None;
        for unit in self.units().flatten() {
            let mut places = Vec::new();
            collect(&unit.command, variable.as_bytes(), &mut places);
            place = places
                .last()
                .map(|(word, line)| ((*word).clone(), *line))
                .or(place);
        }
        let Some((word, line)) = place else {
            if matches!(old, Value::Computed) && self.shell == Shell::Bash {
                return Err(EditError::Computed {
                    variable: variable.to_string(),
                    line: 1,
                });
            }
            return Ok(self.with_line(variable, &text));
        };
        let computed = EditError::Computed {
            variable: variable.to_string(),
            line,
        };
        if matches!(old, Value::Computed) || self.source.contains(&0) {
            return Err(computed);
        }
        let Some(at) = word
            .assigned_value()
            .iter()
            .filter_map(super::syntax::Part::end)
            .max()
        else {
            return Err(computed);
        };
        let blank = match &old {
            Value::Known(value) if !value.is_empty() => " ",
            _ => "",
        };
        for edited in self.candidates(at, blank, &text) {
            let new = Document::parse_for(&edited, self.shell);
            if matches!(value_of(&new, variable), Value::Known(value) if joined(&value) == joined(&wanted))
            {
                return Ok(new);
            }
        }
        Err(computed)
    }

    fn with_line(&self, variable: &str, text: &str) -> Document {
        let mut bytes = self.to_bytes();
        if !bytes.is_empty() && !bytes.ends_with(b"\n") {
            bytes.push(b'\n');
        }
        bytes.extend_from_slice(alloc::format!("{variable}=\"{text}\"\n").as_bytes());
        Document::parse_for(&bytes, self.shell)
    }

    /// Ways to add text to a value that ends at or before `at`, the nicest first: inside its quotes, as
    /// more text in quotes behind it.
    fn candidates(&self, at: usize, blank: &str, text: &str) -> Vec<Vec<u8>> {
        let with = |at: usize, new: &str| {
            let (head, tail) = self.source.split_at(at.min(self.source.len()));
            [head, new.as_bytes(), tail].concat()
        };
        let quote = |at: usize| matches!(self.source.get(at), Some(b'"' | b'\''));
        let spaced = |before: usize| match before.checked_sub(1).and_then(|at| self.source.get(at))
        {
            Some(b' ' | b'\t') => text.to_string(),
            _ => alloc::format!("{blank}{text}"),
        };
        let mut all = Vec::new();
        // The last part's place may or may not hold its closing quote.
        for before in [at.checked_sub(1), Some(at), at.checked_add(1)] {
            if let Some(before) = before.filter(|at| quote(*at)) {
                all.push(with(before, &spaced(before)));
            }
        }
        let quoted = alloc::format!("\"{blank}{text}\"");
        all.push(with(at, &quoted));
        all.push(with(at.saturating_add(1), &quoted));
        all
    }
}

enum Value {
    Unset,
    Known(String),
    Computed,
}

fn value_of(doc: &Document, variable: &str) -> Value {
    let evaluation = evaluate_for(&[File { name: "", doc }], doc.shell);
    let lost = evaluation.lost.is_some();
    let mut vars = evaluation.vars;
    match vars.remove(variable) {
        None if lost => Value::Computed,
        None => Value::Unset,
        Some(found) if found.kind == Kind::Computed => Value::Computed,
        Some(found) => found.value.map_or(Value::Computed, Value::Known),
    }
}

/// Words with one blank between them.
fn joined(value: &str) -> String {
    value.split_whitespace().collect::<Vec<_>>().join(" ")
}
