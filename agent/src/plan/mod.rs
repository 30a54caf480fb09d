//! What has to be done between what is and what should be: steps as data, each with its undo.
//!
//! Planning is pure. It is done again at each side of a reboot: a plan never crosses one.

mod acs;
mod cmdline;
mod default_files;
mod diff;
mod edit_menu;
mod entries;
pub mod gdr;
mod grub;
mod hook;
mod iommu;
mod keep;
mod lasting;
mod modules;
mod packages;
mod step;

use gdr_policy::{AcsMethod, AcsScope, Policy};

use crate::facts::Facts;
use crate::journal::Trial;
use crate::package::Survey;
use crate::pci::RawFunction;
use crate::pci::clear::AcsPlan;
use crate::state::{Committed, Quarantined};

pub(crate) use cmdline::Edits;
pub(crate) use default_files::MAIN;
pub use default_files::{DROP_IN, drop_in_text};
pub(crate) use diff::printable;
pub use diff::unified;
pub(crate) use edit_menu::edit_menu;
pub(crate) use entries::entry_without;
pub use gdr::{Decision, GdrPath, decide};
pub use hook::{HOOK_BEGIN, hook_block, without_hook};
pub(crate) use hook::{MARKER, env_with, env_without};
pub(crate) use modules::FILE as MODULES_FILE;
pub use step::{Action, Phase, Refusal, Step};

/// Everything that a plan is made from.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    /// What should be.
    pub policy: &'a Policy,
    /// The policy's digest.
    pub digest: &'a str,
    /// What is.
    pub facts: &'a Facts,
    /// The PCI functions.
    pub functions: &'a [RawFunction],
    /// What clearing ACS would write.
    pub acs: &'a AcsPlan,
    /// What was found out about the package that is lacking, if one is.
    pub packages: Option<&'a Survey>,
    /// The policy that every boot keeps.
    pub committed: Option<&'a Committed>,
    /// The entry of the quarantine list for this digest.
    pub quarantined: Option<&'a Quarantined>,
    /// The name of the transaction, for the trial's marker; a plan that is only shown has none.
    pub txn: &'a str,
    /// In a commit, of which half may be there already: the command line that was tried.
    pub committing: Option<&'a str>,
}

/// A plan.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// What is to be done, in order.
    pub steps: Vec<Step>,
    /// Why nothing may be done; no step is carried out then.
    pub refusals: Vec<Refusal>,
    /// What a person should know.
    pub notes: Vec<String>,
    /// The trial entry, when a command line has to be tried.
    pub trial: Option<Trial>,
    /// How NIC drivers reach GPU memory, with the reasons.
    pub gdr: Option<Decision>,
    /// The boot entries in files that there are.
    pub entries: Vec<String>,
    /// Whether the boot entry is right already and only the running kernel is older than it.
    pub pending_reboot: bool,
    /// Whether it is for an image, where nothing is done to the kernel that runs.
    pub bake: bool,
}

impl Plan {
    /// Whether anything would change.
    #[must_use]
    pub fn changed(&self) -> bool {
        !self.steps.is_empty()
    }

    /// Whether a reboot is needed for the policy to be in force.
    #[must_use]
    pub fn reboot_required(&self) -> bool {
        self.trial.is_some() || self.pending_reboot
    }

    fn step(&mut self, step: Step) {
        self.steps.push(step);
    }

    fn refuse(&mut self, id: &str, message: impl Into<String>, fix: impl Into<String>) {
        self.refusals.push(Refusal::new(id, message, fix));
    }
}

/// Makes the plan.
#[must_use]
pub fn plan(input: &Input) -> Plan {
    let entries = input.facts.boot.files.entries.iter();
    let mut plan = Plan {
        entries: entries.map(|(path, _)| path.clone()).collect(),
        bake: input.facts.bake,
        ..Plan::default()
    };
    if let Some(entry) = input.quarantined {
        plan.refusals.push(Refusal {
            id: "policy.quarantined".to_owned(),
            message: format!(
                "this policy failed its trial and is not tried again: {}",
                entry.reason
            ),
            fix: "change the policy, or run `gdr-agent apply --retry` to try it once more"
                .to_owned(),
            person: true,
        });
    }
    let decision = decide(&gdr::Input {
        policy: input.policy,
        facts: input.facts,
        functions: input.functions,
    });
    let comes = packages::plan(input, &decision, &mut plan);
    let modules = modules::plan(input, &decision, comes, &mut plan);
    plan.gdr = Some(decision);
    cmdline::plan(input, &modules, &mut plan);
    // The devices of whoever makes an image are not those of the nodes.
    if !input.facts.bake {
        acs::plan(input, &mut plan);
    } else if input.policy.acs.method == AcsMethod::Cmdline
        && input.policy.acs.scope != AcsScope::Keep
    {
        plan.refuse(
            "boot.acs-needs-node",
            "the kernel has to be told of ports by its command line, and which ports is known on a node only".to_owned(),
            "set `acs.method = \"config-space\"` in the image's policy: every boot then clears them itself",
        );
    }
    record(input, &mut plan);
    plan
}

/// The policy that boots keep is remembered by itself, so that editing the file changes nothing yet.
fn record(input: &Input, plan: &mut Plan) {
    if input.committed.is_some_and(|c| c.digest == input.digest) {
        return;
    }
    let short = input.digest.get(..12).unwrap_or(input.digest);
    plan.step(Step {
        id: "policy.record".to_owned(),
        kind: "record".to_owned(),
        summary: format!("remember policy {short} as the one that every boot keeps"),
        path: Some(crate::state::COMMITTED.to_owned()),
        diff: None,
        phase: Phase::Commit,
        undo: "the policy that was remembered before".to_owned(),
        action: Action::Record,
    });
}
