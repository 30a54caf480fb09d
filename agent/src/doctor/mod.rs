//! Everything that can be asked about a node, without a policy: the answers, and what to do first.
//!
//! Reading is done by [`examine`]; [`report`] and [`causes`] are pure. The report is plain data, and whoever prints
//! it (text, JSON, a page) asks nothing more.

mod ask;
mod boot;
mod gpus;
mod host;
pub mod kernel_log;
mod logs;
pub mod page;
mod params;
mod perftest;
mod rank;
pub mod render;
mod settings;

use gdr_policy::Policy;
use schemars::JsonSchema;
use serde::Serialize;

use crate::bandwidth::Run;
use crate::checks::registry::{self, Entry};
use crate::checks::{self, Check, Outcome, Severity};
use crate::facts::host::{self as host_facts, Host};
use crate::facts::pci::{Depth, conditions, functions};
use crate::facts::{Facts, More, Os, SMI_LIMIT};
use crate::nccl_log::{FileReport, harmless};
use crate::pci::topology::Topology;
use crate::sys::{Ask, Root};
use crate::world::World;

pub use rank::{Cause, Symptom, causes};

/// The report about a node.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Report {
    /// `met` only if every required check is met.
    pub verdict: Outcome,
    /// What this node is.
    pub node: Node,
    /// What to deal with, the first thing first.
    pub causes: Vec<Cause>,
    /// Every answer, in the order of the registry.
    pub checks: Vec<Check>,
    /// The logs that were given.
    pub logs: Vec<FileReport>,
    /// GPUs, NICs and their paths, for pictures.
    #[serde(skip)]
    pub topology: Topology,
}

/// What a node is, in a few words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Node {
    /// Distribution and version.
    pub os: Option<String>,
    /// The kernel that runs.
    pub kernel: Option<String>,
    /// The NVIDIA driver that is loaded.
    pub driver: Option<String>,
    /// GPUs by the selectors.
    pub gpus: usize,
    /// NICs by the selectors.
    pub nics: usize,
}

/// What was asked for besides the node itself.
#[derive(Debug, Default)]
pub struct Wanted {
    /// A process to look at.
    pub pid: Option<u32>,
    /// Logs that were read.
    pub logs: Vec<FileReport>,
    /// Outputs of perftest that were read.
    pub runs: Vec<Run>,
    /// Run nvidia-smi where it is there.
    pub smi: bool,
}

/// What the questions look at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen<'a> {
    /// What `verify` looks at as well.
    pub(crate) node: checks::Input<'a>,
    /// What only `doctor` reads.
    pub(crate) host: &'a Host,
    /// The logs.
    pub(crate) logs: &'a [FileReport],
    /// Outputs of perftest.
    pub(crate) runs: &'a [Run],
}

/// Reads a root and answers every question. What cannot be read is unknown; nothing fails as a whole. `tell`
/// hears of what takes long.
#[must_use]
pub fn examine(root: &Root, policy: &Policy, wanted: Wanted, tell: &dyn Fn(&str)) -> Report {
    let read = crate::acs::with_selectors(&policy.devices, |selectors| {
        functions(root, &Depth::Topology(selectors))
    });
    let (functions, unreadable) = match read {
        Ok(functions) => (functions, None),
        Err(e) => (Vec::new(), Some(e.to_string())),
    };
    let mut world = World {
        facts: Facts::read(root),
        functions,
        conditions: conditions(root),
        // What the agent itself remembers has no part in what the node is.
        committed: None,
        quarantine: crate::state::Quarantine::default(),
        // Asking a package manager is more than looking.
        packages: None,
        more: More::default(),
    };
    // A program is run on the running system only; a directory and a capture have what it said, or have not.
    let ask = Ask {
        limit: SMI_LIMIT,
        tell,
    };
    let ask = (wanted.smi && root.is_live()).then_some(ask);
    world.read_more(root, policy, ask);
    // What ran is nearer to the job than what is installed.
    if let Some(minor) = logs::nccl_minor(&wanted.logs) {
        world.more.nccl_minor = minor;
    }
    let host = host_facts::read(root, wanted.pid);
    report(&world, &host, policy, wanted, unreadable)
}

/// The report about what was read. `unreadable`: why the PCI functions could not be listed.
#[must_use]
pub fn report(
    world: &World,
    host: &Host,
    policy: &Policy,
    wanted: Wanted,
    unreadable: Option<String>,
) -> Report {
    let Wanted { logs, runs, .. } = wanted;
    let ports = world.ports(policy);
    let seen = Seen {
        node: checks::Input {
            policy,
            facts: &world.facts,
            functions: &world.functions,
            topology: &ports.topology,
            acs: &ports.acs,
            more: &world.more,
        },
        host,
        logs: &logs,
        runs: &runs,
    };
    let mut checks: Vec<Check> = ask::ASKS
        .iter()
        .flat_map(|(group, ask)| ask(&seen).into_iter().map(|answer| safe(group, answer)))
        .collect();
    if let Some(why) = unreadable {
        for check in checks.iter_mut().filter(|c| c.outcome == Outcome::Unknown) {
            if matches!(check.group.as_str(), "acs" | "bar1" | "numa" | "iommu") {
                check.evidence.push(harmless(why.as_bytes()));
            }
        }
    }
    checks.sort_by_key(|check| registry::find(&check.id).map_or(usize::MAX, |(at, _)| at));
    let facts = &world.facts;
    let driver = facts.gdr.driver.get();
    let word = |text: &String| harmless(text.as_bytes());
    Report {
        verdict: checks::verdict(&checks),
        node: Node {
            os: facts.os.get().map(os_name),
            kernel: facts.running.release.get().map(word),
            driver: driver.map(|driver| word(&driver.version)),
            gpus: ports.topology.gpus.len(),
            nics: ports.topology.nics.len(),
        },
        causes: rank::causes(&checks),
        checks,
        topology: ports.topology,
        logs,
    }
}

/// An answer as it is printed: with its severity, and without anything that a terminal takes for a command.
fn safe(group: &str, answer: checks::Answer) -> Check {
    let severity = registry::find(answer.id).map_or(Severity::Warning, |(_, e)| e.severity);
    let mut check = checks::finish(group, answer, severity);
    check.subject = harmless(check.subject.as_bytes());
    for line in &mut check.evidence {
        *line = harmless(line.as_bytes());
    }
    check
}

fn os_name(os: &Os) -> String {
    let version = os.version.as_deref().unwrap_or_default();
    let name = os
        .name
        .clone()
        .unwrap_or_else(|| format!("{} {version}", os.id));
    harmless(name.as_bytes())
}

/// The list that `doctor --list` prints.
#[must_use]
pub fn list() -> Vec<&'static Entry> {
    registry::all().collect()
}
