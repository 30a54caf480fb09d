//! Every key of a policy as its JSON schema describes it: what the manual page and `docs/policy.md` say.

use serde_json::{Map, Value};

/// A table of the policy; the one without a name is the top level.
pub struct Table {
    /// `reboot.gates`
    pub name: String,
    pub what: String,
    pub keys: Vec<Key>,
}

/// A key with everything that is said of it.
pub struct Key {
    pub name: String,
    pub what: String,
    /// "boolean", "integer, 1 to 3600", "one of the words below".
    pub kind: String,
    /// In TOML; none where the schema has none.
    pub default: Option<String>,
    /// Words that may stand there, with what they mean.
    pub words: Vec<(String, String)>,
    /// The version of the program that was the first to know it.
    pub since: String,
    /// In TOML.
    pub example: String,
    /// Whether its table is not valid without it.
    pub required: bool,
}

/// The tables in the order of the schema, each followed by those in it.
pub fn tables() -> Vec<Table> {
    let schema = gdr_policy::json_schema();
    let mut out = Vec::new();
    table(&schema, "", &schema, &mut out);
    out
}

fn table(schema: &Value, name: &str, property: &Value, out: &mut Vec<Table>) {
    let meant = resolve(schema, property);
    let (tables, keys): (Vec<_>, Vec<_>) = properties(meant)
        .into_iter()
        .partition(|(_, p)| !properties(resolve(schema, p)).is_empty());
    let required = |key: &str| {
        let list = meant.get("required").and_then(Value::as_array);
        list.is_some_and(|list| list.iter().any(|one| one == key))
    };
    out.push(Table {
        name: name.to_owned(),
        what: described(schema, property),
        keys: keys
            .into_iter()
            .map(|(key, value)| read(schema, key, value, required(key)))
            .collect(),
    });
    for (inner, value) in tables {
        let name = match name {
            "" => inner.clone(),
            _ => format!("{name}.{inner}"),
        };
        table(schema, &name, value, out);
    }
}

fn read(schema: &Value, name: &str, property: &Value, required: bool) -> Key {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    let default = property.get("default").filter(|value| !value.is_null());
    Key {
        name: name.to_owned(),
        what: described(schema, property),
        kind: kind(schema, property),
        default: default.map(toml),
        words: words(schema, property),
        since: text(property.get("x-since")),
        example: property.pointer("/examples/0").map_or(String::new(), toml),
        required,
    }
}

fn kind(schema: &Value, property: &Value) -> String {
    let meant = resolve(schema, property);
    let number = |name: &str| meant.get(name).map(ToString::to_string);
    match meant.get("type").and_then(Value::as_str) {
        Some("array") => {
            let of = meant.get("items").map(|items| kind(schema, items));
            let mut out = format!("list: {}", of.unwrap_or_default());
            if let Some(most) = meant.get("maxItems") {
                out.push_str(&format!("; at most {most}"));
            }
            out
        }
        Some(name @ ("integer" | "number")) => match (number("minimum"), number("maximum")) {
            (Some(least), Some(most)) => format!("{name}, {least} to {most}"),
            _ => name.to_owned(),
        },
        Some("string") => format!("string: {}", described(schema, meant).trim_end_matches('.')),
        Some(other) => other.to_owned(),
        None => "one of the words below".to_owned(),
    }
}

fn words(schema: &Value, property: &Value) -> Vec<(String, String)> {
    let meant = resolve(schema, property);
    let one = meant
        .get("items")
        .map_or(meant, |items| resolve(schema, items));
    let choices = one.get("oneOf").and_then(Value::as_array);
    choices
        .into_iter()
        .flatten()
        .filter_map(|choice| {
            let word = choice.get("const")?.as_str()?;
            Some((word.to_owned(), described(schema, choice)))
        })
        .collect()
}

fn properties(schema: &Value) -> Vec<(&String, &Value)> {
    let all = schema.get("properties").and_then(Value::as_object);
    all.map(Map::iter).into_iter().flatten().collect()
}

/// The description in one line.
fn described(schema: &Value, property: &Value) -> String {
    let own = property.get("description");
    let text = own.or_else(|| resolve(schema, property).get("description"));
    let text = text.and_then(Value::as_str).unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
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

/// A value of a key as TOML has it: strings, numbers and lists of them are the same there as in JSON.
fn toml(value: &Value) -> String {
    match value {
        Value::Array(list) => {
            let all: Vec<String> = list.iter().map(toml).collect();
            format!("[{}]", all.join(", "))
        }
        other => other.to_string(),
    }
}
