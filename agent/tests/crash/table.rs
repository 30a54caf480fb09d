//! All crash points of a scenario, and what came of each.

use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

use crate::bugs::Bug;
use crate::model::{Left, Running};
use crate::recover::{Crash, End, Recovery, counted};
use crate::rig::Rig;
use crate::scenario::{After, Recording, Scenario, record};

/// How much of it.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Seeds of partial losses at each point.
    pub seeds: u64,
    /// Of those, one in so many is tried.
    pub one_in: u64,
    /// Of the points, one in so many, besides those where a command ended.
    pub points: usize,
    /// Which one of those.
    pub from: usize,
}

impl Effort {
    /// Everything where `GDR_CRASH_LONG` is set, else what two minutes are enough for.
    pub fn wanted() -> Self {
        match std::env::var_os("GDR_CRASH_LONG") {
            Some(_) => Self {
                seeds: 8,
                one_in: 1,
                points: 1,
                from: 0,
            },
            None => Self {
                seeds: 2,
                one_in: 4,
                points: 5,
                from: 0,
            },
        }
    }
}

/// What was tried at a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Variant {
    Killed,
    NothingLost,
    UnsyncedLost,
    Torn,
}

/// What came of a scenario's points.
#[derive(Debug, Default)]
pub struct Tally {
    pub points: usize,
    /// Crashes by what was tried, and how many different disks they left.
    pub crashes: BTreeMap<Variant, usize>,
    pub disks: usize,
    pub ends: BTreeMap<End, usize>,
    pub faults: Vec<String>,
    pub seconds: f64,
}

/// The head of the table that [`Tally::row`] makes.
pub const HEAD: &str = "| scenario | points | nothing lost | un-synced lost | torn | killed | different disks | ended | faults |\n|---|---|---|---|---|---|---|---|---|";

impl Tally {
    pub fn row(&self, name: &str) -> String {
        let of = |variant| self.crashes.get(&variant).copied().unwrap_or(0);
        format!(
            "| {name} | {} | {} | {} | {} | {} | {} | {} | {} | {:.1} s",
            self.points,
            of(Variant::NothingLost),
            of(Variant::UnsyncedLost),
            of(Variant::Torn),
            of(Variant::Killed),
            self.disks,
            counted(&self.ends),
            self.faults.len(),
            self.seconds,
        )
    }
}

/// Crashes a scenario at each point. Stops at `most` faults.
pub fn crash(scenario: &Scenario, bug: Option<Bug>, effort: Effort, most: usize) -> Tally {
    let started = Instant::now();
    let mut tally = Tally::default();
    let rig = Rig::new(&scenario.spec);
    match record(&rig, scenario, bug) {
        Ok(recording) => points(&rig, &recording, effort, most, &mut tally),
        Err(why) => tally.faults.push(format!("undisturbed: {why}")),
    }
    tally.seconds = started.elapsed().as_secs_f64();
    tally
}

fn points(rig: &Rig, of: &Recording, effort: Effort, most: usize, tally: &mut Tally) {
    let mut seen: HashMap<(u64, usize, bool, bool), Result<End, String>> = HashMap::new();
    for (number, segment) in of.segments.iter().enumerate() {
        let mut disk = Running::new(segment.base.clone());
        for at in 0..=segment.events.len() {
            let ends_a_step = match (
                at.checked_sub(1).and_then(|at| segment.events.get(at)),
                segment.events.get(at),
            ) {
                (Some((before, _)), Some((next, _))) => before != next,
                (Some(_), None) => true,
                _ => false,
            };
            let tried = ends_a_step || at % effort.points == effort.from % effort.points;
            if !tried {
                if let Some((_, event)) = segment.events.get(at) {
                    disk.apply(event);
                }
                continue;
            }
            tally.points += 1;
            let mut whole = None;
            let mut variants = vec![
                (Variant::NothingLost, Left::All),
                (Variant::UnsyncedLost, Left::Synced),
                (Variant::Killed, Left::All),
            ];
            let seeds = (0..effort.seeds).map(|seed| at as u64 * 64 + seed);
            let seeds = seeds.filter(|seed| (seed / 64 + seed) % effort.one_in == 0);
            variants.extend(seeds.map(|seed| (Variant::Torn, Left::Part(seed))));
            for (variant, left) in variants {
                let after = disk.cut(left);
                let killed = variant == Variant::Killed;
                let ways: &[bool] = match of.scenario.after {
                    After::Boots => &[true],
                    After::Again(_) => &[true, false],
                };
                for again in ways {
                    if killed && !again {
                        continue;
                    }
                    *tally.crashes.entry(variant).or_default() += 1;
                    let key = (after.digest(), number, killed, *again);
                    let new = !seen.contains_key(&key);
                    let outcome = &*seen.entry(key).or_insert_with(|| {
                        tally.disks += 1;
                        let crash = if killed {
                            Crash::Kill(&segment.kernel)
                        } else {
                            Crash::Power
                        };
                        Recovery::new(rig, of, segment.trials).run(&after, crash, *again)
                    });
                    // What the agent has said is done must outlive the power.
                    let lost =
                        Err("a step has ended, and its effects are lost with the power".to_owned());
                    let outcome = match (variant, &outcome) {
                        (Variant::NothingLost, Ok(end)) if *again => {
                            whole = Some(*end);
                            outcome
                        }
                        (Variant::UnsyncedLost | Variant::Torn, Ok(end))
                            if *again
                                && ends_a_step
                                && whole.is_some_and(|whole| whole != *end) =>
                        {
                            &lost
                        }
                        _ => outcome,
                    };
                    match outcome {
                        Ok(end) => *tally.ends.entry(*end).or_default() += 1,
                        Err(why) if new => {
                            let step = at.checked_sub(1).and_then(|at| segment.events.get(at));
                            let verb = step.and_then(|(step, _)| segment.steps.get(*step));
                            let verb = verb.map_or("the beginning", String::as_str);
                            let change = step
                                .map(|(_, event)| brief(&format!("{event:?}")))
                                .unwrap_or_default();
                            tally.faults.push(format!(
                                "boot {number}, change {at} ({verb}: {change}), {variant:?} {left:?} again={again}: {why}"
                            ));
                        }
                        Err(_) => {}
                    }
                    if tally.faults.len() >= most {
                        return;
                    }
                }
            }
            if let Some((_, event)) = segment.events.get(at) {
                disk.apply(event);
            }
        }
    }
}

fn brief(text: &str) -> String {
    text.chars().take(90).collect()
}
