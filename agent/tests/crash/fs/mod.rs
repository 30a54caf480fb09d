//! Crashes on real file systems: after each change of a file the block devices are kept as they are at that moment,
//! and looked at twice. GRUB boots from what it sees of them without their journals, and writes there; Linux
//! mounts what is left then, and the node goes on from that.

mod blocks;
mod camera;
mod film;
mod grub;
mod power;
mod scenarios;
mod tally;
mod volume;

use std::collections::HashMap;
use std::time::Instant;

use self::film::{Film, Segment, film};
use self::power::{Afterwards, power_comes_back};
pub use self::scenarios::scenarios;
pub use self::tally::{HEAD, Tally};
use self::volume::Disks;
pub use self::volume::{FileSystem, lacking, sweep};
use crate::recover::{Crash, End, Recovery};
use crate::scenario::{After, Scenario};

/// How much of it.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Of the different disks, one in so many, besides those where a command ended.
    pub disks: usize,
    /// Without freezing: a worse agent.
    pub freezes: bool,
    /// Stop at so many faults.
    pub most: usize,
}

/// Crashes a scenario at each point.
pub fn crash(scenario: &Scenario, system: FileSystem, effort: Effort) -> Tally {
    let started = Instant::now();
    let mut tally = Tally::default();
    let outcome = film(scenario, system, effort.freezes)
        .and_then(|film| points(&film, system, effort, &mut tally));
    if let Err(why) = outcome {
        tally.faults.push(why);
    }
    tally.seconds = started.elapsed().as_secs_f64();
    tally
}

fn points(
    film: &Film,
    system: FileSystem,
    effort: Effort,
    tally: &mut Tally,
) -> Result<(), String> {
    let mut seen: HashMap<String, Result<End, String>> = HashMap::new();
    let cut = Disks::blank(system)?;
    for (number, segment) in film.segments.iter().enumerate() {
        let mut now = segment.base.clone();
        let mut commands = segment.ends.iter().peekable();
        let mut changed = true;
        let mut theirs = false;
        for (at, shot) in segment.shots.iter().enumerate() {
            for (blocks, delta) in now.iter_mut().zip(&shot.deltas) {
                blocks.apply(delta);
            }
            changed |= shot.differs();
            tally.points += 1;
            let ended = commands.next_if(|ended| ended.shots == at + 1);
            if changed {
                tally.disks += 1;
            }
            let tried = ended.is_some() || (changed && tally.disks.is_multiple_of(effort.disks));
            changed = false;
            if !tried {
                continue;
            }
            tally.tried += 1;
            let verb = ended
                .or(commands.peek().copied())
                .map_or("", |ended| &ended.command);
            let place = format!("boot {number}, change {at} ({verb}: {})", shot.change);
            let after = power_comes_back(film, &cut, &now, at % 2 == 1)
                .map_err(|why| format!("{place}: {why}"))?;
            tally.stale += usize::from(after.stale);

            if let Some(ended) = ended {
                // What others write is theirs to bring to GRUB, until the agent writes. Arming waits for the end
                // of the shutdown: until then GRUB may find nothing armed.
                theirs = after.stale && (theirs || ended.theirs);
                if after.stale && !theirs && ended.command != "boot arm" {
                    tally
                        .faults
                        .push(format!("{place}: GRUB does not see what was done"));
                }
            }
            let whole = ended.map(|ended| &ended.disk);
            for again in ways(&film.of.scenario) {
                let outcome = judged(film, &after, segment, *again, &mut seen);
                let outcome = match (outcome, whole) {
                    // What the agent has said is done must outlive the power.
                    (Ok(end), Some(disk)) if *again => {
                        let kept = Recovery::new(&film.rig, &film.of, segment.trials).run(
                            disk,
                            Crash::Power,
                            true,
                        )?;
                        match kept == end {
                            true => Ok(end),
                            false => Err(format!(
                                "a step has ended, and its effects are lost with the power: {end:?} and not {kept:?}"
                            )),
                        }
                    }
                    (outcome, _) => outcome,
                };
                match outcome {
                    Ok(end) => *tally.ends.entry(end).or_default() += 1,
                    Err(why) => tally.faults.push(format!("{place} again={again}: {why}")),
                }
                if tally.faults.len() >= effort.most {
                    return Ok(());
                }
            }
        }
    }
    Ok(())
}

fn ways(scenario: &Scenario) -> &'static [bool] {
    match scenario.after {
        After::Boots => &[true],
        After::Again(_) => &[true, false],
    }
}

fn judged(
    film: &Film,
    after: &Afterwards,
    segment: &Segment,
    again: bool,
    seen: &mut HashMap<String, Result<End, String>>,
) -> Result<End, String> {
    let scenario = &film.of.scenario;
    let boots = match &after.boots {
        Ok(boots) => boots,
        Err(why) => return Err(format!("it does not boot: {why}")),
    };
    let lines: Vec<&str> = boots
        .iter()
        .map(|boot| boot.grub.cmdline.as_str())
        .collect();
    let key = format!(
        "{:x} {again} {} {lines:?}",
        after.disk.digest(),
        segment.trials
    );
    let outcome = seen.entry(key).or_insert_with(|| {
        let mut recovery = Recovery::new(&film.rig, &film.of, segment.trials);
        if !scenario.image {
            recovery = recovery.booted(boots.clone());
        }
        recovery.run(&after.disk, Crash::Power, again)
    });
    outcome.clone()
}
