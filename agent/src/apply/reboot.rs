//! Asking for the reboot, looking after a granted one, and giving back what was taken for it.

use std::rc::Rc;
use std::time::Duration;

use gdr_policy::AfterFailure;

use super::engine::{Asks, Engine, EngineError, boot_id};
use super::wait;
use crate::journal::{Journal, Record};
use crate::machine::{Event, State, step};
use crate::reboot::{
    Coordinator, Desk, Kind, LONG_GATES, Lock, Refusal, Request, Standing, arm_unit_active,
    asked_apart, choose, release_of,
};
use crate::state::{self, Waiting};

const REBOOT: &str = Waiting::REBOOT;
const RELEASE: &str = Waiting::RELEASE;

/// How old a record is, by a clock that may have been set back meanwhile. One from the future is not new for as long as that lasts.
fn age(now: u64, time: u64) -> Duration {
    const A_LITTLE: u64 = 60;
    match now.checked_sub(time) {
        Some(seconds) => Duration::from_secs(seconds),
        None if time - now <= A_LITTLE => Duration::ZERO,
        None => Duration::MAX,
    }
}

impl Engine<'_> {
    /// Asks the coordinator for a reboot, unless it is not the time or the place.
    pub(super) fn ask_reboot(&mut self) -> Result<Option<Event>, EngineError> {
        let record = self.record()?;
        let reboot = &record.work.policy.reboot;
        // Nobody is asked for the reboot of a directory, or where the operator reboots: the next
        // boot, whoever causes it, is the trial.
        if self.nobody_to_ask() {
            return Ok(Some(match self.arms(record.txn.state) {
                Ok(()) => Event::Granted,
                Err(refusal) => Event::Denied(refusal.to_string()),
            }));
        }
        if !self.time_to(REBOOT)? {
            return Ok(None);
        }
        let state = record.txn.state;
        let request = Request {
            reason: format!("gdr-agent transaction {}", record.txn.id),
            respect_inhibitors: reboot.respect_inhibitors,
            back: state == State::RollingBack,
        };
        if let Err(refusal) = self.strange_lock().and_then(|()| self.arms(state)) {
            self.note(REBOOT, &refusal)?;
            return Ok(Some(Event::Denied(refusal.to_string())));
        }
        let chosen = self.chosen();
        let mut desk = Books(&mut self.journal);
        let outcome = chosen.and_then(|c| c.request(&request, &mut desk));
        match outcome {
            Ok(()) => {
                self.forget_waiting();
                Ok(None)
            }
            Err(refusal) => {
                self.note(REBOOT, &refusal)?;
                self.yield_slot(&refusal);
                Ok(Some(Event::Denied(refusal.to_string())))
            }
        }
    }

    /// Nobody is asked for a reboot that would not try anything.
    fn arms(&self, state: State) -> Result<(), Refusal> {
        if state == State::RollingBack || self.baking || self.coordinator.is_some() {
            return Ok(());
        }
        arm_unit_active(self.root)
    }

    /// A node that may not reboot for hours, and is not on trial, keeps nobody else's slot.
    fn yield_slot(&mut self, refusal: &Refusal) {
        let long = matches!(refusal, Refusal::Gate { gate, .. } if LONG_GATES.contains(gate));
        let Some(record) = self.journal.last().filter(|_| long) else {
            return;
        };
        let Some(lock) = record.work.lock.clone() else {
            return;
        };
        if record.txn.state == State::RebootRequested
            && let Err(e) = self.give_back(&lock)
        {
            tracing::info!("the slot is kept while the node waits: {e}");
        }
    }

    /// Looks whether a granted reboot is still to be expected.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub fn look_after(&mut self) -> Result<(), EngineError> {
        if self.nobody_to_ask() {
            return Ok(());
        }
        let record = self.record()?;
        // An image is still being made where its transaction was granted: its first boot is somebody else's.
        if record.work.bake && record.txn.boot_id == boot_id(self.root) {
            return Ok(());
        }
        let age = age(self.root.unix_now(), record.time);
        match self.chosen().and_then(|c| c.poll(age)) {
            Ok(Standing::Gone(why)) => {
                tracing::info!("the granted reboot is gone: {why}");
                self.send(Event::StillUp)
            }
            Ok(Standing::Coming(_)) => self.object(),
            Err(refusal) => {
                tracing::info!("what became of the granted reboot is not known: {refusal}");
                Ok(())
            }
        }
    }

    /// A reboot that comes only after a delay is called back when the stop file appears or a GPU gets busy meanwhile.
    fn object(&mut self) -> Result<(), EngineError> {
        let record = self.record()?;
        if record.work.policy.reboot.delay.is_none() || record.txn.state != State::Granted {
            return Ok(());
        }
        let Ok(chosen) = self.chosen() else {
            return Ok(());
        };
        let Err(closed) = chosen.objection(false) else {
            return Ok(());
        };
        match chosen.cancel() {
            Ok(()) => {
                tracing::info!("the granted reboot is called back: {closed}");
                self.note(REBOOT, &closed)?;
                self.send(Event::StillUp)
            }
            Err(e) => {
                tracing::warn!("{closed}, and the granted reboot is not called back: {e}");
                Ok(())
            }
        }
    }

    /// Gives back what was taken for the transaction's reboots. What is not given back now is so later.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub fn release(&mut self) -> Result<(), EngineError> {
        // The slot is kept for a reboot that may still come.
        if !self.record()?.txn.state.is_final() || !self.withdraw()? {
            return Ok(());
        }
        let record = self.record()?;
        let Some(lock) = record.work.lock.clone() else {
            return Ok(());
        };
        if self.holds(record) {
            return Ok(());
        }
        if !self.time_to(RELEASE)? {
            return Ok(());
        }
        match self.give_back(&lock) {
            Ok(()) => {
                self.forget_waiting();
                Ok(())
            }
            Err(refusal) => {
                tracing::warn!("the slot is not given back yet: {refusal}");
                self.note(RELEASE, &refusal)
            }
        }
    }

    /// Calls back a reboot that was granted and has not come when the transaction ended. Says whether none can come.
    fn withdraw(&mut self) -> Result<bool, EngineError> {
        if !self.record()?.txn.awaits_reboot(&boot_id(self.root)) || self.nobody_to_ask() {
            return Ok(true);
        }
        if self.asks == Asks::Locally && asked_apart(self.root, &self.record()?.work.policy) {
            return Ok(false);
        }
        match self.chosen().and_then(|c| c.cancel()) {
            Ok(()) => {
                self.amend("reboot called back", |txn, _| txn.granted = false)?;
                self.forget_waiting();
                Ok(true)
            }
            Err(refusal) => {
                let text = format!(
                    "the reboot that was granted is not called back: {}",
                    refusal.reason()
                );
                tracing::warn!("{text}");
                self.note_as(RELEASE, &refusal, text)?;
                Ok(false)
            }
        }
    }

    /// A failed trial's slot is the rollout's failure budget, where the policy says so; a person's word ends that.
    fn holds(&self, record: &Record) -> bool {
        let server = record.work.policy.reboot.fleetlock.as_ref();
        let hold = server.is_some_and(|server| server.failed == AfterFailure::Hold);
        hold && record.txn.state == State::Quarantined && !self.frees
    }

    /// Lets a slot go that is held because a trial failed.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub fn free(&mut self) -> Result<(), EngineError> {
        self.frees = true;
        self.release()
    }

    /// A slot of another server or group, left over from another policy, is given back first.
    fn strange_lock(&mut self) -> Result<(), Refusal> {
        let Some(record) = self.journal.last() else {
            return Ok(());
        };
        let Some(lock) = record.work.lock.clone() else {
            return Ok(());
        };
        let reboot = &record.work.policy.reboot;
        let server = reboot.fleetlock.as_ref();
        let same = server.is_some_and(|s| s.url == lock.url && s.group == lock.group);
        // Another coordinator needs no slot: that of the old one is given back in the end.
        if same || reboot.coordinator != gdr_policy::Coordinator::Fleetlock {
            return Ok(());
        }
        self.give_back(&lock)
    }

    /// Says to the server that the slot is not needed any more, and records that it agreed.
    fn give_back(&mut self, lock: &Lock) -> Result<(), Refusal> {
        if let Some(coordinator) = &self.coordinator {
            coordinator.release()?;
        } else if self.root.is_live() {
            release_of(self.root, lock)?.release()?;
        }
        self.amend("slot given back", |_, work| work.lock = None)
            .map_err(|e| Refusal::Record {
                text: e.to_string(),
                reboot: crate::reboot::Fate::NotAsked,
            })
    }

    fn chosen(&self) -> Result<Rc<dyn Coordinator>, Refusal> {
        match (&self.coordinator, self.journal.last()) {
            (Some(coordinator), _) => Ok(coordinator.clone()),
            (None, Some(record)) => Ok(choose(self.root, &record.work.policy)?.into()),
            (None, None) => Err(Refusal::denied("there is no transaction")),
        }
    }

    fn nobody_to_ask(&self) -> bool {
        let by_hand = self.journal.last().is_some_and(|record| {
            record.work.policy.reboot.coordinator == gdr_policy::Coordinator::None
        });
        self.coordinator.is_none() && (self.baking || !self.root.is_live() || by_hand)
    }

    /// Whether to ask now, by who asks and what was last said.
    fn time_to(&self, wants: &str) -> Result<bool, EngineError> {
        let record = self.record()?;
        Ok(match self.asks {
            Asks::Now => true,
            Asks::Locally => {
                record.work.lock.is_none() && !asked_apart(self.root, &record.work.policy)
            }
            Asks::WhenDue => self
                .waiting(wants)
                .is_none_or(|waiting| wait::due(waiting.next, self.root.unix_now())),
        })
    }

    /// What this transaction waits for; a file that cannot be used says nothing.
    fn waiting(&self, wants: &str) -> Option<Waiting> {
        let id = self.journal.last()?.txn.id.as_str();
        let waiting = state::waiting(self.root).ok()??;
        (waiting.txn == id && waiting.wants == wants).then_some(waiting)
    }

    fn note(&self, wants: &str, refusal: &Refusal) -> Result<(), EngineError> {
        self.note_as(wants, refusal, refusal.to_string())
    }

    fn note_as(&self, wants: &str, refusal: &Refusal, text: String) -> Result<(), EngineError> {
        let now = self.root.unix_now();
        let before = self.waiting(wants);
        let tries = before.as_ref().map_or(0, |w| w.tries).saturating_add(1);
        let dice = self.root.random::<4>().map_or(0, u32::from_ne_bytes);
        let pause = match refusal.kind() {
            Kind::Unreachable | Kind::Protocol => wait::pause(tries, true, dice),
            // Gates and the local machine cost nobody else anything: every run of the unit asks.
            Kind::Busy | Kind::Gate => Duration::ZERO,
            _ if self.record()?.work.lock.is_none() => Duration::ZERO,
            _ => wait::pause(tries, false, dice),
        };
        let waiting = Waiting {
            format: 1,
            txn: self.record()?.txn.id.to_string(),
            wants: wants.to_owned(),
            kind: refusal.kind().as_str().to_owned(),
            text,
            since: before.map_or(now, |w| w.since),
            tries,
            next: now.saturating_add(pause.as_secs()),
        };
        Ok(state::write_waiting(self.root, Some(&waiting))?)
    }

    fn forget_waiting(&self) {
        // It is only a courtesy, and the next refusal overwrites it.
        if let Err(e) = state::write_waiting(self.root, None) {
            tracing::warn!("{e}");
        }
    }
}

/// The journal as a coordinator writes into it.
struct Books<'a, 'r>(&'a mut Journal<'r>);

impl Desk for Books<'_, '_> {
    fn lock(&mut self, lock: &Lock) -> Result<(), String> {
        let Some(record) = self.0.last() else {
            return Err("there is no transaction".to_owned());
        };
        let known = record.work.lock.as_ref();
        // A server that is asked again and again makes one record, not one each time.
        if known.is_some_and(|known| known.held || !lock.held) {
            return Ok(());
        }
        let (txn, mut work) = (record.txn.clone(), record.work.clone());
        work.lock = Some(lock.clone());
        let event = if lock.held {
            "slot held"
        } else {
            "slot asked for"
        };
        self.0.append(txn, work, event).map_err(|e| e.to_string())
    }

    fn granted(&mut self) -> Result<(), String> {
        let Some(record) = self.0.last() else {
            return Err("there is no transaction".to_owned());
        };
        let (next, _) = step(&record.txn, &Event::Granted);
        let work = record.work.clone();
        self.0
            .append(next, work, "Granted")
            .map_err(|e| e.to_string())
    }
}
