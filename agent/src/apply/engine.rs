//! The loop: event, next state made durable, effects, their events.

use std::collections::VecDeque;

use gdr_policy::Policy;

use crate::journal::{Journal, JournalError, Record, Work};
use crate::machine::{Budget, Effect, Event, State, Txn, step};
use crate::plan::Plan;
use crate::reboot::{Bus, Coordinator, Kind, Logind, NoCoordinator, Refusal, Request, Unsupported};
use crate::state::{self, Quarantined, StateError};
use crate::sys::{Root, SysError, clock, lock, process};
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
    baking: bool,
    _lock: lock::Lock,
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
            baking: false,
            _lock: lock,
        })
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
            bake: plan.bake,
            unmet: Vec::new(),
        };
        self.journal.begin(txn, work)?;
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
            let (next, effects) = step(&record.txn, &event);
            if next != record.txn {
                tracing::info!("{} -> {} ({event:?})", record.txn.state, next.state);
                let work = record.work.clone();
                self.journal.append(next, work, &format!("{event:?}"))?;
            }
            for effect in effects {
                events.extend(self.carry_out(effect)?);
            }
        }
        Ok(())
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
            // logind holds nothing for us.
            Effect::Release => None,
        })
    }

    /// Runs the policy's checks on the machine as it is.
    pub(super) fn verify(&mut self) -> Result<Event, EngineError> {
        let work = &self.record()?.work;
        // What runs while an image is made says nothing about the nodes that will boot it.
        if self.baking && work.commits_in_image() {
            return Ok(Event::VerifyPassed);
        }
        let policy = work.policy.clone();
        let world = World::read(self.root, &policy)?;
        let checks = world.checks(&policy);
        let unmet = crate::checks::unmet(&checks);
        if unmet.is_empty() {
            return Ok(Event::VerifyPassed);
        }
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

    /// Verifies the trial that is running, then commits or rolls back.
    ///
    /// # Errors
    /// As [`Engine::send`].
    pub fn verify_trial(&mut self) -> Result<(), EngineError> {
        let event = self.verify()?;
        self.send(event)
    }

    fn ask_reboot(&mut self) -> Result<Option<Event>, EngineError> {
        let record = self.record()?;
        let reboot = &record.work.policy.reboot;
        // Nobody is asked for the reboot of a directory, or where the operator reboots: the next
        // boot, whoever causes it, is the trial.
        if self.baking
            || !self.root.is_live()
            || reboot.coordinator == gdr_policy::Coordinator::None
        {
            return Ok(Some(Event::Granted));
        }
        let coordinator = coordinator(reboot.coordinator);
        let request = Request {
            reason: format!("gdr-agent transaction {}", record.txn.id),
            respect_inhibitors: reboot.respect_inhibitors,
        };
        let (next, _) = step(&record.txn, &Event::Granted);
        let work = record.work.clone();
        let journal = &mut self.journal;
        let mut granted = || {
            journal
                .append(next.clone(), work.clone(), "Granted")
                .map_err(|e| e.to_string())
        };
        match coordinator.request(&request, &mut granted) {
            Ok(()) => Ok(None),
            Err(refusal) => Ok(Some(Event::Denied(refusal.to_string()))),
        }
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
                time: clock::unix_now(),
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
    match coordinator(policy.reboot.coordinator).can() {
        // Somebody holds it up, or it is busy: that passes.
        Err(refusal) if refusal.kind() == Kind::Denied && !refusal.holders().is_empty() => Ok(()),
        Err(refusal) if refusal.kind() == Kind::Busy => Ok(()),
        result => result,
    }
}

fn coordinator(kind: gdr_policy::Coordinator) -> Box<dyn Coordinator> {
    match kind {
        gdr_policy::Coordinator::Logind => Box::new(Logind::new(Bus::system())),
        gdr_policy::Coordinator::None => Box::new(NoCoordinator),
        gdr_policy::Coordinator::Rebootmgr => Box::new(Unsupported::Rebootmgr),
        gdr_policy::Coordinator::Fleetlock => Box::new(Unsupported::FleetLock),
        gdr_policy::Coordinator::Sentinel => Box::new(Unsupported::Sentinel),
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
