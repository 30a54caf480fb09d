//! From files to a policy: read each, merge them, and judge the whole.

use crate::check::{self, At, Finding};
use crate::diagnostic::{Diagnostic, Diagnostics, Severity};
use crate::draft::{Draft, Missing, Place};
use crate::fragment::{self, Fragment};
use crate::keys::KEYS;
use crate::origins::{Origin, Origins};
use crate::policy::{Policy, VERSION};
use crate::problems::Problem;
use crate::source::{Source, position};

/// A valid policy, where each of its values came from, and what is odd about it.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The merged policy.
    pub policy: Policy,
    /// Where each value came from.
    pub origins: Origins,
    /// Valid, and probably not what was meant.
    pub warnings: Diagnostics,
}

/// Reads a policy: the first source is policy.toml, then drop-ins in order of increasing weight.
/// A later file's value replaces an earlier one of the same key, lists as a whole.
///
/// # Errors
/// All problems of all files, warnings among them, if at least one makes the policy invalid.
pub fn load(sources: &[Source]) -> Result<Loaded, Diagnostics> {
    if sources.is_empty() {
        let message = "no policy file was given";
        return Err(Diagnostics(vec![Diagnostic::of_file(
            Severity::Error,
            "policy",
            message,
            None,
        )]));
    }
    let mut draft = Draft::default();
    let mut files: Vec<File<'_>> = sources
        .iter()
        .enumerate()
        .map(|(index, source)| File::read(index, source, &mut draft))
        .collect();

    for missing in draft.finish() {
        lacks(&missing, &mut draft, &mut files);
    }
    for finding in check::findings(&draft.policy) {
        judge(finding, &draft, &mut files);
    }

    let origins = origins(&draft, &files);
    let found = Diagnostics(files.into_iter().flat_map(File::diagnostics).collect());
    if found.has_errors() {
        return Err(found);
    }
    Ok(Loaded {
        policy: draft.policy,
        origins,
        warnings: found,
    })
}

/// One source, read.
struct File<'a> {
    name: &'a str,
    /// Empty if the source is not text.
    text: &'a str,
    not_text: Option<Diagnostic>,
    fragment: Fragment,
}

impl<'a> File<'a> {
    fn read(index: usize, source: &'a Source, draft: &mut Draft) -> Self {
        let name = source.name.as_str();
        let text = match source.decode() {
            Ok(text) => text,
            Err(bad) => {
                let help = Some(bad.help.to_owned());
                let not_text = Diagnostic {
                    line: bad.position.line,
                    column: bad.position.column,
                    ..Diagnostic::of_file(Severity::Error, name, bad.message, help)
                };
                let fragment = Fragment::default();
                return Self {
                    name,
                    text: "",
                    not_text: Some(not_text),
                    fragment,
                };
            }
        };
        let mut fragment = fragment::read(index, text, draft);
        let has_version = draft.places.contains_key("version") || draft.failed.contains("version");
        // A syntax error may hide a version that is there.
        let hidden = fragment.has_syntax_errors()
            && text
                .lines()
                .any(|line| line.trim_start().starts_with("version"));
        if index == 0 && !has_version && !hidden {
            fragment.problems.push(
                Problem::error(0..0, "version is missing")
                    .help(format!("write version = {VERSION} above the first table"))
                    .key("version"),
            );
        }
        Self {
            name,
            text,
            not_text: None,
            fragment,
        }
    }

    fn diagnostics(self) -> Vec<Diagnostic> {
        let mut out = self.fragment.problems.locate(self.name, self.text);
        out.extend(self.not_text);
        out
    }
}

/// Reports an optional table that lacks its required key.
fn lacks(missing: &Missing, draft: &mut Draft, files: &mut [File<'_>]) {
    let Some(place) = draft.tables.get(missing.table) else {
        return;
    };
    if !draft.failed.insert(missing.key) {
        return;
    }
    if let Some(file) = files.get_mut(place.file) {
        let message = format!("[{}] lacks {}", missing.table, missing.key);
        let problem = Problem::error(place.key.clone(), message);
        file.fragment
            .problems
            .push(problem.help(missing.help).key(missing.key));
    }
}

/// Reports a finding at the best of its places. Says nothing where a value that plays a part has
/// been refused already or could not be read for sure.
fn judge(finding: Finding, draft: &Draft, files: &mut [File<'_>]) {
    // An entry that was read is there for sure, whatever became of its neighbours.
    let refused = |at: &At| draft.failed.contains(at.key) && at.entry.is_none();
    if finding.at.iter().any(refused) {
        return;
    }
    let in_doubt = |at: &At| match draft.places.get(at.key) {
        Some(place) => files
            .get(place.file)
            .is_some_and(|file| file.fragment.is_unclear(place.key.start)),
        None => files.iter().any(|file| file.fragment.has_syntax_errors()),
    };
    if finding.at.iter().any(in_doubt) {
        return;
    }
    let placed = finding
        .at
        .iter()
        .find_map(|at| Some((at, draft.places.get(at.key)?)));
    let (key, file, span) = match placed {
        Some((at, place)) => (at.key, place.file, marked(at, place)),
        None => (finding.key(), 0, 0..0),
    };
    if let Some(file) = files.get_mut(file) {
        let mut problem = Problem::error(span, format!("{key}: {}", finding.message)).key(key);
        problem.severity = finding.severity;
        problem.help = finding.help;
        file.fragment.problems.push(problem);
    }
}

/// The bytes to mark: the entry of a list, or the value.
fn marked(at: &At, place: &Place) -> std::ops::Range<usize> {
    at.entry
        .and_then(|entry| place.entries.get(entry))
        .unwrap_or(&place.value)
        .clone()
}

fn origins(draft: &Draft, files: &[File<'_>]) -> Origins {
    let origin = |key: &str| {
        let place = draft.places.get(key)?;
        let file = files.get(place.file)?;
        let at = position(file.text, place.key.clone());
        Some(Origin::File {
            file: file.name.to_owned(),
            line: at.line,
            column: at.column,
        })
    };
    let origins = KEYS.iter().map(|key| {
        (
            key.path.to_owned(),
            origin(key.path).unwrap_or(Origin::Default),
        )
    });
    Origins(origins.collect())
}
