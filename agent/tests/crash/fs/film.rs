//! Lets a node on mounted images go through a scenario, with a camera.

use std::path::Path;
use std::sync::Arc;

use gdr_tests::node::{self, NodeSpec};

use super::blocks::Blocks;
use super::camera::{Camera, Shot};
use super::volume::{Disks, FileSystem, run, text};
use crate::model::Disk;
use crate::rig::{Rig, agent};
use crate::scenario::{Recording, Scenario, Step, is_trial, plain, reference};

/// A node whose kernel says which file system it is on.
fn rig(spec: &NodeSpec, system: FileSystem) -> Rig {
    let rig = Rig::new(spec);
    for file in [
        "proc/1/mountinfo",
        "proc/self/mountinfo",
        "proc/mounts",
        "proc/self/mounts",
        "proc/1/mounts",
    ] {
        let path = rig.root.join(file);
        if let Ok(old) = std::fs::read_to_string(&path)
            && !path.is_symlink()
        {
            std::fs::write(
                &path,
                old.replace(" ext4 ", &format!(" {} ", system.name())),
            )
            .unwrap();
        }
    }
    rig
}

/// What happened between two boots.
#[derive(Debug)]
pub struct Segment {
    pub base: Vec<Blocks>,
    pub shots: Vec<Shot>,
    pub ends: Vec<Ended>,
    pub trials: usize,
}

/// A command that has ended.
#[derive(Debug)]
pub struct Ended {
    /// Shots up to then.
    pub shots: usize,
    pub command: String,
    /// It was not the agent's.
    pub theirs: bool,
    /// What was on the node's disk to programs.
    pub disk: Disk,
}

/// A scenario that has been gone through.
#[derive(Debug)]
pub struct Film {
    pub of: Recording,
    pub rig: Rig,
    pub os_release: Vec<u8>,
    pub segments: Vec<Segment>,
}

pub fn film(scenario: &Scenario, system: FileSystem, freezes: bool) -> Result<Film, String> {
    let rig = rig(&scenario.spec, system);
    let (committed, target) = reference(scenario)?;
    let of = Recording {
        scenario: scenario.clone(),
        segments: Vec::new(),
        original: rig.print(),
        committed,
        known_good: plain(&rig.cmdline()),
        target,
    };
    let os_release =
        std::fs::read(rig.root.join("usr/lib/os-release")).map_err(|e| e.to_string())?;
    let disks = Disks::make(system)?;
    let mounted = disks.mount()?;
    run(
        "cp",
        &["-a", &format!("{}/.", text(&rig.root)), text(&disks.root())],
    )?;
    if scenario.image {
        for path in ["proc/cmdline", "proc/sys/kernel/random/boot_id"] {
            std::fs::remove_file(disks.root().join(path)).map_err(|e| e.to_string())?;
        }
    }
    mounted.end()?;
    let mut shooting = Shooting {
        scenario,
        disks: &disks,
        freezes,
        trials: 0,
        segments: Vec::new(),
    };
    shooting.play(scenario.before, false)?;
    shooting.play(scenario.steps, true)?;
    let segments = shooting.segments;
    Ok(Film {
        of,
        rig,
        os_release,
        segments,
    })
}

struct Shooting<'a> {
    scenario: &'a Scenario,
    disks: &'a Disks,
    freezes: bool,
    trials: usize,
    segments: Vec<Segment>,
}

impl Shooting<'_> {
    /// Each boot begins with disks that were unmounted.
    fn play(&mut self, steps: &[Step], records: bool) -> Result<(), String> {
        let boots: Vec<&[Step]> = steps
            .split_inclusive(|step| *step == Step::Reboot)
            .collect();
        let mut rebooted = false;
        for boot in boots {
            self.one_boot(rebooted, boot, records)?;
            rebooted = boot.last() == Some(&Step::Reboot);
        }
        if rebooted {
            self.one_boot(true, &[], records)?;
        }
        Ok(())
    }

    fn one_boot(&mut self, rebooted: bool, steps: &[Step], records: bool) -> Result<(), String> {
        let root = self.disks.root();
        let base = self.disks.read()?;
        let mounted = self.disks.mount()?;
        let camera = Arc::new(Camera::on(self.disks, &mounted, &base, self.freezes));
        let mut ends = Vec::new();
        let mut words: Vec<&'static [&'static str]> = Vec::new();
        if rebooted {
            words.extend([
                &["boot", "acs"] as &'static [&'static str],
                &["boot", "settle"],
            ]);
            let line = std::fs::read_to_string(root.join("proc/cmdline"));
            if is_trial(&line.map_err(|e| e.to_string())?) {
                words.push(&["boot", "verify"]);
            }
        }
        let units = words.into_iter().map(Step::Agent);
        for step in units.chain(steps.iter().copied()) {
            let command = match step {
                Step::Agent(words) => {
                    // How it ends is the other tests' question; some of these verbs say no.
                    let _ = agent(&root, Some(camera.clone()), words);
                    words.join(" ")
                }
                Step::Editenv => {
                    editenv(&root)?;
                    camera.shoot("grub-editenv");
                    "grub-editenv".to_owned()
                }
                Step::Reboot => continue,
            };
            ends.push(Ended {
                shots: camera.count(),
                command,
                theirs: step == Step::Editenv,
                disk: scan(&root),
            });
        }
        if records {
            self.segments.push(Segment {
                base,
                shots: camera.shots(),
                ends,
                trials: self.trials,
            });
        }
        if steps.last() == Some(&Step::Reboot) {
            let boots = node::reboot(&root, self.scenario.power()).map_err(|e| e.to_string())?;
            let trials = boots.iter().filter(|boot| is_trial(&boot.grub.cmdline));
            self.trials += trials.count();
        }
        mounted.end()
    }
}

/// Sets a variable and takes it away again: the file is emptied and written, twice, and synced.
fn editenv(root: &Path) -> Result<(), String> {
    let env = ["boot/grub/grubenv", "boot/grub2/grubenv"]
        .into_iter()
        .find(|path| root.join(path).exists())
        .ok_or("there is no grubenv")?;
    for words in [["set", "recordfail=1"], ["unset", "recordfail"]] {
        run("grub-editenv", &[text(&root.join(env)), words[0], words[1]])?;
    }
    Ok(())
}

pub fn scan(root: &Path) -> Disk {
    Disk::scan(root, &mut 0, &mut |_, _| {})
}
