//! The transition function.

use super::event::{Boot, Effect, Event, GrubView, Marker};
use super::state::{Failure, FailureKind, State, Txn};

/// An armed trial that GRUB did not look at is tried once more, then given up.
const MAX_NOT_TAKEN: u32 = 2;

/// What comes next. An event that means nothing in a state changes nothing.
#[must_use]
pub fn step(txn: &Txn, event: &Event) -> (Txn, Vec<Effect>) {
    let mut next = txn.clone();
    let effects = match event {
        Event::Booted(boot) => booted(&mut next, boot),
        Event::RollbackAsked => rollback_asked(&mut next),
        _ => match txn.state {
            State::Staged => staged(&mut next, event),
            State::RebootRequested => reboot_requested(&mut next, event),
            State::Granted => granted(&mut next, event),
            State::Armed => armed(&mut next, event),
            State::TrialBooted => trial_booted(&mut next, event),
            State::Verified | State::Committing => committing(&mut next, event),
            State::RollingBack => rolling_back(&mut next, event),
            State::Idle | State::Committed | State::RolledBack | State::Quarantined => Vec::new(),
        },
    };
    (next, effects)
}

fn staged(txn: &mut Txn, event: &Event) -> Vec<Effect> {
    match event {
        Event::Staged => {
            txn.ready = true;
            // Nothing to try at boot: the changes can be judged at once.
            if txn.trial {
                Vec::new()
            } else {
                vec![Effect::Verify]
            }
        }
        Event::StageFailed(why) => roll_back(txn, FailureKind::Apply, why),
        Event::RebootWanted if txn.trial && txn.ready && txn.budget.open() => {
            txn.state = State::RebootRequested;
            vec![Effect::AskReboot]
        }
        Event::VerifyPassed if txn.ready && !txn.trial => verified(txn),
        Event::Baked if txn.ready => verified(txn),
        Event::VerifyFailed(why) if txn.ready && !txn.trial => {
            roll_back(txn, FailureKind::Verify, why)
        }
        _ => Vec::new(),
    }
}

fn reboot_requested(txn: &mut Txn, event: &Event) -> Vec<Effect> {
    match event {
        Event::RebootWanted if txn.budget.open() => vec![Effect::AskReboot],
        Event::Granted if txn.budget.open() => {
            txn.state = State::Granted;
            grant(txn);
            Vec::new()
        }
        Event::Denied(by) => {
            txn.denial = Some(by.clone());
            Vec::new()
        }
        _ => Vec::new(),
    }
}

fn granted(txn: &mut Txn, event: &Event) -> Vec<Effect> {
    match event {
        Event::Shutdown { reboot: true } => {
            txn.state = State::Armed;
            vec![Effect::Arm]
        }
        Event::StillUp => {
            txn.state = State::RebootRequested;
            ungrant(txn, "the granted reboot did not happen");
            Vec::new()
        }
        _ => Vec::new(),
    }
}

fn armed(txn: &mut Txn, event: &Event) -> Vec<Effect> {
    match event {
        Event::ArmFailed(why) => {
            txn.state = State::RebootRequested;
            txn.denial = Some(format!("the trial could not be armed: {why}"));
            vec![Effect::Disarm]
        }
        Event::StillUp => {
            txn.state = State::RebootRequested;
            ungrant(
                txn,
                "the shutdown that armed the trial did not end in a reboot",
            );
            vec![Effect::Disarm]
        }
        _ => Vec::new(),
    }
}

fn trial_booted(txn: &mut Txn, event: &Event) -> Vec<Effect> {
    match event {
        Event::VerifyPassed => verified(txn),
        Event::VerifyFailed(why) => roll_back(txn, FailureKind::Verify, why),
        Event::DeadlineOver => {
            // The machine may be sick: undo after the reset, on the known-good command line.
            fail(
                txn,
                FailureKind::TooLate,
                "the trial was not verified before the policy's deadline",
            );
            vec![Effect::ForceReboot]
        }
        _ => Vec::new(),
    }
}

fn committing(txn: &mut Txn, event: &Event) -> Vec<Effect> {
    match event {
        Event::CommitStarted => {
            txn.state = State::Committing;
            vec![Effect::Commit]
        }
        Event::CommitDone if txn.state == State::Committing => {
            txn.state = State::Committed;
            vec![Effect::Release]
        }
        Event::CommitFailed(why) => roll_back(txn, FailureKind::Commit, why),
        _ => Vec::new(),
    }
}

fn rolling_back(txn: &mut Txn, event: &Event) -> Vec<Effect> {
    match event {
        Event::Undone(conflicts) => {
            txn.conflicts.clone_from(conflicts);
            txn.ready = false;
            if txn.on_trial {
                return if txn.budget.open() && !txn.granted {
                    vec![Effect::AskReboot]
                } else {
                    Vec::new()
                };
            }
            rolled_back(txn)
        }
        Event::UndoFailed(why) => {
            txn.denial = Some(format!("undoing failed: {why}"));
            Vec::new()
        }
        Event::Granted if txn.budget.open() && !txn.granted => {
            grant(txn);
            Vec::new()
        }
        // Undone already: only the reboot that leaves the trial's command line is outstanding.
        Event::RebootWanted if leaving(txn) && txn.budget.open() && !txn.granted => {
            vec![Effect::AskReboot]
        }
        Event::StillUp if txn.granted => {
            ungrant(txn, "the granted reboot did not happen");
            Vec::new()
        }
        Event::Denied(by) => {
            txn.denial = Some(by.clone());
            Vec::new()
        }
        _ => Vec::new(),
    }
}

/// Whether the files are as before and the trial's command line still runs.
fn leaving(txn: &Txn) -> bool {
    txn.on_trial && !txn.ready
}

fn grant(txn: &mut Txn) {
    txn.granted = true;
    txn.budget.used += 1;
    txn.denial = None;
}

/// Only a changed boot id is a reboot.
fn ungrant(txn: &mut Txn, why: &str) {
    txn.granted = false;
    txn.budget.used = txn.budget.used.saturating_sub(1);
    txn.denial = Some(why.to_owned());
}

fn rollback_asked(txn: &mut Txn) -> Vec<Effect> {
    match txn.state {
        State::Idle | State::RolledBack | State::Quarantined => Vec::new(),
        State::RollingBack => vec![Effect::Disarm, Effect::Undo],
        State::Committed => {
            // What runs is the committed line, unless nothing was changed about it.
            txn.on_trial = txn.trial;
            roll_back(txn, FailureKind::Asked, "a person asked for it")
        }
        _ => {
            let mut effects = vec![Effect::Disarm];
            effects.extend(roll_back(txn, FailureKind::Asked, "a person asked for it"));
            effects
        }
    }
}

fn booted(txn: &mut Txn, boot: &Boot) -> Vec<Effect> {
    let new_boot = boot.boot_id != txn.boot_id;
    let ours = boot.marker == Marker::Ours;
    if txn.state.is_final() {
        return Vec::new();
    }
    if !new_boot {
        return same_boot(txn);
    }
    txn.boot_id.clone_from(&boot.boot_id);
    txn.granted = false;
    match txn.state {
        State::Idle | State::Committed | State::RolledBack | State::Quarantined => Vec::new(),
        // Without a trial registers were written and modules loaded, which another boot has nothing of.
        State::Staged if !txn.ready || !txn.trial => roll_back(
            txn,
            FailureKind::Interrupted,
            "the machine went down while the changes were being made",
        ),
        State::Staged | State::RebootRequested | State::Granted if !ours => {
            if txn.state == State::Granted {
                // Not through our shutdown unit: `reboot -ff`, a reset, a power cut.
                txn.state = State::RebootRequested;
                txn.denial = Some("the machine rebooted without arming the trial".to_owned());
            }
            Vec::new()
        }
        State::Staged | State::RebootRequested | State::Granted | State::Armed if ours => {
            txn.state = State::TrialBooted;
            txn.on_trial = true;
            vec![Effect::Disarm]
        }
        State::Armed => trial_missed(txn, boot.grub),
        State::TrialBooted if ours => vec![Effect::Disarm],
        State::TrialBooted => {
            txn.on_trial = false;
            let mut effects = vec![Effect::Disarm];
            effects.extend(roll_back(
                txn,
                FailureKind::Unproven,
                "the trial booted, and the machine went down before it was verified",
            ));
            effects
        }
        State::Verified | State::Committing => {
            txn.on_trial = ours;
            vec![Effect::Disarm, Effect::BeginCommit]
        }
        State::RollingBack => {
            txn.on_trial = ours;
            vec![Effect::Disarm, Effect::Undo]
        }
        // Every state with `ours` or without is named above.
        State::Staged | State::RebootRequested | State::Granted => Vec::new(),
    }
}

/// The agent looks again without a reboot in between: only interrupted work goes on.
fn same_boot(txn: &mut Txn) -> Vec<Effect> {
    match txn.state {
        State::Staged if !txn.ready => roll_back(
            txn,
            FailureKind::Interrupted,
            "the agent was stopped while the changes were being made",
        ),
        State::Staged if !txn.trial => vec![Effect::Verify],
        State::TrialBooted => vec![Effect::Disarm],
        State::Verified | State::Committing => vec![Effect::BeginCommit],
        State::RollingBack => vec![Effect::Disarm, Effect::Undo],
        _ => Vec::new(),
    }
}

/// It was armed, and another command line is running.
fn trial_missed(txn: &mut Txn, grub: GrubView) -> Vec<Effect> {
    let mut effects = vec![Effect::Disarm];
    match grub {
        GrubView::Taken => effects.extend(roll_back(
            txn,
            FailureKind::Died,
            "GRUB booted the trial, which ended in a panic, a hang or a power cut before it could be seen",
        )),
        GrubView::Armed | GrubView::Neither => {
            let text = if grub == GrubView::Armed {
                "GRUB did not take the trial: it did not run the hook, or could not write grubenv"
            } else {
                // `ARMED` is recorded first: a power cut in between says nothing about the policy.
                "the machine went down before GRUB was told of the trial"
            };
            txn.not_taken += 1;
            if txn.not_taken < MAX_NOT_TAKEN {
                txn.state = State::RebootRequested;
                txn.denial = Some(format!("{text}; it is asked for once more"));
            } else {
                let text = format!("{text}, twice");
                effects.extend(roll_back(txn, FailureKind::NotTaken, &text));
            }
        }
        GrubView::Unreadable => effects.extend(roll_back(
            txn,
            FailureKind::Refused,
            "GRUB could not record that it takes the trial, so it booted the known-good entry",
        )),
    }
    effects
}

fn verified(txn: &mut Txn) -> Vec<Effect> {
    txn.state = State::Verified;
    vec![Effect::BeginCommit]
}

fn fail(txn: &mut Txn, kind: FailureKind, text: &str) {
    txn.state = State::RollingBack;
    txn.failure = Some(Failure {
        kind,
        text: text.to_owned(),
    });
    txn.denial = None;
}

fn roll_back(txn: &mut Txn, kind: FailureKind, text: &str) -> Vec<Effect> {
    fail(txn, kind, text);
    vec![Effect::Undo]
}

fn rolled_back(txn: &mut Txn) -> Vec<Effect> {
    let quarantine = txn.failure.as_ref().is_some_and(|f| f.kind.quarantines());
    if quarantine {
        txn.state = State::Quarantined;
        vec![Effect::Quarantine, Effect::Release]
    } else {
        txn.state = State::RolledBack;
        vec![Effect::Release]
    }
}
