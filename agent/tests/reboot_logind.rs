//! The logind coordinator against a logind that behaves, and one that does not.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stdout,
    missing_docs
)]

mod reboot_support;

use std::time::{Duration, Instant};

use gdr_agent::reboot::{Bus, Coordinator, Fate, Holder, Kind, Logind, Refusal, Request};
use reboot_support::{Age, Fake, Fault, Setup};

const ACCESS_DENIED: &str = "org.freedesktop.DBus.Error.AccessDenied";
const LIMIT: Duration = Duration::from_millis(400);
const PATIENCE: Duration = Duration::from_secs(20);

struct Scene {
    fake: Fake,
    logind: Logind,
    _dir: tempfile::TempDir,
}

fn scene(setup: Setup) -> Scene {
    let dir = tempfile::tempdir().unwrap();
    let fake = Fake::new(setup);
    let socket = fake.listen(dir.path());
    // A busy machine must not make a healthy logind look silent.
    let mute = [Fault::Silent, Fault::DoneButSilent];
    let limit = if fake.faults().any(|fault| mute.contains(&fault)) {
        LIMIT
    } else {
        PATIENCE
    };
    let logind = Logind::new(Bus::peer(socket).with_limit(limit));
    Scene {
        fake,
        logind,
        _dir: dir,
    }
}

impl Scene {
    fn request(&self, respect_inhibitors: bool) -> Result<(), Refusal> {
        self.request_recording(respect_inhibitors, &Ok(()))
    }

    fn request_recording(
        &self,
        respect_inhibitors: bool,
        recorded: &Result<(), String>,
    ) -> Result<(), Refusal> {
        let request = Request {
            reason: "trial of tx1".to_owned(),
            respect_inhibitors,
            back: false,
        };
        self.logind.request(&request, &mut || {
            // Long enough for a lock that was dropped too early to show.
            std::thread::sleep(Duration::from_millis(50));
            self.fake.log("on_granted");
            recorded.clone()
        })
    }
}

#[test]
fn the_grant_is_recorded_once_under_the_lock_and_before_the_machine_goes_down() {
    for (age, call) in [
        (Age::V257, "RebootWithFlags(1)"),
        (Age::V252, "RebootWithFlags(1)"),
    ] {
        let scene = scene(Setup::new(age));
        scene.request(true).unwrap();
        assert!(
            scene.fake.wait_for("shutdown starts"),
            "{age:?}: {:?}",
            scene.fake.events()
        );
        assert_eq!(
            scene.fake.deeds(),
            [
                "Inhibit(shutdown, gdr-agent, delay)",
                call,
                "granted",
                "on_granted",
                "lock released",
                "shutdown starts"
            ],
            "{age:?}"
        );
    }
}

#[test]
fn a_logind_without_flags_is_asked_the_old_way() {
    let scene = scene(Setup::new(Age::V247));
    scene.request(true).unwrap();
    assert!(scene.fake.wait_for("shutdown starts"));
    assert_eq!(
        scene.fake.deeds(),
        [
            "Inhibit(shutdown, gdr-agent, delay)",
            "RebootWithFlags(1)",
            "Reboot(false)",
            "granted",
            "on_granted",
            "lock released",
            "shutdown starts"
        ]
    );
}

#[test]
fn people_at_terminals_are_told_why() {
    let scene = scene(Setup::new(Age::V257));
    scene.request(true).unwrap();
    assert!(
        scene
            .fake
            .has("SetWallMessage(gdr-agent reboots this machine: trial of tx1, true)"),
        "{:?}",
        scene.fake.events()
    );
}

#[test]
fn a_wall_message_that_is_refused_does_not_stop_the_reboot() {
    let fault = Fault::Error(ACCESS_DENIED, "no");
    let scene = scene(Setup::new(Age::V257).fault("SetWallMessage", fault));
    scene.request(true).unwrap();
    assert!(scene.fake.wait_for("shutdown starts"));
}

#[test]
fn block_locks_on_shutdown_deny_and_name_their_holder_on_every_systemd() {
    for age in [Age::V247, Age::V252, Age::V257] {
        for mode in ["block", "block-weak"] {
            for what in ["shutdown", "sleep:shutdown:idle"] {
                let scene = scene(Setup::new(age).lock(what, mode));
                let refusal = scene.request(true).unwrap_err();
                let holder = Holder {
                    who: "backup".to_owned(),
                    why: "copying the scratch file system".to_owned(),
                    what: what.to_owned(),
                    mode: mode.to_owned(),
                    uid: 1000,
                    pid: 4711,
                };
                assert_eq!(refusal.kind(), Kind::Denied);
                assert_eq!(refusal.holders(), [holder]);
                assert!(
                    refusal.to_string().contains("backup (pid 4711, uid 1000"),
                    "{refusal}"
                );
                assert_eq!(scene.logind.can().unwrap_err(), refusal);
                assert_eq!(
                    scene.fake.deeds(),
                    Vec::<String>::new(),
                    "{age:?} {mode} {what}"
                );
            }
        }
    }
}

#[test]
fn other_locks_do_not_deny() {
    for (what, mode) in [
        ("shutdown", "delay"),
        ("sleep", "block"),
        ("handle-power-key:handle-reboot-key", "block"),
        ("idle:shutdownish", "block-weak"),
    ] {
        let scene = scene(Setup::new(Age::V252).lock(what, mode));
        assert_eq!(scene.logind.can(), Ok(()), "{what} {mode}");
    }
}

#[test]
fn a_policy_may_pass_over_inhibitors() {
    for (age, calls) in [
        (Age::V247, &["RebootWithFlags(16)", "Reboot(false)"][..]),
        (
            Age::V252,
            &["RebootWithFlags(16)", "RebootWithFlags(0)"][..],
        ),
        (Age::V257, &["RebootWithFlags(16)"][..]),
    ] {
        let scene = scene(Setup::new(age).lock("shutdown", "block"));
        scene.request(false).unwrap();
        assert!(scene.fake.wait_for("shutdown starts"));
        let asked: Vec<String> = scene
            .fake
            .events()
            .into_iter()
            .filter(|e| e.starts_with("Reboot"))
            .collect();
        assert_eq!(asked, calls, "{age:?}");
    }
}

/// Seen with systemd 257 and no polkit: not even root may pass over a block lock.
#[test]
fn without_polkit_a_new_logind_lets_nobody_pass_over_a_block_lock() {
    let mut setup = Setup::new(Age::V257).lock("shutdown", "block");
    setup.polkit = false;
    let scene = scene(setup);
    let refusal = scene.request(false).unwrap_err();
    assert_eq!(refusal.kind(), Kind::Denied);
    assert_eq!(refusal.holders()[0].pid, 4711);
    assert!(refusal.to_string().contains("install polkit"), "{refusal}");
    assert!(scene.fake.wait_for("lock released"));
    assert!(!scene.fake.has("on_granted"));
}

/// The lock is taken between our look at the list and the call; logind has the last word.
#[test]
fn a_lock_that_came_in_between_denies_too() {
    let blocked = Fault::Error(
        "org.freedesktop.login1.BlockedByInhibitorLock",
        "Operation denied due to active block inhibitor",
    );
    let scene = scene(Setup::new(Age::V257).fault("RebootWithFlags", blocked));
    let refusal = scene.request(true).unwrap_err();
    assert_eq!(refusal.kind(), Kind::Denied);
    assert!(scene.fake.wait_for("lock released"));
    assert!(!scene.fake.has("on_granted"));
    assert!(!scene.fake.has("shutdown starts"));
    assert!(
        scene.fake.has("SetWallMessage(, false)"),
        "the message is taken back"
    );
}

#[test]
fn a_record_that_fails_calls_the_reboot_back() {
    let scene = scene(Setup::new(Age::V257));
    let refusal = scene
        .request_recording(true, &Err("disk full".to_owned()))
        .unwrap_err();
    assert_eq!(
        refusal,
        Refusal::Record {
            text: "disk full".to_owned(),
            reboot: Fate::CalledBack
        }
    );
    assert!(scene.fake.wait_for("lock released"));
    assert_eq!(
        scene.fake.deeds(),
        [
            "Inhibit(shutdown, gdr-agent, delay)",
            "RebootWithFlags(1)",
            "granted",
            "on_granted",
            "CancelScheduledShutdown",
            "lock released"
        ]
    );
    // A later request is not confused by the cancelled one.
    scene.request(true).unwrap();
    assert!(scene.fake.wait_for("shutdown starts"));
}

/// systemd issue 34554: the answer "cancelled" is not true there.
#[test]
fn a_reboot_that_cannot_be_called_back_is_not_reported_as_called_back() {
    for age in [Age::V247, Age::V252] {
        let scene = scene(Setup::new(age));
        let refusal = scene
            .request_recording(true, &Err("disk full".to_owned()))
            .unwrap_err();
        assert_eq!(
            refusal,
            Refusal::Record {
                text: "disk full".to_owned(),
                reboot: Fate::GoesOn
            },
            "{age:?}"
        );
        assert!(scene.fake.wait_for("shutdown starts"));
    }
}

#[test]
fn no_time_to_record_means_no_request() {
    let mut setup = Setup::new(Age::V257);
    setup.delay_max_usec = 0;
    let scene = scene(setup);
    let refusal = scene.request(true).unwrap_err();
    assert!(
        matches!(
            refusal,
            Refusal::Record {
                reboot: Fate::NotAsked,
                ..
            }
        ),
        "{refusal}"
    );
    assert_eq!(scene.fake.deeds(), Vec::<String>::new());
}

#[test]
fn a_shutdown_under_way_or_scheduled_is_left_alone() {
    let mut under_way = Setup::new(Age::V257);
    under_way.preparing = true;
    let mut scheduled = Setup::new(Age::V257);
    scheduled.scheduled = ("poweroff", 1_900_000_000_000_000);
    for setup in [under_way, scheduled] {
        let scene = scene(setup);
        assert_eq!(scene.logind.can().unwrap_err().kind(), Kind::Busy);
        assert_eq!(scene.request(true).unwrap_err().kind(), Kind::Busy);
        assert_eq!(scene.fake.deeds(), Vec::<String>::new());
    }
}

/// logind leaves the kind of a failed immediate shutdown behind, with time 0.
#[test]
fn what_an_old_immediate_shutdown_left_behind_is_not_a_schedule() {
    for left in [
        ("reboot", 0),
        ("", 0),
        ("reboot", u64::MAX),
        ("dry-reboot", 5_000_000),
    ] {
        let mut setup = Setup::new(Age::V252);
        setup.scheduled = left;
        assert_eq!(scene(setup).logind.can(), Ok(()), "{left:?}");
    }
}

#[test]
fn each_opinion_of_logind_has_its_meaning() {
    for (answer, respected, passed_over) in [
        ("yes", None, None),
        ("no", Some(Kind::NotPermitted), Some(Kind::NotPermitted)),
        (
            "challenge",
            Some(Kind::NotPermitted),
            Some(Kind::NotPermitted),
        ),
        ("na", Some(Kind::NotPermitted), Some(Kind::NotPermitted)),
        ("inhibited", Some(Kind::Denied), None),
        ("inhibitor-blocked", Some(Kind::Denied), None),
        (
            "challenge-inhibitor-blocked",
            Some(Kind::Denied),
            Some(Kind::Denied),
        ),
        ("maybe", Some(Kind::Protocol), Some(Kind::Protocol)),
    ] {
        let mut setup = Setup::new(Age::V257);
        setup.can_reboot = answer;
        let scene = scene(setup);
        let kind = |outcome: Result<(), Refusal>| outcome.err().map(|r| r.kind());
        assert_eq!(kind(scene.logind.can()), respected, "{answer}");
        assert_eq!(kind(scene.request(false)), passed_over, "{answer}");
        assert_eq!(scene.fake.has("granted"), passed_over.is_none(), "{answer}");
    }
}

#[test]
fn errors_of_the_reboot_call_have_their_kinds_and_grant_nothing() {
    for (name, kind) in [
        (ACCESS_DENIED, Kind::NotPermitted),
        (
            "org.freedesktop.DBus.Error.InteractiveAuthorizationRequired",
            Kind::NotPermitted,
        ),
        ("org.freedesktop.login1.OperationInProgress", Kind::Busy),
        (
            "org.freedesktop.DBus.Error.ServiceUnknown",
            Kind::Unreachable,
        ),
        ("org.freedesktop.DBus.Error.NoReply", Kind::Unreachable),
        ("org.freedesktop.DBus.Error.Failed", Kind::Protocol),
        ("com.example.Surprise", Kind::Protocol),
    ] {
        let fault = Fault::Error(name, "told so");
        let scene = scene(Setup::new(Age::V257).fault("RebootWithFlags", fault));
        let refusal = scene.request(true).unwrap_err();
        assert_eq!(refusal.kind(), kind, "{name}: {refusal}");
        assert!(refusal.to_string().contains("told so"), "{name}: {refusal}");
        assert!(scene.fake.wait_for("lock released"), "{name}");
        assert!(!scene.fake.has("on_granted"), "{name}");
        assert!(!scene.fake.has("shutdown starts"), "{name}");
    }
}

/// The worst case: logind grants, and the answer is lost. Nothing was recorded, so the reboot is
/// called back.
#[test]
fn a_grant_whose_answer_is_lost_is_called_back() {
    let scene = scene(Setup::new(Age::V257).fault("RebootWithFlags", Fault::DoneButSilent));
    let refusal = scene.request(true).unwrap_err();
    assert_eq!(refusal.kind(), Kind::Unreachable);
    assert!(
        refusal.to_string().contains("the reboot was called back"),
        "{refusal}"
    );
    assert!(scene.fake.wait_for("lock released"));
    assert!(!scene.fake.has("on_granted"));
    assert!(
        !scene.fake.has("shutdown starts"),
        "{:?}",
        scene.fake.events()
    );
}

#[test]
fn whatever_breaks_wherever_the_answer_is_no_in_time_and_no_lock_stays() {
    let steps = [
        "PreparingForShutdown",
        "ScheduledShutdown",
        "ListInhibitors",
        "CanReboot",
        "InhibitDelayMaxUSec",
        "Inhibit",
        "RebootWithFlags",
    ];
    let faults = [
        (Fault::Silent, Kind::Unreachable),
        (Fault::HangUp, Kind::Unreachable),
        (Fault::Garbage, Kind::Protocol),
        (
            Fault::Error("org.freedesktop.DBus.Error.Failed", "boom"),
            Kind::Protocol,
        ),
    ];
    for step in steps {
        for (fault, kind) in faults {
            if step == "RebootWithFlags" && fault == Fault::Garbage {
                continue; // any answer to it that is not an error is a yes
            }
            let scene = scene(Setup::new(Age::V257).fault(step, fault));
            let start = Instant::now();
            let refusal = scene.request(true).unwrap_err();
            assert_eq!(refusal.kind(), kind, "{step} {fault:?}: {refusal}");
            assert!(
                start.elapsed() < PATIENCE / 2,
                "{step} {fault:?} took {:?}",
                start.elapsed()
            );
            assert!(!scene.fake.has("on_granted"), "{step} {fault:?}");
            assert!(!scene.fake.has("shutdown starts"), "{step} {fault:?}");
            if step == "RebootWithFlags" {
                assert!(scene.fake.wait_for("lock released"), "{step} {fault:?}");
            }
        }
    }
}

#[test]
fn a_bus_that_accepts_and_then_says_nothing_is_an_error_in_time() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("bus");
    let _mute = std::os::unix::net::UnixListener::bind(&path).unwrap();
    for bus in [
        Bus::peer(&path),
        Bus::at(format!("unix:path={}", path.display())),
    ] {
        let start = Instant::now();
        let refusal = Logind::new(bus.with_limit(LIMIT)).can().unwrap_err();
        assert_eq!(refusal.kind(), Kind::Unreachable);
        assert!(
            refusal.to_string().contains("no answer within 400ms"),
            "{refusal}"
        );
        assert!(start.elapsed() < PATIENCE / 2);
    }
}

#[test]
fn no_bus_is_said_with_its_path_and_what_to_do() {
    for address in [
        "unix:path=/nonexistent/bus",
        "unix:",
        "no address",
        "tcp:host=127.0.0.1,port=1",
    ] {
        let logind = Logind::new(Bus::at(address));
        for refusal in [
            logind.can().unwrap_err(),
            logind.cancel().unwrap_err(),
            logind
                .request(
                    &Request {
                        reason: String::new(),
                        respect_inhibitors: true,
                        back: false,
                    },
                    &mut || panic!("granted by nobody"),
                )
                .unwrap_err(),
        ] {
            assert_eq!(refusal.kind(), Kind::Unreachable);
            let text = refusal.to_string();
            assert!(
                text.contains(&format!("no system bus at {address}")),
                "{text}"
            );
            assert!(text.contains("reboot by hand"), "{text}");
        }
    }
}

#[test]
fn cancel_believes_the_property_and_not_the_answer() {
    let mut scheduled = Setup::new(Age::V257);
    scheduled.scheduled = ("reboot", 1_900_000_000_000_000);
    scheduled.wall = "gdr-agent reboots this machine: trial of tx1";
    let scene_scheduled = scene(scheduled);
    assert_eq!(scene_scheduled.logind.cancel(), Ok(()));
    assert_eq!(scene_scheduled.logind.can(), Ok(()));

    assert_eq!(scene(Setup::new(Age::V252)).logind.cancel(), Ok(()));

    let mut under_way = Setup::new(Age::V252);
    under_way.preparing = true;
    assert_eq!(
        scene(under_way).logind.cancel().unwrap_err().kind(),
        Kind::Busy
    );
}

#[test]
fn text_from_others_cannot_reach_into_the_terminal() {
    let mut setup = Setup::new(Age::V257);
    let long = "x".repeat(5000).leak();
    setup
        .locks
        .push(("shutdown", "evil\u{1b}[2J\nroot", long, "block", 1000, 1));
    let refusal = scene(setup).request(true).unwrap_err();
    let text = refusal.to_string();
    assert!(
        !text.contains('\u{1b}') && text.contains("evil [2J root"),
        "{text}"
    );
    assert!(text.len() < 1000, "{} bytes", text.len());
}

/// The callback may use the bus itself, as a caller that looks at the job queue does.
#[test]
fn the_callback_may_talk_to_the_bus() {
    let scene = scene(Setup::new(Age::V257));
    let request = Request {
        reason: String::new(),
        respect_inhibitors: true,
        back: false,
    };
    let mut seen = None;
    scene
        .logind
        .request(&request, &mut || {
            seen = Some(scene.logind.can().map_err(|r| r.kind()));
            Ok(())
        })
        .unwrap();
    assert_eq!(
        seen,
        Some(Err(Kind::Busy)),
        "the reboot is under way by then"
    );
}
