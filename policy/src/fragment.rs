//! Reading one file into the draft: syntax first, then each table and key against the format.

use std::ops::Range;

use serde_spanned::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use crate::draft::{Draft, Place};
use crate::escape::{quote, spell_out};
use crate::keys::{self, KEYS};
use crate::problems::{Problem, Problems};
use crate::source::{line_around, position};
use crate::suggest::{did_you_mean, list};
use crate::value::{Context, defined_before, not_a_table};

/// What is left to say about a file once it is read.
#[derive(Debug, Default)]
pub(crate) struct Fragment {
    pub(crate) problems: Problems,
    /// Text that the parser could not follow; what it made of these bytes is not judged.
    pub(crate) unclear: Vec<Range<usize>>,
}

impl Fragment {
    pub(crate) fn has_syntax_errors(&self) -> bool {
        !self.unclear.is_empty()
    }

    /// Whether what stands at `offset` is in doubt.
    pub(crate) fn is_unclear(&self, offset: usize) -> bool {
        within(&self.unclear, offset)
    }
}

fn within(ranges: &[Range<usize>], offset: usize) -> bool {
    ranges.iter().any(|range| range.contains(&offset))
}

/// Reads the text of source number `file` into the draft.
pub(crate) fn read(file: usize, text: &str, draft: &mut Draft) -> Fragment {
    let (root, errors) = DeTable::parse_recoverable(text);
    let root = root.get_ref();
    let mut reader = Reader {
        file,
        draft,
        problems: Problems::default(),
    };
    reader.table("", root);
    let read = reader.problems;

    let mut problems = Problems::default();
    let mut unclear: Vec<Range<usize>> = Vec::new();
    let mut covered = 0;
    let mut errors: Vec<_> = errors
        .iter()
        .map(|error| (error.span().unwrap_or(0..0), error.message()))
        .collect();
    errors.sort_by_key(|(span, _)| span.start);
    for (span, message) in errors {
        if message.starts_with("duplicate key") {
            problems.push_with(|| defined_again(text, root, span));
        } else if span.start >= covered {
            // One slip often makes several errors on its line; the first says it best.
            let line = line_around(text, span.start);
            covered = line.end + 1;
            unclear.push(unclear_from(text, &line));
            problems.push(Problem::error(span, format!("TOML syntax: {message}")));
        }
    }
    problems.absorb(read, |problem| !within(&unclear, problem.span.start));
    Fragment { problems, unclear }
}

/// The bytes that a syntax error on `line` puts in doubt: the line, and below a broken header all
/// that seems to belong to the table before it.
fn unclear_from(text: &str, line: &Range<usize>) -> Range<usize> {
    let is_header = text
        .get(line.clone())
        .is_some_and(|line| line.trim_start().starts_with('['));
    if !is_header {
        return line.start..line.end + 1;
    }
    match text.get(line.end..).unwrap_or_default().find("\n[") {
        Some(next) => line.start..line.end + next + 1,
        None => line.start..text.len() + 1,
    }
}

fn defined_again(text: &str, root: &DeTable<'_>, span: Range<usize>) -> Problem {
    let name = text.get(span.clone()).unwrap_or_default();
    let line = text
        .get(line_around(text, span.start))
        .unwrap_or_default()
        .trim();
    let header = line.starts_with('[');
    let earlier = if header {
        let before = text.get(..span.start).unwrap_or_default();
        before
            .lines()
            .position(|other| other.trim() == line)
            .map(|index| index + 1)
    } else {
        defined_before(root, name.trim_matches(['"', '\'']), span.start)
            .map(|offset| position(text, offset..offset).line)
    };
    let what = if header { "table" } else { "key" };
    let problem = Problem::error(span, format!("{what} {} is defined twice", quote(name)))
        .label("second definition");
    match earlier {
        Some(line) => problem.help(format!("the first is on line {line}; keep one")),
        None => problem,
    }
}

struct Reader<'a> {
    file: usize,
    draft: &'a mut Draft,
    problems: Problems,
}

impl Reader<'_> {
    fn table(&mut self, table: &str, entries: &DeTable<'_>) {
        for (name, value) in entries {
            let path = match table {
                "" => name.get_ref().to_string(),
                _ => format!("{table}.{}", name.get_ref()),
            };
            let place = |entries| Place {
                file: self.file,
                key: name.span(),
                value: value.span(),
                entries,
            };
            // A quoted key with a dot in it is one name, not a path.
            let dotted = name.get_ref().contains('.');
            if let Some(key) = keys::find(&path).filter(|_| !dotted) {
                let mut context = Context::new(key.path, &mut self.problems);
                if (key.read)(self.draft, value, &mut context) {
                    self.draft
                        .places
                        .insert(key.path, place(std::mem::take(&mut context.entries)));
                }
                if context.failed {
                    self.draft.failed.insert(key.path);
                }
            } else if keys::is_table(&path) && !dotted {
                match value.get_ref() {
                    DeValue::Table(inner) => {
                        self.draft.tables.insert(path.clone(), place(Vec::new()));
                        self.table(&path, inner);
                    }
                    _ => self.problems.push(not_a_table(&path, value)),
                }
            } else {
                self.problems
                    .push_with(|| unknown(table, name, value.get_ref()));
            }
        }
    }
}

fn unknown(table: &str, key: &Spanned<DeString<'_>>, value: &DeValue<'_>) -> Problem {
    let (name, span) = (key.get_ref().as_ref(), key.span());
    let what = if value.is_table() { "table" } else { "key" };
    let place = if table.is_empty() {
        String::new()
    } else {
        format!(" in [{table}]")
    };
    let path = if table.is_empty() {
        name.to_owned()
    } else {
        format!("{table}.{name}")
    };
    let known = keys::names_in(table);
    let elsewhere = KEYS
        .iter()
        .map(keys::Key::split)
        .find(|(_, key)| *key == name);
    let help = if let Some(word) = did_you_mean(name, &known) {
        format!("did you mean `{word}`?")
    } else if let Some((home, _)) = elsewhere {
        match home {
            "" => format!("`{name}` belongs at the top, above the first table"),
            _ => format!("`{name}` belongs in [{home}]"),
        }
    } else {
        format!("known here: {}", list(&known))
    };
    Problem::error(span, format!("unknown {what} {}{place}", quote(name)))
        .label(format!("unknown {what}"))
        .help(help)
        .key(spell_out(&path))
}
