//! A person takes a transaction back while its reboot is asked for, or granted and not there yet: the request is
//! withdrawn, the slot given back once and not before, whoever was asked.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    missing_docs
)]

mod http_support;
mod reboot_support;

use std::cell::RefCell;
use std::path::Path;
use std::process::Command;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gdr_agent::apply::{Asks, Engine};
use gdr_agent::journal::Journal;
use gdr_agent::machine::{Event, State};
use gdr_agent::reboot::{
    Bus, Coordinator, Desk, Fate, FleetLock, Http, Lock, Logind, NoCoordinator, Proxies, Question,
    Refusal, Request, Sentinel, Standing, Trust,
};
use gdr_agent::sys::Root;
use gdr_tests::node::{self, NodeSpec};
use http_support::{Reply, Server, Tls};
use reboot_support::{Age, Fake, Setup};

/// A staged node whose policy names this coordinator.
fn staged(coordinator: &str, more: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    node::create(dir.path(), &NodeSpec::default()).unwrap();
    std::fs::create_dir_all(dir.path().join("run")).unwrap();
    let drop_ins = dir.path().join("etc/gdr-agent/policy.d");
    std::fs::create_dir_all(&drop_ins).unwrap();
    let text = format!("[reboot]\nallow = true\ncoordinator = \"{coordinator}\"\n{more}\n");
    std::fs::write(drop_ins.join("reboot.toml"), text).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_gdr-agent"))
        .arg("--root")
        .arg(dir.path())
        .args(["apply", "--no-reboot"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(8), "{output:?}");
    let root = Root::open(dir.path()).unwrap();
    Engine::open(&root, "test")
        .unwrap()
        .allow_reboots()
        .unwrap();
    dir
}

fn with<T>(dir: &Path, coordinator: Rc<dyn Coordinator>, work: impl FnOnce(&mut Engine) -> T) -> T {
    let root = Root::open(dir).unwrap();
    let mut engine = Engine::open(&root, "test").unwrap();
    engine.ask(Asks::Now);
    engine.coordinate(coordinator);
    work(&mut engine)
}

fn send(dir: &Path, coordinator: Rc<dyn Coordinator>, event: Event) -> State {
    with(dir, coordinator, |engine| {
        engine.send(event).unwrap();
        engine.last().unwrap().txn.state
    })
}

/// The same node once more.
fn copy(of: &Path) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let output = Command::new("cp")
        .arg("-a")
        .arg(of.join("."))
        .arg(dir.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    dir
}

/// Whether a reboot is still to be expected, and a slot is still to be given back, by the journal.
fn owes(dir: &Path) -> (bool, bool) {
    let root = Root::open(dir).unwrap();
    let journal = Journal::open(&root).unwrap();
    let record = journal.last().unwrap();
    (record.txn.granted, record.work.lock.is_some())
}

/// What grubenv and GRUB's hook say about a trial: nothing, once a transaction is taken back.
fn nothing_is_left_for_grub(dir: &Path) {
    for path in ["boot/grub/custom.cfg", "boot/grub2/custom.cfg"] {
        let text = std::fs::read_to_string(dir.join(path)).unwrap_or_default();
        assert!(!text.contains("gdr.txn"), "{path}: {text}");
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Called {
    Back,
    No,
}

/// Anybody who may say yes or no, and is told to call it back.
#[derive(Debug)]
struct Someone {
    grants: bool,
    called: Rc<RefCell<Called>>,
    log: Rc<RefCell<Vec<&'static str>>>,
    slot: Option<Lock>,
}

impl Coordinator for Someone {
    fn name(&self) -> &'static str {
        "someone"
    }
    fn can(&self) -> Result<(), Refusal> {
        Ok(())
    }
    fn request(&self, _: &Request, desk: &mut dyn Desk) -> Result<(), Refusal> {
        if let Some(lock) = &self.slot {
            desk.lock(lock).unwrap();
        }
        if !self.grants {
            return Err(Refusal::Busy {
                text: "not now".to_owned(),
            });
        }
        desk.granted().map_err(|text| Refusal::Record {
            text,
            reboot: Fate::NotAsked,
        })
    }
    fn questions(&self, _: &Request, _: bool) -> Vec<Question> {
        Vec::new()
    }
    fn poll(&self, _: Duration) -> Result<Standing, Refusal> {
        Ok(Standing::Coming("soon".to_owned()))
    }
    fn cancel(&self) -> Result<(), Refusal> {
        self.log.borrow_mut().push("cancel");
        match *self.called.borrow() {
            Called::Back => Ok(()),
            Called::No => Err(Refusal::Busy {
                text: "it can no longer be called back".to_owned(),
            }),
        }
    }
    fn release(&self) -> Result<(), Refusal> {
        self.log.borrow_mut().push("release");
        Ok(())
    }
}

fn slot() -> Lock {
    Lock {
        url: "http://127.0.0.1:9/".parse().unwrap(),
        group: "gpu".parse().unwrap(),
        id: "node".to_owned(),
        ca: None,
        held: true,
        since: 1,
    }
}

/// Requested or granted, with a slot or without, called back or not: what is told to whom, and in which order.
#[test]
fn a_granted_reboot_is_called_back_before_the_slot_is_given_back() {
    let node = staged("logind", "");
    for grants in [false, true] {
        for has_slot in [false, true] {
            for called in [Called::Back, Called::No] {
                let name = format!("granted {grants}, slot {has_slot}, {called:?}");
                let dir = copy(node.path());
                let (log, answer) = (Rc::default(), Rc::new(RefCell::new(called)));
                let someone = || -> Rc<dyn Coordinator> {
                    Rc::new(Someone {
                        grants,
                        called: answer.clone(),
                        log: Rc::clone(&log),
                        slot: has_slot.then(slot),
                    })
                };
                let asked = send(dir.path(), someone(), Event::RebootWanted);
                let expected = if grants {
                    State::Granted
                } else {
                    State::RebootRequested
                };
                assert_eq!(asked, expected, "{name}");
                let state = send(dir.path(), someone(), Event::RollbackAsked);
                assert_eq!(state, State::RolledBack, "{name}");
                nothing_is_left_for_grub(dir.path());

                let comes = grants && called == Called::No;
                let mut told = Vec::new();
                told.extend(grants.then_some("cancel"));
                told.extend((has_slot && !comes).then_some("release"));
                assert_eq!(*log.borrow(), told, "{name}");
                assert_eq!(owes(dir.path()), (comes, has_slot && comes), "{name}");

                // The unit looks again: a reboot that comes is called back as soon as that works.
                with(dir.path(), someone(), |engine| engine.release().unwrap());
                if comes {
                    assert_eq!(owes(dir.path()), (true, has_slot), "{name}");
                    *answer.borrow_mut() = Called::Back;
                    with(dir.path(), someone(), |engine| engine.release().unwrap());
                }
                with(dir.path(), someone(), |engine| engine.release().unwrap());
                assert_eq!(owes(dir.path()), (false, false), "{name}");
                let released = log
                    .borrow()
                    .iter()
                    .filter(|told| **told == "release")
                    .count();
                assert_eq!(released, usize::from(has_slot), "{name}");
                // A second rollback finds nothing to do.
                assert_eq!(
                    send(dir.path(), someone(), Event::RollbackAsked),
                    State::RolledBack
                );
                assert_eq!(owes(dir.path()), (false, false), "{name}");
            }
        }
    }
}

/// What could not be called back happens; after it the slot is not needed any more, and nothing is called back that is
/// somebody else's by then.
#[test]
fn a_reboot_that_came_after_all_gives_the_slot_back_then() {
    let dir = staged("logind", "");
    let log = Rc::default();
    let someone = || -> Rc<dyn Coordinator> {
        Rc::new(Someone {
            grants: true,
            called: Rc::new(RefCell::new(Called::No)),
            log: Rc::clone(&log),
            slot: Some(slot()),
        })
    };
    send(dir.path(), someone(), Event::RebootWanted);
    send(dir.path(), someone(), Event::RollbackAsked);
    assert_eq!(*log.borrow(), ["cancel"]);
    node::reboot(dir.path(), node::Reboot::default()).unwrap();
    with(dir.path(), someone(), |engine| engine.release().unwrap());
    assert_eq!(*log.borrow(), ["cancel", "release"]);
    assert!(!owes(dir.path()).1);
}

fn logind(age: Age, delay: Option<Duration>, dir: &Path) -> (Fake, Logind) {
    let fake = Fake::new(Setup::new(age));
    let socket = fake.listen(dir);
    let bus = Bus::peer(socket).with_limit(Duration::from_secs(20));
    (fake, Logind::new(bus).warning(delay, None))
}

#[test]
fn logind_forgets_a_scheduled_reboot_on_every_version() {
    for age in [Age::V247, Age::V252, Age::V257] {
        let dir = staged("logind", "delay = \"10m\"");
        let socket = tempfile::tempdir().unwrap();
        let (fake, logind) = logind(age, Some(Duration::from_secs(600)), socket.path());
        let logind: Rc<dyn Coordinator> = Rc::new(logind);
        assert_eq!(
            send(dir.path(), logind.clone(), Event::RebootWanted),
            State::Granted
        );
        assert!(fake.scheduled().is_some());
        assert_eq!(
            send(dir.path(), logind, Event::RollbackAsked),
            State::RolledBack
        );
        assert_eq!(fake.scheduled(), None, "{age:?}");
        assert_eq!(owes(dir.path()), (false, false), "{age:?}");
    }
}

/// A reboot at once is under way by then, which nothing can be done about; the machine comes up as it was.
#[test]
fn a_reboot_at_once_that_is_under_way_is_still_owed() {
    let dir = staged("logind", "");
    let socket = tempfile::tempdir().unwrap();
    let (fake, logind) = logind(Age::V252, None, socket.path());
    let logind: Rc<dyn Coordinator> = Rc::new(logind);
    assert_eq!(
        send(dir.path(), logind.clone(), Event::RebootWanted),
        State::Granted
    );
    assert!(fake.wait_for("shutdown starts"));
    assert_eq!(
        send(dir.path(), logind, Event::RollbackAsked),
        State::RolledBack
    );
    assert_eq!(owes(dir.path()), (true, false));
    nothing_is_left_for_grub(dir.path());
}

#[test]
fn a_stop_file_or_a_busy_gpu_calls_a_scheduled_reboot_back() {
    let dir = staged("logind", "delay = \"10m\"");
    let socket = tempfile::tempdir().unwrap();
    let (fake, logind) = logind(Age::V252, Some(Duration::from_secs(600)), socket.path());
    let gated: Rc<dyn Coordinator> =
        Rc::new(Objects(logind, dir.path().join("etc/gdr-agent/stop")));
    assert_eq!(
        send(dir.path(), gated.clone(), Event::RebootWanted),
        State::Granted
    );
    with(dir.path(), gated.clone(), |engine| {
        engine.look_after().unwrap();
    });
    assert!(fake.scheduled().is_some(), "nothing has closed");
    std::fs::write(dir.path().join("etc/gdr-agent/stop"), "moving racks").unwrap();
    with(dir.path(), gated.clone(), |engine| {
        engine.look_after().unwrap();
    });
    assert_eq!(fake.scheduled(), None);
    let root = Root::open(dir.path()).unwrap();
    let record = Journal::open(&root).unwrap().last().unwrap().clone();
    assert_eq!(
        (record.txn.state, record.txn.budget.used),
        (State::RebootRequested, 0)
    );
    let waiting =
        std::fs::read_to_string(dir.path().join("var/lib/gdr-agent/waiting.json")).unwrap();
    assert!(waiting.contains("stop-file"), "{waiting}");
}

/// logind behind a stop file.
#[derive(Debug)]
struct Objects(Logind, std::path::PathBuf);

impl Coordinator for Objects {
    fn name(&self) -> &'static str {
        "logind"
    }
    fn can(&self) -> Result<(), Refusal> {
        self.0.can()
    }
    fn request(&self, request: &Request, desk: &mut dyn Desk) -> Result<(), Refusal> {
        self.0.request(request, desk)
    }
    fn questions(&self, _: &Request, _: bool) -> Vec<Question> {
        Vec::new()
    }
    fn poll(&self, age: Duration) -> Result<Standing, Refusal> {
        self.0.poll(age)
    }
    fn objection(&self, _: bool) -> Result<(), Refusal> {
        if self.1.exists() {
            return Err(Refusal::Gate {
                gate: "stop-file",
                text: "it is there".to_owned(),
            });
        }
        Ok(())
    }
    fn cancel(&self) -> Result<(), Refusal> {
        self.0.cancel()
    }
    fn release(&self) -> Result<(), Refusal> {
        Ok(())
    }
}

#[test]
fn the_sentinel_is_taken_away() {
    let dir = staged("sentinel", "");
    let sentinel =
        || -> Rc<dyn Coordinator> { Rc::new(Sentinel::new(Root::open(dir.path()).unwrap())) };
    assert_eq!(
        send(dir.path(), sentinel(), Event::RebootWanted),
        State::Granted
    );
    let file = dir.path().join("run/reboot-required");
    assert!(file.exists());
    assert_eq!(
        send(dir.path(), sentinel(), Event::RollbackAsked),
        State::RolledBack
    );
    assert!(!file.exists() && !dir.path().join("run/reboot-required.pkgs").exists());
    assert_eq!(owes(dir.path()), (false, false));
}

#[test]
fn a_person_who_reboots_is_owed_nothing() {
    let dir = staged("none", "");
    let nobody: Rc<dyn Coordinator> = Rc::new(NoCoordinator);
    assert_eq!(
        send(dir.path(), nobody.clone(), Event::RebootWanted),
        State::RebootRequested
    );
    assert_eq!(
        send(dir.path(), nobody, Event::RollbackAsked),
        State::RolledBack
    );
    assert_eq!(owes(dir.path()), (false, false));
}

/// The server hears of it only once logind has forgotten the reboot, and once.
#[test]
fn a_fleets_slot_is_given_back_after_logind_has_forgotten_the_reboot() {
    for (age, delay, comes) in [
        (Age::V252, Some(Duration::from_secs(600)), false),
        (Age::V257, Some(Duration::from_secs(600)), false),
        (Age::V252, None, true),
    ] {
        let agreed = Arc::new(Mutex::new(Vec::new()));
        let log = agreed.clone();
        let server = Server::start(Tls::None, move |request| {
            let step = request.line.split(['/', ' ']).nth(3).unwrap();
            log.lock().unwrap().push(step.to_owned());
            Reply::status(200, "")
        });
        let more = format!(
            "[reboot.fleetlock]\nurl = \"{}\"\ngroup = \"gpu\"\n",
            server.url("/")
        );
        let dir = staged("fleetlock", &more);
        let socket = tempfile::tempdir().unwrap();
        let (fake, logind) = logind(age, delay, socket.path());
        let http = Http::new(Trust::default())
            .with_proxies(Proxies::default())
            .with_limit(Duration::from_secs(20));
        let mut lock = slot();
        (lock.url, lock.held, lock.since) = (server.url("/").parse().unwrap(), false, 0);
        let fleet: Rc<dyn Coordinator> = Rc::new(FleetLock::new(http, lock, Box::new(logind)));
        assert_eq!(
            send(dir.path(), fleet.clone(), Event::RebootWanted),
            State::Granted
        );
        if comes {
            assert!(fake.wait_for("shutdown starts"));
        }
        assert_eq!(
            send(dir.path(), fleet.clone(), Event::RollbackAsked),
            State::RolledBack
        );
        assert_eq!(fake.scheduled(), None);
        assert_eq!(owes(dir.path()), (comes, comes), "{age:?} {delay:?}");
        let so_far: &[&str] = if comes {
            &["pre-reboot"]
        } else {
            &["pre-reboot", "steady-state"]
        };
        assert_eq!(*agreed.lock().unwrap(), so_far, "{age:?} {delay:?}");
        if comes {
            node::reboot(dir.path(), node::Reboot::default()).unwrap();
        }
        for _ in 0..2 {
            with(dir.path(), fleet.clone(), |engine| {
                engine.release().unwrap();
            });
        }
        assert_eq!(
            *agreed.lock().unwrap(),
            ["pre-reboot", "steady-state"],
            "{age:?} {delay:?}"
        );
    }
}
