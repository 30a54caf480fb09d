//! `gdr-agent policy`

use std::collections::BTreeMap;
use std::path::PathBuf;

use gdr_policy::{Diagnostic, Origin};
use schemars::JsonSchema;
use serde::Serialize;

use super::output::{paint, style};
use super::{CliError, Context, Exit, load};
use crate::nccl_log::harmless;
use crate::sys::Root;

/// What to do with policies.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Say whether policies are valid, with every problem and its place.
    Check {
        /// The files; the node's own policy when none is named.
        files: Vec<PathBuf>,
    },
    /// Print the merged policy with where each value came from.
    Show,
    /// Print the JSON schema of policy files.
    Schema,
    /// Print a commented policy to start from.
    New,
}

/// The JSON of `policy check`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct CheckOutput {
    /// `gdr-agent/policy-check/v1`
    schema: &'static str,
    /// Whether every file is valid.
    valid: bool,
    /// What is wrong, or worth knowing.
    files: Vec<CheckedFile>,
}

/// One policy file.
#[derive(Debug, Serialize, JsonSchema)]
struct CheckedFile {
    /// The file.
    name: String,
    /// Whether it is valid.
    valid: bool,
    /// Its digest, if it is.
    digest: Option<String>,
    /// What is wrong with it.
    error: Option<String>,
    /// What is worth knowing.
    warnings: Vec<String>,
}

/// The JSON of `policy show`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ShowOutput {
    /// `gdr-agent/policy/v1`
    schema: &'static str,
    /// SHA-256 of the effective policy.
    digest: String,
    /// The effective policy.
    policy: gdr_policy::Policy,
    /// Key to `file:line:column`, or `default`.
    origins: BTreeMap<String, String>,
}

pub(super) fn run(context: &Context, verb: Verb) -> Result<Exit, CliError> {
    match verb {
        Verb::Check { files } => check(context, files),
        Verb::Show => show(context),
        Verb::Schema => {
            context
                .out
                .raw(&format!("{:#}\n", super::schema::policy_file()?))?;
            Ok(Exit::Done)
        }
        Verb::New => {
            context.out.raw(gdr_policy::starter())?;
            Ok(Exit::Done)
        }
    }
}

fn check(context: &Context, files: Vec<PathBuf>) -> Result<Exit, CliError> {
    let named = !files.is_empty();
    let mut checked = Vec::new();
    let outside = Root::open(std::path::Path::new("/"))?;
    let targets: Vec<Option<PathBuf>> = if named {
        files.into_iter().map(Some).collect()
    } else {
        vec![None]
    };
    for target in targets {
        let name = target
            .as_ref()
            .map_or("the node's policy".to_owned(), |p| p.display().to_string());
        let result = match &target {
            None => load::policy(context),
            Some(path) => match std::path::absolute(path)
                .ok()
                .as_deref()
                .and_then(|p| p.to_str())
            {
                Some(path) => load::from(&outside, path),
                None => Err(CliError::new(Exit::Usage, "usage", "the path is not UTF-8")),
            },
        };
        checked.push(match result {
            Ok(policy) => CheckedFile {
                name,
                valid: true,
                digest: Some(policy.digest()),
                error: None,
                warnings: warnings(&policy),
            },
            Err(e) => CheckedFile {
                name,
                valid: false,
                digest: None,
                error: Some(e.message),
                warnings: Vec::new(),
            },
        });
    }
    let output = CheckOutput {
        schema: "gdr-agent/policy-check/v1",
        valid: checked.iter().all(|c| c.valid),
        files: checked,
    };
    context.out.result(&output, || check_text(&output))?;
    Ok(if output.valid {
        Exit::Done
    } else {
        Exit::Policy
    })
}

fn warnings(policy: &load::Policy) -> Vec<String> {
    let own = policy
        .loaded
        .warnings
        .0
        .iter()
        .map(|d: &Diagnostic| d.message.clone());
    let untrusted = policy
        .untrusted
        .iter()
        .map(|e| format!("{e}; `apply` will refuse it"));
    own.chain(untrusted).collect()
}

fn check_text(output: &CheckOutput) -> String {
    let mut text = String::new();
    for file in &output.files {
        match (&file.error, &file.digest) {
            (Some(error), _) => text.push_str(&format!(
                "{}: {} {error}\n",
                file.name,
                paint(style::BAD, "invalid:")
            )),
            (None, digest) => {
                let short = digest
                    .as_ref()
                    .and_then(|d| d.get(..12))
                    .unwrap_or_default();
                text.push_str(&format!(
                    "{}: {} (digest {short})\n",
                    file.name,
                    paint(style::GOOD, "valid")
                ));
            }
        }
        for warning in &file.warnings {
            text.push_str(&format!("  {} {warning}\n", paint(style::WARN, "warning:")));
        }
    }
    text
}

fn show(context: &Context) -> Result<Exit, CliError> {
    let policy = load::policy(context)?;
    let origins = policy.loaded.origins.iter().map(|(key, origin)| {
        let from = match origin {
            Origin::Default => "default".to_owned(),
            Origin::File { file, line, column } => format!("{file}:{line}:{column}"),
        };
        (key.to_owned(), from)
    });
    let output = ShowOutput {
        schema: "gdr-agent/policy/v1",
        digest: policy.digest(),
        origins: origins.collect(),
        policy: policy.loaded.policy.clone(),
    };
    context.out.result(&output, || show_text(&output))?;
    Ok(Exit::Done)
}

fn show_text(output: &ShowOutput) -> String {
    let value = serde_json::to_value(&output.policy).unwrap_or_default();
    let lookup = |key: &str| {
        let path = key.replace('.', "/");
        value
            .pointer(&format!("/{path}"))
            .map_or("none".to_owned(), ToString::to_string)
    };
    let rows: Vec<(&String, String, &String)> = output
        .origins
        .iter()
        .map(|(key, from)| (key, lookup(key), from))
        .collect();
    let keys = rows.iter().map(|(k, ..)| k.len()).max().unwrap_or(0);
    let values = rows
        .iter()
        .map(|(_, v, _)| v.len())
        .max()
        .unwrap_or(0)
        .min(50);
    let mut text = String::new();
    for (key, value, from) in rows {
        text.push_str(&format!(
            "{key:keys$} = {value:values$}  {}\n",
            paint(style::DIM, &format!("# {}", harmless(from.as_bytes())))
        ));
    }
    text.push_str(&format!("digest {}\n", output.digest));
    text
}
