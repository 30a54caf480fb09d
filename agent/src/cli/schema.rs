//! `gdr-agent schema`: the JSON schemas of everything that is printed as JSON.

use schemars::{JsonSchema, Schema, schema_for};

use super::{CliError, Context, Exit};

type Make = fn() -> Schema;

fn make<T: JsonSchema>() -> Schema {
    schema_for!(T)
}

/// Name of the output and its schema.
pub(super) const SCHEMAS: &[(&str, Make)] = &[
    ("acs", make::<super::acs::Output>),
    ("apply", make::<super::apply::Output>),
    ("bandwidth", make::<super::bandwidth::Output>),
    ("capture", make::<super::capture::Output>),
    ("cmdline", make::<super::cmdline::Output>),
    ("doctor", make::<super::doctor::Output>),
    ("doctor-list", make::<super::doctor::ListOutput>),
    ("facts", make::<super::facts::Output>),
    ("metrics", make::<super::metrics::Output>),
    ("nccl-log", make::<super::nccl_log::Output>),
    ("plan", make::<super::plan::Output>),
    ("policy", make::<super::policy::ShowOutput>),
    ("policy-check", make::<super::policy::CheckOutput>),
    ("rollback", make::<super::rollback::Output>),
    ("status", make::<super::status::Output>),
    ("topology", make::<super::topology::Output>),
    ("verify", make::<super::verify::Output>),
];

/// Prints one schema, or all of them in one object.
pub(super) fn run(context: &Context, name: Option<&str>) -> Result<Exit, CliError> {
    let schemas = SCHEMAS
        .iter()
        .filter(|(n, _)| name.is_none_or(|wanted| wanted == *n));
    let found: serde_json::Map<String, serde_json::Value> = schemas
        .map(|(n, make)| (format!("gdr-agent/{n}/v1"), make().to_value()))
        .collect();
    let value = match (name, found.len()) {
        (Some(name), 0) => {
            let known: Vec<&str> = SCHEMAS.iter().map(|(n, _)| *n).collect();
            let message = format!(
                "there is no output named `{}`; there are {}",
                name.escape_debug(),
                known.join(", ")
            );
            return Err(CliError::new(Exit::Usage, "usage", message));
        }
        (Some(_), _) => found.into_iter().next().map(|(_, v)| v).unwrap_or_default(),
        (None, _) => serde_json::Value::Object(found),
    };
    context.out.raw(&format!("{value:#}\n"))?;
    Ok(Exit::Done)
}
