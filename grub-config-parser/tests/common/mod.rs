//! What the comparisons with real programs share.
#![allow(
    dead_code,
    clippy::disallowed_methods,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "each test binary uses its own part, and tests panic"
)]

use std::path::PathBuf;
use std::process::{Command, Output};

/// The full path of a program, or `None` with a message where it is not installed.
pub(crate) fn program(name: &str) -> Option<PathBuf> {
    let dirs = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&dirs)
        .map(|dir| dir.join(name))
        .find(|path| path.exists());
    if found.is_none() {
        eprintln!("skipped: {name} is not installed");
    }
    found
}

/// The folder of real files, or `None` with a message.
pub(crate) fn corpus(kind: &str) -> Option<PathBuf> {
    let Some(root) = std::env::var_os("GDR_CORPUS") else {
        eprintln!("skipped: GDR_CORPUS is not set");
        return None;
    };
    Some(PathBuf::from(root).join(kind))
}

/// The regular files of a folder of the corpus, by name.
pub(crate) fn corpus_files(kind: &str) -> Vec<PathBuf> {
    let Some(dir) = corpus(kind) else {
        return Vec::new();
    };
    let mut files: Vec<PathBuf> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files.retain(|path| path.extension().is_none_or(|extension| extension != "json"));
    files
}

pub(crate) fn run(command: &mut Command) -> Output {
    command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// How many cases a comparison makes: `PROPTEST_CASES`, or a number that keeps the suite quick.
pub(crate) fn cases(quick: u32) -> proptest::test_runner::Config {
    let cases = std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|text| text.parse().ok());
    proptest::test_runner::Config {
        cases: cases.unwrap_or(quick),
        failure_persistence: None,
        ..Default::default()
    }
}
