//! What may happen to a node, by a seed.

use std::time::Duration;

use gdr_agent::reboot::{Coordinator, Desk, Question, Refusal, Request, Standing};

use crate::model::Left;
use crate::random::Random;

/// What the coordinator says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mood {
    Yes,
    No,
    Later,
    /// Yes, and nothing is written down of it.
    Lies,
    /// Yes, and then there is no reboot.
    Forgets,
}

/// What cuts a command short.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blow {
    None,
    /// The power, before this change.
    Power(usize, Left),
    /// A kill.
    Kill(usize),
    /// A change fails.
    Error(usize),
    /// The disk is full for so many changes.
    Full(usize, usize),
}

/// One thing that happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happens {
    /// Somebody, or a unit, runs the agent.
    Run(&'static [&'static str], Mood, Blow),
    /// The machine goes down through its units and comes up.
    Reboot { dies: bool, writable: bool },
    /// Somebody pulls the plug while nothing is written.
    Reset { dies: bool },
    /// A kernel is installed by the package manager.
    NewKernel,
    /// `update-grub`, or what grub2-mkconfig does to entries.
    UpdateGrub,
}

const RUNS: [&[&str]; 7] = [
    &["apply", "--reboot"],
    &["apply", "--reboot"],
    &["apply", "--no-reboot"],
    &["boot", "reconcile"],
    &["boot", "reconcile"],
    &["rollback"],
    &["boot", "uninstall"],
];

/// The schedule of a seed.
pub fn schedule(seed: u64) -> Vec<Happens> {
    let mut random = Random::new(seed);
    let length = 3 + random.below(7);
    (0..length).map(|n| one(&mut random, n == 0)).collect()
}

fn one(random: &mut Random, first: bool) -> Happens {
    let moods = [
        Mood::Yes,
        Mood::Yes,
        Mood::Yes,
        Mood::No,
        Mood::Later,
        Mood::Lies,
        Mood::Forgets,
    ];
    let pick = |random: &mut Random, n: usize| usize::try_from(random.below(n as u64)).unwrap_or(0);
    match if first { 0 } else { random.below(12) } {
        0..=5 => {
            let words = RUNS[pick(random, if first { 3 } else { RUNS.len() })];
            let mood = moods[pick(random, moods.len())];
            let at = pick(random, 150);
            let blow = match random.below(10) {
                0..=4 => Blow::None,
                5 => Blow::Power(at, [Left::All, Left::Synced][pick(random, 2)]),
                6 => Blow::Power(at, Left::Part(random.next())),
                7 => Blow::Kill(at),
                8 => Blow::Error(at),
                _ => Blow::Full(at, 1 + pick(random, 40)),
            };
            Happens::Run(words, mood, blow)
        }
        6..=8 => Happens::Reboot {
            dies: random.below(4) == 0,
            writable: random.below(8) != 0,
        },
        9 => Happens::Reset {
            dies: random.below(4) == 0,
        },
        10 => Happens::NewKernel,
        _ => Happens::UpdateGrub,
    }
}

/// A coordinator of that mood.
#[derive(Debug)]
pub struct Moody(pub Mood);

impl Coordinator for Moody {
    fn name(&self) -> &'static str {
        "logind"
    }

    fn can(&self) -> Result<(), Refusal> {
        Ok(())
    }

    fn request(&self, _: &Request, desk: &mut dyn Desk) -> Result<(), Refusal> {
        let text = "not today".to_owned();
        match self.0 {
            Mood::Yes | Mood::Forgets => desk.granted().map_err(|text| Refusal::Busy { text }),
            Mood::Lies => Ok(()),
            Mood::No => Err(Refusal::Denied {
                by: Vec::new(),
                text,
            }),
            Mood::Later => Err(Refusal::Busy { text }),
        }
    }

    fn questions(&self, _: &Request, _: bool) -> Vec<Question> {
        Vec::new()
    }

    fn poll(&self, _: Duration) -> Result<Standing, Refusal> {
        Ok(match self.0 {
            Mood::Forgets => Standing::Gone("nothing is scheduled".to_owned()),
            _ => Standing::Coming("soon".to_owned()),
        })
    }

    fn cancel(&self) -> Result<(), Refusal> {
        Ok(())
    }

    fn release(&self) -> Result<(), Refusal> {
        Ok(())
    }
}
