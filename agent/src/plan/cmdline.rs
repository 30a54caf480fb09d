//! The kernel command line: what the policy wants of it, and whether a trial is needed.

use gdr_policy::Fallback;
use grub_config_parser::cmdline::{Arg, CommandLine};

use super::default_files::{own_args, without_one};
use super::grub::{self, Base};
use super::iommu;
use super::lasting;
use super::{Input, Plan};
use crate::facts::Arch;

/// What the policy wants of a command line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Edits {
    pub(crate) set: Vec<String>,
    pub(crate) remove: Vec<String>,
    pub(crate) notes: Vec<String>,
}

impl Edits {
    /// The policy's wishes on this machine.
    pub(crate) fn of(
        policy: &gdr_policy::Policy,
        facts: &crate::facts::Facts,
        acs: &crate::pci::clear::AcsPlan,
    ) -> Self {
        let wanted = iommu::wanted(policy.kernel.iommu, facts);
        let mut set: Vec<String> = wanted.set.into_iter().map(|(arg, _)| arg).collect();
        set.extend(acs.by_kernel.as_ref().and_then(|k| k.argument.clone()));
        // What a person wrote comes last, so that it wins over what we derive.
        for arg in &policy.kernel.set {
            let arg = arg.to_string();
            set.retain(|a| *a != arg);
            set.push(arg);
        }
        let remove: Vec<String> = policy
            .kernel
            .remove
            .iter()
            .map(ToString::to_string)
            .collect();
        set.retain(|arg| !remove.iter().any(|r| removes(r, arg)));
        Self {
            set,
            remove,
            notes: wanted.notes,
        }
    }

    /// A command line as the policy wants it.
    pub(crate) fn apply(&self, line: &CommandLine) -> CommandLine {
        let mut line = line.clone();
        for pattern in &self.remove {
            line.remove(pattern);
        }
        for arg in &self.set {
            line.set(&Arg::new(arg));
        }
        line
    }
}

/// Whether a pattern of `kernel.remove` names an argument.
pub(crate) fn removes(pattern: &str, arg: &str) -> bool {
    let (pattern, arg) = (Arg::new(pattern), Arg::new(arg));
    arg.same_name(pattern.name()) && pattern.value().is_none_or(|v| arg.value() == Some(v))
}

pub(super) fn plan(input: &Input, modules: &[String], plan: &mut Plan) {
    let edits = Edits::of(input.policy, input.facts, input.acs);
    plan.notes.extend(edits.notes.iter().cloned());
    note_override(input, &edits, plan);
    let ours = !dropped(input, &edits).is_empty();
    if edits.set.is_empty() && edits.remove.is_empty() && !ours {
        return;
    }
    let before = plan.refusals.len();
    let Some(base) = grub::base(input, plan) else {
        // Whatever the reason, a command line that cannot be tried must not be half applied.
        debug_assert!(plan.refusals.len() > before);
        return;
    };
    let target = match input.committing {
        Some(tried) => CommandLine::parse(tried),
        None => edits.apply(&without_dropped(&base.known_good, &edits, input)),
    };
    // A commit goes on to its end: the default entry may be right before everything else is.
    if target.equivalent(&base.known_good) && input.committing.is_none() {
        // Already the default; perhaps it still has to be booted.
        let stale = |line: &CommandLine| !edits.apply(line).equivalent(line);
        plan.pending_reboot = base.running.as_ref().is_some_and(stale);
        if plan.pending_reboot {
            plan.notes.push(
                "cmdline.pending-reboot: the default boot entry has the arguments, and the running kernel was \
                 booted without them"
                    .to_owned(),
            );
        } else {
            lasting::same_elsewhere(input, &base, &edits, &target, plan);
        }
        return;
    }
    if let Some(excess) = target.excess(machine(input)).filter(|bytes| *bytes > 0) {
        plan.refuse(
            "cmdline.too-long",
            format!("the command line would have {excess} bytes more than this kernel reads, and would be cut off silently"),
            "remove arguments that are not needed",
        );
        return;
    }
    known_good_is_proven(input, &base, plan);
    lasting::steps(input, &base, &edits, &target, modules, plan);
}

/// What guides recommend, and what does nothing: better told before a trial than after it.
fn note_override(input: &Input, edits: &Edits, plan: &mut Plan) {
    let Some(running) = input.facts.running.cmdline.get() else {
        return;
    };
    let after = edits.apply(&CommandLine::parse(running));
    if after.last("pcie_acs_override").is_some() {
        plan.notes.push(
            "acs.override-param: the command line has pcie_acs_override, which only makes a patched kernel pretend \
             isolation and clears no register; add \"pcie_acs_override\" to `kernel.remove`"
                .to_owned(),
        );
    }
}

/// The architecture as `uname -m` says it; where it is not known, the one with the least room.
fn machine(input: &Input) -> &'static str {
    match input.facts.arch.get() {
        Some(Arch::Arm) => "aarch64",
        _ => "x86_64",
    }
}

/// What an earlier policy has added and this one does not name any more goes.
fn without_dropped(line: &CommandLine, edits: &Edits, input: &Input) -> CommandLine {
    dropped(input, edits)
        .iter()
        .fold(line.clone(), |line, arg| without_one(&line, arg))
}

/// What this agent has added for an earlier policy and this one does not want: our drop-in says so, or
/// what was remembered at the commit.
pub(super) fn dropped(input: &Input, edits: &Edits) -> Vec<Arg> {
    let mut own = own_args(&input.facts.boot.files.defaults, input.facts.boot.files.sh);
    if own.is_empty() {
        let added = input
            .committed
            .map(|c| c.added.as_slice())
            .unwrap_or_default();
        own = added.iter().map(|arg| Arg::new(arg)).collect();
    }
    own.retain(|arg| !edits.set.iter().any(|wanted| wanted == arg.raw()));
    own
}

/// The entry to fall back to must be one that has booted: the one that runs.
fn known_good_is_proven(input: &Input, base: &Base, plan: &mut Plan) {
    let Some(running) = &base.running else { return };
    if input.committing.is_some() {
        return;
    }
    if input.policy.trial.fallback == Fallback::BestEffort {
        return;
    }
    let release = input.facts.running.release.get();
    let same_kernel = release.is_none_or(|r| base.kernel.ends_with(&format!("-{r}")));
    if same_kernel && running.equivalent(&base.known_good) {
        return;
    }
    plan.refuse(
        "boot.default-not-proven",
        format!(
            "the default boot entry is not what runs now, so it is not known to boot: it has `{} {}`, and the running \
             kernel {} has `{running}`",
            base.kernel,
            base.known_good,
            release.map_or("", String::as_str)
        ),
        "reboot into the default entry first, or set `trial.fallback = \"best-effort\"`",
    );
}
