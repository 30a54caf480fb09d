//! Policies as JSON: written whole, and validated when read back.

use gdr_policy::Policy;
use serde_json::{Value, json};

use crate::SAMPLE;

#[test]
fn a_policy_survives_the_journal() {
    for text in [SAMPLE, "version = 1"] {
        let policy = crate::load(text).unwrap().policy;
        let json = serde_json::to_string(&policy).unwrap();
        let back: Policy = serde_json::from_str(&json).unwrap();
        assert_eq!(back, policy);
        assert_eq!(back.digest(), policy.digest());
    }
}

fn refused(change: impl FnOnce(&mut Value)) -> String {
    let mut json = serde_json::to_value(crate::load(SAMPLE).unwrap().policy).unwrap();
    change(&mut json);
    serde_json::from_value::<Policy>(json)
        .unwrap_err()
        .to_string()
}

#[test]
fn reading_back_validates() {
    assert!(refused(|json| json["kernel"]["x"] = json!(1)).contains("unknown field `x`"));
    assert!(refused(|json| json["x"] = json!(1)).contains("unknown field `x`"));
    let range = refused(|json| json["trial"]["panic"] = json!(0));
    assert!(range.contains("trial.panic: 0 is not between"), "{range}");
    let shell = refused(|json| json["kernel"]["set"] = json!(["a;reboot"]));
    assert!(shell.contains("has `;` in it"), "{shell}");
    let owned = refused(|json| json["kernel"]["set"] = json!(["init=/bin/sh"]));
    assert!(owned.contains("neither set nor removed"), "{owned}");
    assert!(refused(|json| json["version"] = json!(2)).contains("version 2"));
    let missing = refused(|json| {
        json.as_object_mut().unwrap().remove("version");
    });
    assert!(missing.contains("missing field `version`"), "{missing}");
    assert!(refused(|json| json["acs"]["clear"] = json!(["SV"])).contains("unknown variant `SV`"));
}
