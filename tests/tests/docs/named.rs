//! Tests that pages name.

use std::path::Path;

use crate::repository;

/// The text of every Rust file, together.
pub fn sources() -> String {
    let mut out = String::new();
    for part in ["agent", "policy", "grub-config-parser", "tests", "xtask"] {
        add(&repository().join(part), &mut out);
    }
    out
}

fn add(dir: &Path, out: &mut String) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") {
            add(&path, out);
        } else if path.extension().is_some_and(|end| end == "rs") {
            out.push_str(&std::fs::read_to_string(&path).unwrap());
        }
    }
}

/// Whether a function of this name is there, in a test's form.
pub fn is_test(sources: &str, name: &str) -> bool {
    sources.contains(&format!("fn {name}()"))
}

/// Rows whose last cell names no test that exists, and does not say "none:".
pub fn wrong_rows(page: &str, sources: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut rows = 0;
    let mut in_table = false;
    for line in page.lines() {
        let cells: Vec<&str> = line.trim().trim_matches('|').split(" | ").collect();
        if !line.starts_with('|') {
            in_table = false;
            continue;
        }
        let last = cells.last().copied().unwrap_or_default().trim();
        if line.starts_with("|---") || last == "test" {
            in_table |= last == "test";
            continue;
        }
        if !in_table {
            continue;
        }
        rows += 1;
        let names: Vec<&str> = last.split('`').skip(1).step_by(2).collect();
        if names.is_empty() && !last.starts_with("none:") {
            wrong.push(format!("no test and no \"none:\": {line}"));
        }
        let missing = names.iter().filter(|name| !is_test(sources, name));
        wrong.extend(missing.map(|name| format!("there is no test {name}: {line}")));
    }
    if rows < 20 {
        wrong.push(format!("only {rows} rows were looked at"));
    }
    wrong
}
