//! `gdr-agent cmdline`

use grub_config_parser::cmdline::CommandLine;
use schemars::JsonSchema;
use serde::Serialize;

use super::output::{paint, style};
use super::{CliError, Context, Exit};
use crate::facts::Facts;
use crate::plan::printable;

/// The JSON of `cmdline`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// `gdr-agent/cmdline/v1`
    schema: &'static str,
    /// What the running kernel was booted with; none in an image.
    running: Option<Line>,
    /// The entries of the boot menu.
    entries: Vec<Entry>,
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
    /// Whether it boots by itself.
    default: bool,
}

pub(super) fn run(context: &Context) -> Result<Exit, CliError> {
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
    let source = facts.boot.in_grub_dir("grub.cfg").unwrap_or_default();
    let entries = match facts.boot.menu() {
        None => Vec::new(),
        Some(Err(e)) => {
            let message = format!("{source}: line {}: {}", e.line, e.message);
            return Err(CliError::new(Exit::Internal, "menu", message).help("run `update-grub`"));
        }
        Some(Ok(menu)) => {
            let default = menu.default;
            let entry = |(at, e): (usize, grub_config_parser::cfg::Entry)| Entry {
                args: args(&e.cmdline),
                raw: e.raw,
                id: e.id,
                title: e.title,
                kernel: e.kernel,
                source: source.clone(),
                default: default == Some(at),
            };
            menu.entries.into_iter().enumerate().map(entry).collect()
        }
    };
    let output = Output {
        schema: "gdr-agent/cmdline/v1",
        running,
        entries,
    };
    context.out.result(&output, || text(&output))?;
    Ok(Exit::Done)
}

fn args(line: &CommandLine) -> Vec<String> {
    line.args().iter().map(|a| a.raw().to_owned()).collect()
}

fn text(output: &Output) -> String {
    let mut text = String::new();
    let safe = |s: &str| printable(s.as_bytes());
    if let Some(line) = &output.running {
        text.push_str(&format!(
            "{}\n  {}\n",
            paint(style::BOLD, "running"),
            safe(&line.raw)
        ));
    }
    for entry in &output.entries {
        let mark = if entry.default {
            paint(style::GOOD, " (default)")
        } else {
            String::new()
        };
        text.push_str(&format!(
            "{}{mark}\n",
            paint(style::BOLD, &safe(&entry.title))
        ));
        text.push_str(&format!(
            "  {} {}\n",
            safe(entry.kernel.as_deref().unwrap_or("no kernel")),
            safe(&entry.raw)
        ));
        text.push_str(&format!(
            "  {}\n",
            paint(
                style::DIM,
                &format!("{} from {}", safe(&entry.id), entry.source)
            )
        ));
    }
    if output.entries.is_empty() {
        text.push_str("no boot entry was found\n");
    }
    text
}
