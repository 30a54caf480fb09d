//! Where each value of a policy came from.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// No file names the key.
    Default,
    /// The last file that names the key.
    File {
        /// The name of the source, as given.
        file: String,
        /// The key's line, from 1.
        line: usize,
        /// The key's column, from 1, in characters.
        column: usize,
    },
}

/// The origin of every key, those of absent optional tables too.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Origins(pub(crate) BTreeMap<String, Origin>);

impl Origins {
    /// The origin of a key, written with dots: `kernel.iommu`. [`Origin::Default`] for anything
    /// that no file names.
    pub fn get(&self, key: &str) -> Origin {
        self.0.get(key).cloned().unwrap_or(Origin::Default)
    }

    /// Every key with its origin, by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Origin)> {
        self.0.iter().map(|(key, origin)| (key.as_str(), origin))
    }
}
