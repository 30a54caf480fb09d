//! What everybody may read.

use std::time::{Duration, Instant};

use crate::system_bus::{NAME, PATH, SystemBus};

#[test]
fn somebody_without_rights_reads_it_all_and_it_ends_by_itself() {
    let Some(bus) = SystemBus::start(2) else {
        return;
    };
    assert!(!bus.has_owner(), "nobody has asked yet");
    assert_eq!(bus.property("State"), "COMMITTED");
    assert!(bus.has_owner());
    assert_eq!(bus.property("Version"), env!("CARGO_PKG_VERSION"));
    assert_eq!(bus.property("TransactionId").len(), 16);
    let boot = std::fs::read_to_string(bus.node().join("proc/sys/kernel/random/boot_id")).unwrap();
    assert_eq!(bus.property("BootId"), boot.trim());
    assert_eq!(bus.property("LastReport"), "", "none was written yet");
    std::fs::create_dir_all(bus.node().join("run/gdr-agent")).unwrap();
    bus.agent(&["metrics", "--textfile", "/run/gdr-agent/metrics.prom"]);
    // What was read is kept for a moment.
    let until = Instant::now() + Duration::from_secs(5);
    let mut report = bus.property("LastReport");
    while report.is_empty() && Instant::now() < until {
        report = bus.property("LastReport");
    }
    assert!(
        report.contains("gdr_agent_transaction_state{state=\"COMMITTED\"} 1\n"),
        "{report}"
    );

    let all = bus.asked(&[
        "call",
        NAME,
        PATH,
        "org.freedesktop.DBus.Properties",
        "GetAll",
        "s",
        NAME,
    ]);
    let names: Vec<&String> = all["data"][0].as_object().unwrap().keys().collect();
    assert_eq!(
        names,
        ["BootId", "LastReport", "State", "TransactionId", "Version"]
    );

    assert!(bus.wait_for_its_end(), "it has nothing to do and stays");
    assert_eq!(bus.property("State"), "COMMITTED", "and is started again");
}

#[test]
fn the_status_is_the_command_s_without_the_words_of_others() {
    let Some(bus) = SystemBus::start(5) else {
        return;
    };
    let ours: serde_json::Value =
        serde_json::from_slice(&bus.agent(&["--format", "json", "status"])).unwrap();
    let answer = bus.asked(&["call", NAME, PATH, NAME, "Status"]);
    let status: serde_json::Value =
        serde_json::from_str(answer["data"][0].as_str().unwrap()).unwrap();
    assert_eq!(status, ours, "here nobody has said anything");

    // Checks that fail end it, and their evidence is what was read from files.
    let policy = bus.node().join("etc/gdr-agent/policy.toml");
    let text = std::fs::read_to_string(&policy).unwrap();
    std::fs::write(
        &policy,
        text.replace("[\"acs\"]", "[\"acs\", \"gdr-path\"]"),
    )
    .unwrap();
    // Without its modules the kernel has no way to GPU memory.
    std::fs::remove_dir_all(bus.node().join("lib/modules")).unwrap();
    let output = bus.run(&["apply"]);
    assert!(!output.status.success(), "{output:?}");
    let root = bus.run(&["--format", "json", "status"]);
    let ours: serde_json::Value = serde_json::from_slice(&root.stdout).unwrap();
    let reason = ours["reason"].as_str().unwrap();
    assert!(!ours["unmet"].as_array().unwrap().is_empty());
    let answer = bus.asked(&["call", NAME, PATH, NAME, "Status"]);
    let text = answer["data"][0].as_str().unwrap();
    let status: serde_json::Value = serde_json::from_str(text).unwrap();
    for same in [
        "schema", "state", "txn", "digest", "next", "time", "outcome",
    ] {
        assert_eq!(status[same], ours[same], "{same}");
    }
    assert_eq!(status["failure"]["kind"], ours["failure"]["kind"]);
    assert_eq!(status["unmet"], serde_json::json!([]));
    assert!(
        !text.contains(reason) && text.contains("says more to root"),
        "{text}"
    );
    let schema = Schema::read();
    for key in schema.keys() {
        assert!(status.get(key).is_some(), "{key} is missing in {text}");
    }
}

/// The names that the schema of `status` requires.
struct Schema(serde_json::Value);

impl Schema {
    fn read() -> Self {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas/status.json");
        Self(serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap())
    }

    fn keys(&self) -> Vec<&str> {
        let required = self.0["required"].as_array().unwrap();
        required.iter().map(|key| key.as_str().unwrap()).collect()
    }
}

/// What it says of itself is what it does.
#[test]
fn introspection_names_what_there_is() {
    let Some(bus) = SystemBus::start(5) else {
        return;
    };
    let tree = bus.nobody(&["tree", NAME]);
    let tree = String::from_utf8(tree.stdout).unwrap();
    assert!(tree.contains(PATH), "{tree}");
    let members = bus.nobody(&["introspect", NAME, PATH]);
    let members = String::from_utf8_lossy(&members.stdout).into_owned();
    for name in [
        "Status",
        "Reconcile",
        "Version",
        "State",
        "TransactionId",
        "BootId",
        "LastReport",
    ] {
        assert!(members.contains(name), "{name}: {members}");
    }
    bus.asked(&["call", NAME, PATH, "org.freedesktop.DBus.Peer", "Ping"]);
}

#[test]
fn a_journal_that_cannot_be_read_is_an_error_and_never_a_state() {
    let Some(bus) = SystemBus::start(5) else {
        return;
    };
    let tx = bus.node().join("var/lib/gdr-agent/tx");
    for entry in std::fs::read_dir(&tx).unwrap() {
        for file in std::fs::read_dir(entry.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_some_and(|e| e == "rec") {
                std::fs::write(path, "damaged").unwrap();
            }
        }
    }
    for asked in [
        vec!["get-property", NAME, PATH, NAME, "State"],
        vec!["get-property", NAME, PATH, NAME, "TransactionId"],
        vec!["call", NAME, PATH, NAME, "Status"],
    ] {
        let said = bus.refused(&asked);
        assert!(said.contains("journal"), "{said}");
    }
    let all = bus.asked(&[
        "call",
        NAME,
        PATH,
        "org.freedesktop.DBus.Properties",
        "GetAll",
        "s",
        NAME,
    ]);
    let all = all["data"][0].as_object().unwrap();
    assert!(
        all.contains_key("Version") && !all.contains_key("State"),
        "{all:?}"
    );
}
