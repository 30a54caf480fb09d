//! Crashes: every point between two changes of a file, with what a power cut leaves of what was not synced, on sample
//! nodes of each family, which then boot and recover. `docs/crashes.md` has what came of it.
//!
//! `GDR_CRASH_LONG=1` tries every point of every scenario and more partial losses; without it, a part of them.
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
mod bytes;
mod chance;
mod fs;
mod model;
mod moody;
mod node;
mod random;
mod recover;
mod rig;
mod scenario;
mod sim;
mod spy;
mod state;
mod table;

use bugs::Bug;
use gdr_tests::node::Family;
use scenario::Scenario;
use table::{Effort, HEAD, crash};

/// Of the points of the most ordinary scenario, one in `commit` at least.
fn family(family: Family, from: usize, commit: usize) {
    let only = std::env::var("GDR_CRASH_ONLY").ok();
    let mut faults = Vec::new();
    println!("{HEAD}");
    for scenario in Scenario::all(family) {
        if only.as_ref().is_some_and(|only| only != scenario.name) {
            continue;
        }
        let mut effort = Effort {
            from,
            ..Effort::wanted()
        };
        if scenario.name == "commit" {
            effort.points = effort.points.min(commit);
        }
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
    family(Family::Debian, 0, 1);
}

#[test]
fn el8_comes_back_from_every_crash() {
    family(Family::El8, 1, 2);
}

#[test]
fn el8_on_efi_comes_back_from_every_crash() {
    family(Family::El8Efi, 2, 3);
}

#[test]
fn el9_comes_back_from_every_crash() {
    family(Family::El9, 3, 2);
}

#[test]
fn suse_comes_back_from_every_crash() {
    family(Family::Suse, 4, 3);
}

#[test]
fn mistakes_of_a_worse_agent_are_caught() {
    let mut missed = Vec::new();
    for bug in Bug::ALL {
        let mut caught = None;
        let all = Scenario::all(Family::Debian);
        let shows = all.iter().filter(|s| s.name == bug.shows_in());
        for scenario in shows {
            let effort = Effort {
                seeds: 4,
                one_in: 1,
                points: 1,
                from: 0,
            };
            let tally = crash(scenario, Some(bug), effort, 1);
            if let Some(why) = tally.faults.first() {
                let why: String = why.chars().take(400).collect();
                println!(
                    "| {} | {} | {} | {why} |",
                    bug.name(),
                    scenario.name,
                    tally.disks
                );
                caught = Some(());
            }
        }
        if caught.is_none() {
            println!("| {} | NOT CAUGHT |", bug.name());
            missed.push(bug);
        }
    }
    assert!(missed.is_empty(), "{missed:?}");
}

/// The schedules that each family goes through; `GDR_CRASH_SEEDS=FROM..TO` names others.
fn seeds() -> Vec<u64> {
    let wanted = std::env::var("GDR_CRASH_SEEDS").ok();
    let parsed = wanted.as_deref().and_then(|text| {
        let (from, to) = text.split_once("..")?;
        Some((from.parse().ok()?..to.parse().ok()?).collect())
    });
    parsed.unwrap_or_else(|| (0..96).collect())
}

fn cruel(family: Family) {
    let started = std::time::Instant::now();
    let of = sim::Playground::new(family, None);
    let mut ends = std::collections::BTreeMap::<String, usize>::new();
    let mut faults = 0;
    for seed in seeds() {
        let schedule = chance::schedule(seed);
        match of.play(&schedule) {
            Ok((state, _)) => *ends.entry(state.to_string()).or_default() += 1,
            Err(why) => {
                faults += 1;
                println!(
                    "FAULT {family:?} GDR_CRASH_SEEDS={seed}..{}: {why}",
                    seed + 1
                );
                if faults <= 3 {
                    println!("  {:#?}", sim::shrink(&of, &schedule));
                }
            }
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    println!(
        "{family:?}: {} schedules, {ends:?}, {faults} faults, {seconds:.1} s; {}",
        seeds().len(),
        of.done()
    );
    assert_eq!(faults, 0);
}

#[test]
fn cruel_schedules_on_debian() {
    cruel(Family::Debian);
}

#[test]
fn cruel_schedules_on_el8() {
    cruel(Family::El8);
}

#[test]
fn cruel_schedules_on_el8_on_efi() {
    cruel(Family::El8Efi);
}

#[test]
fn cruel_schedules_on_el9() {
    cruel(Family::El9);
}

#[test]
fn cruel_schedules_on_fedora() {
    cruel(Family::Fedora);
}

#[test]
fn cruel_schedules_on_suse() {
    cruel(Family::Suse);
}

/// What is remembered of other schedules, and another directory, are nothing that counts.
#[test]
fn a_seed_comes_to_the_same_each_time() {
    let ground = sim::Playground::new(Family::Debian, None);
    let ends: Vec<_> = (0..6)
        .map(|seed| ground.play(&chance::schedule(seed)))
        .collect();
    for seed in [1, 5] {
        let other = sim::Playground::new(Family::Debian, None);
        let again = other.play(&chance::schedule(seed));
        assert_eq!(again, ends[usize::try_from(seed).unwrap()], "seed {seed}");
    }
}

/// Schedules that a mistake may stay hidden for; each begins otherwise.
const HIDDEN: u64 = 600;

#[test]
fn mistakes_are_caught_by_schedules_and_shrink() {
    let mut missed = Vec::new();
    for bug in Bug::ALL {
        let of = sim::Playground::new(Family::Debian, Some(bug));
        let caught = (0..HIDDEN).find_map(|seed| {
            let schedule = chance::schedule(seed * 16);
            let why = of.play(&schedule).err()?;
            let small = sim::shrink(&of, &schedule);
            let why: String = why.chars().take(200).collect();
            println!(
                "| {} | {} | {} of {} | {why} | {small:?}",
                bug.name(),
                seed + 1,
                small.len(),
                schedule.len()
            );
            assert!(of.play(&small).is_err(), "what is left does not fail");
            Some(seed)
        });
        if caught.is_none() {
            println!("| {} | NOT CAUGHT |", bug.name());
            missed.push(bug);
        }
    }
    assert!(missed.is_empty(), "{missed:?}");
}

/// Is this test possible here? If not it says so, and in CI that is a failure.
fn can(system: fs::FileSystem) -> bool {
    fs::sweep();
    let Some(why) = fs::lacking(system) else {
        return true;
    };
    let why = format!("{} is not tested: {why}", system.name());
    assert!(
        std::env::var_os("CI").is_none_or(|ci| ci != "true"),
        "{why}"
    );
    println!("SKIPPED: {why}");
    false
}

/// Of the different disks of the most ordinary scenario, one in `commit`; of the others' one in `others`.
fn on(system: fs::FileSystem, families: &[Family], commit: usize, others: usize) {
    if !can(system) {
        return;
    }
    let only = std::env::var("GDR_CRASH_ONLY").ok();
    let long = std::env::var_os("GDR_CRASH_LONG").is_some();
    let mut faults = Vec::new();
    println!("{}", fs::HEAD);
    for family in families {
        for scenario in fs::scenarios(*family, system) {
            if only.as_ref().is_some_and(|only| only != scenario.name) {
                continue;
            }
            let one_in = match scenario.name {
                _ if long => 1,
                "commit" => commit,
                _ => others,
            };
            let effort = fs::Effort {
                disks: one_in,
                freezes: true,
                most: 20,
            };
            let tally = fs::crash(&scenario, system, effort);
            let name = format!("{}, {family:?}: {}", system.name(), scenario.name);
            println!("{}", tally.row(&name));
            for why in &tally.faults {
                println!("FAULT {name}: {why}");
            }
            faults.extend(tally.faults);
        }
    }
    assert!(faults.is_empty(), "{} faults", faults.len());
}

#[test]
fn ext4_comes_back_from_every_crash() {
    on(fs::FileSystem::Ext4, &[Family::Debian], 1, 12);
}

#[test]
fn xfs_comes_back_from_every_crash() {
    on(fs::FileSystem::Xfs, &[Family::El8], 4, 12);
}

#[test]
fn btrfs_comes_back_from_every_crash() {
    on(fs::FileSystem::Btrfs, &[Family::Suse], 3, 12);
}

#[test]
fn an_agent_that_does_not_freeze_is_caught_on_xfs() {
    let system = fs::FileSystem::Xfs;
    if !can(system) {
        return;
    }
    let effort = fs::Effort {
        disks: 4,
        freezes: false,
        most: 1,
    };
    let scenarios = fs::scenarios(Family::El8, system);
    let tally = fs::crash(&scenarios[0], system, effort);
    println!("{} disks until then: {:?}", tally.tried, tally.faults);
    assert_eq!(tally.faults.len(), 1);
    assert!(
        tally.faults[0].contains("lost with the power")
            || tally.faults[0].contains("GRUB does not see")
    );
}
