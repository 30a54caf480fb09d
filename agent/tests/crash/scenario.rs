//! What a node goes through, written down change by change.

use std::sync::Arc;

use gdr_tests::node::grub::Firmware;
use gdr_tests::node::{Family, NodeSpec, Reboot};

use crate::bugs::Bug;
use crate::model::{Disk, Event};
use crate::rig::{Kernel, Print, Rig, failing, spec};
use crate::spy::{Order, Spy};

/// One step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The agent does something, and nobody minds how it ends.
    Agent(&'static [&'static str]),
    /// The machine goes down as it should and comes up again, and its units run.
    Reboot,
    /// Somebody else sets a variable with `grub-editenv`; on real file systems only.
    Editenv,
}

/// What happens after the crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    /// The node boots, and its units run until there is nothing to do.
    Boots,
    /// The same is run again, and then the node boots: an image is made, or a package removed.
    Again(&'static [&'static str]),
}

/// A way through the agent.
#[derive(Debug, Clone)]
pub struct Scenario {
    pub name: &'static str,
    pub family: Family,
    pub spec: NodeSpec,
    /// Steps before those whose crashes are looked at.
    pub before: &'static [Step],
    pub steps: &'static [Step],
    pub after: After,
    /// May the agent reboot the node?
    pub leave: bool,
    /// Kernels of trials panic.
    pub dies: bool,
    /// GRUB can write its environment.
    pub writable: bool,
    /// It has not booted yet.
    pub image: bool,
}

use Step::{Agent, Reboot as Boot};

pub const APPLY: Step = Agent(&["apply", "--reboot"]);
pub const ARM: Step = Agent(&["boot", "arm"]);
pub const LIFE: &[Step] = &[APPLY, ARM, Boot, Boot];

impl Scenario {
    pub fn all(family: Family) -> Vec<Self> {
        let base = Self {
            name: "",
            family,
            spec: spec(family),
            before: &[],
            steps: LIFE,
            after: After::Boots,
            leave: true,
            dies: false,
            writable: true,
            image: false,
        };
        let commits = |spec: &NodeSpec| {
            let policy = spec.policy.clone().unwrap_or_default();
            NodeSpec {
                policy: Some(format!("{policy}\n[trial]\nbake = \"commit\"\n")),
                ..spec.clone()
            }
        };
        vec![
            Self {
                name: "commit",
                ..base.clone()
            },
            Self {
                name: "stage only",
                steps: &[Agent(&["apply", "--no-reboot"]), Boot],
                leave: false,
                ..base.clone()
            },
            Self {
                name: "trial dies",
                dies: true,
                steps: &[APPLY, ARM, Boot],
                ..base.clone()
            },
            Self {
                name: "trial dies, GRUB cannot write",
                dies: true,
                writable: false,
                steps: &[APPLY, ARM, Boot],
                ..base.clone()
            },
            Self {
                name: "check fails",
                spec: failing(family),
                steps: &[APPLY, ARM, Boot, ARM, Boot],
                ..base.clone()
            },
            Self {
                name: "rollback",
                before: LIFE,
                steps: &[Agent(&["rollback"]), ARM, Boot],
                ..base.clone()
            },
            Self {
                name: "rollback of a stage",
                before: &[Agent(&["apply", "--no-reboot"])],
                steps: &[Agent(&["rollback"])],
                leave: false,
                ..base.clone()
            },
            Self {
                name: "bake: trial",
                steps: &[Agent(&["apply", "--bake"])],
                after: After::Again(&["apply", "--bake"]),
                image: true,
                ..base.clone()
            },
            Self {
                name: "bake: commit",
                spec: commits(&base.spec),
                steps: &[Agent(&["apply", "--bake"])],
                after: After::Again(&["apply", "--bake"]),
                image: true,
                ..base.clone()
            },
            Self {
                name: "removal when armed",
                before: &[APPLY, ARM],
                steps: &[Agent(&["boot", "uninstall"])],
                after: After::Again(&["boot", "uninstall"]),
                ..base.clone()
            },
            Self {
                name: "purge when armed",
                before: &[APPLY, ARM],
                steps: &[Agent(&["boot", "uninstall", "--purge"])],
                after: After::Again(&["boot", "uninstall", "--purge"]),
                ..base.clone()
            },
            Self {
                name: "purge of a commit",
                before: LIFE,
                steps: &[Agent(&["boot", "uninstall", "--purge"])],
                after: After::Again(&["boot", "uninstall", "--purge"]),
                ..base
            },
        ]
    }

    pub fn power(&self) -> Reboot {
        Reboot {
            dies: self.dies,
            firmware: Firmware {
                writable: self.writable,
            },
        }
    }
}

/// What happened between two boots.
#[derive(Debug)]
pub struct Segment {
    pub base: Disk,
    pub kernel: Kernel,
    /// Each change with the number of its step.
    pub events: Vec<(usize, Event)>,
    pub steps: Vec<String>,
    /// Trials that were booted up to here.
    pub trials: usize,
}

/// A scenario that has been gone through.
#[derive(Debug)]
pub struct Recording {
    pub scenario: Scenario,
    pub segments: Vec<Segment>,
    /// The files before any of it, once a policy is committed, and at the end.
    pub original: Print,
    pub committed: Print,
    /// The line that was booted before, and with the policy.
    pub known_good: String,
    pub target: String,
}

/// A line without what GRUB puts before it.
pub fn plain(line: &str) -> String {
    let words = line
        .split_whitespace()
        .filter(|word| !word.starts_with("BOOT_IMAGE="));
    words.collect::<Vec<_>>().join(" ")
}

pub fn is_trial(line: &str) -> bool {
    line.split_whitespace()
        .any(|word| word.starts_with("gdr.txn="))
}

/// Goes through a scenario on `rig`, which was made for it.
pub fn record(rig: &Rig, scenario: &Scenario, bug: Option<Bug>) -> Result<Recording, String> {
    let original = rig.print();
    let known_good = plain(&rig.cmdline());
    let (committed, target) = reference(scenario)?;
    if scenario.image {
        for path in ["proc/cmdline", "proc/sys/kernel/random/boot_id"] {
            std::fs::remove_file(rig.root.join(path)).map_err(|e| e.to_string())?;
        }
    }
    let mut tape = Tape {
        rig,
        scenario,
        bug,
        segments: Vec::new(),
        trials: 0,
        spy: None,
    };
    scenario
        .before
        .iter()
        .try_for_each(|step| tape.play(*step, false))?;
    tape.cut(true);
    scenario
        .steps
        .iter()
        .try_for_each(|step| tape.play(*step, true))?;
    tape.end();
    let segments = tape.segments;
    Ok(Recording {
        scenario: scenario.clone(),
        segments,
        original,
        committed,
        known_good,
        target,
    })
}

/// What an undisturbed node of the same kind comes to.
pub fn reference(scenario: &Scenario) -> Result<(Print, String), String> {
    let spec = NodeSpec {
        policy: scenario.spec.policy.clone(),
        cmdline: scenario.spec.cmdline.clone(),
        ..spec(scenario.family)
    };
    let sound = Scenario {
        dies: false,
        writable: true,
        image: false,
        ..scenario.clone()
    };
    let rig = Rig::new(&spec);
    let mut tape = Tape {
        rig: &rig,
        scenario: &sound,
        bug: None,
        segments: Vec::new(),
        trials: 0,
        spy: None,
    };
    LIFE.iter().try_for_each(|step| tape.play(*step, false))?;
    Ok((rig.print(), plain(&rig.cmdline())))
}

struct Tape<'a> {
    rig: &'a Rig,
    scenario: &'a Scenario,
    bug: Option<Bug>,
    segments: Vec<Segment>,
    trials: usize,
    spy: Option<Arc<Spy>>,
}

impl Tape<'_> {
    /// Begins a new segment: everything is on the disk.
    fn cut(&mut self, records: bool) {
        self.end();
        if records {
            let spy = Arc::new(Spy::on(&self.rig.root, self.bug, Order::Look));
            self.segments.push(Segment {
                base: spy.disk(),
                kernel: self.rig.kernel(),
                events: Vec::new(),
                steps: Vec::new(),
                trials: self.trials,
            });
            self.spy = Some(spy);
        }
    }

    fn end(&mut self) {
        let Some(spy) = self.spy.take() else { return };
        assert_eq!(
            spy.disk().digest(),
            self.rig.disk().digest(),
            "something was changed that the one who looks on did not see"
        );
        if let (Some(bug), Some(segment)) = (self.bug, self.segments.last_mut()) {
            bug.reorder(&mut segment.events);
        }
    }

    fn agent(&mut self, words: &[&str]) {
        let watch = self.spy.clone();
        let before = watch.as_ref().map_or(0, |spy| spy.events().len());
        // How it ends is the other tests' question; some of these verbs say no.
        let _ = self.rig.agent(watch.clone().map(|spy| spy as _), words);
        let Some(spy) = watch else { return };
        let Some(segment) = self.segments.last_mut() else {
            return;
        };
        let step = segment.steps.len();
        segment.steps.push(words.join(" "));
        segment
            .events
            .extend(spy.events().drain(before..).map(|event| (step, event)));
    }

    fn play(&mut self, step: Step, records: bool) -> Result<(), String> {
        match step {
            Step::Agent(words) => self.agent(words),
            Step::Editenv => panic!("nobody else is recorded"),
            Step::Reboot => {
                self.end();
                let boots = self.rig.power(self.scenario.power())?;
                self.trials += boots
                    .iter()
                    .filter(|boot| is_trial(&boot.grub.cmdline))
                    .count();
                self.cut(records);
                for words in [&["boot", "acs"], &["boot", "settle"]] {
                    self.agent(words);
                }
                if is_trial(&self.rig.cmdline()) {
                    self.agent(&["boot", "verify"]);
                }
            }
        }
        Ok(())
    }
}
