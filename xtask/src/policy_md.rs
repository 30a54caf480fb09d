//! `docs/policy.md`: every key of a policy, from the descriptions in its JSON schema.

use std::fmt::Write as _;

use crate::policy_keys::{self, Key, Table};
use crate::policy_man::INTRODUCTION;

/// The page.
pub fn page() -> String {
    let mut out = String::from("# The policy\n\n");
    out.push_str(HEAD);
    out.push_str("\n\n");
    out.push_str(INTRODUCTION);
    out.push_str("\n\n");
    out.push_str(MORE);
    for table in policy_keys::tables() {
        add(&table, &mut out);
    }
    out
}

const HEAD: &str = "\
<!-- Made of the policy's JSON schema: GDR_WRITE_DOCS=1 cargo test -p xtask writes it anew. Change policy/src/policy.rs instead. -->";

const MORE: &str = "\
`gdr-agent policy new` prints a commented file with every key, `policy check` says what is wrong in a file with line and column, `policy show` prints the
policy in force with the origin of each value, and `policy schema` prints the JSON schema that this page is made of. gdr-agent-policy(5) has the same
text. Policies to start from are in `/usr/share/gdr-agent/profiles`; [recipes.md](recipes.md) has one for each kind of site.

A duration is hours, minutes and seconds: `90s`, `10m`, `1h30m`. Repeats in a list are errors. A few pairs of keys contradict each other, which no schema
can say; `policy check` does.
";

fn add(table: &Table, out: &mut String) {
    // Writing to a string cannot fail.
    let _ = match table.name.as_str() {
        "" => writeln!(out, "\n## Top level"),
        name => writeln!(out, "\n## `[{name}]`\n\n{}", table.what),
    };
    for key in &table.keys {
        let path = match table.name.as_str() {
            "" => key.name.clone(),
            name => format!("{name}.{}", key.name),
        };
        let _ = write!(
            out,
            "\n### `{path}`\n\n{}\n\n| type | default | since |\n|---|---|---|\n| {} | {} | {} |\n",
            key.what,
            cell(&key.kind),
            default(key),
            key.since,
        );
        if !key.words.is_empty() {
            out.push('\n');
        }
        for (word, what) in &key.words {
            let _ = writeln!(out, "- `{word}`: {what}");
        }
        out.push_str(&example(table, key));
    }
}

fn default(key: &Key) -> String {
    match &key.default {
        Some(value) => format!("`{value}`"),
        None if key.required => "none: it has to be there".to_owned(),
        None => "not set".to_owned(),
    }
}

/// A piece of a policy, with the keys that its table cannot be without.
fn example(table: &Table, key: &Key) -> String {
    let mut out = String::from("\n```toml\n");
    if !table.name.is_empty() {
        let _ = writeln!(out, "[{}]", table.name);
    }
    for one in &table.keys {
        if one.name == key.name || one.required {
            let _ = writeln!(out, "{} = {}", one.name, one.example);
        }
    }
    out.push_str("```\n");
    out
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// `GDR_WRITE_DOCS=1` writes it anew.
    #[test]
    fn the_page_is_of_the_schema() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/policy.md");
        let text = page();
        if std::env::var_os("GDR_WRITE_DOCS").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        assert!(
            std::fs::read_to_string(&path).is_ok_and(|there| there == text),
            "docs/policy.md is not of the policy's schema: GDR_WRITE_DOCS=1 cargo test -p xtask, and look at the difference"
        );
    }

    #[test]
    fn every_key_says_what_since_when_and_shows_an_example() {
        let this: Vec<u32> = numbers(env!("CARGO_PKG_VERSION"));
        for table in policy_keys::tables() {
            for key in &table.keys {
                let path = format!("{}.{}", table.name, key.name);
                assert!(key.what.ends_with(['.', '"']), "{path}: {}", key.what);
                assert!(!key.kind.is_empty() && !key.example.is_empty(), "{path}");
                let since = numbers(&key.since);
                assert!(since.len() == 3 && since <= this, "{path}: {}", key.since);
            }
        }
    }

    fn numbers(version: &str) -> Vec<u32> {
        version.split('.').filter_map(|n| n.parse().ok()).collect()
    }

    #[test]
    fn every_example_is_a_valid_policy() {
        for table in policy_keys::tables() {
            for key in &table.keys {
                let block = example(&table, key);
                let block = block.replace("```toml", "").replace("```", "");
                let head = if key.name == "version" {
                    ""
                } else {
                    "version = 1\n"
                };
                let source = gdr_policy::Source {
                    name: "policy.toml".to_owned(),
                    text: format!("{head}{block}").into_bytes(),
                };
                let loaded = gdr_policy::load(&[source]);
                let loaded = loaded.unwrap_or_else(|found| panic!("{block}\n{found}"));
                assert!(loaded.warnings.is_empty(), "{block}\n{}", loaded.warnings);
            }
        }
    }
}
