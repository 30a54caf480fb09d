//! Where results go: aligned text for people, one JSON object for machines.

use std::io::{IsTerminal, Write};

use anstyle::{AnsiColor, Style};
use serde::Serialize;

use super::error::CliError;
use super::exit::Exit;
use crate::plain::tame;

/// Text for people or JSON for machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Format {
    /// Aligned text.
    #[default]
    Text,
    /// One JSON object.
    Json,
    /// Unified diff (plan only).
    Diff,
    /// A picture (topology only, and listed only there).
    #[value(hide = true)]
    Svg,
    /// A page (topology and doctor, and listed only there).
    #[value(hide = true)]
    Html,
}

impl Format {
    /// The name of a format that is a picture.
    #[must_use]
    pub const fn picture(self) -> Option<&'static str> {
        match self {
            Self::Svg => Some("svg"),
            Self::Html => Some("html"),
            Self::Text | Self::Json | Self::Diff => None,
        }
    }
}

/// The command's output.
#[derive(Debug, Clone, Copy)]
pub struct Out {
    /// The chosen format.
    pub format: Format,
    /// Only errors, JSON and pictures.
    pub quiet: bool,
}

/// The styles that text uses; `anstream` drops them where they do not belong.
pub mod style {
    use super::{AnsiColor, Style};

    /// Headings.
    pub const BOLD: Style = Style::new().bold();
    /// Met, added.
    pub const GOOD: Style = AnsiColor::Green.on_default();
    /// Failed, removed.
    pub const BAD: Style = AnsiColor::Red.on_default().bold();
    /// Unknown, attention.
    pub const WARN: Style = AnsiColor::Yellow.on_default();
    /// Less important.
    pub const DIM: Style = Style::new().dimmed();
}

/// Whether standard error takes colours.
#[must_use]
pub fn stderr_colour() -> bool {
    anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never
}

/// `text` in `style`.
#[must_use]
pub fn paint(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

impl Out {
    /// Prints a result: `value` as JSON, or the text that `text` makes.
    ///
    /// # Errors
    /// Standard output is closed or full.
    pub fn result<T: Serialize>(
        self,
        value: &T,
        text: impl FnOnce() -> String,
    ) -> Result<(), CliError> {
        match self.format {
            Format::Json => {
                let json = serde_json::to_string_pretty(value).map_err(|e| {
                    CliError::new(
                        Exit::Internal,
                        "json",
                        format!("cannot print the result: {e}"),
                    )
                })?;
                self.raw(&format!("{json}\n"))
            }
            _ if self.quiet => Ok(()),
            _ => self.raw(&tame(&text())),
        }
    }

    /// Prints text as it is (styles are dropped where standard output is not a terminal).
    ///
    /// # Errors
    /// Standard output is closed or full. A reader that has seen enough (`| head`) is no error.
    pub fn raw(self, text: &str) -> Result<(), CliError> {
        let mut out = anstream::stdout().lock();
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => Err(CliError::new(
                Exit::Internal,
                "io",
                format!("cannot write to standard output: {e}"),
            )),
            _ => Ok(()),
        }
    }

    /// Tells a person on a terminal what is going on; machines and logs do not see it.
    pub fn progress(self, text: &str) {
        if self.tells() {
            let _ = writeln!(anstream::stderr(), "{}", paint(style::DIM, text));
        }
    }

    /// As [`Out::progress`], on one line that the next such text replaces; an empty one takes it away.
    pub fn waiting(self, text: &str) {
        if self.tells() {
            let line = paint(style::DIM, text);
            let _ = write!(anstream::stderr(), "\r{line}\x1b[K");
        }
    }

    /// Whether there is a person on a terminal who wants to know.
    #[must_use]
    pub fn tells(self) -> bool {
        !self.quiet && self.format == Format::Text && std::io::stderr().is_terminal()
    }

    /// Prints an error: to standard error for people, as an object on standard output for machines.
    pub fn error(self, error: &CliError) {
        if self.format == Format::Json {
            let value = serde_json::json!({
                "schema": "gdr-agent/error/v1",
                "error": { "kind": error.kind, "message": error.message, "help": error.help },
            });
            let _ = self.raw(&format!("{value:#}\n"));
        }
        let mut err = anstream::stderr().lock();
        let message = tame(&error.message);
        let _ = writeln!(err, "{} {message}", paint(style::BAD, "error:"));
        if let Some(help) = &error.help {
            let help = tame(help);
            let _ = writeln!(err, "  {} {help}", paint(style::BOLD, "help:"));
        }
    }
}
