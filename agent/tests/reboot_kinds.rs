//! What kind of shutdown is under way, and the coordinator that only refuses.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stdout,
    missing_docs
)]

mod reboot_support;

use std::time::Duration;

use gdr_agent::reboot::{
    Bus, Coordinator, Kind, NoCoordinator, Request, ShutdownKind, ShutdownUnknown, pending_shutdown,
};
use reboot_support::{Age, Fake, Fault, Setup};

type Jobs = Vec<(&'static str, &'static str)>;

fn ask(setup: Setup) -> Result<ShutdownKind, ShutdownUnknown> {
    let dir = tempfile::tempdir().unwrap();
    let socket = Fake::new(setup).listen(dir.path());
    pending_shutdown(&[Bus::peer(socket).with_limit(Duration::from_secs(2))])
}

fn with_jobs(jobs: Jobs) -> Setup {
    let mut setup = Setup::new(Age::V257);
    setup.jobs = jobs;
    setup
}

#[test]
fn each_target_has_its_kind() {
    for (jobs, kind) in [
        (vec![("reboot.target", "start")], ShutdownKind::Reboot),
        (vec![("poweroff.target", "start")], ShutdownKind::PowerOff),
        (vec![("halt.target", "start")], ShutdownKind::Halt),
        (vec![("kexec.target", "start")], ShutdownKind::Kexec),
        (
            vec![("soft-reboot.target", "start")],
            ShutdownKind::SoftReboot,
        ),
        (vec![], ShutdownKind::None),
        (vec![("reboot.target", "stop")], ShutdownKind::None),
        (vec![("reboot.target", "verify-active")], ShutdownKind::None),
        (
            vec![("systemd-reboot.service", "start")],
            ShutdownKind::None,
        ),
        (
            vec![("shutdown.target", "start"), ("a.service", "stop")],
            ShutdownKind::None,
        ),
        (
            vec![
                ("shutdown.target", "start"),
                ("systemd-reboot.service", "start"),
                ("reboot.target", "start"),
            ],
            ShutdownKind::Reboot,
        ),
    ] {
        assert_eq!(ask(with_jobs(jobs.clone())), Ok(kind), "{jobs:?}");
    }
}

#[test]
fn two_kinds_at_once_are_not_a_reboot() {
    let outcome = ask(with_jobs(vec![
        ("reboot.target", "start"),
        ("kexec.target", "start"),
    ]));
    assert_eq!(
        outcome,
        Err(ShutdownUnknown::Ambiguous {
            units: vec!["reboot.target".to_owned(), "kexec.target".to_owned()]
        })
    );
}

#[test]
fn the_next_place_is_asked_when_one_fails() {
    let dir = tempfile::tempdir().unwrap();
    let socket = Fake::new(with_jobs(vec![("reboot.target", "start")])).listen(dir.path());
    let gone = Bus::at("unix:path=/nonexistent/bus");
    assert_eq!(
        pending_shutdown(&[gone.clone(), Bus::peer(socket)]),
        Ok(ShutdownKind::Reboot)
    );

    let error = pending_shutdown(&[gone, Bus::peer("/nonexistent/private")]).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("/nonexistent/bus") && text.contains("/nonexistent/private"),
        "{text}"
    );
}

#[test]
fn an_answer_that_cannot_be_read_is_unknown() {
    for fault in [
        Fault::Silent,
        Fault::Garbage,
        Fault::HangUp,
        Fault::Error("a.b.C", "no"),
    ] {
        let outcome = ask(with_jobs(vec![("reboot.target", "start")]).fault("ListJobs", fault));
        assert!(
            matches!(&outcome, Err(ShutdownUnknown::Unreachable { tried }) if tried.len() == 1),
            "{fault:?}: {outcome:?}"
        );
    }
}

#[test]
fn no_coordinator_refuses_says_what_to_do_and_grants_nothing() {
    let request = Request {
        reason: "trial".to_owned(),
        respect_inhibitors: true,
        back: false,
    };
    let all: [(&dyn Coordinator, &str); 1] = [(&NoCoordinator, "none")];
    for (coordinator, name) in all {
        assert_eq!(coordinator.name(), name);
        let refusal = coordinator
            .request(&request, &mut || panic!("granted by nobody"))
            .unwrap_err();
        assert_eq!(refusal.kind(), Kind::Denied);
        assert!(refusal.holders().is_empty());
        assert_eq!(coordinator.can(), Err(refusal.clone()));
        assert_eq!(coordinator.cancel(), Ok(()));
        let text = refusal.to_string();
        assert!(text.to_lowercase().contains("reboot by hand"), "{text}");
    }
}

#[test]
fn kinds_keep_their_words() {
    let words = [
        Kind::Denied,
        Kind::Busy,
        Kind::Gate,
        Kind::Unreachable,
        Kind::NotPermitted,
        Kind::Protocol,
        Kind::Record,
    ]
    .map(Kind::as_str);
    assert_eq!(
        words,
        [
            "denied",
            "busy",
            "gate",
            "unreachable",
            "not-permitted",
            "protocol",
            "record"
        ]
    );
}
