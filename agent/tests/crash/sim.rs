//! The cruel simulator: one seed decides what happens to a node, in which order, and where it is interrupted.
//!
//! What follows from a state follows from it each time, so it is found out once: a schedule that comes to a state that was
//! seen before goes on from what is known. `docs/crashes.md` says what that means for the numbers.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use gdr_agent::machine::{State as Stands, Txn};
use gdr_tests::node::Family;
use rustix::io::Errno;

use crate::bugs::Bug;
use crate::chance::{Blow, Fate, Happens, Mood, NOW, simpler};
use crate::node::{Machine, Run, State, Tape, Words, hash_of, trial_of};
use crate::scenario::{is_trial, plain};
use crate::spy::Order;
use crate::state::{Changes, Delta, Node};

/// Results that are kept; then all are forgotten, for the memory's sake.
const KEPT: usize = 40_000;
/// Of what is remembered, one in so many is done again, to see whether it comes to the same.
const CHECKED: usize = 1_000;
/// Runs that are kept change by change.
const TAPES: usize = 3_000;

/// What is known already.
#[derive(Debug, Default)]
struct Memory {
    steps: HashMap<(u64, u64), Result<Outcome, String>>,
    hits: usize,
    tapes: HashMap<(u64, u64), Rc<Tape>>,
    txns: HashMap<u64, Result<Option<Rc<Txn>>, String>>,
    ends: HashMap<u64, Result<Stands, String>>,
}

/// What a step comes to: what it changes on the disk, and all else.
#[derive(Debug, Clone)]
struct Outcome {
    disk: Rc<Delta>,
    rest: State,
}

impl Outcome {
    fn of(before: &State, after: &State) -> Self {
        let disk = before.disk.until(&after.disk);
        let rest = State {
            disk: before.disk.clone(),
            ..after.clone()
        };
        Self {
            disk: Rc::new(disk),
            rest,
        }
    }

    fn from(&self, before: &State) -> State {
        State {
            disk: before.disk.with(&self.disk),
            ..self.rest.clone()
        }
    }
}

/// A node that a schedule is let loose on, again and again.
#[derive(Debug)]
pub struct Playground {
    inner: RefCell<Inner>,
    start: State,
    known_good: String,
    target: String,
    original: u64,
    committed: u64,
}

#[derive(Debug)]
struct Inner {
    machine: Machine,
    memory: Memory,
}

impl Playground {
    pub fn new(family: Family, bug: Option<Bug>) -> Self {
        let (machine, start) = Machine::new(family, bug);
        let known_good = plain(&machine.cmdline(&start));
        let inner = Inner {
            machine,
            memory: Memory::default(),
        };
        let mut ground = Self {
            inner: RefCell::new(inner),
            original: hash_of(&visible(&start.disk.changes)),
            committed: 0,
            target: String::new(),
            known_good,
            start,
        };
        let (line, files) = ground.undisturbed().unwrap();
        ground.target = line;
        ground.committed = files;
        ground
    }

    /// The line and the files that an undisturbed node comes to.
    fn undisturbed(&self) -> Result<(String, u64), String> {
        let mut game = Game {
            of: self,
            now: self.start.clone(),
            judged: false,
        };
        game.plain(&["apply", "--reboot"], None)?;
        for _ in 0..2 {
            game.unit("arm")?;
            game.power(Fate::Up, true, None)?;
        }
        let line = plain(&game.cmdline());
        Ok((line, hash_of(&visible(&game.now.disk.changes))))
    }

    /// Lets it all happen, then lets the node come to rest in an honest world. Returns how it ends, and a number that is
    /// the same for the same end.
    ///
    /// # Errors
    /// What is wrong then.
    pub fn play(&self, schedule: &[Happens]) -> Result<(Stands, u64), String> {
        let mut game = Game {
            of: self,
            now: self.start.clone(),
            judged: true,
        };
        for (n, happens) in schedule.iter().enumerate() {
            game.happens(*happens)
                .map_err(|why| format!("{n}: {why}"))?;
        }
        let before = game.now.key();
        game.rest().map(|end| (end, before))
    }

    /// What was really done for all that.
    pub fn done(&self) -> String {
        let inner = self.inner.borrow();
        let count = inner.machine.count;
        format!(
            "the agent ran {} times, {} boots, {} results were remembered",
            count.runs, count.boots, inner.memory.hits
        )
    }
}

struct Game<'a> {
    of: &'a Playground,
    now: State,
    /// Whether lines are held against what they may be.
    judged: bool,
}

impl Game<'_> {
    fn happens(&mut self, happens: Happens) -> Result<(), String> {
        match happens {
            Happens::Run(words, mood, blow) => {
                let off = self.with_blow(words, Some(mood), blow)?;
                if off {
                    self.power(Fate::Up, true, None)?;
                }
                Ok(())
            }
            Happens::Reboot {
                fate,
                writable,
                blow,
            } => {
                let arm = blow.filter(|(unit, _)| *unit == "arm");
                let off = match arm {
                    Some((_, blow)) => self.with_blow(&["boot", "arm"], None, blow)?,
                    None => {
                        self.unit("arm")?;
                        false
                    }
                };
                match off {
                    true => self.power(Fate::Up, true, None),
                    false => self.power(fate, writable, blow),
                }
            }
            Happens::Reset { fate } => self.power(fate, true, None),
            Happens::NewKernel { dies_after } => self
                .step(hash_of(&("kernel", dies_after)), |machine, state| {
                    machine.new_kernel(state, dies_after)
                }),
            Happens::UpdateGrub { dies } => self
                .step(hash_of(&("grub", dies)), |machine, state| {
                    machine.update_grub(state, dies)
                }),
            Happens::Clock(time) => {
                self.now.time = time;
                Ok(())
            }
        }
    }

    /// Does something, or remembers what came of it.
    fn step(
        &mut self,
        what: u64,
        make: impl FnOnce(&mut Machine, &State) -> Result<State, String>,
    ) -> Result<(), String> {
        let key = (self.now.key(), what);
        let inner = &mut *self.of.inner.borrow_mut();
        let memory = &mut inner.memory;
        if let Some(known) = memory.steps.get(&key) {
            let known = known.as_ref().map(|outcome| outcome.from(&self.now));
            memory.hits += 1;
            if memory.hits.is_multiple_of(CHECKED) {
                let again = make(&mut inner.machine, &self.now);
                let keys = |r: Result<&State, String>| r.map(State::key);
                assert_eq!(
                    keys(again.as_ref().map_err(Clone::clone)),
                    keys(known.as_ref().map_err(|e| (*e).clone())),
                    "the same step from the same state comes to something else"
                );
            }
            self.now = known.map_err(Clone::clone)?;
            return Ok(());
        }
        if memory.steps.len() >= KEPT {
            *memory = Memory::default();
        }
        let next = make(&mut inner.machine, &self.now);
        let outcome = next.as_ref().map(|next| Outcome::of(&self.now, next));
        let outcome = outcome.map_err(Clone::clone);
        inner.memory.steps.insert(key, outcome);
        self.now = next?;
        Ok(())
    }

    fn run(&mut self, how: Run) -> Result<(), String> {
        self.step(hash_of(&how), |machine, state| machine.run(state, how).0)
    }

    fn plain(&mut self, words: Words, mood: Option<Mood>) -> Result<(), String> {
        self.run(Run {
            words,
            mood,
            order: Order::Look,
            since_boot: 31,
        })
    }

    fn unit(&mut self, name: &'static str) -> Result<(), String> {
        self.plain(unit_words(name), None)
    }

    /// The agent's deadline, from this second after the boot on.
    fn deadline(&mut self, since_boot: u64) -> Result<(), String> {
        self.run(Run {
            words: &["boot", "deadline"],
            mood: None,
            order: Order::Look,
            since_boot,
        })
    }

    /// The undisturbed run from here, change by change.
    fn tape(&mut self, how: Run) -> Rc<Tape> {
        let key = (self.now.key(), hash_of(&how));
        let inner = &mut *self.of.inner.borrow_mut();
        let memory = &mut inner.memory;
        if let Some(tape) = memory.tapes.get(&key) {
            return tape.clone();
        }
        if memory.tapes.len() >= TAPES {
            memory.tapes.clear();
        }
        let (next, tape) = inner.machine.run(&self.now, how);
        let tape = Rc::new(tape);
        memory.tapes.insert(key, tape.clone());
        let outcome = next.map(|next| Outcome::of(&self.now, &next));
        memory.steps.insert(key, outcome);
        tape
    }

    /// Runs the agent into a blow. True is a machine that is off.
    fn with_blow(&mut self, words: Words, mood: Option<Mood>, blow: Blow) -> Result<bool, String> {
        let look = Run {
            words,
            mood,
            order: Order::Look,
            since_boot: 31,
        };
        let at = match blow {
            Blow::None => return self.run(look).map(|()| false),
            Blow::Power(at, _) | Blow::Kill(at) | Blow::Error(at) | Blow::Full(at, _) => at,
        };
        let tape = self.tape(look);
        let order = match blow {
            Blow::Power(at, left) => {
                let inner = &mut *self.of.inner.borrow_mut();
                self.now = inner.machine.cut(&self.now, words, &tape, at, left);
                return Ok(true);
            }
            // It has ended before.
            _ if at >= tape.len() => Order::Look,
            Blow::Error(at) => Order::Fail(at, Errno::IO),
            Blow::Full(at, n) => Order::Full(at, n),
            Blow::Kill(_) | Blow::None => Order::Stop(at),
        };
        self.run(Run { order, ..look }).map(|()| false)
    }

    fn cmdline(&self) -> String {
        self.of.inner.borrow().machine.cmdline(&self.now)
    }

    fn txn(&self) -> Result<Option<Rc<Txn>>, String> {
        let inner = &mut *self.of.inner.borrow_mut();
        let key = self.now.disk.digest;
        if let Some(known) = inner.memory.txns.get(&key) {
            return known.clone();
        }
        let txn = inner.machine.txn(&self.now).map(|txn| txn.map(Rc::new));
        inner.memory.txns.insert(key, txn.clone());
        txn
    }

    /// Firmware, GRUB, kernel and units.
    fn power(
        &mut self,
        fate: Fate,
        writable: bool,
        blow: Option<(&'static str, Blow)>,
    ) -> Result<(), String> {
        if fate == Fate::Hangs {
            self.now.time = NOW + 30_000;
        }
        let dies = matches!(fate, Fate::Panics | Fate::Hangs);
        let (of, judged) = (self.of, self.judged);
        self.step(hash_of(&("boot", dies, writable)), |machine, state| {
            let (mut next, boots) = machine.boot(state, Machine::how(dies, writable));
            for boot in &boots? {
                let line = plain(&boot.grub.cmdline);
                of.judge_line(&mut next, &line, judged)?;
            }
            Ok(next)
        })?;
        self.unit("acs")?;
        if self.unit_into("settle", blow)? {
            return self.power(Fate::Up, true, None);
        }
        if !is_trial(&self.cmdline()) {
            return Ok(());
        }
        match fate {
            Fate::HangsThenReset => return self.power(Fate::Up, true, None),
            Fate::HangsThenDeadline => {
                self.deadline(590)?;
                return self.power(Fate::Up, true, None);
            }
            _ => {}
        }
        if self.unit_into("verify", blow)? {
            return self.power(Fate::Up, true, None);
        }
        let before = self.now.disk.digest;
        let verified = self
            .txn()?
            .is_none_or(|txn| txn.state != Stands::TrialBooted);
        self.deadline(700)?;
        if !verified {
            return self.power(Fate::Up, true, None);
        }
        if self.now.disk.digest != before {
            return Err("the deadline fires though the trial was verified".to_owned());
        }
        Ok(())
    }

    fn unit_into(
        &mut self,
        name: &'static str,
        blow: Option<(&'static str, Blow)>,
    ) -> Result<bool, String> {
        let mine = blow.filter(|(unit, _)| *unit == name);
        self.with_blow(unit_words(name), None, mine.map_or(Blow::None, |b| b.1))
    }

    /// How it ends, in a world that does no more harm.
    fn rest(&mut self) -> Result<Stands, String> {
        self.now.time = NOW;
        let key = self.now.key();
        let known = self.of.inner.borrow().memory.ends.get(&key).cloned();
        if let Some(known) = known {
            return known;
        }
        let end = self.comes_to_rest();
        let inner = &mut *self.of.inner.borrow_mut();
        inner.memory.ends.insert(key, end.clone());
        end
    }

    fn comes_to_rest(&mut self) -> Result<Stands, String> {
        for _ in 0..10 {
            let Some(txn) = self.txn()? else { break };
            if txn.budget.used > txn.budget.max {
                return Err(format!("{} reboots of {}", txn.budget.used, txn.budget.max));
            }
            let waits = matches!(txn.state, Stands::Staged | Stands::RebootRequested);
            if txn.state.is_final() || (waits && !txn.budget.open()) {
                break;
            }
            self.unit("reconcile")?;
            self.unit("arm")?;
            self.power(Fate::Up, true, None)?;
        }
        let mut txn = self.txn()?;
        if txn.as_ref().is_some_and(|txn| !txn.state.is_final()) {
            self.plain(&["rollback"], None)?;
            txn = self.txn()?;
        }
        self.power(Fate::Up, true, None)?;
        let state = txn.as_ref().map_or(Stands::Idle, |txn| txn.state);
        if !state.is_final() {
            return Err(format!("it does not come to rest: {state}"));
        }
        let line = plain(&self.cmdline());
        let changes = &self.now.disk.changes;
        let known = matches!(
            changes.get("var/lib/gdr-agent/committed.json"),
            Some(Some(_))
        );
        let committed = state == Stands::Committed || known;
        let (wanted, files) = match committed {
            true => (&self.of.target, self.of.committed),
            false => (&self.of.known_good, self.of.original),
        };
        let conflicts = txn.map(|txn| txn.conflicts.clone()).unwrap_or_default();
        // In a directory nobody can make a menu anew that somebody else has made meanwhile: it is named.
        let named = self.now.foreign && !conflicts.is_empty() && line == self.of.target;
        if line != *wanted && !named {
            return Err(format!("{state}, and it boots `{line}`"));
        }
        let left = leftovers(changes);
        if !left.is_empty() {
            return Err(format!("{state}, and left behind: {left:?}"));
        }
        if !self.now.foreign {
            if hash_of(&visible(changes)) != files {
                let names: Vec<_> = visible(changes).into_iter().map(|(name, _)| name).collect();
                return Err(format!(
                    "{state}, and the files are neither the old nor the new ones; differing: {names:?}"
                ));
            }
            if !conflicts.is_empty() {
                return Err(format!(
                    "{state}, and takes its own files for somebody else's: {conflicts:?}"
                ));
            }
        }
        Ok(state)
    }
}

impl Playground {
    fn judge_line(&self, next: &mut State, line: &str, judged: bool) -> Result<(), String> {
        if let Some(id) = trial_of(line) {
            if !Rc::make_mut(&mut next.booted).insert(id.to_owned()) {
                return Err(format!("trial {id} was booted twice"));
            }
            if !next.leave {
                return Err("a trial was booted without leave".to_owned());
            }
        } else if judged && line != self.known_good && line != self.target {
            return Err(format!("it boots what nobody has asked for: {line}"));
        }
        Ok(())
    }
}

fn unit_words(name: &str) -> Words {
    match name {
        "acs" => &["boot", "acs"],
        "settle" => &["boot", "settle"],
        "verify" => &["boot", "verify"],
        "arm" => &["boot", "arm"],
        _ => &["boot", "reconcile"],
    }
}

/// What somebody who owns the node would compare: every file on its disk but the agent's own.
fn visible(changes: &Changes) -> Vec<(&str, &Option<Node>)> {
    let files = changes.iter().filter(|(name, node)| {
        !name.starts_with("var/lib/gdr-agent") && !matches!(node, Some(Node::Dir { .. }))
    });
    files.map(|(name, node)| (&**name, node)).collect()
}

/// What the agent has left that is of no use any more.
fn leftovers(changes: &Changes) -> Vec<&str> {
    let there = || changes.iter().filter(|(_, node)| node.is_some());
    let useless = |name: &str| {
        let (above, last) = name.rsplit_once('/').unwrap_or(("", name));
        let empty = above.ends_with("gdr-agent/tx")
            && !there().any(|(other, _)| other.starts_with(name) && other.ends_with(".rec"));
        last.contains(".gdr-agent-") || last == "check.cfg" || empty
    };
    let names = there().map(|(name, _)| &**name);
    names.filter(|name| useless(name)).collect()
}

/// The schedule without what the failure does not need.
pub fn shrink(of: &Playground, schedule: &[Happens]) -> Vec<Happens> {
    let mut small = schedule.to_vec();
    loop {
        let before = small.len();
        let mut at = 0;
        while at < small.len() {
            let mut less = small.clone();
            less.remove(at);
            match of.play(&less) {
                Err(_) => small = less,
                Ok(_) => at += 1,
            }
        }
        let mut milder = false;
        for at in 0..small.len() {
            for other in simpler(small[at]) {
                let mut less = small.clone();
                less[at] = other;
                if of.play(&less).is_err() {
                    small = less;
                    milder = true;
                    break;
                }
            }
        }
        if small.len() == before && !milder {
            return small;
        }
    }
}
