//! Every state of a transaction × every answer that a coordinator can give, and × every reboot that nobody
//! asked for. A state or an answer without a row does not compile, or has no cell.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs
)]

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use gdr_agent::apply::{Asks, Engine};
use gdr_agent::journal::{Journal, Work};
use gdr_agent::machine::{
    Boot, Budget, Event, FailureKind, GrubView, Marker, State, Txn, TxnId, step,
};
use gdr_agent::reboot::{Coordinator, Desk, Fate, Kind, Question, Refusal, Request, Standing};
use gdr_agent::sys::Root;
use gdr_policy::Policy;

/// The states, each behind the one before. A new one does not compile until it has a place here.
fn after(state: State) -> Option<State> {
    Some(match state {
        State::Idle => State::Staged,
        State::Staged => State::RebootRequested,
        State::RebootRequested => State::Granted,
        State::Granted => State::Armed,
        State::Armed => State::TrialBooted,
        State::TrialBooted => State::Verified,
        State::Verified => State::Committing,
        State::Committing => State::Committed,
        State::Committed => State::RollingBack,
        State::RollingBack => State::RolledBack,
        State::RolledBack => State::Quarantined,
        State::Quarantined => return None,
    })
}

fn states() -> Vec<State> {
    std::iter::successors(Some(State::Idle), |state| after(*state)).collect()
}

/// The kinds of refusals, in the same way.
fn next(kind: Kind) -> Option<Kind> {
    Some(match kind {
        Kind::Denied => Kind::Busy,
        Kind::Busy => Kind::Gate,
        Kind::Gate => Kind::Unreachable,
        Kind::Unreachable => Kind::NotPermitted,
        Kind::NotPermitted => Kind::Protocol,
        Kind::Protocol => Kind::Record,
        Kind::Record => return None,
    })
}

fn refusals() -> Vec<Refusal> {
    let kinds = std::iter::successors(Some(Kind::Denied), |kind| next(*kind));
    let text = || "because".to_owned();
    kinds
        .map(|kind| match kind {
            Kind::Denied => Refusal::Denied {
                by: Vec::new(),
                text: text(),
            },
            Kind::Busy => Refusal::Busy { text: text() },
            Kind::Gate => Refusal::Gate {
                gate: "window",
                text: text(),
            },
            Kind::Unreachable => Refusal::Unreachable { text: text() },
            Kind::NotPermitted => Refusal::NotPermitted { text: text() },
            Kind::Protocol => Refusal::Protocol { text: text() },
            Kind::Record => Refusal::Record {
                text: text(),
                reboot: Fate::CalledBack,
            },
        })
        .collect()
}

/// What a coordinator does when it is asked, and when it is asked what became of a grant.
#[derive(Debug, Clone)]
enum Answer {
    /// Yes, and recorded.
    Yes,
    /// No.
    No(Refusal),
    /// Yes and recorded, and then it turns out not to be so.
    YesThenNo,
    /// Still to be expected.
    Coming,
    /// It will not come.
    Gone,
    /// Not known.
    Unknown(Refusal),
}

impl Answer {
    /// Its column in the table. A new answer does not compile until it has one.
    fn column(&self) -> usize {
        match self {
            Self::Yes => 0,
            Self::No(_) => 1,
            Self::YesThenNo => 2,
            Self::Coming => 3,
            Self::Gone => 4,
            Self::Unknown(_) => 5,
        }
    }

    fn all() -> Vec<Self> {
        let mut all = vec![Self::Yes, Self::YesThenNo, Self::Coming, Self::Gone];
        all.extend(refusals().into_iter().map(Self::No));
        all.extend(refusals().into_iter().map(Self::Unknown));
        all
    }
}

#[derive(Debug)]
struct Scripted {
    answer: Answer,
    asked: Rc<Cell<u32>>,
}

impl Coordinator for Scripted {
    fn name(&self) -> &'static str {
        "scripted"
    }
    fn can(&self) -> Result<(), Refusal> {
        Ok(())
    }
    fn request(&self, _: &Request, desk: &mut dyn Desk) -> Result<(), Refusal> {
        self.asked.set(self.asked.get() + 1);
        match &self.answer {
            Answer::No(refusal) => Err(refusal.clone()),
            Answer::YesThenNo => {
                desk.granted().unwrap();
                Err(Refusal::Denied {
                    by: Vec::new(),
                    text: "it passed the request over".to_owned(),
                })
            }
            _ => {
                desk.granted().unwrap();
                Ok(())
            }
        }
    }
    fn questions(&self, _: &Request, _: bool) -> Vec<Question> {
        Vec::new()
    }
    fn poll(&self, _: Duration) -> Result<Standing, Refusal> {
        match &self.answer {
            Answer::Gone => Ok(Standing::Gone("gone".to_owned())),
            Answer::Unknown(refusal) => Err(refusal.clone()),
            _ => Ok(Standing::Coming("coming".to_owned())),
        }
    }
    fn cancel(&self) -> Result<(), Refusal> {
        Ok(())
    }
    fn release(&self) -> Result<(), Refusal> {
        Ok(())
    }
}

/// A transaction in a state that it can really be in: with a trial, staged, allowed to reboot.
fn txn(state: State) -> Txn {
    let granted = matches!(state, State::Granted | State::Armed);
    Txn {
        id: TxnId::new(7, [1, 2, 3, 4]),
        state,
        digest: "d".to_owned(),
        boot_id: String::new(),
        trial: true,
        // Rolling back: the files are as before, and the trial's command line still runs.
        ready: state != State::RollingBack,
        on_trial: state == State::RollingBack,
        granted,
        budget: Budget {
            allowed: true,
            used: u32::from(granted),
            max: 3,
        },
        not_taken: 0,
        failure: None,
        denial: None,
        conflicts: Vec::new(),
    }
}

fn work() -> Work {
    Work {
        policy: Policy::default(),
        trial: None,
        intents: Vec::new(),
        env: Vec::new(),
        entries: Vec::new(),
        modules: Vec::new(),
        unloaded: Vec::new(),
        packages: Vec::new(),
        bake: false,
        unmet: Vec::new(),
        lock: None,
    }
}

/// What is to become of a state: columns as [`Answer::column`] has them. `-` is: nobody was asked, nothing
/// changed; `=` is: asked, the same state; `STATE+n`: that state, `n` reboots counted.
fn row(state: State) -> [&'static str; 6] {
    match state {
        // There is nothing to reboot for: nothing was begun, or it is over, or it only goes forward.
        State::Idle | State::Verified | State::Committing => ["-"; 6],
        State::Committed | State::RolledBack | State::Quarantined => ["-"; 6],
        // A trial that runs is judged, not rebooted.
        State::TrialBooted => ["-"; 6],
        //                       yes           no                   yes, then no  coming gone                 unknown
        State::Staged => [
            "GRANTED+1",
            "REBOOT_REQUESTED+0",
            "GRANTED+1",
            "-",
            "-",
            "-",
        ],
        State::RebootRequested => [
            "GRANTED+1",
            "REBOOT_REQUESTED+0",
            "GRANTED+1",
            "-",
            "-",
            "-",
        ],
        State::Granted => [
            "-",
            "-",
            "-",
            "GRANTED+1",
            "REBOOT_REQUESTED+0",
            "GRANTED+1",
        ],
        State::Armed => ["-", "-", "-", "ARMED+1", "REBOOT_REQUESTED+0", "ARMED+1"],
        State::RollingBack => [
            "ROLLING_BACK+1",
            "ROLLING_BACK+0",
            "ROLLING_BACK+1",
            "-",
            "-",
            "-",
        ],
    }
}

#[test]
fn every_state_and_every_answer_of_a_coordinator() {
    for state in states() {
        for answer in Answer::all() {
            let dir = tempfile::tempdir().unwrap();
            let root = Root::open(dir.path()).unwrap();
            Journal::open(&root)
                .unwrap()
                .begin(txn(state), work())
                .unwrap();
            let asked = Rc::new(Cell::new(0));
            let mut engine = Engine::open(&root, "test").unwrap();
            engine.ask(Asks::WhenDue);
            engine.coordinate(Rc::new(Scripted {
                answer: answer.clone(),
                asked: asked.clone(),
            }));
            let polls = matches!(answer, Answer::Coming | Answer::Gone | Answer::Unknown(_));
            let granted = matches!(state, State::Granted | State::Armed);
            if !polls {
                engine.send(Event::RebootWanted).unwrap();
            } else if granted {
                engine.look_after().unwrap();
            }
            let record = engine.last().unwrap().clone();
            let name = format!("{state} × {answer:?}");
            match row(state)[answer.column()] {
                "-" => {
                    assert_eq!(asked.get(), 0, "{name}: nobody is to be asked");
                    assert_eq!(record.txn, txn(state), "{name}");
                }
                cell => {
                    let found = format!("{}+{}", record.txn.state, record.txn.budget.used);
                    assert_eq!(found, cell, "{name}");
                    assert_eq!(asked.get(), u32::from(!polls), "{name}");
                }
            }
            // A refusal is shown, with its kind; a yes leaves nothing to wait for.
            let waiting = dir.path().join("var/lib/gdr-agent/waiting.json");
            let waits = matches!(answer, Answer::No(_) | Answer::YesThenNo) && asked.get() > 0;
            assert_eq!(waiting.exists(), waits, "{name}");
            if let (Answer::No(refusal), true) = (&answer, waits) {
                let text = std::fs::read_to_string(&waiting).unwrap();
                let json: serde_json::Value = serde_json::from_str(&text).unwrap();
                assert_eq!(json["kind"], refusal.kind().as_str(), "{name}");
                assert_eq!(
                    record.txn.denial.as_deref(),
                    Some(refusal.to_string().as_str())
                );
            }
        }
    }
}

/// A reboot that the agent did not ask for, as the next boot finds it.
#[derive(Debug, Clone, Copy)]
enum Foreign {
    /// `reboot -ff`, a reset, unattended-upgrades: the old command line, grubenv not armed.
    Known,
    /// The same after arming: GRUB did not run its hook (kexec, another disk).
    StillArmed,
    /// GRUB booted the trial, which did not come up.
    TakenAndDied,
    /// The trial's command line runs.
    Trial,
    /// Another transaction's marker.
    Stranger,
    /// soft-reboot: userspace anew, the same kernel and boot id.
    Soft,
}

impl Foreign {
    fn boot(self) -> Boot {
        let (id, marker, grub) = match self {
            Self::Known => ("2", Marker::None, GrubView::Neither),
            Self::StillArmed => ("2", Marker::None, GrubView::Armed),
            Self::TakenAndDied => ("2", Marker::None, GrubView::Taken),
            Self::Trial => ("2", Marker::Ours, GrubView::Taken),
            Self::Stranger => ("2", Marker::Foreign, GrubView::Neither),
            Self::Soft => ("", Marker::None, GrubView::Neither),
        };
        Boot {
            boot_id: id.to_owned(),
            marker,
            grub,
        }
    }

    /// The state that each leads to.
    fn leads(self, state: State) -> State {
        use State::{
            Armed, Committed, Committing, Granted, Idle, Quarantined, RebootRequested, RolledBack,
            RollingBack, Staged, TrialBooted, Verified,
        };
        match (state, self) {
            // Over, or not begun: no boot changes that.
            (Idle | Committed | RolledBack | Quarantined, _) => state,
            // Once it was verified it only goes forward; a rollback only goes back.
            (Verified | Committing | RollingBack, _) => state,
            // In the same boot nothing has happened.
            (_, Self::Soft) => state,
            (Staged | RebootRequested | Granted | Armed | TrialBooted, Self::Trial) => TrialBooted,
            (Staged, Self::Known | Self::StillArmed | Self::TakenAndDied | Self::Stranger) => {
                Staged
            }
            // The yes was used up by a reboot that tried nothing: asked again.
            (
                RebootRequested | Granted,
                Self::Known | Self::StillArmed | Self::TakenAndDied | Self::Stranger,
            ) => RebootRequested,
            // GRUB did not look, or was never told: once more. The trial died: back.
            (Armed, Self::StillArmed | Self::Known | Self::Stranger) => RebootRequested,
            (Armed, Self::TakenAndDied) => RollingBack,
            // Gone down before it was verified: not proven.
            (TrialBooted, Self::Known | Self::StillArmed | Self::TakenAndDied | Self::Stranger) => {
                RollingBack
            }
        }
    }
}

#[test]
fn every_state_and_every_reboot_that_nobody_asked_for() {
    let all = [
        Foreign::Known,
        Foreign::StillArmed,
        Foreign::TakenAndDied,
        Foreign::Trial,
        Foreign::Stranger,
        Foreign::Soft,
    ];
    for state in states() {
        for foreign in all {
            let before = txn(state);
            let (after, _) = step(&before, &Event::Booted(foreign.boot()));
            assert_eq!(after.state, foreign.leads(state), "{state} × {foreign:?}");
            // No foreign reboot arms anything, counts as granted, or is taken for a proof.
            assert!(!after.granted || matches!(foreign, Foreign::Soft) || state.is_final());
            assert_eq!(
                after.budget.used, before.budget.used,
                "{state} × {foreign:?}"
            );
            assert!(after.state != State::Committed || state == State::Committed);
            // Looking again in the same boot goes nowhere else.
            let (again, _) = step(&after, &Event::Booted(foreign.boot()));
            assert_eq!(
                again.state, after.state,
                "{state} × {foreign:?}, looked at again"
            );
        }
    }
    let mut died = txn(State::Armed);
    died.boot_id = "1".to_owned();
    let (died, _) = step(&died, &Event::Booted(Foreign::TakenAndDied.boot()));
    assert_eq!(died.failure.unwrap().kind, FailureKind::Died);
}

/// A shutdown that is no reboot through the firmware arms in no state.
#[test]
fn only_a_granted_reboot_through_the_firmware_arms() {
    for state in states() {
        for reboot in [false, true] {
            let (after, effects) = step(&txn(state), &Event::Shutdown { reboot });
            let arms = state == State::Granted && reboot;
            assert_eq!(
                after.state == State::Armed,
                arms || state == State::Armed,
                "{state}"
            );
            assert_eq!(!effects.is_empty(), arms, "{state}");
        }
    }
}
