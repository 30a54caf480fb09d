//! The table of transitions, and what must hold for every sequence of events.

use proptest::prelude::*;

use super::*;

fn txn(state: State) -> Txn {
    Txn {
        id: TxnId::new(7, [1, 2, 3, 4]),
        state,
        digest: "d".into(),
        boot_id: "boot-1".into(),
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

fn boot(id: &str, marker: Marker, grub: GrubView) -> Event {
    Event::Booted(Boot {
        boot_id: id.into(),
        marker,
        grub,
    })
}

fn run(mut t: Txn, events: &[Event]) -> (Txn, Vec<Effect>) {
    let mut last = Vec::new();
    for event in events {
        (t, last) = step(&t, event);
    }
    (t, last)
}

#[test]
fn the_good_way() {
    let mut start = txn(State::Staged);
    start.ready = false;
    let (t, effects) = run(start, &[Event::Staged, Event::RebootWanted]);
    assert_eq!(
        (t.state, effects),
        (State::RebootRequested, vec![Effect::AskReboot])
    );
    let (t, _) = run(t, &[Event::Granted]);
    assert_eq!((t.state, t.budget.used), (State::Granted, 1));
    let (t, effects) = run(t, &[Event::Shutdown { reboot: true }]);
    assert_eq!((t.state, effects), (State::Armed, vec![Effect::Arm]));
    let (t, effects) = run(t, &[boot("boot-2", Marker::Ours, GrubView::Taken)]);
    assert_eq!(
        (t.state, effects),
        (State::TrialBooted, vec![Effect::Disarm])
    );
    let (t, effects) = run(t, &[Event::VerifyPassed]);
    assert_eq!(
        (t.state, effects),
        (State::Verified, vec![Effect::BeginCommit])
    );
    let (t, effects) = run(t, &[Event::CommitStarted]);
    assert_eq!(
        (t.state, effects),
        (State::Committing, vec![Effect::Commit])
    );
    let (t, effects) = run(t, &[Event::CommitDone]);
    assert_eq!(
        (t.state, effects),
        (State::Committed, vec![Effect::Release])
    );
}

#[test]
fn what_a_boot_without_the_trial_means() {
    for (grub, state, kind) in [
        (GrubView::Taken, State::RollingBack, Some(FailureKind::Died)),
        // Recorded as armed, and the power was cut before grubenv was written.
        (GrubView::Neither, State::RebootRequested, None),
        (
            GrubView::Unreadable,
            State::RollingBack,
            Some(FailureKind::Refused),
        ),
        (GrubView::Armed, State::RebootRequested, None),
    ] {
        for marker in [Marker::None, Marker::Foreign] {
            let (t, effects) = run(txn(State::Armed), &[boot("boot-2", marker, grub)]);
            assert_eq!(t.state, state, "{grub:?}");
            assert_eq!(t.failure.map(|f| f.kind), kind, "{grub:?}");
            assert_eq!(effects.first(), Some(&Effect::Disarm), "{grub:?}");
        }
    }
}

#[test]
fn a_trial_that_is_never_looked_at_is_given_up() {
    let again = [
        boot("boot-2", Marker::None, GrubView::Armed),
        Event::Granted,
        Event::Shutdown { reboot: true },
    ];
    let (t, _) = run(txn(State::Armed), &again);
    assert_eq!(t.state, State::Armed);
    let (t, _) = run(
        t,
        &[
            boot("boot-3", Marker::None, GrubView::Armed),
            Event::Undone(vec![]),
        ],
    );
    assert_eq!(
        (t.state, t.failure.map(|f| f.kind)),
        (State::Quarantined, Some(FailureKind::NotTaken))
    );
}

#[test]
fn a_failed_verification_reboots_once_more_and_ends_quarantined() {
    let mut t = txn(State::TrialBooted);
    t.on_trial = true;
    t.budget.used = 1;
    let (t, effects) = run(t, &[Event::VerifyFailed("x".into())]);
    assert_eq!(effects, [Effect::Undo]);
    let (t, effects) = run(t, &[Event::Undone(vec![])]);
    assert_eq!(
        (t.state, effects),
        (State::RollingBack, vec![Effect::AskReboot])
    );
    let (t, effects) = run(
        t,
        &[
            Event::Granted,
            boot("boot-3", Marker::None, GrubView::Neither),
        ],
    );
    assert_eq!(
        (t.budget.used, effects),
        (2, vec![Effect::Disarm, Effect::Undo])
    );
    let (t, effects) = run(t, &[Event::Undone(vec![])]);
    assert_eq!(
        (t.state, effects),
        (
            State::Quarantined,
            vec![Effect::Quarantine, Effect::Release]
        )
    );
}

#[test]
fn out_of_reboots_it_waits_for_a_person() {
    let mut t = txn(State::TrialBooted);
    t.on_trial = true;
    t.budget.used = 2;
    let (t, effects) = run(t, &[Event::VerifyFailed("x".into()), Event::Undone(vec![])]);
    assert_eq!((t.state, effects), (State::RollingBack, vec![]));
}

#[test]
fn a_power_cut_after_verification_rolls_forward() {
    for state in [State::Verified, State::Committing] {
        for marker in [Marker::None, Marker::Ours] {
            let (t, effects) = run(txn(state), &[boot("boot-2", marker, GrubView::Neither)]);
            assert_eq!(effects, [Effect::Disarm, Effect::BeginCommit]);
            let (t, _) = run(t, &[Event::CommitStarted, Event::CommitDone]);
            assert_eq!(t.state, State::Committed);
        }
    }
}

#[test]
fn only_a_granted_firmware_reboot_arms() {
    for state in [
        State::Staged,
        State::RebootRequested,
        State::TrialBooted,
        State::RollingBack,
        State::Committed,
    ] {
        let (_, effects) = run(txn(state), &[Event::Shutdown { reboot: true }]);
        assert!(!effects.contains(&Effect::Arm), "{state}");
    }
    let (t, effects) = run(txn(State::Granted), &[Event::Shutdown { reboot: false }]);
    assert_eq!((t.state, effects), (State::Granted, vec![]));
}

#[test]
fn without_a_trial_the_changes_are_judged_at_once() {
    let mut t = txn(State::Staged);
    (t.trial, t.ready) = (false, false);
    let (t, effects) = run(t, &[Event::Staged]);
    assert_eq!(effects, [Effect::Verify]);
    assert_eq!(run(t.clone(), &[Event::RebootWanted]).1, []);
    assert_eq!(
        run(t.clone(), &[Event::VerifyPassed]).0.state,
        State::Verified
    );
    let (t, _) = run(t, &[Event::VerifyFailed("x".into()), Event::Undone(vec![])]);
    assert_eq!(t.state, State::Quarantined);
}

#[test]
fn without_a_trial_another_boot_has_nothing_to_judge() {
    let mut t = txn(State::Staged);
    (t.trial, t.ready) = (false, true);
    let (t, effects) = run(t, &[boot("boot-2", Marker::None, GrubView::Neither)]);
    assert_eq!((t.state, effects), (State::RollingBack, vec![Effect::Undo]));
    // The policy is not to blame.
    assert_eq!(run(t, &[Event::Undone(vec![])]).0.state, State::RolledBack);
}

#[test]
fn the_deadline_resets_first_and_undoes_afterwards() {
    let mut t = txn(State::TrialBooted);
    t.on_trial = true;
    let (t, effects) = run(t, &[Event::DeadlineOver]);
    assert_eq!(
        (t.state, effects),
        (State::RollingBack, vec![Effect::ForceReboot])
    );
    let (t, effects) = run(t, &[boot("boot-3", Marker::None, GrubView::Neither)]);
    assert_eq!(effects, [Effect::Disarm, Effect::Undo]);
    assert_eq!(run(t, &[Event::Undone(vec![])]).0.state, State::Quarantined);
}

fn any_event() -> impl Strategy<Value = Event> {
    let text = Just("x".to_owned());
    let marker = prop_oneof![
        Just(Marker::None),
        Just(Marker::Ours),
        Just(Marker::Foreign)
    ];
    let grub = prop_oneof![
        Just(GrubView::Armed),
        Just(GrubView::Taken),
        Just(GrubView::Neither),
        Just(GrubView::Unreadable)
    ];
    prop_oneof![
        Just(Event::Staged),
        text.clone().prop_map(Event::StageFailed),
        Just(Event::RebootWanted),
        Just(Event::Granted),
        text.clone().prop_map(Event::Denied),
        any::<bool>().prop_map(|reboot| Event::Shutdown { reboot }),
        text.clone().prop_map(Event::ArmFailed),
        Just(Event::StillUp),
        (0..4_u8, marker, grub).prop_map(|(n, m, g)| boot(&format!("boot-{n}"), m, g)),
        Just(Event::VerifyPassed),
        Just(Event::Baked),
        text.clone().prop_map(Event::VerifyFailed),
        Just(Event::DeadlineOver),
        Just(Event::CommitStarted),
        Just(Event::CommitDone),
        text.clone().prop_map(Event::CommitFailed),
        Just(Event::Undone(vec![])),
        text.prop_map(Event::UndoFailed),
        Just(Event::RollbackAsked),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn whatever_happens(trial: bool, allowed: bool, events in prop::collection::vec(any_event(), 0..40)) {
        let mut t = txn(State::Staged);
        (t.trial, t.ready, t.budget.allowed) = (trial, false, allowed);
        let mut verified_once = false;
        for event in &events {
            let before = t.clone();
            let (next, effects) = step(&t, event);
            prop_assert!(next.budget.used <= next.budget.max);
            prop_assert_eq!(&next.id, &before.id);
            // GRUB is told only after a yes, and only for a reboot that reaches GRUB.
            if effects.contains(&Effect::Arm) {
                prop_assert_eq!(before.state, State::Granted);
                prop_assert_eq!(event, &Event::Shutdown { reboot: true });
            }
            // No reboot is asked for without leave.
            if effects.contains(&Effect::AskReboot) {
                prop_assert!(before.budget.allowed && next.budget.used < next.budget.max);
            }
            verified_once |= matches!(event, Event::VerifyPassed | Event::Baked) && next.state == State::Verified;
            if effects.contains(&Effect::Commit) {
                prop_assert!(verified_once);
            }
            // What is over stays over, except that a person can take back a commit.
            if before.state.is_final() && !(before.state == State::Committed && *event == Event::RollbackAsked) {
                prop_assert_eq!(next.state, before.state);
                prop_assert!(effects.is_empty());
            }
            // Nothing leaves a rollback but its end.
            if before.state == State::RollingBack {
                prop_assert!(matches!(next.state, State::RollingBack | State::RolledBack | State::Quarantined));
            }
            if next.state == State::RollingBack {
                prop_assert!(next.failure.is_some());
            }
            t = next;
        }
    }
}
