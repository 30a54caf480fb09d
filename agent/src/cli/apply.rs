//! `gdr-agent apply`

use schemars::JsonSchema;
use serde::Serialize;

use gdr_policy::{Bake, Policy};

use super::output::{paint, style};
use super::rehearsal::Rehearsal;
use super::status::{self, Status};
use super::{CliError, Context, Exit, load, plan};
use crate::apply::{Engine, can_ask, read_env};
use crate::journal::Record;
use crate::machine::{Boot, Event, FailureKind, GrubView, Marker, State};
use crate::plan::{Plan, Refusal, Step};
use crate::reboot::{self, arm_unit_active};
use crate::state;
use crate::world::World;

/// How to apply.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Ask for the reboot, whatever `reboot.allow` says.
    #[arg(long, conflicts_with = "no_reboot")]
    reboot: bool,
    /// Stage only; ask for no reboot.
    #[arg(long)]
    no_reboot: bool,
    /// For an image: by policy its first boot is the trial, or there is none; nobody is asked for a reboot.
    #[arg(long, conflicts_with_all = ["reboot", "no_reboot"])]
    bake: bool,
    /// Try a policy again that failed its trial.
    #[arg(long)]
    retry: bool,
    /// Say who would be asked for the reboot, in which order, and what they say now; change nothing.
    #[arg(long, conflicts_with_all = ["reboot", "no_reboot", "bake", "retry"])]
    dry_run_reboot: bool,
}

impl Args {
    /// Whether it may change the system that runs: not if it only asks, nor for an image that is made in a chroot or a container.
    pub(super) const fn changes_the_running_system(&self) -> bool {
        !self.bake && !self.dry_run_reboot
    }
}

/// The JSON of `apply`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// `gdr-agent/apply/v1`
    schema: &'static str,
    /// The policy's digest.
    digest: String,
    /// Whether this run changed anything.
    changed: bool,
    /// Whether a reboot is outstanding.
    reboot_required: bool,
    /// What was to be done.
    steps: Vec<Step>,
    /// Why nothing was done.
    refusals: Vec<Refusal>,
    /// What a person should know.
    notes: Vec<String>,
    /// Where the transaction stands.
    status: Option<Status>,
    /// Who would be asked for the reboot; only with `--dry-run-reboot`.
    #[serde(skip_serializing_if = "Option::is_none")]
    reboot: Option<Rehearsal>,
}

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, CliError> {
    let policy = load::policy(context)?.trusted()?;
    needs_root(context, "apply")?;
    let digest = policy.digest();
    let policy = policy.loaded.policy;
    let mut world = World::read_for(&context.root, &policy, args.bake)?;
    if args.dry_run_reboot {
        return rehearse(context, digest, &policy);
    }
    // A zone that this node does not know would keep the window closed for ever.
    let zone = &policy.reboot.gates.time_zone;
    reboot::seconds_east(&context.root, zone, 0)
        .map_err(|why| CliError::new(Exit::Policy, "time-zone", why).help("nothing was changed"))?;
    world.survey(&context.root, &policy);
    let wants_reboot = (args.reboot || policy.reboot.allow || args.bake) && !args.no_reboot;

    // Nothing to do and nothing under way: not even the lock is touched.
    let shown = world.plan(&policy, &world.ports(&policy), &digest, "", None);
    let active = status::last(&context.root)?.filter(|r| !r.txn.state.is_final());
    if active.is_none() && shown.refusals.is_empty() && !shown.changed() {
        let exit = if shown.pending_reboot {
            Exit::Outstanding
        } else {
            Exit::Done
        };
        return report(context, digest, shown, false, None, exit);
    }
    let out = context.out;
    let progress = move |text: &str| out.progress(text);
    let mut engine = context.engine("apply")?.telling(&progress);
    if args.bake {
        engine.baking();
    }
    if let Some(record) = engine.last().filter(|r| !r.txn.state.is_final()).cloned() {
        if record.txn.digest != digest {
            make_way(&mut engine, &record)?;
        } else if !resume(&mut engine, &record)? {
            return go_on(context, &mut engine, digest, args, wants_reboot);
        }
        world = World::read_for(&context.root, &policy, args.bake)?;
        world.survey(&context.root, &policy);
    }
    if args.retry {
        let before = world.quarantine.policies.len();
        world.quarantine.policies.retain(|q| q.digest != digest);
        if world.quarantine.policies.len() != before {
            state::write_quarantine(&context.root, &world.quarantine)?;
        }
    }
    let id = engine.new_id()?;
    let mut plan = world.plan(&policy, &world.ports(&policy), &digest, id.as_str(), None);
    if let Some(exit) = plan::refused(&plan.refusals) {
        return report(context, digest, plan, false, None, exit);
    }
    // With a reboot outstanding that somebody else's change needs, nothing could be judged yet.
    if !plan.changed() || plan.pending_reboot {
        let exit = if plan.pending_reboot {
            Exit::Outstanding
        } else {
            Exit::Done
        };
        return report(context, digest, plan, false, None, exit);
    }
    if plan.trial.is_some() && wants_reboot && !args.bake {
        let help = "nothing was changed; `gdr-agent apply --no-reboot` stages without asking";
        arm_unit_active(&context.root)
            .and_then(|()| can_ask(&context.root, &policy))
            .map_err(|refusal| person(&refusal).help(help))?;
    }
    if wants_reboot && policy.reboot.coordinator == gdr_policy::Coordinator::Sentinel {
        plan.notes.push(reboot::KURED.to_owned());
    }
    context.out.progress("staging");
    // An image that was left half made must not reboot its nodes for a trial that it has not.
    let commits = args.bake && policy.trial.bake == Bake::Commit;
    engine.begin(id, &policy, &digest, &plan, wants_reboot && !commits)?;
    if plan.trial.is_some() {
        ask(context, &mut engine, args.bake, wants_reboot)?;
    }
    let record = engine.last().cloned();
    let exit = record.as_ref().map_or(Exit::Internal, outcome);
    report(context, digest, plan, true, record.as_ref(), exit)
}

/// Asks what can be asked without changing anything.
fn rehearse(context: &Context, digest: String, policy: &Policy) -> Result<Exit, CliError> {
    // Of a directory nobody is asked: the bus and the network are those of another machine.
    let rehearsal = Rehearsal::of(&context.root, policy, context.root.is_live())
        .map_err(|refusal| person(&refusal))?;
    let output = Output {
        schema: "gdr-agent/apply/v1",
        digest,
        changed: false,
        reboot_required: false,
        steps: Vec::new(),
        refusals: Vec::new(),
        notes: Vec::new(),
        status: None,
        reboot: Some(rehearsal),
    };
    let text = || output.reboot.as_ref().map(Rehearsal::text);
    context.out.result(&output, || text().unwrap_or_default())?;
    Ok(Exit::Done)
}

/// Whatever keeps a reboot from being asked for at all is a person's to mend.
fn person(refusal: &reboot::Refusal) -> CliError {
    CliError::new(Exit::Person, refusal.kind().as_str(), refusal.to_string())
}

/// What follows the stage: the reboot, or in an image the trial of its first boot, or the commit.
fn ask(context: &Context, engine: &mut Engine, bake: bool, wants: bool) -> Result<(), CliError> {
    if bake {
        let commits = engine.last().is_some_and(|r| r.work.commits_in_image());
        if commits {
            engine.send(Event::Baked)?;
            return Ok(engine.allow_reboots()?);
        }
        engine.send(Event::RebootWanted)?;
        engine.send(Event::Shutdown { reboot: true })?;
    } else if wants {
        context.out.progress("asking for the reboot");
        engine.send(Event::RebootWanted)?;
    }
    Ok(())
}

/// The same policy is under way. An agent that was stopped in the middle has left the rest undone, and in an image
/// nothing else would go on with it. Returns whether that ended the transaction.
fn resume(engine: &mut Engine, record: &Record) -> Result<bool, CliError> {
    // Not a word about the boot: whether there was one is for the units to find out.
    engine.send(Event::Booted(Boot {
        boot_id: record.txn.boot_id.clone(),
        marker: Marker::None,
        grub: GrubView::Neither,
    }))?;
    let Some(record) = engine.last().cloned() else {
        return Ok(true);
    };
    if record.txn.state == State::Committed && record.work.commits_in_image() {
        engine.allow_reboots()?;
    }
    Ok(record.txn.state.is_final())
}

/// That it is armed is recorded before GRUB is told, and an agent may have been stopped in between. Elsewhere the
/// next boot finds out; in an image that would be the boot of every node made of it.
fn arm_again(context: &Context, engine: &mut Engine) -> Result<(), CliError> {
    let Some(record) = engine.last() else {
        return Ok(());
    };
    let told = read_env(&context.root, record.txn.id.as_str()) == GrubView::Armed;
    if matches!(record.txn.state, State::Granted | State::Armed) && !told {
        engine.send(Event::StillUp)?;
    }
    Ok(())
}

/// The same policy is under way already.
fn go_on(
    context: &Context,
    engine: &mut Engine,
    digest: String,
    args: &Args,
    wants: bool,
) -> Result<Exit, CliError> {
    if args.reboot {
        engine.allow_reboots()?;
    }
    if args.bake {
        arm_again(context, engine)?;
    }
    ask(context, engine, args.bake, wants)?;
    let record = engine.last().cloned();
    let exit = record.as_ref().map_or(Exit::Internal, outcome);
    report(
        context,
        digest,
        Plan::default(),
        false,
        record.as_ref(),
        exit,
    )
}

/// Another policy is under way: before its trial it is taken back, later it is in the way.
fn make_way(engine: &mut Engine, record: &Record) -> Result<(), CliError> {
    let early = matches!(
        record.txn.state,
        State::Staged | State::RebootRequested | State::Granted
    );
    if early {
        engine.send(Event::RollbackAsked)?;
    }
    let now = engine.last().map_or(State::Idle, |r| r.txn.state);
    if now.is_final() {
        return Ok(());
    }
    let message = format!("transaction {} of another policy is {now}", record.txn.id);
    Err(CliError::new(Exit::Person, "busy", message)
        .help("wait for it to end (`gdr-agent status`), or run `gdr-agent rollback`"))
}

/// The exit code for where a transaction stands after `apply`.
fn outcome(record: &Record) -> Exit {
    match record.txn.state {
        State::Idle | State::Committed => Exit::Done,
        State::RolledBack => match record.txn.failure.as_ref().map(|f| f.kind) {
            Some(FailureKind::Verify) => Exit::RolledBack,
            _ => Exit::Undone,
        },
        _ => status::exit(record),
    }
}

fn report(
    context: &Context,
    digest: String,
    plan: Plan,
    changed: bool,
    record: Option<&Record>,
    exit: Exit,
) -> Result<Exit, CliError> {
    let outstanding = exit == Exit::Outstanding;
    let output = Output {
        schema: "gdr-agent/apply/v1",
        digest,
        changed,
        reboot_required: outstanding || record.is_some_and(|r| r.txn.on_trial),
        steps: plan.steps,
        refusals: plan.refusals,
        notes: plan.notes,
        status: record.map(|record| Status::of(&context.root, record)),
        reboot: None,
    };
    context.out.result(&output, || text(&output))?;
    Ok(exit)
}

fn text(output: &Output) -> String {
    let mut text = String::new();
    text.push_str(&plan::refusals_text(&output.refusals));
    if output.refusals.is_empty() {
        for step in &output.steps {
            text.push_str(&format!(
                "  {}  {}\n",
                paint(style::BOLD, &step.id),
                step.summary
            ));
        }
        text.push_str(&format!("changed: {}\n", output.changed));
    }
    text.push_str(&plan::notes_text(&output.notes));
    if let Some(status) = &output.status {
        text.push_str(&status::text(status));
    } else if output.reboot_required {
        text.push_str("a reboot is outstanding\n");
    }
    text
}

/// Writing to the running system is root's business; say so before anything is tried.
pub(super) fn needs_root(context: &Context, verb: &str) -> Result<(), CliError> {
    if context.root.is_live() && !rustix::process::geteuid().is_root() {
        let message =
            format!("`gdr-agent {verb}` changes the running system, and this user is not root");
        return Err(
            CliError::new(Exit::Person, "not-root", message).help(format!("sudo gdr-agent {verb}"))
        );
    }
    Ok(())
}
