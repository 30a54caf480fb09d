//! A fleet on a simulated clock: thousands of nodes with the agent's own state machine, FleetLock client and
//! pauses, against one lock server, with failures put in. Nothing of it sleeps or touches a disk.
//!
//! What is simulated is what the agent does not decide: how long a boot takes, whether a trial comes up, when the
//! server is there, which answers get lost.
#![allow(dead_code, unreachable_pub, missing_docs)]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation
)]

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::rc::Rc;
use std::time::Duration;

use gdr_agent::apply::{due, pause};
use gdr_agent::machine::{Boot, Budget, Effect, Event, GrubView, Marker, State, Txn, TxnId, step};
use gdr_agent::reboot::{
    Answer, Coordinator, Desk, FleetLock, HttpError, Kind, Lock, Question, Refusal, Request,
    Standing, Wire,
};

/// What happens to a fleet.
#[derive(Debug, Clone, Copy)]
pub struct Scenario {
    pub name: &'static str,
    pub nodes: usize,
    pub slots: usize,
    pub seed: u64,
    /// Trials, of a million, that fail their checks.
    pub fails: u64,
    /// Trials, of a million, that panic and come back by GRUB alone.
    pub dies: u64,
    /// Nodes, of a million, that never come back from a reboot.
    pub dead: u64,
    /// Reboots by somebody else, of a million, for each run of the unit that asks.
    pub foreign: u64,
    /// Answers, of a million, that the server gave and the node never got.
    pub lost: u64,
    /// The server is away for this long, once every so many seconds.
    pub outage: Option<(u64, u64)>,
    /// The server comes back from a restart without its state, once every so many seconds: every slot is free again.
    pub forgets: Option<u64>,
    /// Runs of the unit that asks, of a million, before which the node's clock has jumped by up to a month.
    pub jumps: u64,
    /// Whether a failed trial holds its slot.
    pub hold: bool,
    /// Somebody puts the stop file at the fleet's URL once so many trials have failed, and takes a minute for it.
    pub stop_after: Option<usize>,
}

impl Scenario {
    pub const fn quiet(name: &'static str, nodes: usize, slots: usize) -> Self {
        Self {
            name,
            nodes,
            slots,
            seed: 1,
            fails: 0,
            dies: 0,
            dead: 0,
            foreign: 0,
            lost: 0,
            outage: None,
            forgets: None,
            jumps: 0,
            hold: false,
            stop_after: None,
        }
    }
}

/// How it ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    pub committed: usize,
    /// Back on the known-good command line.
    pub back: usize,
    /// Asking for a reboot still, on the known-good command line.
    pub waiting: usize,
    /// Never came back, and hold their slots.
    pub dead: usize,
    /// Of those, on the way back from a failed trial.
    pub dead_on_the_way_back: usize,
    /// Nodes that were under way when the server forgot that they hold a slot.
    pub forgotten: usize,
    /// Trials that failed in one way or another.
    pub failures: usize,
    /// The most nodes that were down at once because of the agent.
    pub most_down: usize,
    /// The most nodes between a yes and the end of their transaction.
    pub most_under_way: usize,
    /// Slots that are held at the end.
    pub held: usize,
    /// Requests that reached the server until the last change.
    pub requests: u64,
    /// The last change, in minutes from the begin.
    pub minutes: u64,
}

/// A small generator: the same numbers on every machine.
struct Dice(u64);

impl Dice {
    /// SplitMix64.
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.roll() % (to - from + 1)
    }

    fn of_a_million(&mut self, chance: u64) -> bool {
        self.roll() % 1_000_000 < chance
    }
}

/// The lock server: a recursive semaphore, kept over its own restarts unless it forgets.
struct Server {
    slots: usize,
    holders: BTreeSet<String>,
    /// Who held a slot when the server forgot it, and neither got one again nor gave it back.
    orphans: BTreeSet<String>,
    forgets: Option<u64>,
    /// How often it has forgotten.
    restarts: u64,
    forgotten: usize,
    now: u64,
    outage: Option<(u64, u64)>,
    lost: u64,
    dice: Dice,
    requests: u64,
}

impl Server {
    /// A restart without its state, when it is time.
    fn remember(&mut self) {
        let Some(every) = self.forgets else {
            return;
        };
        if self.now / every > self.restarts {
            self.restarts = self.now / every;
            self.forgotten += self.holders.len();
            self.orphans.append(&mut self.holders);
        }
    }

    fn away(&self) -> bool {
        let Some((length, every)) = self.outage else {
            return false;
        };
        self.now % every >= every - length
    }
}

#[derive(Clone)]
struct ToServer(Rc<RefCell<Server>>);

impl std::fmt::Debug for ToServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ToServer")
    }
}

impl Wire for ToServer {
    fn post(&self, url: &str, headers: &[(&str, &str)], body: &[u8]) -> Result<Answer, HttpError> {
        assert!(headers.contains(&("fleet-lock-protocol", "true")));
        let mut server = self.0.borrow_mut();
        let silent = || Err(HttpError::Unreachable("no answer within 20s".to_owned()));
        if server.away() {
            return silent();
        }
        server.remember();
        server.requests += 1;
        let lost = server.lost;
        // Lost on the way there, half of the time.
        let (lost, there) = (
            server.dice.of_a_million(lost),
            server.dice.roll().is_multiple_of(2),
        );
        if lost && !there {
            return silent();
        }
        let body: serde_json::Value = serde_json::from_slice(body).unwrap();
        let id = body["client_params"]["id"].as_str().unwrap().to_owned();
        let (status, said) = if url.ends_with("/v1/steady-state") {
            server.holders.remove(&id);
            server.orphans.remove(&id);
            (200, "")
        } else if server.holders.contains(&id) || server.holders.len() < server.slots {
            server.orphans.remove(&id);
            server.holders.insert(id);
            (200, "")
        } else {
            (
                500,
                r#"{"kind":"failed_lock","value":"semaphore currently full"}"#,
            )
        };
        if lost {
            return silent();
        }
        Ok(Answer {
            status,
            location: None,
            body: said.as_bytes().to_vec(),
        })
    }
}

/// logind: yes, always.
#[derive(Debug)]
struct Yes;

impl Coordinator for Yes {
    fn name(&self) -> &'static str {
        "logind"
    }
    fn can(&self) -> Result<(), Refusal> {
        Ok(())
    }
    fn request(&self, _: &Request, desk: &mut dyn Desk) -> Result<(), Refusal> {
        desk.granted().map_err(|text| Refusal::Busy { text })
    }
    fn questions(&self, _: &Request, _: bool) -> Vec<Question> {
        Vec::new()
    }
    fn poll(&self, _: Duration) -> Result<Standing, Refusal> {
        Ok(Standing::Coming("soon".to_owned()))
    }
    fn cancel(&self) -> Result<(), Refusal> {
        Ok(())
    }
    fn release(&self) -> Result<(), Refusal> {
        Ok(())
    }
}

/// What the node's disk remembers.
struct Node {
    txn: Txn,
    lock: Option<Lock>,
    tries: u32,
    next: u64,
    boots: u64,
    /// GRUB's variable.
    armed: bool,
    /// Whether the trial's command line runs.
    trial: bool,
    up: bool,
    dead: bool,
    /// Down because somebody else rebooted it.
    foreign: bool,
    /// Between its first yes and its end.
    under_way: bool,
    failed: bool,
    /// How far its clock is ahead; far enough from zero that it can jump back.
    clock: u64,
}

struct Books<'a> {
    node: &'a mut Node,
}

impl Desk for Books<'_> {
    fn lock(&mut self, lock: &Lock) -> Result<(), String> {
        let known = self.node.lock.as_ref();
        if known.is_none_or(|known| !known.held && lock.held) {
            self.node.lock = Some(lock.clone());
        }
        Ok(())
    }
    fn granted(&mut self) -> Result<(), String> {
        self.node.txn = step(&self.node.txn, &Event::Granted).0;
        Ok(())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// The unit that asks runs.
    Ask,
    /// The granted shutdown begins.
    Down,
    /// The machine has booted.
    Up,
    /// The trial is judged.
    Judge,
}

struct Fleet {
    scenario: Scenario,
    nodes: Vec<Node>,
    server: Rc<RefCell<Server>>,
    dice: Dice,
    now: u64,
    queue: BinaryHeap<Reverse<(u64, usize, What)>>,
    outcome: Outcome,
    changed: u64,
    stopped: Option<u64>,
    down: usize,
    under_way: usize,
}

/// As far as a clock jumps.
const MONTH: u64 = 30 * 24 * 3600;

/// Nothing changes any more after this long without a change.
const STANDS: u64 = 12 * 3600;

/// Runs a scenario to its end.
///
/// Panics when more nodes are down than the group has slots, when a node is down without a slot, or when a node
/// ends anywhere but committed, back, waiting or dead.
pub fn run(scenario: Scenario) -> Outcome {
    let mut fleet = Fleet::new(scenario);
    while let Some(Reverse((time, node, what))) = fleet.queue.pop() {
        if time > fleet.changed + STANDS {
            break;
        }
        fleet.now = time;
        fleet.server.borrow_mut().now = time;
        fleet.happens(node, what);
        fleet.check(node);
    }
    fleet.end()
}

impl Fleet {
    fn new(scenario: Scenario) -> Self {
        let mut dice = Dice(scenario.seed);
        let server = Server {
            slots: scenario.slots,
            holders: BTreeSet::new(),
            orphans: BTreeSet::new(),
            forgets: scenario.forgets,
            restarts: 0,
            forgotten: 0,
            now: 0,
            outage: scenario.outage,
            lost: scenario.lost,
            dice: Dice(scenario.seed ^ 0xffff),
            requests: 0,
        };
        let mut queue = BinaryHeap::new();
        let mut nodes = Vec::new();
        for number in 0..scenario.nodes {
            queue.push(Reverse((dice.between(0, 120), number, What::Ask)));
            nodes.push(Node {
                txn: staged(number),
                lock: None,
                tries: 0,
                next: 0,
                boots: 0,
                armed: false,
                trial: false,
                up: true,
                dead: false,
                foreign: false,
                under_way: false,
                failed: false,
                clock: 10 * MONTH,
            });
        }
        Self {
            scenario,
            nodes,
            server: Rc::new(RefCell::new(server)),
            dice,
            now: 0,
            queue,
            outcome: Outcome::default(),
            changed: 0,
            stopped: None,
            down: 0,
            under_way: 0,
        }
    }

    /// Something has changed.
    fn touch(&mut self) {
        self.changed = self.now;
        self.outcome.requests = self.server.borrow().requests;
    }

    fn after(&mut self, seconds: u64, node: usize, what: What) {
        self.queue.push(Reverse((self.now + seconds, node, what)));
    }

    fn happens(&mut self, at: usize, what: What) {
        match what {
            What::Ask => self.ask(at),
            What::Down => self.goes_down(at),
            What::Up => self.comes_up(at),
            What::Judge => self.judge(at),
        }
    }

    /// One run of the unit, as `gdr-agent boot ask` does it.
    fn ask(&mut self, at: usize) {
        if !self.nodes[at].up {
            return;
        }
        if self.dice.of_a_million(self.scenario.foreign) {
            self.foreign(at);
            return;
        }
        if self.scenario.jumps > 0 && self.dice.of_a_million(self.scenario.jumps) {
            self.nodes[at].clock = self.dice.between(9 * MONTH, 11 * MONTH);
        }
        let state = self.nodes[at].txn.state;
        let due = due(self.nodes[at].next, self.clock(at));
        if state.is_final() {
            let holds = self.scenario.hold && state == State::Quarantined;
            if self.nodes[at].lock.is_none() || holds {
                return;
            }
            if due {
                self.release(at);
            }
        } else if due
            && matches!(
                state,
                State::Staged | State::RebootRequested | State::RollingBack
            )
        {
            self.send(at, &Event::RebootWanted);
        }
        let node = &self.nodes[at];
        // The unit itself runs by a clock that does not jump; it is looked at when it has something to do.
        let soon = node.next.saturating_sub(self.clock(at)).clamp(60, 15 * 60);
        let jitter = self.dice.between(0, 20);
        self.after(soon + jitter, at, What::Ask);
    }

    /// What the node's clock shows.
    fn clock(&self, at: usize) -> u64 {
        self.now + self.nodes[at].clock
    }

    fn client(&self, at: usize) -> FleetLock {
        let lock = Lock {
            url: "https://lock.example/".parse().unwrap(),
            group: "gpu".parse().unwrap(),
            id: format!("node-{at}"),
            ca: None,
            held: false,
            since: 0,
        };
        FleetLock::new(ToServer(self.server.clone()), lock, Box::new(Yes))
    }

    fn release(&mut self, at: usize) {
        match self.client(at).release() {
            Ok(()) => {
                let node = &mut self.nodes[at];
                (node.lock, node.tries, node.next) = (None, 0, 0);
                self.touch();
            }
            Err(refusal) => self.refused(at, &refusal),
        }
    }

    fn refused(&mut self, at: usize, refusal: &Refusal) {
        let silent = matches!(refusal.kind(), Kind::Unreachable | Kind::Protocol);
        let dice = self.dice.roll() as u32;
        let now = self.clock(at);
        let node = &mut self.nodes[at];
        node.tries += 1;
        node.next = match refusal.kind() {
            Kind::Gate | Kind::Busy => now,
            _ => now + pause(node.tries, silent, dice).as_secs(),
        };
    }

    /// The state machine's step, and its effects.
    fn send(&mut self, at: usize, event: &Event) {
        let mut events = vec![event.clone()];
        while let Some(event) = events.pop() {
            let before = self.nodes[at].txn.state;
            let (next, effects) = step(&self.nodes[at].txn, &event);
            if next.state != before {
                self.touch();
            }
            self.nodes[at].txn = next;
            for effect in effects {
                match effect {
                    Effect::AskReboot => events.extend(self.request(at)),
                    Effect::Arm => self.nodes[at].armed = true,
                    Effect::Disarm => self.nodes[at].armed = false,
                    Effect::BeginCommit => events.push(Event::CommitStarted),
                    Effect::Commit => events.push(Event::CommitDone),
                    Effect::Undo => events.push(Event::Undone(Vec::new())),
                    // The unit that asks does it, at its next run.
                    Effect::Release => {}
                    Effect::Quarantine => {}
                    Effect::Stage | Effect::Verify | Effect::ForceReboot => panic!("{effect:?}"),
                }
            }
        }
    }

    fn request(&mut self, at: usize) -> Option<Event> {
        let back = self.nodes[at].txn.state == State::RollingBack;
        // Units without a network ask nobody: `settle` and `verify` come here as well.
        let unit = self.nodes[at].up;
        if !unit {
            return None;
        }
        if self.stopped.is_some_and(|since| self.now >= since) && !back {
            let refusal = Refusal::Gate {
                gate: "stop-url",
                text: "the rollout was stopped".to_owned(),
            };
            self.refused(at, &refusal);
            return Some(Event::Denied(refusal.to_string()));
        }
        let client = self.client(at);
        let request = Request {
            reason: "trial".to_owned(),
            respect_inhibitors: true,
            back,
        };
        let outcome = client.request(
            &request,
            &mut Books {
                node: &mut self.nodes[at],
            },
        );
        match outcome {
            Ok(()) => {
                let node = &mut self.nodes[at];
                (node.tries, node.next) = (0, 0);
                self.touch();
                if !self.nodes[at].under_way {
                    self.nodes[at].under_way = true;
                    self.under_way += 1;
                }
                self.after(5, at, What::Down);
                None
            }
            Err(refusal) => {
                self.refused(at, &refusal);
                Some(Event::Denied(refusal.to_string()))
            }
        }
    }

    fn goes_down(&mut self, at: usize) {
        if !self.nodes[at].up {
            // Somebody else was faster.
            return;
        }
        self.send(at, &Event::Shutdown { reboot: true });
        self.nodes[at].up = false;
        self.down += 1;
        self.outcome.most_down = self.outcome.most_down.max(self.down);
        self.boots(at);
    }

    fn boots(&mut self, at: usize) {
        let (dead, dies) = (self.scenario.dead, self.scenario.dies);
        if self.dice.of_a_million(dead) {
            self.nodes[at].dead = true;
            if self.nodes[at].txn.state == State::RollingBack {
                self.outcome.dead_on_the_way_back += 1;
            }
            self.touch();
            return;
        }
        let mut seconds = self.dice.between(120, 600);
        let armed = self.nodes[at].armed;
        self.nodes[at].trial = armed && !self.dice.of_a_million(dies);
        if armed && !self.nodes[at].trial {
            // The panic's timeout, and the boot after it.
            seconds += 30 + self.dice.between(120, 600);
        }
        self.after(seconds, at, What::Up);
    }

    fn foreign(&mut self, at: usize) {
        self.nodes[at].up = false;
        self.nodes[at].foreign = true;
        self.boots(at);
    }

    fn comes_up(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        if !node.foreign {
            self.down -= 1;
        }
        node.boots += 1;
        node.foreign = false;
        let (marker, grub) = match (node.trial, node.armed) {
            (true, _) => (Marker::Ours, GrubView::Taken),
            (false, true) => (Marker::None, GrubView::Taken),
            (false, false) => (Marker::None, GrubView::Neither),
        };
        let boot = Boot {
            boot_id: format!("boot-{}", node.boots),
            marker,
            grub,
        };
        node.armed = false;
        // Still without a network: the units of the boot.
        self.send(at, &Event::Booted(boot));
        self.nodes[at].up = true;
        self.over(at);
        if self.nodes[at].txn.state == State::TrialBooted {
            let seconds = self.dice.between(20, 300);
            self.after(seconds, at, What::Judge);
        }
        self.after(60, at, What::Ask);
    }

    fn judge(&mut self, at: usize) {
        let node = &self.nodes[at];
        if !node.up || node.txn.state != State::TrialBooted {
            return;
        }
        let fails = self.scenario.fails;
        let event = if self.dice.of_a_million(fails) {
            Event::VerifyFailed("a required check is not met".to_owned())
        } else {
            Event::VerifyPassed
        };
        // The unit that verifies has no network, and leaves the way back to the one that asks.
        self.nodes[at].up = false;
        self.send(at, &event);
        self.nodes[at].up = true;
        self.over(at);
    }

    /// Counts what has ended, or failed.
    fn over(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        if node.txn.failure.is_some() && !node.failed {
            node.failed = true;
            self.outcome.failures += 1;
            if self.scenario.stop_after == Some(self.outcome.failures) {
                self.stopped = Some(self.now + 60);
            }
        }
        if self.nodes[at].txn.state.is_final() && self.nodes[at].under_way {
            self.nodes[at].under_way = false;
            self.under_way -= 1;
        }
    }

    /// What must hold at every instant.
    fn check(&mut self, at: usize) {
        let server = self.server.borrow();
        assert!(server.holders.len() <= self.scenario.slots);
        // What a server forgot it gives away once more: that many nodes more, and not one besides.
        let slots = self.scenario.slots + server.orphans.len();
        assert!(
            self.down <= slots,
            "{} nodes are down, and there are {slots} slots",
            self.down
        );
        self.outcome.most_under_way = self.outcome.most_under_way.max(self.under_way);
        assert!(
            self.under_way <= slots,
            "{} nodes are under way",
            self.under_way
        );
        let node = &self.nodes[at];
        let state = node.txn.state;
        let risky = matches!(
            state,
            State::Granted | State::Armed | State::TrialBooted | State::RollingBack
        );
        if risky {
            let id = format!("node-{at}");
            assert!(
                server.holders.contains(&id) || server.orphans.contains(&id),
                "{id} is {state} without a slot"
            );
        }
    }

    fn end(mut self) -> Outcome {
        for (at, node) in self.nodes.iter().enumerate() {
            let outcome = &mut self.outcome;
            match node.txn.state {
                _ if node.dead => outcome.dead += 1,
                State::Committed => outcome.committed += 1,
                State::Quarantined | State::RolledBack => outcome.back += 1,
                State::Staged | State::RebootRequested => outcome.waiting += 1,
                other => panic!("node-{at} ended {other}: {:?}", node.txn),
            }
            let holds = self.scenario.hold && node.txn.state == State::Quarantined;
            let asked = node.txn.state == State::RebootRequested;
            assert!(
                node.lock.is_none() || node.dead || holds || asked,
                "node-{at} is {} and has not given its slot back",
                node.txn.state
            );
        }
        let server = self.server.borrow();
        self.outcome.held = server.holders.len();
        self.outcome.forgotten = server.forgotten;
        self.outcome.minutes = self.changed / 60;
        self.outcome.clone()
    }
}

fn staged(number: usize) -> Txn {
    Txn {
        id: TxnId::new(1, (number as u32).to_be_bytes()),
        state: State::Staged,
        digest: "d".to_owned(),
        boot_id: "boot-0".to_owned(),
        trial: true,
        ready: true,
        on_trial: false,
        granted: false,
        budget: Budget {
            allowed: true,
            used: 0,
            max: 2,
        },
        not_taken: 0,
        failure: None,
        denial: None,
        conflicts: Vec::new(),
    }
}
