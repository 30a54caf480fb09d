//! The same over a real message bus, a `dbus-daemon` of the test's own.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stdout,
    missing_docs
)]

mod reboot_support;

use std::time::Duration;

use gdr_agent::reboot::{
    Coordinator, Fate, Kind, Logind, Refusal, Request, ShutdownKind, pending_shutdown,
};
use reboot_support::daemon::Daemon;
use reboot_support::{Age, Fake, Setup};

fn request(respect_inhibitors: bool) -> Request {
    Request {
        reason: "trial of tx1".to_owned(),
        respect_inhibitors,
        back: false,
    }
}

#[test]
fn a_reboot_is_granted_recorded_and_starts() {
    let Some(daemon) = Daemon::start() else {
        return;
    };
    let fake = Fake::new(Setup::new(Age::V257));
    fake.join(&daemon.address);
    let logind = Logind::new(daemon.bus());
    assert_eq!(logind.can(), Ok(()));
    logind
        .request(&request(true), &mut || {
            std::thread::sleep(Duration::from_millis(200));
            fake.log("on_granted");
            Ok(())
        })
        .unwrap();
    assert!(fake.wait_for("shutdown starts"), "{:?}", fake.events());
    assert_eq!(
        fake.deeds(),
        [
            "Inhibit(shutdown, gdr-agent, delay)",
            "RebootWithFlags(1)",
            "granted",
            "on_granted",
            "lock released",
            "shutdown starts"
        ]
    );
}

#[test]
fn a_record_that_fails_calls_the_reboot_back() {
    let Some(daemon) = Daemon::start() else {
        return;
    };
    let fake = Fake::new(Setup::new(Age::V257));
    fake.join(&daemon.address);
    let outcome =
        Logind::new(daemon.bus()).request(&request(true), &mut || Err("disk full".to_owned()));
    assert_eq!(
        outcome,
        Err(Refusal::Record {
            text: "disk full".to_owned(),
            reboot: Fate::CalledBack
        })
    );
    assert!(fake.wait_for("lock released"));
    assert!(!fake.has("shutdown starts"));
}

#[test]
fn a_block_lock_denies() {
    let Some(daemon) = Daemon::start() else {
        return;
    };
    let fake = Fake::new(Setup::new(Age::V252).lock("shutdown", "block"));
    fake.join(&daemon.address);
    let refusal = Logind::new(daemon.bus())
        .request(&request(true), &mut || panic!("granted under a block lock"))
        .unwrap_err();
    assert_eq!(refusal.kind(), Kind::Denied);
    assert_eq!(refusal.holders()[0].pid, 4711);
    assert_eq!(fake.deeds(), Vec::<String>::new());
}

#[test]
fn a_bus_without_logind_is_out_of_reach() {
    let Some(daemon) = Daemon::start() else {
        return;
    };
    let refusal = Logind::new(daemon.bus()).can().unwrap_err();
    assert_eq!(refusal.kind(), Kind::Unreachable);
    assert!(
        refusal.to_string().contains("start systemd-logind"),
        "{refusal}"
    );
}

#[test]
fn a_bus_that_dies_is_out_of_reach() {
    let Some(mut daemon) = Daemon::start() else {
        return;
    };
    daemon.child.kill().unwrap();
    daemon.child.wait().unwrap();
    let refusal = Logind::new(daemon.bus()).can().unwrap_err();
    assert_eq!(refusal.kind(), Kind::Unreachable);
    assert!(
        refusal.to_string().contains("no system bus at unix:path="),
        "{refusal}"
    );
}

#[test]
fn the_job_queue_tells_the_kind_of_shutdown() {
    let Some(daemon) = Daemon::start() else {
        return;
    };
    let mut setup = Setup::new(Age::V257);
    setup.jobs = vec![("sshd.service", "stop"), ("reboot.target", "start")];
    Fake::new(setup).join(&daemon.address);
    assert_eq!(pending_shutdown(&[daemon.bus()]), Ok(ShutdownKind::Reboot));
}
