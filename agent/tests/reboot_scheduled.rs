//! A reboot with a warning: logind schedules it, and people, the stop file or the agent may call it back.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::panic,
    missing_docs
)]

mod reboot_support;

use std::cell::Cell;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use gdr_agent::reboot::{Bus, Coordinator, Fate, Kind, Logind, Refusal, Request, Standing};
use reboot_support::daemon::Daemon;
use reboot_support::{Age, Fake, Fault, Setup};

const AGES: [Age; 3] = [Age::V247, Age::V252, Age::V257];
const DELAY: Duration = Duration::from_secs(600);
const LATER: Duration = Duration::from_secs(3600);
const OURS: &str = "gdr-agent reboots this machine: trial of tx1; ask ops@example.com";
const BLOCKED: &str = "org.freedesktop.login1.BlockedByInhibitorLock";
const DENIED: &str = "org.freedesktop.DBus.Error.AccessDenied";

struct Scene {
    fake: Fake,
    logind: Logind,
    recorded: Cell<u32>,
    _dir: tempfile::TempDir,
}

fn scene(setup: Setup) -> Scene {
    let dir = tempfile::tempdir().unwrap();
    let fake = Fake::new(setup);
    let socket = fake.listen(dir.path());
    let mute = [Fault::Silent, Fault::DoneButSilent];
    let limit = if fake.faults().any(|fault| mute.contains(&fault)) {
        Duration::from_millis(400)
    } else {
        Duration::from_secs(20)
    };
    let logind = Logind::new(Bus::peer(socket).with_limit(limit));
    Scene {
        fake,
        logind: logind.warning(Some(DELAY), Some("ask ops@example.com".to_owned())),
        recorded: Cell::new(0),
        _dir: dir,
    }
}

fn request(respect_inhibitors: bool, back: bool) -> Request {
    Request {
        reason: "trial of tx1".to_owned(),
        respect_inhibitors,
        back,
    }
}

fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs()
}

impl Scene {
    fn ask(&self, request: &Request, record: &Result<(), String>) -> Result<(), Refusal> {
        self.logind.request(request, &mut || {
            self.recorded.set(self.recorded.get() + 1);
            record.clone()
        })
    }

    fn request(&self) -> Result<(), Refusal> {
        self.ask(&request(true, false), &Ok(()))
    }
}

#[test]
fn it_is_scheduled_with_a_warning_and_recorded_and_followed() {
    for age in AGES {
        let scene = scene(Setup::new(age));
        let before = now();
        scene.request().unwrap();
        assert_eq!(scene.recorded.get(), 1, "{age:?}");
        // No lock and no reboot at once; nothing goes down.
        assert_eq!(scene.fake.deeds(), ["ScheduleShutdown(reboot)"], "{age:?}");
        assert!(
            scene.fake.has(&format!("SetWallMessage({OURS}, true)")),
            "{:?}",
            scene.fake.events()
        );
        let (kind, at) = scene.fake.scheduled().unwrap();
        assert_eq!(kind, "reboot");
        let seconds = at / 1_000_000;
        assert!((before + 600..=now() + 600).contains(&seconds), "{seconds}");
        for age in [Duration::ZERO, LATER] {
            let Standing::Coming(words) = scene.logind.poll(age).unwrap() else {
                panic!("it is scheduled");
            };
            assert!(words.contains("scheduled"), "{words}");
        }
        // Whoever asks again is told, and replaces nothing.
        assert_eq!(scene.request().unwrap_err().kind(), Kind::Busy);
    }
}

/// On every version, unlike a reboot at once that waits for a delay lock.
#[test]
fn it_can_be_called_back_on_every_version() {
    for age in AGES {
        let called_off = scene(Setup::new(age));
        called_off.request().unwrap();
        assert_eq!(called_off.logind.cancel(), Ok(()), "{age:?}");
        assert_eq!(called_off.fake.scheduled(), None, "{age:?}");
        assert!(called_off.fake.has("SetWallMessage(, false)"), "{age:?}");
        assert!(
            matches!(called_off.logind.poll(LATER).unwrap(), Standing::Gone(_)),
            "{age:?}"
        );
        assert_eq!(
            called_off.logind.cancel(),
            Ok(()),
            "twice is the same as once"
        );

        let unrecorded = scene(Setup::new(age));
        let refusal = unrecorded.ask(&request(true, false), &Err("disk full".to_owned()));
        let text = "disk full".to_owned();
        let reboot = Fate::CalledBack;
        assert_eq!(refusal, Err(Refusal::Record { text, reboot }), "{age:?}");
        assert_eq!(unrecorded.fake.scheduled(), None, "{age:?}");
        assert_eq!(unrecorded.recorded.get(), 1, "{age:?}");
    }
}

#[test]
fn the_way_back_from_a_failed_trial_does_not_wait() {
    let scene = scene(Setup::new(Age::V257));
    scene.ask(&request(true, true), &Ok(())).unwrap();
    assert!(scene.fake.has("RebootWithFlags(1)") && scene.fake.scheduled().is_none());
}

#[test]
fn nobody_is_rebooted_who_could_not_be_warned() {
    let setup =
        Setup::new(Age::V257).fault("SetWallMessage", Fault::Error(DENIED, "polkit says no"));
    let scene = scene(setup);
    let refusal = scene.request().unwrap_err();
    assert_eq!(refusal.kind(), Kind::NotPermitted);
    assert!(refusal.to_string().contains("polkit says no"), "{refusal}");
    assert_eq!((scene.fake.deeds(), scene.recorded.get()), (Vec::new(), 0));
}

#[test]
fn each_no_of_logind_has_its_kind_and_takes_the_message_back() {
    for (name, kind) in [
        (BLOCKED, Kind::Denied),
        (DENIED, Kind::NotPermitted),
        (
            "org.freedesktop.DBus.Error.InteractiveAuthorizationRequired",
            Kind::NotPermitted,
        ),
        ("org.freedesktop.login1.OperationInProgress", Kind::Busy),
        ("org.freedesktop.DBus.Error.NoReply", Kind::Unreachable),
        ("com.example.Surprise", Kind::Protocol),
    ] {
        let setup = Setup::new(Age::V257).fault("ScheduleShutdown", Fault::Error(name, "told so"));
        let scene = scene(setup);
        assert_eq!(scene.request().unwrap_err().kind(), kind, "{name}");
        assert_eq!(
            (scene.recorded.get(), scene.fake.scheduled()),
            (0, None),
            "{name}"
        );
        assert!(scene.fake.has("SetWallMessage(, false)"), "{name}");
    }
}

/// logind carries a scheduled shutdown out over a lock that is taken later: whoever asked has to look.
#[test]
fn a_block_lock_is_an_objection_to_a_reboot_that_is_scheduled() {
    let free = scene(Setup::new(Age::V257));
    assert!(free.logind.objection(false).is_ok());
    let held = scene(Setup::new(Age::V257).lock("shutdown", "block"));
    let refusal = held.logind.objection(false).unwrap_err();
    assert_eq!(refusal.kind(), Kind::Denied);
    let passing_over = held.logind.clone().respecting_inhibitors(false);
    assert!(passing_over.objection(false).is_ok());
    // Of no effect on what only delays.
    let delayed = scene(Setup::new(Age::V257).lock("shutdown", "delay"));
    assert!(delayed.logind.objection(false).is_ok());
}

/// There is no flag that passes over inhibitors here, so that 257 and later refuse even where the policy would.
#[test]
fn a_block_lock_is_a_no_and_says_what_would_help() {
    for age in AGES {
        for respect in [true, false] {
            let scene = scene(Setup::new(age).lock("shutdown", "block"));
            let outcome = scene.ask(&request(respect, false), &Ok(()));
            if !respect && age != Age::V257 {
                outcome.unwrap();
                continue;
            }
            let refusal = outcome.unwrap_err();
            assert_eq!(refusal.kind(), Kind::Denied, "{age:?}");
            assert_eq!(refusal.holders()[0].pid, 4711, "{age:?}");
            let help = if respect {
                "respect_inhibitors"
            } else {
                "leave [reboot] delay out"
            };
            assert!(refusal.to_string().contains(help), "{refusal}");
            assert_eq!(scene.recorded.get(), 0, "{age:?}");
        }
    }
}

#[test]
fn a_yes_whose_answer_is_lost_is_called_back() {
    for age in AGES {
        let scene = scene(Setup::new(age).fault("ScheduleShutdown", Fault::DoneButSilent));
        let refusal = scene.request().unwrap_err();
        assert_eq!(refusal.kind(), Kind::Unreachable);
        assert!(refusal.to_string().contains("called back"), "{refusal}");
        assert_eq!(
            (scene.recorded.get(), scene.fake.scheduled()),
            (0, None),
            "{age:?}"
        );
    }
}

#[test]
fn whatever_breaks_nothing_is_recorded_and_nothing_is_left_scheduled() {
    for step in [
        "PreparingForShutdown",
        "ScheduledShutdown",
        "ListInhibitors",
        "CanReboot",
        "SetWallMessage",
        "ScheduleShutdown",
    ] {
        for (fault, kind) in [
            (Fault::Silent, Kind::Unreachable),
            (Fault::HangUp, Kind::Unreachable),
            (Fault::Garbage, Kind::Protocol),
        ] {
            // Any answer to these that is not an error is a yes.
            if fault == Fault::Garbage && step.starts_with('S') && step != "ScheduledShutdown" {
                continue;
            }
            let scene = scene(Setup::new(Age::V257).fault(step, fault));
            let refusal = scene.request().unwrap_err();
            assert_eq!(refusal.kind(), kind, "{step} {fault:?}: {refusal}");
            assert_eq!(
                (scene.recorded.get(), scene.fake.scheduled()),
                (0, None),
                "{step} {fault:?}"
            );
        }
    }
}

#[test]
fn what_somebody_else_has_scheduled_in_its_place_is_theirs() {
    let at = (now() + 7200) * 1_000_000;
    for (kind, wall) in [
        ("poweroff", OURS),
        ("reboot", "kernel update by ops"),
        ("reboot", ""),
    ] {
        let scene = scene(Setup::new(Age::V257));
        scene.request().unwrap();
        scene.fake.schedule_instead(kind, at, wall);
        let Standing::Gone(words) = scene.logind.poll(Duration::ZERO).unwrap() else {
            panic!("{kind} of somebody else is not the agent's reboot");
        };
        assert!(words.contains(kind), "{words}");
        assert_eq!(scene.logind.cancel(), Ok(()));
        assert_eq!(scene.fake.scheduled(), Some((kind, at)), "it stays");
        assert!(!scene.fake.has("CancelScheduledShutdown"));
    }
}

/// logind leaves a schedule behind once its time has come, whether the shutdown began or could not.
#[test]
fn once_its_time_has_come_the_job_queue_tells() {
    let past = (now() - 60) * 1_000_000;
    let mut setup = Setup::new(Age::V257);
    (setup.scheduled, setup.wall) = (("reboot", past), OURS);
    assert!(matches!(
        scene(setup.clone()).logind.poll(LATER).unwrap(),
        Standing::Gone(_)
    ));
    setup.jobs = vec![("reboot.target", "start")];
    assert!(matches!(
        scene(setup).logind.poll(LATER).unwrap(),
        Standing::Coming(_)
    ));
}

#[test]
fn the_same_over_a_message_bus() {
    let Some(daemon) = Daemon::start() else {
        return;
    };
    let fake = Fake::new(Setup::new(Age::V252));
    fake.join(&daemon.address);
    let logind = Logind::new(daemon.bus()).warning(Some(DELAY), None);
    logind
        .request(&request(true, false), &mut || Ok(()))
        .unwrap();
    assert_eq!(fake.scheduled().unwrap().0, "reboot");
    assert!(matches!(logind.poll(LATER).unwrap(), Standing::Coming(_)));
    logind.cancel().unwrap();
    assert_eq!(fake.scheduled(), None);
}
