//! Diagnostics as people read them: the source line, a mark under the text, and what to do.

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};

use crate::diagnostic::{Diagnostic, Diagnostics, Severity};
use crate::escape::{one_for_one, spell_out};
use crate::source::Source;

/// Longer lines, in bytes, are not shown; their place is.
const LONGEST_LINE: usize = 4096;

impl Diagnostics {
    /// All diagnostics with their source lines, in the manner of rustc. `sources` are those that
    /// were loaded. `color` asks for ANSI colours; nothing else in the text is an escape sequence,
    /// whatever the policy holds.
    pub fn render(&self, sources: &[Source], color: bool) -> String {
        let renderer = if color {
            Renderer::styled()
        } else {
            Renderer::plain()
        };
        let mut out = String::new();
        for diagnostic in self {
            out.push_str(&render(diagnostic, sources, &renderer));
            out.push_str("\n\n");
        }
        out.truncate(out.trim_end().len());
        if !out.is_empty() {
            out.push('\n');
        }
        out
    }
}

fn render(diagnostic: &Diagnostic, sources: &[Source], renderer: &Renderer) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let group = level.primary_title(spell_out(&diagnostic.message));
    let file = spell_out(&diagnostic.file);
    let group = match source_line(diagnostic, sources) {
        Some(line) => {
            let mark = AnnotationKind::Primary
                .span(mark(&line, diagnostic.column, diagnostic.width))
                .label(diagnostic.label.as_deref().map(spell_out));
            group.element(
                Snippet::source(line)
                    .line_start(diagnostic.line)
                    .path(file)
                    .annotation(mark),
            )
        }
        None => group.element(place(diagnostic, file)),
    };
    let group: Group<'_> = match &diagnostic.help {
        Some(help) => group.element(Level::HELP.message(spell_out(help))),
        None => group,
    };
    renderer.render(&[group])
}

fn place(diagnostic: &Diagnostic, file: String) -> Origin<'static> {
    let origin = Origin::path(file);
    if diagnostic.line == 0 {
        return origin;
    }
    origin.line(diagnostic.line).char_column(diagnostic.column)
}

/// The line of the diagnostic, one visible symbol per character; `None` if it cannot be shown.
fn source_line(diagnostic: &Diagnostic, sources: &[Source]) -> Option<String> {
    let source = sources
        .iter()
        .find(|source| source.name == diagnostic.file)?;
    let text = source.decode().ok()?;
    let line = text.split('\n').nth(diagnostic.line.checked_sub(1)?)?;
    let line = line.strip_suffix('\r').unwrap_or(line);
    let shown = one_for_one(line);
    (!line.is_empty() && line.len() <= LONGEST_LINE).then_some(shown)
}

/// The bytes of the marked characters.
fn mark(line: &str, column: usize, width: usize) -> std::ops::Range<usize> {
    let offset = |chars: usize| {
        line.char_indices()
            .nth(chars)
            .map_or(line.len(), |(at, _)| at)
    };
    let start = column.saturating_sub(1);
    offset(start)..offset(start.saturating_add(width))
}
