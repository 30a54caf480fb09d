//! `gdr-agent acs show|clear|restore`

mod report;

use super::topology::{policy_or_default, styles};
use super::{CliError, Context, Exit, apply};
use crate::acs::{self, AcsError};
use crate::pci::clear::{AcsPlan, Action, Conditions, Lockdown, Scope};
use crate::pci::saved::RestoreAction;
use crate::pci::topology::Topology;
use crate::pci::tree::Tree;
use crate::sys::lock;

pub(super) use report::Output;

/// What to do about ACS.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Print each port, its bits, and why it is or is not on a GPU-NIC path.
    #[command(after_help = "Examples:
  gdr-agent acs show
  gdr-agent acs show --check          exit code 3 when a path is redirected
  gdr-agent acs show --root ./capture")]
    Show {
        /// Exit with 3 when a port redirects that the policy wants clear, 7 when that is unknown.
        #[arg(long)]
        check: bool,
    },
    /// Clear the redirect bits that the policy names, on the ports that it names.
    Clear,
    /// Put back the control words that ports had before they were cleared.
    Restore,
}

impl Verb {
    /// Whether it writes to config space.
    pub(super) const fn writes(&self) -> bool {
        matches!(self, Self::Clear | Self::Restore)
    }
}

pub(super) fn run(context: &Context, verb: &Verb) -> Result<Exit, CliError> {
    match verb {
        Verb::Show { check } => look(context, |view| show(context, view, *check)),
        Verb::Clear => {
            apply::needs_root(context, "acs clear")?;
            let _lock = lock::acquire(&context.root, crate::apply::LOCK, "acs clear")?;
            look(context, |view| clear(context, view))
        }
        Verb::Restore => {
            apply::needs_root(context, "acs restore")?;
            let _lock = lock::acquire(&context.root, crate::apply::LOCK, "acs restore")?;
            look(context, |view| restore(context, view))
        }
    }
}

/// What was read and decided.
struct View<'a> {
    tree: &'a Tree<'a>,
    topology: &'a Topology,
    plan: &'a AcsPlan,
    scope: Scope,
    conditions: Conditions,
}

fn look(
    context: &Context,
    then: impl FnOnce(&View<'_>) -> Result<Exit, CliError>,
) -> Result<Exit, CliError> {
    let policy = policy_or_default(context)?;
    let scope = acs::request(&policy).scope;
    acs::decide(
        &context.root,
        &policy,
        |tree, topology, plan, conditions| {
            then(&View {
                tree,
                topology,
                plan,
                scope,
                conditions,
            })
        },
    )?
}

fn show(context: &Context, view: &View<'_>, check: bool) -> Result<Exit, CliError> {
    let mut output = Output::of("show", view);
    if unread(view) && context.root.is_live() && !rustix::process::geteuid().is_root() {
        output.note("only root can read extended configuration space, where ACS is");
    }
    context.out.result(&output, || {
        crate::pci::render::acs_table(view.plan, view.topology, styles())
            + &output.summary(styles())
    })?;
    let exit = |any: &dyn Fn(Action) -> bool| view.plan.ports.iter().any(|port| any(port.action));
    Ok(match check {
        true if exit(&|action| matches!(action, Action::Clear | Action::Refused)) => Exit::Pending,
        true if redirected_in_spite_of_the_mask(view) => Exit::Pending,
        true if unread(view) => Exit::Person,
        _ => Exit::Done,
    })
}

/// A policy that clears some bits only may leave a path redirected by the others.
fn redirected_in_spite_of_the_mask(view: &View<'_>) -> bool {
    let kept = view
        .plan
        .ports
        .iter()
        .filter(|port| port.action == Action::AlreadyClear);
    let redirecting = |ctl: u16| crate::pci::acs::redirects(ctl);
    view.scope != Scope::Keep
        && kept.filter_map(|port| port.ctl).any(redirecting)
        && view
            .topology
            .paths
            .iter()
            .any(|path| path.redirected == Some(true))
}

fn clear(context: &Context, view: &View<'_>) -> Result<Exit, CliError> {
    let mut output = Output::of("clear", view);
    let outcomes = acs::clear(&context.root, view.tree, view.plan).map_err(failed)?;
    output.take(outcomes);
    print(context, &output)?;
    Ok(if !output.refusals.is_empty() {
        Exit::Unsafe
    } else if output.failed() || unread(view) {
        Exit::Person
    } else {
        Exit::Done
    })
}

/// A port that should be clear, and of which nobody knows.
fn unread(view: &View<'_>) -> bool {
    let mut ports = view.plan.ports.iter();
    ports.any(|port| port.action == Action::Unknown)
}

fn restore(context: &Context, view: &View<'_>) -> Result<Exit, CliError> {
    let decisions = acs::restore_plan(&context.root, view.tree).map_err(failed)?;
    let pending = decisions.iter().any(|d| d.action == RestoreAction::Restore);
    let locked = matches!(
        view.conditions.lockdown,
        Lockdown::Integrity | Lockdown::Confidentiality
    );
    let mut output = Output::of_restore(view, &decisions);
    if pending && locked {
        output.refusals.extend(view.conditions.refusal());
    } else {
        output.take(acs::restore(&context.root, &decisions).map_err(failed)?);
    }
    print(context, &output)?;
    let left = |action| matches!(action, RestoreAction::OtherDevice | RestoreAction::Unknown);
    Ok(if !output.refusals.is_empty() {
        Exit::Unsafe
    } else if output.failed() || decisions.iter().any(|d| left(d.action)) {
        Exit::Person
    } else {
        Exit::Done
    })
}

fn print(context: &Context, output: &Output) -> Result<(), CliError> {
    context.out.result(output, || output.text(styles()))
}

fn failed(error: AcsError) -> CliError {
    match error {
        AcsError::Sys(error) => error.into(),
        AcsError::Damaged { .. } => CliError::new(Exit::Person, "acs-saved", error.to_string()),
    }
}
