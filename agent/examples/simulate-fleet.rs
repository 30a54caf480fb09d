//! Prints the table of `docs/reboots.md`: what becomes of a fleet under FleetLock. `scripts/simulate-fleet`
//! runs it.
#![allow(missing_docs, clippy::print_stdout)]

#[path = "../tests/fleet/mod.rs"]
mod fleet;

use fleet::{Scenario, run};

fn main() {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<usize>());
    let mut number = |default| numbers.next().and_then(Result::ok).unwrap_or(default);
    let (nodes, slots) = (number(10_000), number(100));
    let quiet = |name| Scenario::quiet(name, nodes, slots);
    let faults = |name| Scenario {
        dies: 5_000,
        dead: 500,
        foreign: 20,
        lost: 10_000,
        outage: Some((600, 6 * 3600)),
        ..quiet(name)
    };
    let scenarios = [
        quiet("good policy"),
        faults(
            "good policy; 0.5 % of trials panic, 0.05 % of boots never end, 1 % of answers lost, server away 10 min in 6 h",
        ),
        Scenario {
            outage: Some((6 * 3600, 12 * 3600)),
            ..quiet("good policy; server away for 6 h in 12 h")
        },
        Scenario {
            fails: 1_000_000,
            ..quiet("bad policy, `failed = \"release\"`")
        },
        Scenario {
            fails: 1_000_000,
            hold: true,
            ..quiet("bad policy, `failed = \"hold\"`")
        },
        Scenario {
            fails: 1_000_000,
            stop_after: Some(5),
            ..quiet("bad policy, stop URL set after 5 failures")
        },
        Scenario {
            fails: 20_000,
            hold: true,
            ..faults("policy that fails on 2 % of nodes, `failed = \"hold\"`, the same faults")
        },
    ];
    let scenarios = scenarios.into_iter().chain([
        Scenario {
            forgets: Some(4 * 3600),
            ..faults("good policy, the same faults, and the server loses its state every 4 h")
        },
        Scenario {
            jumps: 10_000,
            ..faults("good policy, the same faults, and 1 % of runs after the clock has jumped by up to a month")
        },
        Scenario {
            dead: 5_000,
            fails: 100_000,
            ..quiet("policy that fails on 10 % of nodes, 0.5 % of boots never end, those back included")
        },
    ]);
    println!(
        "| {nodes} nodes, {slots} slots | hours | committed | back | waiting | dead | failed trials | most down | most under way | requests/min |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for scenario in scenarios {
        let o = run(scenario);
        let hours = format!("{}.{}", o.minutes / 60, o.minutes % 60 / 6);
        println!(
            "| {} | {hours} | {} | {} | {} | {} | {} | {} | {} | {} |",
            scenario.name,
            o.committed,
            o.back,
            o.waiting,
            o.dead,
            o.failures,
            o.most_down,
            o.most_under_way,
            o.requests / o.minutes.max(1)
        );
    }
}
