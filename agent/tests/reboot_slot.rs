//! A FleetLock slot over a whole transaction, with the real journal, units and server: taken before the
//! trial, kept over every reboot, given back once when it is over, however long that takes.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs
)]

mod http_support;

use std::path::Path;
use std::process::Command;
use std::rc::Rc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gdr_agent::apply::{Asks, Engine};
use gdr_agent::journal::Journal;
use gdr_agent::machine::{Event, State};
use gdr_agent::reboot::{
    Coordinator, Desk, Fate, FleetLock, Http, Lock, Proxies, Question, Refusal, Request, Standing,
    Trust,
};
use gdr_agent::sys::Root;
use gdr_tests::node::{self, NodeSpec, Reboot};
use http_support::{Reply, Server, Tls};

/// A machine that reboots whenever it is asked to; by hand, in these tests.
#[derive(Debug)]
struct Machine;

impl Coordinator for Machine {
    fn name(&self) -> &'static str {
        "machine"
    }
    fn can(&self) -> Result<(), Refusal> {
        Ok(())
    }
    fn request(&self, _: &Request, desk: &mut dyn Desk) -> Result<(), Refusal> {
        desk.granted().map_err(|text| Refusal::Record {
            text,
            reboot: Fate::CalledBack,
        })
    }
    fn questions(&self, _: &Request, _: bool) -> Vec<Question> {
        Vec::new()
    }
    fn poll(&self, _: Duration) -> Result<Standing, Refusal> {
        Ok(Standing::Gone("it did not go down".to_owned()))
    }
    fn cancel(&self) -> Result<(), Refusal> {
        Ok(())
    }
    fn release(&self) -> Result<(), Refusal> {
        Ok(())
    }
}

/// A gate before the lock that has closed.
#[derive(Debug)]
struct Closed(FleetLock, &'static str);

impl Coordinator for Closed {
    fn name(&self) -> &'static str {
        "closed"
    }
    fn can(&self) -> Result<(), Refusal> {
        Ok(())
    }
    fn request(&self, _: &Request, _: &mut dyn Desk) -> Result<(), Refusal> {
        Err(Refusal::Gate {
            gate: self.1,
            text: "closed".to_owned(),
        })
    }
    fn questions(&self, _: &Request, _: bool) -> Vec<Question> {
        Vec::new()
    }
    fn poll(&self, age: Duration) -> Result<Standing, Refusal> {
        self.0.poll(age)
    }
    fn cancel(&self) -> Result<(), Refusal> {
        Ok(())
    }
    fn release(&self) -> Result<(), Refusal> {
        self.0.release()
    }
}

struct Node {
    dir: tempfile::TempDir,
    server: Server,
    status: Arc<AtomicU16>,
    /// The steps that the server has agreed to.
    agreed: Arc<Mutex<Vec<String>>>,
}

impl Node {
    fn new(spec: &NodeSpec) -> Self {
        Self::with_policy(spec, "")
    }

    fn with_policy(spec: &NodeSpec, more: &str) -> Self {
        let status = Arc::new(AtomicU16::new(200));
        let agreed = Arc::new(Mutex::new(Vec::new()));
        let (says, log) = (status.clone(), agreed.clone());
        let server = Server::start(Tls::None, move |request| {
            let status = says.load(Ordering::SeqCst);
            if status == 200 {
                let step = request.line.split(['/', ' ']).nth(3).unwrap();
                log.lock().unwrap().push(step.to_owned());
            }
            Reply::status(status, r#"{"kind":"failed_lock","value":"full"}"#)
        });
        let dir = tempfile::tempdir().unwrap();
        node::create(dir.path(), spec).unwrap();
        let drop_ins = dir.path().join("etc/gdr-agent/policy.d");
        std::fs::create_dir_all(&drop_ins).unwrap();
        let text = format!(
            "[reboot]\ncoordinator = \"fleetlock\"\nallow = true\n[reboot.fleetlock]\nurl = \"{}\"\ngroup = \"gpu\"\n{more}",
            server.url("/")
        );
        std::fs::write(drop_ins.join("reboot.toml"), text).unwrap();
        let node = Self {
            dir,
            server,
            status,
            agreed,
        };
        node.agent(&["apply", "--no-reboot"], 8);
        node.with(Asks::Now, |engine| engine.allow_reboots().unwrap());
        node
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn agent(&self, args: &[&str], exit: i32) {
        let output = Command::new(env!("CARGO_BIN_EXE_gdr-agent"))
            .arg("--root")
            .arg(self.path())
            .args(args)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(exit), "{args:?}: {output:?}");
    }

    /// One run of the unit that asks.
    fn with<T>(&self, asks: Asks, work: impl FnOnce(&mut Engine) -> T) -> T {
        let root = Root::open(self.path()).unwrap();
        let mut engine = Engine::open(&root, "test").unwrap();
        engine.ask(asks);
        engine.coordinate(Rc::new(self.fleetlock()));
        work(&mut engine)
    }

    fn fleetlock(&self) -> FleetLock {
        let http = Http::new(Trust::default())
            .with_proxies(Proxies::default())
            .with_limit(Duration::from_secs(5));
        let lock = Lock {
            url: self.server.url("/").parse().unwrap(),
            group: "gpu".parse().unwrap(),
            id: "node".to_owned(),
            ca: None,
            held: false,
            since: 0,
        };
        FleetLock::new(http, lock, Box::new(Machine))
    }

    /// Asks while a gate is closed.
    fn wants_behind(&self, gate: &'static str) {
        self.with(Asks::Now, |engine| {
            engine.coordinate(Rc::new(Closed(self.fleetlock(), gate)));
            engine.send(Event::RebootWanted).unwrap();
        });
    }

    fn wants(&self, asks: Asks) -> State {
        self.with(asks, |engine| {
            engine.send(Event::RebootWanted).unwrap();
            engine.last().unwrap().txn.state
        })
    }

    fn release(&self, asks: Asks) {
        self.with(asks, |engine| engine.release().unwrap());
    }

    fn reboot(&self, how: Reboot, arms: bool) {
        if arms {
            self.agent(&["boot", "arm"], 0);
        }
        node::reboot(self.path(), how).unwrap();
        self.agent(&["boot", "acs"], 0);
        self.agent(&["boot", "settle"], 0);
        let cmdline = std::fs::read_to_string(self.path().join("proc/cmdline")).unwrap();
        if cmdline.contains("gdr.txn=") {
            self.agent(&["boot", "verify"], 0);
        }
    }

    fn status(&self) -> serde_json::Value {
        let output = Command::new(env!("CARGO_BIN_EXE_gdr-agent"))
            .arg("--root")
            .arg(self.path())
            .args(["--format", "json", "status"])
            .output()
            .unwrap();
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn record(&self) -> gdr_agent::journal::Record {
        let root = Root::open(self.path()).unwrap();
        Journal::open(&root).unwrap().last().unwrap().clone()
    }

    fn state(&self) -> State {
        self.record().txn.state
    }

    fn agreed(&self) -> Vec<String> {
        self.agreed.lock().unwrap().clone()
    }

    fn says(&self, status: u16) {
        self.status.store(status, Ordering::SeqCst);
    }

    fn waiting(&self) -> serde_json::Value {
        let bytes = std::fs::read(self.path().join("var/lib/gdr-agent/waiting.json")).unwrap();
        serde_json::from_slice(&bytes).unwrap()
    }
}

#[test]
fn a_good_trial_holds_the_slot_until_it_is_committed() {
    let node = Node::new(&NodeSpec::default());
    assert_eq!(node.wants(Asks::WhenDue), State::Granted);
    assert_eq!(node.agreed(), ["pre-reboot"]);
    assert!(node.record().work.lock.unwrap().held);
    node.reboot(Reboot::default(), true);
    assert_eq!(node.state(), State::Committed);
    assert_eq!(
        node.agreed(),
        ["pre-reboot"],
        "units without a network leave it"
    );
    assert!(node.record().work.lock.is_some());
    node.release(Asks::Locally);
    assert_eq!(node.agreed(), ["pre-reboot"]);
    node.release(Asks::WhenDue);
    node.release(Asks::WhenDue);
    node.release(Asks::Now);
    assert_eq!(node.agreed(), ["pre-reboot", "steady-state"], "once");
    assert_eq!(node.record().work.lock, None);
}

#[test]
fn a_failed_trial_holds_it_over_the_reboot_back() {
    // A BAR1 of 256 MiB is what firmware leaves that places no large BAR: a check is not met.
    let node = Node::new(&NodeSpec {
        bar1: 256 << 20,
        ..NodeSpec::default()
    });
    assert_eq!(node.wants(Asks::WhenDue), State::Granted);
    node.reboot(Reboot::default(), true);
    assert_eq!(node.state(), State::RollingBack);
    node.release(Asks::Now);
    assert_eq!(node.agreed(), ["pre-reboot"], "not before it is over");
    node.reboot(Reboot::default(), true);
    assert_eq!(node.state(), State::Quarantined);
    node.release(Asks::WhenDue);
    assert_eq!(node.agreed(), ["pre-reboot", "steady-state"]);
}

#[test]
fn a_trial_that_dies_gives_it_back_once_the_node_is_as_before() {
    let node = Node::new(&NodeSpec::default());
    node.wants(Asks::WhenDue);
    let dies = Reboot {
        dies: true,
        ..Reboot::default()
    };
    node.reboot(dies, true);
    assert_eq!(node.state(), State::Quarantined);
    node.release(Asks::WhenDue);
    assert_eq!(node.agreed(), ["pre-reboot", "steady-state"]);
}

#[test]
fn a_full_group_or_a_dead_server_means_waiting_and_never_a_reboot() {
    let node = Node::new(&NodeSpec::default());
    node.says(500);
    for tries in 1..=3 {
        assert_eq!(node.wants(Asks::Now), State::RebootRequested);
        let waiting = node.waiting();
        assert_eq!(
            (&waiting["kind"], &waiting["tries"], &waiting["wants"]),
            (&"denied".into(), &tries.into(), &"reboot".into())
        );
        assert!(
            waiting["text"]
                .as_str()
                .unwrap()
                .contains("failed_lock: full")
        );
    }
    let records = node.record().seq;
    let asked = node.server.seen().len();
    // The unit comes every minute, and leaves the server alone until it is time again.
    for _ in 0..5 {
        assert_eq!(node.wants(Asks::WhenDue), State::RebootRequested);
    }
    assert_eq!(node.server.seen().len(), asked);
    // However often it is asked, the journal does not grow.
    node.wants(Asks::Now);
    assert_eq!(node.record().seq, records);
    assert_eq!(node.record().txn.budget.used, 0);
    node.says(200);
    assert_eq!(node.wants(Asks::Now), State::Granted);
    assert!(!node.path().join("var/lib/gdr-agent/waiting.json").exists());
}

#[test]
fn giving_back_is_tried_until_the_server_agrees() {
    let node = Node::new(&NodeSpec::default());
    node.wants(Asks::Now);
    node.reboot(Reboot::default(), true);
    for status in [500, 503, 404, 301] {
        node.says(status);
        node.release(Asks::Now);
        assert!(node.record().work.lock.is_some(), "{status}");
        assert_eq!(node.waiting()["wants"], "release");
    }
    node.says(200);
    node.release(Asks::Now);
    assert_eq!(node.record().work.lock, None);
    assert_eq!(node.agreed(), ["pre-reboot", "steady-state"]);
}

#[test]
fn a_foreign_reboot_after_the_yes_keeps_the_slot_and_asks_again() {
    let node = Node::new(&NodeSpec::default());
    node.wants(Asks::Now);
    node.reboot(Reboot::default(), false);
    assert_eq!(node.state(), State::RebootRequested);
    assert!(node.record().work.lock.unwrap().held);
    // A lock is recursive for its holder.
    assert_eq!(node.wants(Asks::Now), State::Granted);
    assert_eq!(node.agreed(), ["pre-reboot", "pre-reboot"]);
    node.reboot(Reboot::default(), true);
    assert_eq!(node.state(), State::Committed);
    node.release(Asks::Now);
    assert_eq!(node.agreed().last().unwrap(), "steady-state");
    assert_eq!(node.agreed().len(), 3);
}

#[test]
fn a_reboot_that_does_not_come_is_asked_for_again_under_the_same_slot() {
    let node = Node::new(&NodeSpec::default());
    node.wants(Asks::Now);
    node.with(Asks::WhenDue, |engine| engine.look_after().unwrap());
    let record = node.record();
    assert_eq!(
        (record.txn.state, record.txn.budget.used),
        (State::RebootRequested, 0)
    );
    assert!(record.work.lock.unwrap().held);
}

#[test]
fn a_person_who_takes_it_back_before_the_reboot_gives_the_slot_back() {
    let node = Node::new(&NodeSpec::default());
    node.wants(Asks::Now);
    node.with(Asks::Now, |engine| {
        engine.send(Event::RollbackAsked).unwrap();
    });
    assert_eq!(node.state(), State::RolledBack);
    assert_eq!(node.agreed(), ["pre-reboot", "steady-state"]);
}

#[test]
fn a_held_slot_is_given_back_by_a_person_and_by_nobody_else() {
    let node = Node::with_policy(&NodeSpec::default(), "failed = \"hold\"\n");
    node.wants(Asks::Now);
    let dies = Reboot {
        dies: true,
        ..Reboot::default()
    };
    node.reboot(dies, true);
    assert_eq!(node.state(), State::Quarantined);
    node.release(Asks::WhenDue);
    node.release(Asks::Now);
    assert_eq!(node.agreed(), ["pre-reboot"]);
    node.with(Asks::Now, |engine| engine.free().unwrap());
    assert_eq!(node.agreed(), ["pre-reboot", "steady-state"]);
}

#[test]
fn a_committed_node_gives_its_slot_back_even_where_failed_ones_hold() {
    let node = Node::with_policy(&NodeSpec::default(), "failed = \"hold\"\n");
    node.wants(Asks::Now);
    node.reboot(Reboot::default(), true);
    node.release(Asks::WhenDue);
    assert_eq!(node.agreed(), ["pre-reboot", "steady-state"]);
}

#[test]
fn a_node_that_may_not_reboot_for_hours_keeps_nobody_elses_slot() {
    let node = Node::new(&NodeSpec::default());
    node.wants(Asks::Now);
    // The granted reboot did not come, and the window has closed meanwhile.
    node.with(Asks::Now, |engine| engine.look_after().unwrap());
    node.wants_behind("gpu");
    assert_eq!(
        node.agreed(),
        ["pre-reboot"],
        "a drain goes on under the slot"
    );
    node.wants_behind("window");
    assert_eq!(node.agreed(), ["pre-reboot", "steady-state"]);
    assert_eq!(node.record().work.lock, None);
    node.wants_behind("window");
    assert_eq!(node.agreed().len(), 2);
    assert_eq!(node.wants(Asks::Now), State::Granted);
}

#[test]
fn a_node_on_a_failed_trial_keeps_its_slot_behind_every_gate() {
    let node = Node::new(&NodeSpec {
        bar1: 256 << 20,
        ..NodeSpec::default()
    });
    node.wants(Asks::Now);
    node.reboot(Reboot::default(), true);
    node.with(Asks::Now, |engine| engine.look_after().unwrap());
    assert_eq!(node.state(), State::RollingBack);
    for gate in ["stop-file", "stop-url", "window"] {
        node.wants_behind(gate);
        assert_eq!(node.waiting()["kind"], "gate");
    }
    assert_eq!(node.agreed(), ["pre-reboot"]);
}

#[test]
fn status_says_what_is_waited_for_and_since_when() {
    let node = Node::new(&NodeSpec::default());
    node.says(500);
    node.wants(Asks::Now);
    let status = node.status();
    let waiting = &status["waiting"];
    assert_eq!(
        (&waiting["wants"], &waiting["kind"]),
        (&"reboot".into(), &"denied".into())
    );
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_secs();
    let since = waiting["since"].as_u64().unwrap();
    assert!(since <= now && since + 600 > now, "{waiting}");
    assert!(waiting["next"].as_u64().unwrap() > since);
    assert_eq!(
        (&status["slot"]["held"], &status["slot"]["group"]),
        (&false.into(), &"gpu".into())
    );
    node.says(200);
    node.wants(Asks::Now);
    let status = node.status();
    assert_eq!(
        (&status["waiting"], &status["slot"]["held"]),
        (&serde_json::Value::Null, &true.into())
    );
}

#[test]
fn a_dry_run_says_who_would_be_asked_and_changes_nothing() {
    let node = Node::new(&NodeSpec::default());
    let before = node.record();
    let output = Command::new(env!("CARGO_BIN_EXE_gdr-agent"))
        .arg("--root")
        .arg(node.path())
        .args(["--format", "json", "apply", "--dry-run-reboot"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let asked = json["reboot"]["would_ask"].as_array().unwrap();
    let who: Vec<&str> = asked.iter().map(|q| q["who"].as_str().unwrap()).collect();
    assert_eq!(who, ["stop-file", "gpu", "fleetlock", "logind"]);
    assert!(
        asked[2]["asks"].as_str().unwrap().contains("group `gpu`"),
        "{json:#}"
    );
    assert_eq!(json["reboot"]["coordinator"], "fleetlock");
    assert!(
        asked.iter().all(|q| q["answer"] == "not-asked"),
        "a directory asks nobody"
    );
    // A plan says the same, for a node that has not begun.
    let fresh = tempfile::tempdir().unwrap();
    node::create(fresh.path(), &NodeSpec::default()).unwrap();
    let drop_ins = fresh.path().join("etc/gdr-agent/policy.d");
    std::fs::create_dir_all(&drop_ins).unwrap();
    let policy = "etc/gdr-agent/policy.d/reboot.toml";
    std::fs::copy(node.path().join(policy), fresh.path().join(policy)).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_gdr-agent"))
        .arg("--root")
        .arg(fresh.path())
        .args(["--format", "json", "plan"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let plan: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let who = |json: &serde_json::Value| -> Vec<String> {
        let asked = json["reboot"]["would_ask"].as_array().unwrap();
        asked.iter().map(|q| q["who"].to_string()).collect()
    };
    assert_eq!(who(&plan), who(&json));
    assert_eq!(node.record(), before);
    assert!(node.server.seen().is_empty());
}
