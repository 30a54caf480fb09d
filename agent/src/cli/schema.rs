//! `gdr-agent schema`: the JSON schemas of everything that is printed as JSON.
//!
//! They are files, `agent/schemas/NAME.json`: a change of what others rely on is seen where it is made. A test holds
//! them to the types that are printed.

use std::io::Read as _;

use serde_json::{Map, Value};

use super::{CliError, Context, Exit};

/// `schemas/*.json` by their names, as `build.rs` packs them.
const PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/schemas.deflate"));

/// The schema of a policy file, which is no output.
const POLICY_FILE: &str = "policy-file";

fn all() -> Result<Map<String, Value>, CliError> {
    let mut text = Vec::new();
    let unpacked = flate2::read::DeflateDecoder::new(PACKED).read_to_end(&mut text);
    let broken = |why: String| CliError::new(Exit::Internal, "schema", why);
    unpacked.map_err(|e| broken(format!("the schemas in this program are damaged: {e}")))?;
    serde_json::from_slice(&text)
        .map_err(|e| broken(format!("the schemas in this program are damaged: {e}")))
}

/// The schema of a policy file.
///
/// # Errors
/// The program's file is damaged.
pub(super) fn policy_file() -> Result<Value, CliError> {
    Ok(all()?.remove(POLICY_FILE).unwrap_or_default())
}

/// Prints one schema, or all of them in one object.
pub(super) fn run(context: &Context, name: Option<&str>) -> Result<Exit, CliError> {
    let mut all = all()?;
    all.remove(POLICY_FILE);
    let value = match name {
        Some(name) => match all.remove(name) {
            Some(schema) => schema,
            None => {
                let known: Vec<&str> = all.keys().map(String::as_str).collect();
                let message = format!(
                    "there is no output named `{}`; there are {}",
                    name.escape_debug(),
                    known.join(", ")
                );
                return Err(CliError::new(Exit::Usage, "usage", message));
            }
        },
        None => all
            .into_iter()
            .map(|(name, schema)| (format!("gdr-agent/{name}/v1"), schema))
            .collect(),
    };
    context.out.raw(&format!("{value:#}\n"))?;
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use schemars::{JsonSchema, schema_for};

    use super::*;
    use crate::cli;

    fn of<T: JsonSchema>() -> Value {
        schema_for!(T).to_value()
    }

    fn made() -> BTreeMap<&'static str, Value> {
        [
            ("acs", of::<cli::acs::Output>()),
            ("apply", of::<cli::apply::Output>()),
            ("bandwidth", of::<cli::bandwidth::Output>()),
            ("capture", of::<cli::capture::Output>()),
            ("cmdline", of::<cli::cmdline::Output>()),
            ("doctor", of::<cli::doctor::Output>()),
            ("doctor-list", of::<cli::doctor::ListOutput>()),
            ("facts", of::<cli::facts::Output>()),
            ("metrics", of::<cli::metrics::Output>()),
            ("nccl-log", of::<cli::nccl_log::Output>()),
            ("plan", of::<cli::plan::Output>()),
            ("policy", of::<cli::policy::ShowOutput>()),
            ("policy-check", of::<cli::policy::CheckOutput>()),
            (POLICY_FILE, gdr_policy::json_schema()),
            ("rollback", of::<cli::rollback::Output>()),
            ("status", of::<cli::status::Output>()),
            ("topology", of::<cli::topology::Output>()),
            ("verify", of::<cli::verify::Output>()),
        ]
        .into()
    }

    /// `GDR_WRITE_SCHEMAS=1` writes them anew.
    #[test]
    #[allow(clippy::disallowed_methods, reason = "a test reads the source tree")]
    fn the_files_are_of_the_types() {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas");
        let write = std::env::var_os("GDR_WRITE_SCHEMAS").is_some();
        for (name, schema) in made() {
            let path = dir.join(format!("{name}.json"));
            let text = format!("{schema:#}\n");
            if write {
                std::fs::write(&path, &text).unwrap();
            }
            assert!(
                std::fs::read_to_string(&path).is_ok_and(|there| there == text),
                "{} is not of the type that is printed: GDR_WRITE_SCHEMAS=1 cargo test -p gdr-agent schema, and look at the difference",
                path.display()
            );
        }
        let files = std::fs::read_dir(&dir).unwrap().count();
        assert_eq!(files, made().len(), "{} has other files", dir.display());
    }

    #[test]
    fn what_is_packed_is_what_is_there() {
        if std::env::var_os("GDR_WRITE_SCHEMAS").is_none() {
            assert_eq!(
                all().unwrap(),
                made()
                    .into_iter()
                    .map(|(n, s)| (n.to_owned(), s))
                    .collect::<Map<_, _>>()
            );
        }
    }
}
