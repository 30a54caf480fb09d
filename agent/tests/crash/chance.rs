//! What may happen to a node, by a seed.

use crate::model::Left;
use crate::random::Random;

/// What the coordinator says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mood {
    Yes,
    No,
    Later,
    /// Yes, and nothing is written down of it.
    Lies,
    /// Yes, and then there is no reboot.
    Forgets,
    /// No answer at all.
    Silent,
    /// The question came through, the answer did not: nobody knows what it was.
    Lost,
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

/// What becomes of a boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Up,
    /// A trial's kernel panics, and `panic=` resets the machine.
    Panics,
    /// It hangs at once, and a person turns the power off and on hours later.
    Hangs,
    /// A trial hangs once its units run, and the agent's deadline resets it.
    HangsThenDeadline,
    /// The same, and a person or a watchdog resets it.
    HangsThenReset,
}

/// One thing that happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happens {
    /// Somebody, or a unit, runs the agent.
    Run(&'static [&'static str], Mood, Blow),
    /// The machine goes down through its units and comes up; a blow meets one of its units.
    Reboot {
        fate: Fate,
        writable: bool,
        blow: Option<(&'static str, Blow)>,
    },
    /// Somebody pulls the plug while nothing is written.
    Reset { fate: Fate },
    /// A kernel is installed by the package manager, which dies after so many files.
    NewKernel { dies_after: usize },
    /// `update-grub`, or what grub2-mkconfig does to entries; it may die with its new menu half written.
    UpdateGrub { dies: bool },
    /// Somebody sets the clock.
    Clock(u64),
}

/// An ordinary time.
pub const NOW: u64 = 1_700_000_000;

/// Two minutes later, hours and a year later, a year before, and a clock without a battery.
const TIMES: [u64; 6] = [
    NOW,
    NOW + 120,
    NOW + 30_000,
    NOW + 31_000_000,
    NOW - 31_000_000,
    0,
];

const RUNS: [&[&str]; 8] = [
    &["apply", "--reboot"],
    &["apply", "--reboot"],
    &["apply", "--no-reboot"],
    &["boot", "reconcile"],
    &["boot", "reconcile"],
    &["boot", "ask"],
    &["rollback"],
    &["boot", "uninstall"],
];

/// Units whose work is worth a blow.
const UNITS: [&str; 4] = ["arm", "settle", "verify", "verify"];

const MOODS: [Mood; 9] = [
    Mood::Yes,
    Mood::Yes,
    Mood::Yes,
    Mood::No,
    Mood::Later,
    Mood::Lies,
    Mood::Forgets,
    Mood::Silent,
    Mood::Lost,
];

/// The schedule of a seed. Sixteen neighbours share all but their last two events, four of them all but the last one: what
/// they share is gone through once.
pub fn schedule(seed: u64) -> Vec<Happens> {
    let mut random = Random::new(seed >> 4);
    let length = 3 + random.below(7);
    let mut all: Vec<_> = (0..length - 2).map(|n| one(&mut random, n == 0)).collect();
    for (salt, seed) in [(1 << 62, seed >> 2), (1 << 63, seed)] {
        all.push(one(&mut Random::new(seed | salt), false));
    }
    all
}

fn pick<T: Copy>(random: &mut Random, from: &[T]) -> T {
    from[usize::try_from(random.below(from.len() as u64)).unwrap_or(0)]
}

fn below(random: &mut Random, n: u64) -> usize {
    usize::try_from(random.below(n)).unwrap_or(0)
}

fn blow(random: &mut Random) -> Blow {
    let at = below(random, 150);
    match random.below(5) {
        0 => Blow::Power(at, pick(random, &[Left::All, Left::Synced])),
        1 => Blow::Power(at, Left::Part(random.next())),
        2 => Blow::Kill(at),
        3 => Blow::Error(at),
        _ => Blow::Full(at, 1 + below(random, 40)),
    }
}

fn fate(random: &mut Random) -> Fate {
    match random.below(12) {
        0 | 1 => Fate::Panics,
        2 => Fate::Hangs,
        3 => Fate::HangsThenDeadline,
        4 => Fate::HangsThenReset,
        _ => Fate::Up,
    }
}

fn one(random: &mut Random, first: bool) -> Happens {
    match if first { 0 } else { random.below(14) } {
        0..=5 => {
            let words = match first {
                true => RUNS[below(random, 3)],
                false => pick(random, &RUNS),
            };
            let mood = pick(random, &MOODS);
            let blow = match random.below(2) {
                0 => Blow::None,
                _ => blow(random),
            };
            Happens::Run(words, mood, blow)
        }
        6..=8 => Happens::Reboot {
            fate: fate(random),
            writable: random.below(8) != 0,
            blow: match random.below(3) {
                0 => Some((pick(random, &UNITS), blow(random))),
                _ => None,
            },
        },
        9 => Happens::Reset { fate: fate(random) },
        10 => Happens::NewKernel {
            dies_after: match random.below(2) {
                0 => usize::MAX,
                _ => below(random, 4),
            },
        },
        11 => Happens::UpdateGrub {
            dies: random.below(3) == 0,
        },
        _ => Happens::Clock(pick(random, &TIMES)),
    }
}

/// Simpler things that could have happened instead.
pub fn simpler(happens: Happens) -> Vec<Happens> {
    let milder = |blow| match blow {
        Blow::None => Vec::new(),
        Blow::Power(at, Left::Part(_)) => vec![
            Blow::None,
            Blow::Power(at, Left::All),
            Blow::Power(at, Left::Synced),
        ],
        Blow::Full(at, n) if n > 1 => vec![Blow::None, Blow::Error(at), Blow::Full(at, 1)],
        _ => vec![Blow::None],
    };
    match happens {
        Happens::Run(words, mood, blow) => {
            let others = milder(blow).into_iter();
            let mut all: Vec<_> = others.map(|b| Happens::Run(words, mood, b)).collect();
            if mood != Mood::Yes {
                all.push(Happens::Run(words, Mood::Yes, blow));
            }
            all
        }
        Happens::Reboot {
            fate,
            writable,
            blow,
        } => {
            let mut all = vec![Happens::Reboot {
                fate: Fate::Up,
                writable: true,
                blow,
            }];
            if let Some((unit, blow)) = blow {
                all.extend(milder(blow).into_iter().map(|b| Happens::Reboot {
                    fate,
                    writable,
                    blow: Some((unit, b)).filter(|(_, b)| *b != Blow::None),
                }));
            }
            all.retain(|other| *other != happens);
            all
        }
        Happens::Reset { fate } if fate != Fate::Up => vec![Happens::Reset { fate: Fate::Up }],
        _ => Vec::new(),
    }
}
