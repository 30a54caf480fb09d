//! Crashes: every point between two changes of a file, with what a power cut leaves of what was not synced, on sample
//! nodes of each family, which then boot and recover. `docs/crashes.md` has what came of it.
//!
//! `GDR_CRASH_LONG=1` tries every point of every scenario and more partial losses; without it, a third of them.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    missing_docs,
    reason = "a test looks at the machine from outside"
)]

mod bugs;
mod model;
mod random;
mod recover;
mod rig;
mod scenario;
mod spy;
mod table;

use bugs::Bug;
use gdr_tests::node::Family;
use scenario::Scenario;
use table::{Effort, HEAD, crash};

fn family(family: Family, from: usize) {
    let only = std::env::var("GDR_CRASH_ONLY").ok();
    let mut faults = Vec::new();
    println!("{HEAD}");
    for scenario in Scenario::all(family) {
        if only.as_ref().is_some_and(|only| only != scenario.name) {
            continue;
        }
        let effort = Effort {
            from,
            ..Effort::wanted()
        };
        let tally = crash(&scenario, None, effort, usize::MAX);
        println!("{}", tally.row(&format!("{family:?}: {}", scenario.name)));
        for why in tally.faults.iter().take(20) {
            println!("FAULT {}: {why}", scenario.name);
        }
        faults.extend(tally.faults);
    }
    assert!(faults.is_empty(), "{} faults", faults.len());
}

#[test]
fn debian_comes_back_from_every_crash() {
    family(Family::Debian, 0);
}

#[test]
fn el8_comes_back_from_every_crash() {
    family(Family::El8, 1);
}

#[test]
fn el8_on_efi_comes_back_from_every_crash() {
    family(Family::El8Efi, 2);
}

#[test]
fn el9_comes_back_from_every_crash() {
    family(Family::El9, 0);
}

#[test]
fn suse_comes_back_from_every_crash() {
    family(Family::Suse, 1);
}

#[test]
fn mistakes_of_a_worse_agent_are_caught() {
    let mut missed = Vec::new();
    for bug in Bug::ALL {
        let mut caught = None;
        for family in [Family::Debian, Family::El9] {
            for scenario in Scenario::all(family) {
                let effort = Effort {
                    seeds: 4,
                    one_in: 1,
                    points: 1,
                    from: 0,
                };
                let tally = crash(&scenario, Some(bug), effort, 1);
                if let Some(why) = tally.faults.first() {
                    let why: String = why.chars().take(400).collect();
                    println!(
                        "| {} | {family:?}: {} | {} | {why} |",
                        bug.name(),
                        scenario.name,
                        tally.disks
                    );
                    caught = Some(());
                    break;
                }
            }
            if caught.is_some() {
                break;
            }
        }
        if caught.is_none() {
            println!("| {} | NOT CAUGHT |", bug.name());
            missed.push(bug);
        }
    }
    assert!(missed.is_empty(), "{missed:?}");
}
