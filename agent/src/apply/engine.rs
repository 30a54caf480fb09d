//! The loop: event, next state made durable, effects, their events.

use std::collections::VecDeque;
use std::rc::Rc;

use gdr_policy::{CheckGroup, Policy};

use crate::events;
use crate::journal::{Journal, JournalError, Record, Work};
use crate::machine::{Budget, Effect, Event, State, Txn, step};
use crate::measure::{Measured, recorded};
use crate::plan::Plan;
use crate::reboot::{Coordinator, Kind, Refusal, choose};
use crate::state::{self, Quarantined, StateError};
use crate::sys::{Root, SysError, lock, process};
use crate::world::World;

/// The lock file: one agent at a time.
pub const LOCK: &str = "/var/lib/gdr-agent/lock";

/// Something that stops the agent itself, rather than a transaction.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The journal cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The machine failed us.
    #[error(transparent)]
    Sys(#[from] SysError),
    /// A state file cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
}

/// A transaction and the machine that it changes, under the lock.
#[derive(Debug)]
pub struct Engine<'r> {
    pub(super) root: &'r Root,
    pub(super) journal: Journal<'r>,
    pub(super) progress: Progress<'r>,
    pub(super) asks: Asks,
    pub(super) coordinator: Option<Rc<dyn Coordinator>>,
    pub(super) frees: bool,
    pub(super) baking: bool,
    measured: Option<Vec<Measured>>,
    _lock: lock::Lock,
}

/// Whom to tell what takes long.
#[derive(Clone, Copy)]
pub(super) struct Progress<'r>(pub(super) &'r dyn Fn(&str));

impl std::fmt::Debug for Progress<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Progress")
    }
}

/// How insistently others are asked for a reboot, or told that it is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asks {
    /// At once: a person wants it.
    Now,
    /// When it is time again after a refusal.
    WhenDue,
    /// Only over a bus: for units without a network, next to one that has it.
    Locally,
}

impl<'r> Engine<'r> {
    /// Takes the lock and opens the journal.
    ///
    /// # Errors
    /// Another agent is at work, or the journal cannot be used.
    pub fn open(root: &'r Root, who: &str) -> Result<Self, EngineError> {
        let lock = lock::acquire(root, LOCK, who)?;
        Ok(Self {
            root,
            journal: Journal::open(root)?,
            progress: Progress(&|text| tracing::info!("{text}")),
            asks: Asks::Now,
            coordinator: None,
            frees: false,
            baking: false,
            measured: None,
            _lock: lock,
        })
    }

    /// Has somebody told what takes long.
    #[must_use]
    pub fn telling(mut self, progress: &'r dyn Fn(&str)) -> Self {
        self.progress = Progress(progress);
        self
    }

    /// Sets how insistently others are asked; [`Asks::Now`] unless set.
    pub fn ask(&mut self, asks: Asks) {
        self.asks = asks;
    }

    /// Asks this coordinator instead of the policy's, for a directory, too.
    pub fn coordinate(&mut self, coordinator: Rc<dyn Coordinator>) {
        self.coordinator = Some(coordinator);
    }

    /// An image is made, be it in a chroot: whoever answers on a bus there would reboot the builder.
    pub fn baking(&mut self) {
        self.baking = true;
    }

    /// The last record.
    #[must_use]
    pub fn last(&self) -> Option<&Record> {
        self.journal.last()
    }

    /// A name for the next transaction.
    ///
    /// # Errors
    /// The journal cannot be listed.
    pub fn new_id(&self) -> Result<crate::machine::TxnId, EngineError> {
        Ok(self.journal.new_id()?)
    }

    /// Begins a transaction, makes the changes that need no reboot, and stages the trial.
    ///
    /// # Errors
    /// The journal cannot be written; nothing was changed then.
    pub fn begin(
        &mut self,
        id: crate::machine::TxnId,
        policy: &Policy,
        digest: &str,
        plan: &Plan,
        reboots: bool,
    ) -> Result<(), EngineError> {
        let txn = Txn {
            id,
            state: State::Staged,
            digest: digest.to_owned(),
            boot_id: boot_id(self.root),
            trial: plan.trial.is_some(),
            ready: false,
            on_trial: false,
            granted: false,
            budget: Budget {
                allowed: reboots,
                used: 0,
                max: policy.reboot.max,
            },
            not_taken: 0,
            failure: None,
            denial: None,
            conflicts: Vec::new(),
        };
        let work = Work {
            policy: policy.clone(),
            trial: plan.trial.clone(),
            intents: Vec::new(),
            env: Vec::new(),
            entries: plan.entries.clone(),
            modules: Vec::new(),
            unloaded: Vec::new(),
            packages: Vec::new(),
            bake: plan.bake,
            unmet: Vec::new(),
            // A slot that was not given back yet is this transaction's to give back.
            lock: self.journal.last().and_then(|r| r.work.lock.clone()),
        };
        self.journal.begin(txn, work)?;
        self.tell_entered(State::Idle);
        let event = self.carry_out(Effect::Stage)?;
        event.map_or(Ok(()), |event| self.send(event))
    }

    /// Tells the transaction what happened and does what follows.
    ///
    /// # Errors
    /// The journal cannot be written: no effect of that step is carried out then.
    pub fn send(&mut self, event: Event) -> Result<(), EngineError> {
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            let Some(record) = self.journal.last() else {
                return Ok(());
            };
            let before = record.txn.state;
            let (next, effects) = step(&record.txn, &event);
            if next != record.txn {
                tracing::info!("{before} -> {} ({event:?})", next.state);
                let work = record.work.clone();
                self.journal.append(next, work, &format!("{event:?}"))?;
                self.tell_entered(before);
            }
            for effect in effects {
                events.extend(self.carry_out(effect)?);
            }
        }
        Ok(())
    }

    /// Tells the system's journal, if the last record is one of another state.
    fn tell_entered(&self, before: State) {
        let entered = self.journal.last().filter(|r| r.txn.state != before);
        events::tell(
            self.root,
            entered.and_then(|record| events::entered(record, before)),
        );
    }

    /// Lets a person's `--reboot` count as leave to reboot.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub fn allow_reboots(&mut self) -> Result<(), EngineError> {
        self.amend("reboots allowed", |txn, _| txn.budget.allowed = true)
    }

    /// Changes what the last record says, durably.
    pub(super) fn amend(
        &mut self,
        event: &str,
        change: impl FnOnce(&mut Txn, &mut Work),
    ) -> Result<(), EngineError> {
        let Some(record) = self.journal.last() else {
            return Ok(());
        };
        let (mut txn, mut work) = (record.txn.clone(), record.work.clone());
        change(&mut txn, &mut work);
        Ok(self.journal.append(txn, work, event)?)
    }

    pub(super) fn record(&self) -> Result<&Record, EngineError> {
        Ok(self.journal.last().ok_or(JournalError::Empty)?)
    }

    fn carry_out(&mut self, effect: Effect) -> Result<Option<Event>, EngineError> {
        tracing::debug!("{effect:?}");
        Ok(match effect {
            Effect::Stage => Some(match self.stage() {
                Ok(()) => Event::Staged,
                Err(e) => Event::StageFailed(e.to_string()),
            }),
            Effect::AskReboot => self.ask_reboot()?,
            Effect::Arm => match self.arm() {
                Ok(()) => None,
                Err(e) => Some(Event::ArmFailed(e.to_string())),
            },
            Effect::Disarm => {
                // Where grubenv cannot be written, GRUB could not arm from it either, and the entry
                // itself is taken away next.
                if let Err(e) = self.disarm() {
                    tracing::warn!("the trial could not be disarmed: {e}");
                }
                None
            }
            Effect::Verify => Some(self.verify()?),
            Effect::BeginCommit => Some(Event::CommitStarted),
            Effect::Commit => Some(match self.commit() {
                Ok(()) => Event::CommitDone,
                Err(e) => Event::CommitFailed(e.to_string()),
            }),
            Effect::Undo => Some(match self.undo() {
                Ok(conflicts) => Event::Undone(conflicts),
                Err(e) => Event::UndoFailed(e.to_string()),
            }),
            Effect::ForceReboot => {
                process::reboot_now(self.root)?;
                None
            }
            Effect::Quarantine => {
                self.quarantine()?;
                None
            }
            Effect::Release => {
                self.release()?;
                None
            }
        })
    }

    /// Runs the policy's checks on the machine as it is.
    pub(super) fn verify(&mut self) -> Result<Event, EngineError> {
        let work = &self.record()?.work;
        // What runs while an image is made says nothing about the nodes that will boot it.
        if self.baking && work.ends_in_image() {
            return Ok(Event::VerifyPassed);
        }
        let policy = work.policy.clone();
        let mut world = World::read(self.root, &policy)?;
        world.more.measured = match self.measured.take() {
            Some(measured) => Some(measured),
            None => self.measure(&world, &policy)?,
        };
        // Cut off while it was measured, and a unit that may not measure goes on: that says nothing about the policy.
        if world.more.measured.is_none()
            && self.asks == Asks::Locally
            && crate::checks::requires(&policy, CheckGroup::Bandwidth)
            && self.record()?.txn.state == State::Staged
        {
            let why = "it was stopped before bandwidth was measured; apply it again";
            return Ok(Event::StageFailed(why.to_owned()));
        }
        let checks = world.checks(&policy);
        let unmet = crate::checks::unmet(&checks);
        if unmet.is_empty() {
            return Ok(Event::VerifyPassed);
        }
        events::tell(self.root, events::not_met(self.record()?, &checks));
        self.amend("checks that are not met", |_, work| {
            work.unmet.clone_from(&unmet);
        })?;
        let first = unmet.first().cloned().unwrap_or_default();
        let more = match unmet.len() {
            1 => String::new(),
            n => format!(" and {} more", n - 1),
        };
        Ok(Event::VerifyFailed(format!(
            "a required check is not met: {first}{more}"
        )))
    }

    /// What perftest measures, where the policy wants it; the verification that follows measures nothing again. Units that
    /// may change what boots take what another unit has measured.
    ///
    /// # Errors
    /// There is no transaction.
    pub fn measure(
        &self,
        world: &World,
        policy: &Policy,
    ) -> Result<Option<Vec<Measured>>, EngineError> {
        let txn = &self.record()?.txn;
        let there = recorded(self.root, txn.id.as_str(), &boot_id(self.root));
        // Not a second time beside the unit's own: each would take the other's for a job, and its ports.
        if self.asks == Asks::Locally || there.is_some() {
            return Ok(there);
        }
        let on_trial = txn.state == State::TrialBooted;
        Ok(world.measure(self.root, policy, on_trial, self.progress.0))
    }

    /// Takes what [`Engine::measure`] found for the verification.
    pub fn measured(&mut self, measured: Option<Vec<Measured>>) {
        self.measured = measured;
    }

    /// Verifies the trial that is running, then commits or rolls back.
    ///
    /// # Errors
    /// As [`Engine::send`].
    pub fn verify_trial(&mut self) -> Result<(), EngineError> {
        let event = self.verify()?;
        self.send(event)
    }

    fn quarantine(&mut self) -> Result<(), EngineError> {
        let record = self.record()?;
        let mut list = state::quarantine(self.root)?;
        let reason = record
            .txn
            .failure
            .as_ref()
            .map(|f| f.text.clone())
            .unwrap_or_default();
        let digest = record.txn.digest.clone();
        if !list.policies.iter().any(|q| q.digest == digest) {
            list.policies.push(Quarantined {
                digest,
                txn: record.txn.id.to_string(),
                reason,
                time: self.root.unix_now(),
            });
            state::write_quarantine(self.root, &list)?;
        }
        Ok(())
    }
}

/// Whether a reboot could be asked for at all; a coordinator that only says "not now" is there.
///
/// # Errors
/// Nobody answers, or this user may not ask.
pub fn can_ask(root: &Root, policy: &Policy) -> Result<(), Refusal> {
    if !root.is_live() || policy.reboot.coordinator == gdr_policy::Coordinator::None {
        return Ok(());
    }
    match choose(root, policy)?.can() {
        // Somebody holds it up, or it is busy: that passes.
        Err(refusal) if refusal.kind() == Kind::Denied && !refusal.holders().is_empty() => Ok(()),
        Err(refusal) if refusal.kind() == Kind::Busy => Ok(()),
        result => result,
    }
}

/// The boot's identity, empty where there is none (an image).
#[must_use]
pub fn boot_id(root: &Root) -> String {
    root.text_if_there("/proc/sys/kernel/random/boot_id")
        .ok()
        .flatten()
        .unwrap_or_default()
}
