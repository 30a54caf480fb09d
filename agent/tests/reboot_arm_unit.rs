//! The unit that arms the trial is active before anybody is asked for a reboot, or nobody is.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stdout,
    missing_docs
)]

mod reboot_support;

use std::path::Path;
use std::time::{Duration, Instant};

use gdr_agent::reboot::{ARM_UNIT, Bus, Kind, Refusal, arm_unit_active, start_arm_unit};
use gdr_agent::sys::Root;
use reboot_support::daemon::Daemon;
use reboot_support::systemd::{Start, Systemd, Unit};

const PATIENCE: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(500);

fn ask(unit: Unit, limit: Duration) -> (Result<(), Refusal>, Vec<String>) {
    let dir = tempfile::tempdir().unwrap();
    let systemd = Systemd::new(unit);
    let bus = Bus::peer(systemd.listen(dir.path())).with_limit(limit);
    let outcome = start_arm_unit(&[bus], limit);
    (outcome, systemd.log())
}

fn starts(log: &[String]) -> usize {
    let start = format!("StartUnit({ARM_UNIT}, fail)");
    log.iter().filter(|event| **event == start).count()
}

#[test]
fn an_active_unit_is_left_alone() {
    let unit = Unit {
        active: "active",
        ..Unit::inactive(Start::Fails)
    };
    let (outcome, log) = ask(unit, PATIENCE);
    assert_eq!((outcome, starts(&log)), (Ok(()), 0));
    assert_eq!(log, ["LoadUnit(gdr-agent-arm.service)"]);
}

#[test]
fn an_inactive_unit_is_started_once_and_waited_for() {
    for active in ["inactive", "failed", "deactivating"] {
        for start in [Start::Works, Start::After(4)] {
            let unit = Unit {
                active,
                ..Unit::inactive(start)
            };
            let (outcome, log) = ask(unit, PATIENCE);
            assert_eq!((outcome, starts(&log)), (Ok(()), 1), "{active} {start:?}");
        }
    }
}

#[test]
fn a_unit_that_cannot_be_started_is_a_refusal_that_says_what_to_do() {
    let loads = |load: &'static str| Unit {
        load,
        ..Unit::inactive(Start::Works)
    };
    let unknown = |error: &'static str| Unit {
        unknown: Some(error),
        ..Unit::inactive(Start::Works)
    };
    let error = |name: &'static str| Unit::inactive(Start::Error(name));
    for (unit, says, tried) in [
        (loads("masked"), "systemctl unmask", 0),
        (loads("not-found"), "daemon-reload", 0),
        (loads("bad-setting"), "bad-setting", 0),
        (loads("error"), "systemctl status", 0),
        (
            unknown("org.freedesktop.systemd1.NoSuchUnit"),
            "install the package",
            0,
        ),
        (
            unknown("org.freedesktop.DBus.Error.AccessDenied"),
            "as root",
            0,
        ),
        (
            error("org.freedesktop.systemd1.UnitMasked"),
            "systemctl unmask",
            1,
        ),
        (
            error("org.freedesktop.DBus.Error.AccessDenied"),
            "as root",
            1,
        ),
        (
            error("org.freedesktop.DBus.Error.InteractiveAuthorizationRequired"),
            "as root",
            1,
        ),
        (
            error("org.freedesktop.systemd1.TransactionIsDestructive"),
            "told so",
            1,
        ),
        (Unit::inactive(Start::Fails), "its start failed", 1),
        (Unit::inactive(Start::Ends), "inactive again", 1),
        (
            Unit::inactive(Start::ConditionNotMet),
            "conditions are not met",
            1,
        ),
    ] {
        let (outcome, log) = ask(unit, PATIENCE);
        let refusal = outcome.unwrap_err();
        assert_eq!(refusal.kind(), Kind::NotPermitted, "{unit:?}");
        let text = refusal.to_string();
        assert!(text.contains(says), "{unit:?}: {text}");
        assert!(
            text.contains(ARM_UNIT) && text.contains("would not try"),
            "{text}"
        );
        assert_eq!(starts(&log), tried, "{unit:?}");
    }
}

#[test]
fn what_never_comes_is_not_waited_for_without_end() {
    for start in [Start::Hangs, Start::Silent, Start::After(u32::MAX)] {
        let begin = Instant::now();
        let (outcome, log) = ask(Unit::inactive(start), SHORT);
        let text = outcome.unwrap_err().to_string();
        assert!(text.contains("500ms"), "{start:?}: {text}");
        assert!(begin.elapsed() < PATIENCE, "{start:?}");
        assert_eq!(starts(&log), 1, "{start:?}");
    }
}

#[test]
fn the_next_place_is_asked_where_the_bus_is_not_there() {
    let dir = tempfile::tempdir().unwrap();
    let nowhere = || Bus::at("unix:path=/nonexistent/bus");
    let systemd = Systemd::new(Unit::inactive(Start::Works));
    let private = Bus::peer(systemd.listen(dir.path())).with_limit(PATIENCE);
    assert_eq!(start_arm_unit(&[nowhere(), private], PATIENCE), Ok(()));
    assert_eq!(starts(&systemd.log()), 1);

    let refusal = start_arm_unit(&[nowhere(), nowhere()], PATIENCE).unwrap_err();
    assert_eq!(refusal.kind(), Kind::Unreachable);
    assert!(
        refusal.to_string().contains("/nonexistent/bus"),
        "{refusal}"
    );
}

#[test]
fn over_a_message_bus() {
    let Some(daemon) = Daemon::start() else {
        return;
    };
    let systemd = Systemd::new(Unit::inactive(Start::After(2)));
    systemd.join(&daemon.address);
    assert_eq!(start_arm_unit(&[daemon.bus()], PATIENCE), Ok(()));
    assert_eq!(starts(&systemd.log()), 1);

    let Some(empty) = Daemon::start() else {
        return;
    };
    let refusal = start_arm_unit(&[empty.bus()], PATIENCE).unwrap_err();
    assert!(refusal.to_string().contains(ARM_UNIT), "{refusal}");
}

/// Nobody's bus is asked about a directory: it is another machine's.
#[test]
fn a_directory_has_no_unit_to_start() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join("run/systemd/system")).unwrap();
    assert_eq!(arm_unit_active(&Root::open(dir.path()).unwrap()), Ok(()));
    // Where systemd does not run this machine either.
    if !Path::new("/run/systemd/system").exists() {
        assert_eq!(
            arm_unit_active(&Root::open(Path::new("/")).unwrap()),
            Ok(())
        );
    }
}
