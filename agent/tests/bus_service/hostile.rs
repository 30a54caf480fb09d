//! Callers who mean no good.

use std::time::{Duration, Instant};

use zbus::Connection;
use zbus::message::{Flags, Message};

use crate::system_bus::{NAME, PATH, SystemBus};

async fn connect(bus: &SystemBus) -> Connection {
    zbus::connection::Builder::address(bus.address.as_str())
        .build()
        .await
        .unwrap()
}

fn call(member: &'static str) -> zbus::message::Builder<'static> {
    Message::method_call(PATH, member)
        .destination(NAME)
        .interface(NAME)
}

/// The processes of this test's service, by what is on their command line.
fn memory(bus: &SystemBus) -> u64 {
    let node = bus.node().display().to_string();
    let mut found = 0;
    for entry in std::fs::read_dir("/proc").unwrap() {
        let path = entry.unwrap().path();
        let line = std::fs::read(path.join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        if !(line.contains(&node) && line.contains("boot bus") && !line.starts_with("/usr/bin/env"))
        {
            continue;
        }
        let status = std::fs::read_to_string(path.join("status")).unwrap_or_default();
        let peak = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
        if let Some(kib) = peak.and_then(|text| text.split_whitespace().next()) {
            found = kib.parse().unwrap();
        }
    }
    found
}

#[test]
fn a_flood_from_somebody_who_leaves_costs_others_little() {
    let Some(bus) = SystemBus::start(20) else {
        return;
    };
    assert_eq!(bus.property("State"), "COMMITTED");
    zbus::block_on(async {
        let flood = connect(&bus).await;
        for number in 0..3000 {
            let flags = if number % 2 == 0 {
                Flags::NO_REPLY_EXPECTED
            } else {
                Flags::NO_AUTO_START
            };
            let message = call("Status").with_flags(flags).build(&()).unwrap();
            if flood.send(&message).await.is_err() {
                break;
            }
        }
        // It never reads an answer, and goes.
        drop(flood);
    });
    let begun = Instant::now();
    assert_eq!(bus.property("State"), "COMMITTED");
    assert!(begun.elapsed() < Duration::from_secs(30));
    let peak = memory(&bus);
    assert!((1..48 << 10).contains(&peak), "{peak} KiB");
}

#[test]
fn arguments_that_nobody_asked_for_are_refused_whatever_their_size() {
    let Some(bus) = SystemBus::start(20) else {
        return;
    };
    let huge = "x".repeat(8 << 20);
    let error = |member: &'static str, interface: &'static str| {
        zbus::block_on(async {
            let connection = connect(&bus).await;
            let answer = connection
                .call_method(Some(NAME), PATH, Some(interface), member, &huge.as_str())
                .await;
            answer.unwrap_err().to_string()
        })
    };
    assert!(error("Status", NAME).contains("InvalidArgs"));
    assert!(error("Reconcile", NAME).contains("InvalidArgs"));
    let properties = "org.freedesktop.DBus.Properties";
    assert!(error("GetAll", properties).contains("InvalidArgs"));
    assert!(error("Get", properties).contains("InvalidArgs"));
    assert!(error("Nothing", NAME).contains("UnknownMethod"));
    assert_eq!(bus.property("State"), "COMMITTED");
}

#[test]
fn nobody_else_answers_and_nothing_is_set() {
    let Some(bus) = SystemBus::start(20) else {
        return;
    };
    let dbus = "org.freedesktop.DBus";
    let said = bus.refused(&["call", dbus, "/", dbus, "RequestName", "su", NAME, "4"]);
    assert!(said.contains("Access denied"), "{said}");
    let properties = "org.freedesktop.DBus.Properties";
    let set = [
        "call", NAME, PATH, properties, "Set", "ssv", NAME, "State", "s", "IDLE",
    ];
    let said = bus.refused(&set);
    assert!(
        said.contains("Access denied") || said.contains("Rejected send message"),
        "{said}"
    );
    for (path, interface, member) in [
        ("/", NAME, "Status"),
        ("/org/gdr_agent/Agent1/x", NAME, "Status"),
        (PATH, "org.gdr_agent.Agent2", "Status"),
        (PATH, NAME, "Rollback"),
        (PATH, properties, "Status"),
    ] {
        bus.refused(&["call", NAME, path, interface, member]);
    }
    // Root may send what the policy keeps from others.
    zbus::block_on(async {
        let connection = connect(&bus).await;
        let value = zbus::Variant::from("IDLE");
        let answer = connection
            .call_method(
                Some(NAME),
                PATH,
                Some(properties),
                "Set",
                &(NAME, "State", value),
            )
            .await;
        assert!(answer.is_err());
    });
    assert_eq!(bus.property("State"), "COMMITTED");
    let unknown = bus.refused(&["get-property", NAME, PATH, NAME, "Policy"]);
    assert!(unknown.contains("there are Version"), "{unknown}");
}
