//! `gdr-agent cmdline`

use grub_config_parser::cmdline::CommandLine;
use schemars::JsonSchema;
use serde::Serialize;

use super::output::{paint, style};
use super::{CliError, Context, Exit};
use crate::effective::{self, Argument};
use crate::facts::Facts;
use crate::plan::printable;

/// What to show.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Show every boot entry, not only the one that boots by default.
    #[arg(long)]
    all: bool,
}

/// The JSON of `cmdline`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// `gdr-agent/cmdline/v1`
    schema: &'static str,
    /// What the running kernel was booted with; none in an image.
    running: Option<Line>,
    /// The entries of the boot menu.
    entries: Vec<Entry>,
    /// Whether it is certain which entry boots by default.
    default_certain: bool,
}

/// A kernel command line.
#[derive(Debug, Serialize, JsonSchema)]
struct Line {
    /// As the kernel got it.
    raw: String,
    /// Its arguments.
    args: Vec<String>,
}

/// A boot entry.
#[derive(Debug, Serialize, JsonSchema)]
struct Entry {
    /// GRUB's id of it.
    id: String,
    /// Its title.
    title: String,
    /// The kernel, as GRUB names it.
    kernel: Option<String>,
    /// The file that it comes from.
    source: String,
    /// Its arguments as the kernel will get them, without `BOOT_IMAGE=`.
    raw: String,
    /// The arguments.
    args: Vec<String>,
    /// The same, each with where it is written and what it does.
    arguments: Vec<Argument>,
    /// Whether it boots by itself.
    default: bool,
}

pub(super) fn run(context: &Context, which: &Args) -> Result<Exit, CliError> {
    let facts = Facts::read(&context.root);
    if let Some(why) = &facts.running.cmdline.unknown {
        return Err(CliError::new(Exit::Internal, "unreadable", why.clone()));
    }
    if let Some(why) = facts.boot.files.unreadable.first() {
        return Err(CliError::new(Exit::Internal, "unreadable", why.clone()).help("run it as root"));
    }
    let running = facts.running.cmdline.get().map(|raw| Line {
        raw: raw.clone(),
        args: args(&CommandLine::parse(raw)),
    });
    let entries = effective::entries(&facts.boot)
        .map_err(|why| CliError::new(Exit::Internal, "menu", why).help("run `update-grub`"))?;
    let entries = entries.into_iter().map(
        |effective::Entry {
             entry,
             source,
             arguments,
             default,
         }| Entry {
            args: args(&entry.cmdline),
            raw: entry.raw,
            id: entry.id,
            title: entry.title,
            kernel: entry.kernel,
            source,
            arguments,
            default,
        },
    );
    let output = Output {
        schema: "gdr-agent/cmdline/v1",
        running,
        entries: entries.collect(),
        default_certain: facts.boot.default_is_certain(),
    };
    context.out.result(&output, || text(&output, which.all))?;
    Ok(Exit::Done)
}

fn args(line: &CommandLine) -> Vec<String> {
    line.args().iter().map(|a| a.raw().to_owned()).collect()
}

fn text(output: &Output, all: bool) -> String {
    let mut text = String::new();
    let safe = |s: &str| printable(s.as_bytes());
    if let Some(line) = &output.running {
        text.push_str(&format!(
            "{}\n  {}\n",
            paint(style::BOLD, "running"),
            safe(&line.raw)
        ));
    }
    let shown = output.entries.iter().filter(|entry| all || entry.default);
    for entry in shown {
        let mark = match (entry.default, output.default_certain) {
            (true, true) => paint(style::GOOD, " (default)"),
            (true, false) => paint(style::WARN, " (perhaps the default)"),
            _ => String::new(),
        };
        text.push_str(&format!(
            "{}{mark}\n  {} {}\n",
            paint(style::BOLD, &safe(&entry.title)),
            safe(entry.kernel.as_deref().unwrap_or("no kernel")),
            paint(
                style::DIM,
                &safe(&format!("{} in {}", entry.id, entry.source))
            ),
        ));
        text.push_str(&lines(entry));
    }
    let more = output.entries.len() - output.entries.iter().filter(|e| all || e.default).count();
    match (output.entries.is_empty(), more) {
        (true, _) => text.push_str("no boot entry was found\n"),
        (_, 0) => {}
        (_, more) => text.push_str(&paint(
            style::DIM,
            &format!("{more} more boot entries: --all shows them\n"),
        )),
    }
    text
}

/// An argument a line, beside it where it is written; the entry's own file is not named again.
fn lines(entry: &Entry) -> String {
    let arguments = &entry.arguments;
    let width = |argument: &Argument| printable(argument.arg.as_bytes()).chars().count();
    let widest = arguments
        .iter()
        .map(width)
        .filter(|w| *w <= 40)
        .max()
        .unwrap_or(0);
    let mut text = String::new();
    for argument in arguments {
        let shown = printable(argument.arg.as_bytes());
        let fill = " ".repeat(widest.saturating_sub(shown.chars().count()));
        let place = |origin: &effective::Origin| match origin.file == entry.source {
            true if origin.variable.is_none() => format!("line {}", origin.line),
            _ => origin.to_string(),
        };
        let mut from: Vec<String> = argument.from.iter().map(place).collect();
        from.extend(argument.generator.clone());
        if !argument.complete {
            from.push("not known".to_owned());
        }
        let effect = match argument.effect {
            effective::Effect::Overridden => paint(style::WARN, "  (a later one counts)"),
            effective::Effect::ForInit => paint(style::DIM, "  (for init)"),
            _ => String::new(),
        };
        let from = printable(from.join(" < ").as_bytes());
        text.push_str(&format!(
            "    {shown}{fill}  {}{effect}\n",
            paint(style::DIM, &from)
        ));
    }
    text
}
