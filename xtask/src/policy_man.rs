//! gdr-agent-policy(5), from the descriptions in the policy's JSON schema.

use serde_json::{Map, Value};

use crate::roff;

/// The page. `date` is the day that it bears.
pub fn page(date: &str) -> String {
    let schema = gdr_policy::json_schema();
    let mut out = format!(
        ".TH GDR\\-AGENT\\-POLICY 5 {date} \"gdr-agent {}\" gdr\\-agent\n",
        env!("CARGO_PKG_VERSION")
    );
    out.push_str(&roff::section(
        "NAME",
        "gdr\\-agent\\-policy \\- what a GPU node should be",
    ));
    out.push_str(&roff::section(
        "SYNOPSIS",
        "/etc/gdr\\-agent/policy.toml\n.br\n/etc/gdr\\-agent/policy.d/*.toml",
    ));
    out.push_str(&roff::section(
        "DESCRIPTION",
        &roff::text(
            "A TOML file with a few tables. The files in policy.d are read after policy.toml, in the order of their names, and a later value wins.\n\
             Everything but version has a default. A key that is not known is an error, and so is a value that could not be written safely into a boot file.\n\
             A policy does nothing by lying there: gdr-agent apply puts it in force.",
        ),
    ));
    let mut body = String::new();
    for (name, property) in properties(&schema) {
        let meant = resolve(&schema, property);
        if properties(meant).is_empty() {
            body.push_str(&key(&schema, "", name, property));
        }
    }
    out.push_str(&roff::section("TOP LEVEL", &body));
    for (name, property) in properties(&schema) {
        table(&schema, name, property, &mut out);
    }
    out.push_str(&roff::section(
        "EXAMPLE",
        &roff::verbatim(gdr_policy::starter()),
    ));
    out.push_str(&roff::section(
        "SEE ALSO",
        "\\fBgdr\\-agent\\fR(8),\n\\fBgdr\\-agent\\-policy\\fR(8)",
    ));
    out
}

/// A table and the tables in it.
fn table(schema: &Value, name: &str, property: &Value, out: &mut String) {
    let meant = resolve(schema, property);
    let all = properties(meant);
    if all.is_empty() {
        return;
    }
    let mut body = String::new();
    if let Some(text) = description(schema, property) {
        body.push_str(&roff::text(text));
        body.push('\n');
    }
    let (tables, keys): (Vec<_>, Vec<_>) = all
        .into_iter()
        .partition(|(_, p)| !properties(resolve(schema, p)).is_empty());
    for (key_name, value) in keys {
        body.push_str(&key(schema, name, key_name, value));
    }
    out.push_str(&roff::section(&format!("[{}]", roff::text(name)), &body));
    for (inner, value) in tables {
        table(schema, &format!("{name}.{inner}"), value, out);
    }
}

fn key(schema: &Value, _table: &str, name: &str, property: &Value) -> String {
    let mut body = description(schema, property).unwrap_or_default().to_owned();
    match property.get("default") {
        Some(Value::Null) | None => {}
        Some(default) => {
            body.push_str(&format!("\nDefault: {default}"));
        }
    }
    let meant = resolve(schema, property);
    let choices = meant
        .get("items")
        .map_or(meant, |items| resolve(schema, items))
        .get("oneOf")
        .and_then(Value::as_array);
    let mut out = roff::tagged(name, &body);
    for choice in choices.into_iter().flatten() {
        let value = choice.get("const").and_then(Value::as_str);
        let what = choice.get("description").and_then(Value::as_str);
        if let (Some(value), Some(what)) = (value, what) {
            out.push_str(&format!(
                ".RS\n.TP\n\\fB{}\\fR\n{}\n.RE\n",
                roff::text(value),
                roff::text(what)
            ));
        }
    }
    out
}

fn properties(schema: &Value) -> Vec<(&String, &Value)> {
    let all = schema.get("properties").and_then(Value::as_object);
    all.map(Map::iter).into_iter().flatten().collect()
}

fn description<'a>(schema: &'a Value, property: &'a Value) -> Option<&'a str> {
    let own = property.get("description");
    own.or_else(|| resolve(schema, property).get("description"))
        .and_then(Value::as_str)
}

/// The type behind a reference, or behind "this or null".
fn resolve<'a>(schema: &'a Value, property: &'a Value) -> &'a Value {
    if let Some(name) = property.get("$ref").and_then(Value::as_str) {
        let pointer = name.trim_start_matches('#');
        return schema.pointer(pointer).unwrap_or(property);
    }
    let some = property.get("anyOf").and_then(Value::as_array);
    some.and_then(|all| all.iter().find(|one| one.get("$ref").is_some()))
        .map_or(property, |one| resolve(schema, one))
}
