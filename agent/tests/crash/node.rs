//! One node: a state goes in, the real agent, GRUB or package manager works on it in a directory, and a state comes out.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{Hash, Hasher};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use gdr_agent::cli::run_on;
use gdr_agent::journal::Journal;
use gdr_agent::machine::Txn;
use gdr_agent::reboot::Coordinator;
use gdr_agent::sys::{Root, Watch};
use gdr_tests::node::grub::Firmware;
use gdr_tests::node::{self, Boot, Family, Reboot, Tree, install_kernel, rewrite_entries};

use crate::bugs::Bug;
use crate::chance::Mood;
use crate::model::{Disk, Event, Left, Running};
use crate::moody::Moody;
use crate::random::Random;
use crate::rig::Rig;
use crate::spy::{Nature, Order, Spy};
use crate::state::{Changes, Mirror, Node, Part, is_never_read};

/// What the agent was asked to do.
pub type Words = &'static [&'static str];

/// All that counts about a node.
#[derive(Debug, Clone)]
pub struct State {
    pub disk: Rc<Part>,
    pub kernel: Rc<Part>,
    pub time: u64,
    /// Trials that were booted and are still known to the disk.
    pub booted: Rc<BTreeSet<String>>,
    /// How often a reboot was granted for those.
    pub grants: Rc<BTreeMap<String, u32>>,
    /// Somebody has said that the agent may reboot.
    pub leave: bool,
    /// Others have changed what boots.
    pub foreign: bool,
}

impl State {
    pub fn key(&self) -> u64 {
        hash_of(&(
            (self.disk.digest, self.kernel.digest, self.time),
            (&self.booted, &self.grants, self.leave, self.foreign),
        ))
    }
}

pub fn hash_of(of: &impl Hash) -> u64 {
    let mut hash = std::hash::DefaultHasher::new();
    of.hash(&mut hash);
    hash.finish()
}

/// A run of the agent, change by change.
#[derive(Debug)]
pub struct Tape {
    before: Disk,
    events: Vec<Event>,
    marks: Vec<usize>,
}

impl Tape {
    /// Changes that the agent asked for.
    pub fn len(&self) -> usize {
        self.marks.len()
    }

    /// What is left of the disk when the power goes before this change.
    fn cut(&self, at: usize, left: Left, bug: Option<Bug>) -> Disk {
        let all = self.events.len();
        let n = match bug {
            None => self.marks.get(at).copied().unwrap_or(all),
            Some(_) => at.min(all),
        };
        let mut disk = Running::new(self.before.clone());
        self.events[..n].iter().for_each(|event| disk.apply(event));
        disk.cut(left)
    }
}

/// How a run of the agent goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Run {
    pub words: Words,
    /// None where nobody is there to be asked.
    pub mood: Option<Mood>,
    pub order: Order,
    /// Seconds since the boot.
    pub since_boot: u64,
}

/// How often something was really done.
#[derive(Debug, Clone, Copy, Default)]
pub struct Count {
    pub runs: usize,
    pub boots: usize,
}

/// The node in its directory.
#[derive(Debug)]
pub struct Machine {
    rig: Rig,
    family: Family,
    bug: Option<Bug>,
    mirror: Mirror,
    boot_ids: HashMap<u64, Vec<u32>>,
    pub count: Count,
}

/// Every so many runs it is looked whether the directory is what it is believed to be.
const CHECKED: usize = 250;

impl Machine {
    pub fn new(family: Family, bug: Option<Bug>) -> (Self, State) {
        let rig = Rig::new(&crate::rig::spec(family));
        write_boot_id(&rig, 0);
        let mut machine = Self {
            mirror: Mirror::new(&rig.root),
            rig,
            family,
            bug,
            boot_ids: HashMap::new(),
            count: Count::default(),
        };
        let state = State {
            disk: machine.mirror.disk_part(),
            kernel: machine.mirror.kernel_part(true),
            time: crate::chance::NOW,
            booted: Rc::default(),
            grants: Rc::default(),
            leave: false,
            foreign: false,
        };
        (machine, state)
    }

    fn become_this(&mut self, state: &State) {
        self.mirror.become_this(&state.disk, &state.kernel);
    }

    /// The line that its kernel was started with.
    pub fn cmdline(&self, state: &State) -> String {
        let now = state.kernel.text("proc/cmdline");
        now.unwrap_or_else(|| self.first_line().to_owned())
    }

    fn first_line(&self) -> &str {
        self.mirror.base_text("proc/cmdline")
    }

    /// The last transaction.
    pub fn txn(&mut self, state: &State) -> Result<Option<Txn>, String> {
        self.become_this(state);
        let root = Root::open(&self.rig.root).map_err(|e| e.to_string())?;
        let journal = Journal::open(&root).map_err(|e| format!("the journal: {e}"))?;
        Ok(journal.last().map(|record| record.txn.clone()))
    }

    /// Runs the agent. What it says is an error only if nothing has disturbed it.
    pub fn run(&mut self, state: &State, how: Run) -> (Result<State, String>, Tape) {
        self.become_this(state);
        self.count.runs += 1;
        let before = self.mirror.known.disk.clone();
        let nature = Nature {
            time: state.time,
            since_boot: Duration::from_secs(how.since_boot),
            random: Random::new(self.chance(state)),
        };
        let known = std::mem::take(&mut self.mirror.known);
        let spy = Arc::new(Spy::knowing(known, self.bug, how.order, Some(nature)));
        let moody = how.mood.map(|mood| Rc::new(Moody::new(mood)));
        let coordinator = moody.clone().map(|moody| moody as Rc<dyn Coordinator>);
        let root = Root::open(&self.rig.root).unwrap();
        let root = root
            .speaking_of_the_node()
            .watched(spy.clone() as Arc<dyn Watch>);
        let words: Vec<&str> = ["--quiet"].iter().chain(how.words).copied().collect();
        let ended = run_on(root, coordinator, &words);
        let seen = spy.seen();
        self.mirror.known = seen.known;
        let mut events = seen.events;
        if let Some(bug) = self.bug {
            let mut numbered: Vec<_> = events.into_iter().map(|event| (0, event)).collect();
            bug.reorder(&mut numbered);
            events = numbered.into_iter().map(|(_, event)| event).collect();
        }
        let mut next = State {
            disk: self.mirror.disk_part(),
            kernel: self.mirror.kernel_part(false),
            leave: state.leave || how.words.contains(&"--reboot"),
            ..state.clone()
        };
        if self.count.runs.is_multiple_of(CHECKED) {
            self.mirror.assert_true();
        }
        let deadline = how.words.contains(&"deadline");
        let tape = Tape {
            before,
            events,
            marks: seen.marks,
        };
        let fault = match &ended {
            Err(e) if how.order == Order::Look && how.words[0] == "boot" && !deadline => {
                Some(format!("{:?}: {}", how.words, e.message))
            }
            _ if deadline && tape.len() > 0 && seen.since_boot < Duration::from_secs(600) => Some(
                format!("the deadline fires {:?} after the boot", seen.since_boot),
            ),
            _ => moody.and_then(|moody| self.judge_asking(&mut next, &moody)),
        };
        (fault.map_or(Ok(next), Err), tape)
    }

    fn judge_asking(&mut self, next: &mut State, moody: &Moody) -> Option<String> {
        if moody.asked.get() > 0 && !next.leave {
            return Some("a reboot was asked for without leave".to_owned());
        }
        let granted = moody.granted.get();
        if granted == 0 {
            return None;
        }
        let txn = match self.txn(&next.clone()) {
            Ok(txn) => txn?,
            Err(why) => return Some(why),
        };
        let times = Rc::make_mut(&mut next.grants).entry(txn.id.to_string());
        let times = times.or_default();
        *times += granted;
        (*times > txn.budget.max).then(|| format!("{times} reboots of {}", txn.budget.max))
    }

    /// The power goes before this change; the machine is off then.
    pub fn cut(
        &mut self,
        state: &State,
        words: Words,
        tape: &Tape,
        at: usize,
        left: Left,
    ) -> State {
        let disk = tape.cut(at, left, self.bug);
        State {
            disk: self.mirror.part_of(&disk),
            leave: state.leave || words.contains(&"--reboot"),
            ..state.clone()
        }
    }

    /// Firmware, GRUB and kernel start.
    pub fn boot(&mut self, state: &State, how: Reboot) -> (State, Result<Vec<Boot>, String>) {
        self.become_this(state);
        self.count.boots += 1;
        let boots = node::reboot(&self.rig.root, how).map_err(|e| format!("it does not boot: {e}"));
        let id = self.unused_boot_id(state);
        write_boot_id(&self.rig, id);
        self.mirror.look_again("boot");
        let mut next = State {
            disk: self.mirror.disk_part(),
            kernel: self.mirror.kernel_part(true),
            ..state.clone()
        };
        self.forget_ids(&mut next);
        (next, boots)
    }

    pub fn how(dies: bool, writable: bool) -> Reboot {
        Reboot {
            dies,
            firmware: Firmware { writable },
        }
    }

    /// What random numbers begin with: they differ from those of every name that the disk knows, and are otherwise the
    /// same, so that the same things lead to the same states.
    fn chance(&self, state: &State) -> u64 {
        let changes = &state.disk.changes;
        let named = changes.iter().filter(|(name, node)| {
            node.is_some()
                && (name.contains(".gdr-agent-")
                    || name
                        .rsplit_once('/')
                        .is_some_and(|(dir, _)| dir.ends_with("gdr-agent/tx")))
        });
        let names: Vec<_> = named.map(|(name, _)| name).collect();
        let told = changes
            .iter()
            .filter(|(name, _)| name.ends_with("grubenv") || name.ends_with("custom.cfg"));
        hash_of(&(names, told.collect::<Vec<_>>(), &state.booted))
    }

    /// Another boot than this one and those that the disk knows of. The same numbers are used again, so that the same
    /// things that happen later lead to the same states.
    fn unused_boot_id(&mut self, state: &State) -> u32 {
        let mut used = BTreeSet::from([boot_number(
            &state.kernel.text(BOOT_ID).unwrap_or_else(|| boot_id(0)),
        )]);
        let mut next = state.disk.changes.keys().skip(1);
        for (name, node) in &state.disk.changes {
            let told = !is_never_read(name, next.next()) && name.starts_with("var/");
            if let (true, Some(Node::File { bytes, .. })) = (told, node) {
                let key = bytes.hash_once();
                let ids = self
                    .boot_ids
                    .entry(key)
                    .or_insert_with(|| boot_numbers(bytes));
                used.extend(ids.iter().copied());
            }
        }
        (0..).find(|n| !used.contains(n)).unwrap_or(0)
    }

    /// Trials that the disk has forgotten cannot come back.
    fn forget_ids(&self, state: &mut State) {
        if state.booted.is_empty() && state.grants.is_empty() {
            return;
        }
        let text: Vec<String> = state
            .disk
            .changes
            .keys()
            .filter(|name| name.ends_with("grubenv") || name.ends_with("custom.cfg"))
            .filter_map(|name| state.disk.text(name))
            .collect();
        let known = |id: &String| {
            let dir = format!("var/lib/gdr-agent/tx/{id}");
            matches!(state.disk.changes.get(dir.as_str()), Some(Some(_)))
                || text.iter().any(|text| text.contains(id))
        };
        let booted = state.booted.iter().filter(|id| known(id)).cloned();
        let booted = booted.collect();
        let grants = state.grants.iter().filter(|(id, _)| known(id));
        let grants = grants.map(|(id, n)| (id.clone(), *n)).collect();
        state.booted = Rc::new(booted);
        state.grants = Rc::new(grants);
    }

    /// A package manager installs a kernel and dies after so many files.
    pub fn new_kernel(&mut self, state: &State, dies_after: usize) -> Result<State, String> {
        self.become_this(state);
        let tree = Tree::new(&self.rig.root);
        install_kernel(&tree, "6.1.0-40-amd64").map_err(|e| e.to_string())?;
        let done = self.after_others(state);
        let mut new: Vec<_> = differs(&state.disk.changes, &done.disk.changes);
        let rank = |name: &str| match name {
            // The sample's update-grub cannot name a kernel without one.
            _ if name.contains("initrd") => 0,
            _ if name.contains("vmlinuz") => 1,
            _ if name.ends_with(".conf") => 2,
            _ => 3,
        };
        new.sort_by_key(|(name, _)| rank(name));
        let mut changes = state.disk.changes.clone();
        for (name, node) in new.into_iter().take(dies_after) {
            changes.insert(name, node);
        }
        Ok(State {
            disk: Part::new(changes),
            ..done
        })
    }

    /// `update-grub`; one that dies leaves half of its new menu beside the old one.
    pub fn update_grub(&mut self, state: &State, dies: bool) -> Result<State, String> {
        self.become_this(state);
        let tree = Tree::new(&self.rig.root);
        let done = match self.family {
            Family::Debian | Family::Suse => gdr_tests::node::regenerate(&tree, None),
            Family::Fedora => rewrite_entries(&tree),
            _ => return Ok(state.clone()),
        };
        done.map_err(|e| e.to_string())?;
        let done = self.after_others(state);
        if !dies {
            return Ok(done);
        }
        let mut changes = state.disk.changes.clone();
        for (name, node) in differs(&state.disk.changes, &done.disk.changes) {
            if let Some(Node::File { bytes, mode, .. }) = node {
                let half = bytes[..bytes.len() / 2].to_vec().into();
                let half = Node::File {
                    bytes: half,
                    mode,
                    twin: None,
                };
                changes.insert(format!("{name}.new").into(), Some(half));
            }
        }
        Ok(State {
            disk: Part::new(changes),
            ..done
        })
    }

    fn after_others(&mut self, state: &State) -> State {
        self.mirror.look_again("boot");
        State {
            disk: self.mirror.disk_part(),
            foreign: true,
            ..state.clone()
        }
    }
}

fn differs(old: &Changes, new: &Changes) -> Vec<(Rc<str>, Option<Node>)> {
    let changed = new
        .iter()
        .filter(|(name, node)| old.get(*name) != Some(node));
    changed
        .map(|(name, node)| (name.clone(), node.clone()))
        .collect()
}

const BOOT_ID: &str = "proc/sys/kernel/random/boot_id";
const REST: &str = "-0000-4000-8000-000000000000";

fn boot_id(number: u32) -> String {
    format!("{number:08x}{REST}")
}

fn boot_number(id: &str) -> u32 {
    u32::from_str_radix(id.get(..8).unwrap_or_default(), 16).unwrap_or(0)
}

fn boot_numbers(bytes: &[u8]) -> Vec<u32> {
    let text = String::from_utf8_lossy(bytes);
    let mut parts: Vec<&str> = text.split(REST).collect();
    parts.pop();
    let number = |part: &str| Some(boot_number(part.get(part.len().checked_sub(8)?..)?));
    parts.into_iter().filter_map(number).collect()
}

fn write_boot_id(rig: &Rig, number: u32) {
    let path = rig.root.join(BOOT_ID);
    std::fs::write(path, format!("{}\n", boot_id(number))).unwrap();
}

/// The transaction that a line is the trial of.
pub fn trial_of(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace();
    words.find_map(|word| word.strip_prefix("gdr.txn="))
}
