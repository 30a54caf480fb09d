//! A small fleet through every scenario of `examples/simulate-fleet.rs`.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, missing_docs)]

mod fleet;

use fleet::{Scenario, run};

const NODES: usize = 300;
const SLOTS: usize = 10;

#[test]
fn a_good_policy_reaches_every_node_and_every_slot_is_given_back() {
    let outcome = run(Scenario::quiet("good", NODES, SLOTS));
    assert_eq!(
        (outcome.committed, outcome.failures, outcome.held),
        (NODES, 0, 0)
    );
    assert!(outcome.most_under_way > SLOTS / 2, "{outcome:?}");
}

#[test]
fn with_every_failure_at_once_each_node_ends_committed_back_waiting_or_dead() {
    for seed in 0..10 {
        let scenario = Scenario {
            seed,
            fails: 30_000,
            dies: 30_000,
            dead: 3_000,
            foreign: 500,
            lost: 50_000,
            outage: Some((1800, 4 * 3600)),
            ..Scenario::quiet("everything", NODES, SLOTS)
        };
        let outcome = run(scenario);
        let all = outcome.committed + outcome.back + outcome.waiting + outcome.dead;
        assert_eq!(all, NODES, "{outcome:?}");
        assert!(outcome.failures > 0 && outcome.back > 0, "{outcome:?}");
        if outcome.dead < SLOTS {
            assert_eq!(outcome.waiting, 0, "a free slot is used: {outcome:?}");
        }
    }
}

#[test]
fn a_bad_policy_stands_once_its_failures_hold_every_slot() {
    let scenario = Scenario {
        fails: 1_000_000,
        hold: true,
        ..Scenario::quiet("bad, held", NODES, SLOTS)
    };
    let outcome = run(scenario);
    assert_eq!(
        (outcome.failures, outcome.back, outcome.held),
        (SLOTS, SLOTS, SLOTS)
    );
    assert_eq!(outcome.waiting, NODES - SLOTS);
}

#[test]
fn a_bad_policy_without_a_budget_fails_everywhere_and_one_is_stopped_by_hand() {
    let bad = Scenario {
        fails: 1_000_000,
        ..Scenario::quiet("bad", NODES, SLOTS)
    };
    assert_eq!(run(bad).failures, NODES);
    let stopped = run(Scenario {
        stop_after: Some(3),
        ..bad
    });
    assert!(
        stopped.failures >= 3 && stopped.failures <= 3 + SLOTS,
        "{stopped:?}"
    );
    assert_eq!(stopped.committed, 0);
    assert_eq!(stopped.back + stopped.waiting, NODES);
}

#[test]
fn a_server_that_is_away_for_hours_means_waiting() {
    let outcome = run(Scenario {
        outage: Some((6 * 3600, 9 * 3600)),
        ..Scenario::quiet("away", NODES, SLOTS)
    });
    assert_eq!((outcome.committed, outcome.held), (NODES, 0));
}

#[test]
fn dead_nodes_hold_their_slots_until_nobody_can_reboot() {
    let outcome = run(Scenario {
        dead: 200_000,
        ..Scenario::quiet("dead", NODES, SLOTS)
    });
    assert_eq!((outcome.dead, outcome.held), (SLOTS, SLOTS));
    assert_eq!(outcome.committed + outcome.waiting + outcome.dead, NODES);
}

/// Nodes that were under way stay under way, and as many more may begin: that is what a server loses with its state,
/// and no more.
#[test]
fn a_server_that_forgets_who_holds_a_slot_lets_as_many_more_begin_and_no_node_is_lost() {
    for seed in 0..5 {
        let outcome = run(Scenario {
            seed,
            fails: 100_000,
            lost: 20_000,
            forgets: Some(2 * 3600),
            ..Scenario::quiet("forgets", NODES, SLOTS)
        });
        assert!(outcome.forgotten > 0, "{outcome:?}");
        assert!(outcome.most_under_way > SLOTS, "{outcome:?}");
        assert!(outcome.most_under_way <= 2 * SLOTS, "{outcome:?}");
        assert_eq!((outcome.committed + outcome.back, outcome.held), (NODES, 0));
    }
}

/// The budget is in the server's state: it is gone with it.
#[test]
fn a_server_that_forgets_loses_the_failure_budget_with_its_state() {
    let outcome = run(Scenario {
        fails: 1_000_000,
        hold: true,
        forgets: Some(4 * 3600),
        ..Scenario::quiet("bad, held, forgotten", 5 * SLOTS, SLOTS)
    });
    assert!(outcome.failures > SLOTS, "{outcome:?}");
    assert_eq!(outcome.committed, 0);
}

#[test]
fn clocks_that_jump_by_weeks_stop_nobody() {
    for seed in 0..5 {
        let quiet = Scenario {
            seed,
            fails: 50_000,
            outage: Some((1800, 4 * 3600)),
            ..Scenario::quiet("jumps", NODES, SLOTS)
        };
        let jumps = run(Scenario {
            jumps: 50_000,
            ..quiet
        });
        assert_eq!(
            (jumps.committed + jumps.back, jumps.held),
            (NODES, 0),
            "{jumps:?}"
        );
        let steady = run(quiet);
        assert!(jumps.minutes <= 2 * steady.minutes, "{jumps:?} {steady:?}");
    }
}

#[test]
fn a_node_that_dies_on_the_way_back_holds_its_slot_and_nobody_elses() {
    let outcome = run(Scenario {
        fails: 1_000_000,
        dead: 30_000,
        ..Scenario::quiet("dies on the way back", NODES, SLOTS)
    });
    assert!(outcome.dead_on_the_way_back > 0, "{outcome:?}");
    assert_eq!(outcome.held, outcome.dead, "{outcome:?}");
    assert_eq!(outcome.committed, 0);
    assert_eq!(outcome.back + outcome.waiting + outcome.dead, NODES);
}
