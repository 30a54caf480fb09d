//! What ships with the crate: the starter, the profiles, the schema.

use gdr_policy::{AcsScope, Bake, Origin, Policy, json_schema, starter};
use serde_json::Value;

use crate::SAMPLE;

const PROFILES: [(&str, &str); 3] = [
    (
        "hgx-bare-metal",
        include_str!("../../profiles/hgx-bare-metal.toml"),
    ),
    (
        "shared-node",
        include_str!("../../profiles/shared-node.toml"),
    ),
    ("image-bake", include_str!("../../profiles/image-bake.toml")),
];

#[test]
fn the_starter_is_the_default_policy_with_every_key_in_sight() {
    let loaded = crate::load(starter()).unwrap_or_else(|found| panic!("{found}"));
    assert_eq!(loaded.policy, Policy::default());
    for (key, origin) in loaded.origins.iter() {
        let optional = key.starts_with("reboot.fleetlock.")
            || key.starts_with("verify.bandwidth.")
            || ["reboot.delay", "reboot.message", "reboot.gates.stop_url"].contains(&key);
        assert_eq!(*origin == Origin::Default, optional, "{key}");
    }
}

/// The commented tables of the starter work once their marks are gone.
#[test]
fn the_starter_with_its_optional_tables() {
    let text: String = starter()
        .lines()
        .map(|line| match line.strip_prefix("# ") {
            Some(rest) if rest.starts_with('[') || rest.split(' ').nth(1) == Some("=") => rest,
            _ => line,
        })
        .map(|line| format!("{line}\n"))
        .collect();
    let loaded = crate::load(&text).unwrap_or_else(|found| panic!("{found}"));
    assert!(
        loaded
            .origins
            .iter()
            .all(|(_, origin)| *origin != Origin::Default)
    );
    assert_eq!(loaded.policy.verify.bandwidth.unwrap().min_gbps, 380.0);
}

#[test]
fn the_profiles_load_without_a_warning() {
    for (name, text) in PROFILES {
        let loaded = crate::load(text).unwrap_or_else(|found| panic!("{name}: {found}"));
        assert!(loaded.warnings.is_empty(), "{name}: {}", loaded.warnings);
        match name {
            "hgx-bare-metal" => assert!(loaded.policy.reboot.allow),
            "shared-node" => assert_eq!(loaded.policy.acs.scope, AcsScope::Keep),
            _ => assert_eq!(loaded.policy.trial.bake, Bake::Arm),
        }
    }
}

fn json_of(text: &str) -> Value {
    serde_json::to_value(toml::from_str::<toml::Value>(text).unwrap()).unwrap()
}

#[test]
fn the_schema_accepts_what_load_accepts() {
    let schema = json_schema();
    assert_eq!(
        schema["$schema"],
        "https://json-schema.org/draft/2020-12/schema"
    );
    let validator = jsonschema::validator_for(&schema).unwrap();
    let texts = PROFILES.iter().map(|(_, text)| *text);
    for text in texts.chain([SAMPLE, starter(), "version = 1"]) {
        if let Err(error) = validator.validate(&json_of(text)) {
            panic!("{error} in\n{text}");
        }
    }
}

#[test]
fn the_schema_refuses_what_load_refuses() {
    let validator = jsonschema::validator_for(&json_schema()).unwrap();
    for text in [
        "",
        "version = 2",
        "version = 1\nx = 1",
        "version = 1\n[kernel]\niomu = \"off\"",
        "version = 1\n[kernel]\niommu = \"on\"",
        "version = 1\n[kernel]\nset = [\"a;b\"]",
        "version = 1\n[kernel]\nset = [\"a\", \"a\"]",
        "version = 1\n[acs]\nclear = [\"SV\"]",
        "version = 1\n[trial]\npanic = 0",
        "version = 1\n[trial]\ndeadline = \"10\"",
        "version = 1\n[devices]\ngpu = []",
        "version = 1\n[devices]\ngpu = [\"*:*/*\"]",
        "version = 1\n[reboot.fleetlock]\ngroup = \"a\"",
        "version = 1\n[reboot.fleetlock]\nurl = \"https://me:pw@h/\"",
        "version = 1\n[verify.bandwidth]\nmin_gbps = 0",
        "version = 1\n[peermem]\npackage = \"-y\"",
    ] {
        assert!(crate::load(text).is_err(), "{text}");
        assert!(!validator.is_valid(&json_of(text)), "{text}");
    }
}

#[test]
fn the_schema_describes_every_property_and_closes_every_table() {
    fn walk(node: &Value, path: &str) {
        if let Some(properties) = node.get("properties").and_then(Value::as_object) {
            assert_eq!(node["additionalProperties"], false, "{path}");
            for (name, property) in properties {
                let text = property["description"].as_str().unwrap_or_default();
                assert!(!text.is_empty(), "{path}.{name} has no description");
            }
        }
        for (name, inner) in node
            .get("$defs")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            walk(inner, name);
        }
    }
    walk(&json_schema(), "");
}
