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
