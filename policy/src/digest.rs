//! The name of a policy by its content.

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::policy::Policy;

impl Policy {
    /// SHA-256 of the policy in force, as 64 hex digits. Comments, the order of keys, the layout
    /// of files and where a value came from do not matter; the order within a list does.
    ///
    /// What is hashed is the policy's JSON in the form of RFC 8785: keys sorted, no blanks,
    /// whole numbers without a fraction.
    pub fn digest(&self) -> String {
        let mut text = String::new();
        // A policy has only strings as keys and finite numbers, so it always has a JSON form.
        let value = serde_json::to_value(self).unwrap_or_default();
        canonical(&value, &mut text);
        Sha256::digest(text.as_bytes())
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }
}

fn canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort();
            out.push('{');
            for (index, key) in keys.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                canonical(&Value::String(key.clone()), out);
                out.push(':');
                canonical(map.get(key).unwrap_or(&Value::Null), out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                canonical(item, out);
            }
            out.push(']');
        }
        Value::Number(number) => match number.as_f64().filter(|_| number.is_f64()) {
            // Rust prints the shortest text that reads back the same, and 380.0 as 380.
            Some(float) => out.push_str(&float.to_string()),
            None => out.push_str(&number.to_string()),
        },
        // Policy texts are printable ASCII without quotes, where JSON has only one spelling.
        Value::String(_) | Value::Bool(_) | Value::Null => out.push_str(&value.to_string()),
    }
}
