//! `gdr-agent facts`

use schemars::JsonSchema;
use serde::Serialize;

use super::{CliError, Context, Exit};
use crate::facts::Facts;

/// The JSON of `facts`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// `gdr-agent/facts/v1`
    schema: &'static str,
    /// What was read.
    facts: Facts,
}

pub(super) fn run(context: &Context) -> Result<Exit, CliError> {
    let output = Output {
        schema: "gdr-agent/facts/v1",
        facts: Facts::read(&context.root),
    };
    context.out.result(&output, || text(&output.facts))?;
    Ok(Exit::Done)
}

/// Facts have one shape, so one walk prints them all: name, value, where from.
fn text(facts: &Facts) -> String {
    let mut lines = Vec::new();
    if let Ok(value) = serde_json::to_value(facts) {
        walk("", &value, &mut lines);
    }
    let width = lines.iter().map(|(name, ..)| name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for (name, value, from) in lines {
        let from = if from.is_empty() {
            String::new()
        } else {
            format!("  [{from}]")
        };
        text.push_str(&format!("{name:width$}  {value}{from}\n"));
    }
    text
}

fn walk(name: &str, value: &serde_json::Value, lines: &mut Vec<(String, String, String)>) {
    let Some(object) = value.as_object() else {
        lines.push((name.to_owned(), show(value), String::new()));
        return;
    };
    if let (Some(inner), Some(from)) = (
        object.get("value"),
        object.get("from").and_then(|f| f.as_str()),
    ) {
        let shown = match object.get("unknown").and_then(|u| u.as_str()) {
            Some(why) => format!("unknown: {why}"),
            None => show(inner),
        };
        lines.push((name.to_owned(), shown, from.to_owned()));
        return;
    }
    for (key, inner) in object {
        let name = if name.is_empty() {
            key.clone()
        } else {
            format!("{name}.{key}")
        };
        walk(&name, inner, lines);
    }
}

fn show(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::Null => "none".to_owned(),
        serde_json::Value::String(s) => s.escape_debug().to_string(),
        other => other.to_string(),
    }
}
