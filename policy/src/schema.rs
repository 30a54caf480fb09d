//! The JSON schema of a policy file, for editors and for linting.

use crate::policy::Policy;

/// The JSON schema (draft 2020-12) of policy.toml. A drop-in follows it too, but for `version`,
/// which it may leave out. Contradictions between keys are beyond a schema; [`crate::load`] finds
/// them.
pub fn json_schema() -> serde_json::Value {
    schemars::generate::SchemaSettings::draft2020_12()
        .into_generator()
        .into_root_schema_for::<Policy>()
        .to_value()
}
