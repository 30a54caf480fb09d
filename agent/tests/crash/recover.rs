//! After a crash: the node boots, its units run, and what comes of it is judged.

use std::collections::BTreeMap;

use gdr_agent::cli::Exit;
use gdr_agent::journal::Record;
use gdr_agent::machine::State;

use crate::model::Disk;
use crate::rig::{Kernel, Print, Rig};
use crate::scenario::{After, Recording, is_trial, plain};
use gdr_tests::node::Boot;

/// How often it ended how, for a table.
pub fn counted(ends: &BTreeMap<End, usize>) -> String {
    let each: Vec<String> = ends.iter().map(|(end, n)| format!("{n} {end:?}")).collect();
    each.join(", ")
}

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    /// There is no transaction, and every file is as before.
    Untouched,
    /// So it is after a rollback.
    RolledBack,
    /// And the policy is not tried again.
    Quarantined,
    /// The policy is in force.
    Committed,
    /// Staged, and nobody has given leave to reboot, or the reboots are used up.
    Waiting,
}

/// How it began.
#[derive(Debug, Clone, Copy)]
pub enum Crash<'a> {
    /// The power was cut.
    Power,
    /// The process was killed in the boot that this kernel is of.
    Kill(&'a Kernel),
}

/// Rounds of units and reboots in which a node has to come to rest.
const ROUNDS: usize = 8;

/// One crash and what follows.
#[derive(Debug)]
pub struct Recovery<'a> {
    rig: &'a Rig,
    of: &'a Recording,
    trials: usize,
    granted: u32,
    booted: Option<Vec<Boot>>,
}

impl<'a> Recovery<'a> {
    /// `trials` were booted before the crash.
    pub fn new(rig: &'a Rig, of: &'a Recording, trials: usize) -> Self {
        Self {
            rig,
            of,
            trials,
            granted: 0,
            booted: None,
        }
    }

    /// What GRUB did when the power came back, where that was tried elsewhere already.
    pub fn booted(mut self, boots: Vec<Boot>) -> Self {
        self.booted = Some(boots);
        self
    }

    /// Lets the node go on from this disk.
    ///
    /// # Errors
    /// What is wrong with what came of it.
    pub fn run(mut self, disk: &Disk, crash: Crash<'_>, again: bool) -> Result<End, String> {
        disk.write(&self.rig.root);
        match (self.of.scenario.after, crash) {
            (After::Boots, Crash::Power) => self.boots()?,
            (After::Boots, Crash::Kill(kernel)) => {
                kernel.write(&self.rig.root);
                // What runs every minute.
                self.verb(&["boot", "reconcile"])?;
                self.settles()?;
            }
            (After::Again(words), _) => {
                let image = self.of.scenario.image;
                if let Crash::Kill(kernel) = crash {
                    kernel.write(&self.rig.root);
                } else if image {
                    for path in ["proc/cmdline", "proc/sys/kernel/random/boot_id"] {
                        let _ = std::fs::remove_file(self.rig.root.join(path));
                    }
                } else {
                    self.power()?;
                    if again {
                        self.units()?;
                    }
                }
                if again {
                    self.verb(words)?;
                    let removed = !image && self.of.original != self.rig.print();
                    let committed = self.of.committed == self.rig.print();
                    let stays = committed && !words.contains(&"--purge");
                    if removed && !stays {
                        return Err(format!(
                            "after another removal: {}",
                            self.differs(&self.of.original)
                        ));
                    }
                    if words.contains(&"--purge") && self.rig.has_state() {
                        return Err(
                            "after another purge the agent's state is still there".to_owned()
                        );
                    }
                } else if !image {
                    // The agent is gone. Whatever GRUB was still told, the boot after that is one of the two.
                    self.power()?;
                    return match is_trial(&self.rig.cmdline()) {
                        true => Err("a trial was booted twice".to_owned()),
                        false => Ok(End::Untouched),
                    };
                }
                self.boots()?;
                let end = self.judge()?;
                if image && again && end != End::Committed {
                    return Err(format!(
                        "the image was made, and its first boot ends {end:?}"
                    ));
                }
                return Ok(end);
            }
        }
        self.judge()
    }

    fn verb(&self, words: &[&str]) -> Result<Exit, String> {
        self.rig
            .agent(None, words)
            .map_err(|why| format!("`{}`: {why}", words.join(" ")))
    }

    fn record(&self) -> Result<Option<Record>, String> {
        self.rig
            .record()
            .map_err(|why| format!("the journal: {why}"))
    }

    /// The power comes back, or the machine reboots.
    fn power(&mut self) -> Result<(), String> {
        let boots = match self.booted.take() {
            Some(boots) => self.rig.start(boots),
            None => self.rig.power(self.of.scenario.power()),
        };
        let boots = boots.map_err(|why| format!("it does not boot: {why}"))?;
        for boot in &boots {
            let line = plain(&boot.grub.cmdline);
            if is_trial(&line) {
                self.trials += 1;
                if !self.of.scenario.leave {
                    return Err("a trial was booted without leave".to_owned());
                }
                if self.trials > 1 {
                    return Err("a trial was booted twice".to_owned());
                }
                if !line.starts_with(&self.of.target) {
                    return Err(format!("a trial of something else: {line}"));
                }
            } else if line != self.of.known_good && line != self.of.target {
                return Err(format!("it boots what nobody has asked for: {line}"));
            }
        }
        Ok(())
    }

    fn units(&self) -> Result<(), String> {
        self.verb(&["boot", "acs"])?;
        self.verb(&["boot", "settle"])?;
        if is_trial(&self.rig.cmdline()) {
            self.verb(&["boot", "verify"])?;
        }
        Ok(())
    }

    fn boots(&mut self) -> Result<(), String> {
        self.power()?;
        self.units()?;
        self.settles()
    }

    /// Goes on until the agent wants nothing more.
    fn settles(&mut self) -> Result<(), String> {
        let mut last = String::new();
        for _ in 0..ROUNDS {
            let Some(record) = self.record()? else {
                return Ok(());
            };
            let txn = &record.txn;
            last = txn.state.to_string();
            let reboots = match txn.state {
                state if state.is_final() => return Ok(()),
                State::Staged if txn.ready && !txn.budget.allowed => return Ok(()),
                // Its reboots are used up: a person has to look.
                State::RebootRequested if !txn.budget.open() => return Ok(()),
                State::Granted | State::Armed => true,
                State::RollingBack => txn.granted,
                _ => false,
            };
            if reboots {
                self.granted += 1;
                if self.granted > txn.budget.max {
                    return Err(format!("more than {} reboots", txn.budget.max));
                }
                if !self.of.scenario.leave {
                    return Err(format!("{last}: it reboots without leave"));
                }
                self.verb(&["boot", "arm"])?;
                self.power()?;
                self.units()?;
                continue;
            }
            self.verb(&["boot", "reconcile"])?;
            if self.record()?.is_some_and(|now| now.seq == record.seq) {
                // Only a reboot moves it, and somebody comes and does one.
                self.power()?;
                self.units()?;
            }
        }
        Err(format!("it does not come to rest: {last}"))
    }

    fn judge(&mut self) -> Result<End, String> {
        let end = match self.record()?.map(|record| record.txn) {
            None => End::Untouched,
            Some(txn) => {
                if txn.budget.used > txn.budget.max {
                    return Err(format!("{} reboots of {}", txn.budget.used, txn.budget.max));
                }
                if !txn.conflicts.is_empty() {
                    return Err(format!(
                        "it takes its own files for somebody else's: {:?}",
                        txn.conflicts
                    ));
                }
                match txn.state {
                    State::Committed => End::Committed,
                    State::Quarantined => End::Quarantined,
                    State::Staged | State::RebootRequested => End::Waiting,
                    _ => End::RolledBack,
                }
            }
        };
        if end == End::Quarantined && self.trials == 0 && self.of.scenario.writable {
            return Err("a policy is quarantined whose trial was never booted".to_owned());
        }
        if end == End::Waiting {
            self.verb(&["rollback"])?;
        }
        let now = self.rig.print();
        let wanted = match end {
            End::Committed => &self.of.committed,
            _ => &self.of.original,
        };
        if now != *wanted {
            return Err(format!("{end:?}, and {}", self.differs(wanted)));
        }
        // One boot more changes nothing.
        self.power()?;
        self.units()?;
        let line = plain(&self.rig.cmdline());
        let wanted = match end {
            End::Committed => &self.of.target,
            _ => &self.of.known_good,
        };
        if line != *wanted {
            return Err(format!("{end:?}, and it boots `{line}`"));
        }
        if self.rig.print() != now {
            return Err(format!(
                "{end:?}, and one boot more: {}",
                self.differs(&now)
            ));
        }
        let left = self.rig.leftovers();
        if !left.is_empty() {
            return Err(format!("{end:?}, and left behind: {left:?}"));
        }
        Ok(end)
    }

    fn differs(&self, wanted: &Print) -> String {
        let now = self.rig.print();
        let mut said = Vec::new();
        for path in now.keys().chain(wanted.keys()) {
            let what = match (now.get(path), wanted.get(path)) {
                (Some(a), Some(b)) if a == b => continue,
                (Some(_), Some(_)) => "is neither the old nor the new one",
                (Some(_), None) => "is left over",
                _ => "is missing",
            };
            said.push(format!("{} {what}", path.display()));
        }
        said.dedup();
        said.join(", ")
    }
}
