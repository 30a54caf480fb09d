//! The arguments that each boot entry will boot with, and where each of them is written. Pure: from the
//! bytes that the facts hold.

use grub_config_parser::bls;
use grub_config_parser::cfg::{self, Script};
use grub_config_parser::cmdline::{self, CommandLine};
use grub_config_parser::effective::{self as parser, Sources, Tracer};
use grub_config_parser::grubenv::EnvBlock;
use schemars::JsonSchema;
use serde::Serialize;

use crate::facts::Boot;

/// A boot entry and where it comes from.
#[derive(Debug)]
pub struct Entry {
    /// The entry.
    pub entry: cfg::Entry,
    /// The file that it is in: grub.cfg, or one of its own.
    pub source: String,
    /// Its arguments.
    pub arguments: Vec<Argument>,
    /// Whether it boots by itself.
    pub default: bool,
}

/// An argument and where it is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Argument {
    /// As the kernel gets it.
    pub arg: String,
    /// First the line that GRUB reads, then what that line takes the text from; the last one is the
    /// place to change.
    pub from: Vec<Origin>,
    /// The script of grub-mkconfig that wrote it by itself, such as `10_linux` for `root=`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generator: Option<String>,
    /// Whether that accounts for all of it.
    pub complete: bool,
    /// What it does.
    pub effect: Effect,
}

/// A line of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Origin {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The variable that it sets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variable: Option<String>,
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.file, self.line)?;
        match &self.variable {
            Some(name) => write!(f, " {name}"),
            None => Ok(()),
        }
    }
}

/// What an argument does on its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// It counts.
    Counts,
    /// A later one of the same name counts instead.
    Overridden,
    /// It counts together with all others of its name.
    Adds,
    /// It is behind `--`, or that itself: the kernel does not look at it.
    ForInit,
}

impl Effect {
    fn of(effect: cmdline::Effect) -> Self {
        match effect {
            cmdline::Effect::Overridden { .. } => Self::Overridden,
            cmdline::Effect::Adds => Self::Adds,
            cmdline::Effect::Separator | cmdline::Effect::ForInit => Self::ForInit,
            _ => Self::Counts,
        }
    }
}

/// The entries of the menu, none where there is no menu.
///
/// # Errors
/// grub.cfg is not a GRUB script.
pub fn entries(boot: &Boot) -> Result<Vec<Entry>, String> {
    let Some((path, bytes)) = boot
        .in_grub_dir("grub.cfg")
        .zip(boot.files.grub_cfg.as_ref())
    else {
        return Ok(Vec::new());
    };
    let failed = |e: cfg::SyntaxError| format!("{path}: line {}: {}", e.line, e.message);
    let script = Script::parse(bytes).map_err(failed)?;
    let context = boot.context();
    let menu = script.menu(&context).complete();
    let menu = menu.map_err(|e| format!("{path}: {e}"))?;
    let env_path = boot.in_grub_dir("grubenv").unwrap_or_default();
    let block = boot
        .files
        .grubenv
        .as_deref()
        .and_then(|bytes| EnvBlock::parse(bytes).ok());
    let defaults = boot.files.sh.evaluate(&boot.files.defaults);
    let tracer = Tracer::new(&Sources {
        grub_cfg: Some((&path, &script)),
        grubenv: block.as_ref().map(|block| (env_path.as_str(), block)),
        defaults: Some(&defaults),
    });
    let variables = tracer.bls_variables(&menu);
    let made = context.bls.as_ref().map_or_else(Vec::new, |bls| {
        bls::menu(&bls.files, bls.order, &variables.values())
    });
    let of_file = |file: usize| {
        let entry = made.iter().find(|entry| entry.file == file)?;
        let (path, _) = boot.files.entries.get(file)?;
        let snippet = context.bls.as_ref()?.files.get(file)?;
        let arguments = tracer.bls_entry(entry, snippet, path, &variables);
        Some((path.clone(), arguments))
    };
    let default = menu.default;
    let entry = |(at, entry): (usize, cfg::Entry)| {
        let own = entry.bls.and_then(of_file);
        let (source, traced) = own.unwrap_or_else(|| (path.clone(), tracer.menu_entry(&entry)));
        Entry {
            arguments: arguments(&entry.cmdline, &traced),
            source,
            entry,
            default: default == Some(at),
        }
    };
    Ok(menu.entries.into_iter().enumerate().map(entry).collect())
}

fn arguments(line: &CommandLine, traced: &[parser::Argument]) -> Vec<Argument> {
    let explained = line.explain();
    let one = |(at, explained): (usize, &cmdline::Explained<'_>)| {
        let arg = explained.arg.raw();
        // Both come from the same line; if they ever did not, nothing is claimed.
        let traced = traced.get(at).filter(|traced| traced.arg.raw() == arg);
        let origin = |origin: &grub_config_parser::Origin| Origin {
            file: origin.file.clone(),
            line: origin.line,
            variable: origin.variable.clone(),
        };
        Argument {
            arg: arg.to_owned(),
            from: traced.map_or_else(Vec::new, |t| t.origins.iter().map(origin).collect()),
            generator: traced.and_then(|t| t.generator.clone()),
            complete: traced.is_some_and(|t| t.complete),
            effect: Effect::of(explained.effect),
        }
    };
    explained.iter().enumerate().map(one).collect()
}
