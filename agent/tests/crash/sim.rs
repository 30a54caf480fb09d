//! The cruel simulator: one seed decides what happens to a node, in which order, and where it is interrupted.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use gdr_agent::cli::run_on;
use gdr_agent::machine::State;
use gdr_agent::sys::{Root, Watch};
use gdr_tests::node::grub::Firmware;
use gdr_tests::node::{Family, Reboot, Tree, install_kernel, rewrite_entries};
use rustix::io::Errno;

use crate::chance::{Blow, Happens, Mood, Moody};
use crate::model::{Disk, Running};
use crate::rig::{Kernel, Print, Rig};
use crate::scenario::{is_trial, plain};
use crate::spy::{Order, Spy};

/// A node that a schedule is let loose on, again and again.
#[derive(Debug)]
pub struct Playground {
    rig: Rig,
    family: Family,
    disk: Disk,
    kernel: Kernel,
    original: Print,
    known_good: String,
    target: String,
    committed: Print,
}

impl Playground {
    pub fn new(family: Family) -> Self {
        let rig = Rig::new(&crate::rig::spec(family));
        let other = Rig::new(&crate::rig::spec(family));
        other.agent(None, &["apply", "--reboot"]).unwrap();
        for _ in 0..2 {
            other.agent(None, &["boot", "arm"]).unwrap();
            other.power(Reboot::default()).unwrap();
            for unit in ["acs", "settle", "verify"] {
                other.agent(None, &["boot", unit]).unwrap();
            }
        }
        Self {
            disk: rig.disk(),
            kernel: rig.kernel(),
            original: rig.print(),
            known_good: plain(&rig.cmdline()),
            target: plain(&other.cmdline()),
            committed: other.print(),
            rig,
            family,
        }
    }

    /// Lets it all happen, then lets the node come to rest in an honest world.
    ///
    /// # Errors
    /// What is wrong then.
    pub fn play(&self, schedule: &[Happens]) -> Result<State, String> {
        self.disk.write(&self.rig.root);
        self.kernel.write(&self.rig.root);
        let mut game = Game {
            of: self,
            booted: BTreeMap::new(),
            leave: false,
            foreign: false,
        };
        for (n, happens) in schedule.iter().enumerate() {
            game.happens(*happens)
                .map_err(|why| format!("{n}: {why}"))?;
        }
        game.rest()
    }
}

struct Game<'a> {
    of: &'a Playground,
    /// How often each trial was booted.
    booted: BTreeMap<String, usize>,
    leave: bool,
    foreign: bool,
}

impl Game<'_> {
    fn happens(&mut self, happens: Happens) -> Result<(), String> {
        match happens {
            Happens::Run(words, mood, blow) => self.run(words, mood, blow),
            Happens::Reboot { dies, writable } => {
                self.unit("arm")?;
                self.power(Reboot {
                    dies,
                    firmware: Firmware { writable },
                })
            }
            Happens::Reset { dies } => self.power(Reboot {
                dies,
                ..Reboot::default()
            }),
            Happens::NewKernel => {
                self.foreign = true;
                install_kernel(&Tree::new(&self.of.rig.root), "6.1.0-40-amd64")
                    .map_err(|e| e.to_string())
            }
            Happens::UpdateGrub => {
                self.foreign = true;
                let tree = Tree::new(&self.of.rig.root);
                let done = match self.of.family {
                    Family::Debian | Family::Suse => gdr_tests::node::regenerate(&tree, None),
                    Family::Fedora => rewrite_entries(&tree),
                    _ => Ok(()),
                };
                done.map_err(|e| e.to_string())
            }
        }
    }

    fn run(&mut self, words: &[&str], mood: Mood, blow: Blow) -> Result<(), String> {
        self.leave |= words.contains(&"--reboot");
        let order = match blow {
            Blow::None => None,
            Blow::Power(at, _) | Blow::Kill(at) => Some(Order::Stop(at)),
            Blow::Error(at) => Some(Order::Fail(at, Errno::IO)),
            Blow::Full(at, n) => Some(Order::Full(at, n)),
        };
        let spy = order.map(|order| Arc::new(Spy::on(&self.of.rig.root, None, order)));
        let before = spy.as_ref().map(|spy| spy.disk());
        let root = Root::open(&self.of.rig.root).map_err(|e| e.to_string())?;
        let root = match spy.clone() {
            Some(spy) => root.watched(spy as Arc<dyn Watch>),
            None => root,
        };
        let words: Vec<&str> = ["--quiet"].iter().chain(words).copied().collect();
        let ended = run_on(root, Some(Rc::new(Moody(mood))), &words);
        if let (Err(e), None, "boot") = (&ended, &spy, words[1]) {
            return Err(format!("{words:?}: {}", e.message));
        }
        if let (Blow::Power(_, left), Some(spy), Some(before)) = (blow, spy, before) {
            let mut disk = Running::new(before);
            spy.events().iter().for_each(|event| disk.apply(event));
            disk.cut(left).write(&self.of.rig.root);
            self.power(Reboot::default())?;
        }
        Ok(())
    }

    fn unit(&self, name: &str) -> Result<(), String> {
        let ended = self.of.rig.agent(None, &["boot", name]);
        ended.map(drop).map_err(|why| format!("boot {name}: {why}"))
    }

    fn power(&mut self, how: Reboot) -> Result<(), String> {
        let boots = self
            .of
            .rig
            .power(how)
            .map_err(|why| format!("it does not boot: {why}"))?;
        for boot in &boots {
            let line = plain(&boot.grub.cmdline);
            if let Some(id) = line
                .split_whitespace()
                .find_map(|word| word.strip_prefix("gdr.txn="))
            {
                let times = self.booted.entry(id.to_owned()).or_default();
                *times += 1;
                if *times > 1 {
                    return Err(format!("trial {id} was booted twice"));
                }
                if !self.leave {
                    return Err("a trial was booted without leave".to_owned());
                }
            } else if line != self.of.known_good && line != self.of.target {
                return Err(format!("it boots what nobody has asked for: {line}"));
            }
        }
        self.unit("acs")?;
        self.unit("settle")?;
        if is_trial(&self.of.rig.cmdline()) {
            self.unit("verify")?;
        }
        Ok(())
    }

    fn rest(&mut self) -> Result<State, String> {
        for _ in 0..10 {
            let Some(record) = self.of.rig.record()? else {
                break;
            };
            let txn = &record.txn;
            if txn.budget.used > txn.budget.max {
                return Err(format!("{} reboots of {}", txn.budget.used, txn.budget.max));
            }
            let waits = matches!(txn.state, State::Staged | State::RebootRequested);
            if txn.state.is_final() || (waits && !txn.budget.open()) {
                break;
            }
            self.unit("reconcile")?;
            self.unit("arm")?;
            self.power(Reboot::default())?;
        }
        let mut txn = self.of.rig.record()?.map(|record| record.txn);
        if txn.as_ref().is_some_and(|txn| !txn.state.is_final()) {
            self.of
                .rig
                .agent(None, &["rollback"])
                .map_err(|why| format!("rollback: {why}"))?;
            txn = self.of.rig.record()?.map(|record| record.txn);
        }
        self.power(Reboot::default())?;
        let state = txn.as_ref().map_or(State::Idle, |txn| txn.state);
        if !state.is_final() {
            return Err(format!("it does not come to rest: {state}"));
        }
        let line = plain(&self.of.rig.cmdline());
        let committed = state == State::Committed;
        let known = self
            .of
            .rig
            .root
            .join("var/lib/gdr-agent/committed.json")
            .exists();
        let wanted = if committed || known {
            &self.of.target
        } else {
            &self.of.known_good
        };
        let conflicts = txn.map(|txn| txn.conflicts).unwrap_or_default();
        // In a directory nobody can make a menu anew that somebody else has made meanwhile: it is named.
        let named = self.foreign && !conflicts.is_empty() && line == self.of.target;
        if line != *wanted && !named {
            return Err(format!("{state}, and it boots `{line}`"));
        }
        let left = self.of.rig.leftovers();
        if !left.is_empty() {
            return Err(format!("{state}, and left behind: {left:?}"));
        }
        if !self.foreign {
            let wanted = if committed || known {
                &self.of.committed
            } else {
                &self.of.original
            };
            if self.of.rig.print() != *wanted {
                return Err(format!(
                    "{state}, and the files are neither the old nor the new ones"
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

/// The schedule without what the failure does not need.
pub fn shrink(of: &Playground, schedule: &[Happens]) -> Vec<Happens> {
    let mut small = schedule.to_vec();
    let mut at = 0;
    while at < small.len() {
        let mut less = small.clone();
        less.remove(at);
        match of.play(&less) {
            Err(_) => small = less,
            Ok(_) => at += 1,
        }
    }
    small
}
