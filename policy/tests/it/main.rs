//! The crate from outside: text in, policy or diagnostics out.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a helper of a test fails the test"
)]

mod digest;
mod errors;
mod merge;
mod ready_made;
mod render;
mod robust;
mod sample;
mod snapshot;
mod types;

use gdr_policy::{Diagnostic, Diagnostics, Loaded, Severity, Source};

/// The policy that the documentation shows.
pub(crate) const SAMPLE: &str = include_str!("sample.toml");

pub(crate) fn source(name: &str, text: &str) -> Source {
    Source {
        name: name.to_owned(),
        text: text.as_bytes().to_vec(),
    }
}

pub(crate) fn load(text: &str) -> Result<Loaded, Diagnostics> {
    gdr_policy::load(&[source("policy.toml", text)])
}

pub(crate) fn errors(text: &str) -> Vec<Diagnostic> {
    load(text).expect_err("the policy should be refused").0
}

/// The one error of `text` below `version = 1`, so line 1 of `text` is line 2 of the file.
pub(crate) fn error(text: &str) -> Diagnostic {
    let mut all = errors(&format!("version = 1\n{text}"));
    assert_eq!(all.len(), 1, "{all:#?}");
    let one = all.remove(0);
    assert_eq!(
        (one.severity, one.file.as_str()),
        (Severity::Error, "policy.toml")
    );
    one
}
