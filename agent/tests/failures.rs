//! The failure catalogue, the registry and the code name the same findings.
#![allow(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test reads the source tree"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use gdr_agent::checks::registry;
use regex::Regex;

/// Words of the same form that are no findings: steps of a plan, files, kernel arguments.
const NO_FINDINGS: [&str; 15] = [
    "acs.clear",
    "cmdline.trial",
    "cmdline.menu",
    "cmdline.default",
    "cmdline.new-kernels",
    "modules.load",
    "modules.unload",
    "modules.load-at-boot",
    "modules.dep",
    "modules.alias",
    "modules.builtin",
    "iommu.passthrough",
    "iommu.strict",
    "nccl.conf",
    "package.install",
];

fn source() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Headlines of the catalogue's entries, each with its text.
fn catalogue() -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(source().join("../docs/failures.md")).unwrap();
    let mut entries: BTreeMap<String, String> = BTreeMap::new();
    for part in text.split("\n### ").skip(1) {
        let (id, rest) = part.split_once('\n').unwrap();
        let body = rest.split("\n## ").next().unwrap().to_owned();
        assert!(
            entries.insert(id.to_owned(), body).is_none(),
            "{id} is there twice"
        );
    }
    entries
}

fn rust_files(dir: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn every_entry_of_the_registry_is_described_and_nothing_else_is() {
    let described: BTreeSet<String> = catalogue().into_keys().collect();
    let known: BTreeSet<String> = registry::all().map(|entry| entry.id.to_owned()).collect();
    assert_eq!(described, known);
}

/// The anchors that reports point to are those that a renderer of Markdown makes of the headlines.
#[test]
fn anchors_lead_to_the_headlines() {
    let headlines = catalogue();
    let anchors: BTreeSet<String> = headlines
        .keys()
        .map(|id| {
            let kept = id
                .chars()
                .filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | ' '));
            format!(
                "docs/failures.md#{}",
                kept.collect::<String>().to_lowercase().replace(' ', "-")
            )
        })
        .collect();
    for entry in registry::all() {
        assert!(anchors.contains(&entry.anchor()), "{}", entry.anchor());
    }
}

#[test]
fn every_entry_says_all_there_is_to_say() {
    for (id, body) in catalogue() {
        let (_, entry) = registry::find(&id).unwrap();
        assert!(
            body.contains(entry.question),
            "{id}: the question is another one"
        );
        for part in ["Symptom", "Cause", "Evidence", "Fix"] {
            let line = body
                .lines()
                .find_map(|line| line.strip_prefix(&format!("- **{part}**: ")));
            assert!(line.is_some_and(|line| line.len() > 6), "{id}: {part}");
        }
    }
}

/// A finding that is added to the code has to be added to the registry, and so to the catalogue.
#[test]
fn every_finding_in_the_code_is_in_the_registry() {
    let ids = Regex::new(
        r#""((?:acs|iommu|peermem|dma-buf|nccl|bar1|link|path|cmdline|platform|package|modules|gpu|host|kernel|process|bandwidth|perftest|check)\.[a-z0-9]+(?:-[a-z0-9]+)*)""#,
    )
    .unwrap();
    let mut files = Vec::new();
    rust_files(&source().join("src"), &mut files);
    let mut in_code: BTreeSet<String> = BTreeSet::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        if file.components().any(|part| part.as_os_str() == "registry") {
            continue;
        }
        // The tests of a file come last, and may say anything.
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        in_code.extend(ids.captures_iter(code).map(|found| found[1].to_owned()));
    }
    let known: BTreeSet<String> = registry::all().map(|entry| entry.id.to_owned()).collect();
    let unknown: Vec<&String> = in_code
        .iter()
        .filter(|id| !known.contains(*id) && !NO_FINDINGS.contains(&id.as_str()))
        .collect();
    assert!(unknown.is_empty(), "not in the registry: {unknown:?}");
    let unused: Vec<&String> = known.iter().filter(|id| !in_code.contains(*id)).collect();
    assert!(
        unused.is_empty(),
        "in the registry, and nowhere in the code: {unused:?}"
    );
}
