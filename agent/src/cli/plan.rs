//! `gdr-agent plan`

use schemars::JsonSchema;
use serde::Serialize;

use super::output::{Format, paint, style};
use super::rehearsal::Rehearsal;
use super::{CliError, Context, Exit, load};
use crate::plan::gdr::{Decision, GdrPath, Says};
use crate::plan::{Phase, Plan, Refusal, Step};
use crate::world::World;

/// The JSON of `plan`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// `gdr-agent/plan/v1`
    schema: &'static str,
    /// The policy's digest.
    digest: String,
    /// Whether anything would change.
    changed: bool,
    /// Whether the policy is in force only after a reboot.
    reboot_required: bool,
    /// What would be done, in order.
    steps: Vec<Step>,
    /// Why nothing may be done.
    refusals: Vec<Refusal>,
    /// What a person should know.
    notes: Vec<String>,
    /// How NIC drivers reach GPU memory, with what led to that.
    gdr: Option<Decision>,
    /// Who would be asked for the reboot that the policy needs, and in which order. A plan asks nobody:
    /// `apply --dry-run-reboot` has the answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    reboot: Option<Rehearsal>,
}

/// The transaction that a plan's marker would name: it is shown, and no plan is carried out with it.
const SHOWN: &str = "<transaction>";

pub(super) fn run(context: &Context) -> Result<Exit, CliError> {
    let policy = load::policy(context)?;
    let mut world = World::read(&context.root, &policy.loaded.policy)?;
    world.survey(&context.root, &policy.loaded.policy);
    let digest = policy.digest();
    let policy = &policy.loaded.policy;
    let plan = world.plan(policy, &world.ports(policy), &digest, SHOWN, None);
    let exit = exit(&plan);
    let mut notes = plan.notes.clone();
    let reboot = if plan.trial.is_some() && plan.refusals.is_empty() {
        Rehearsal::of(&context.root, policy, false)
            .map_err(|refusal| notes.push(refusal.to_string()))
            .ok()
    } else {
        None
    };
    let output = Output {
        schema: "gdr-agent/plan/v1",
        digest,
        changed: plan.changed() && plan.refusals.is_empty(),
        reboot_required: plan.reboot_required(),
        steps: plan.steps,
        refusals: plan.refusals,
        notes,
        gdr: plan.gdr,
        reboot,
    };
    if context.out.format == Format::Diff {
        context.out.raw(&diff(&output))?;
    } else {
        context.out.result(&output, || text(&output))?;
    }
    Ok(exit)
}

fn exit(plan: &Plan) -> Exit {
    match refused(&plan.refusals) {
        Some(exit) => exit,
        None if plan.changed() || plan.pending_reboot => Exit::Pending,
        None => Exit::Done,
    }
}

/// The exit code for refusals, if there are any.
pub(super) fn refused(refusals: &[Refusal]) -> Option<Exit> {
    if refusals.is_empty() {
        None
    } else if refusals.iter().all(|r| r.person) {
        Some(Exit::Person)
    } else {
        Some(Exit::Unsafe)
    }
}

fn diff(output: &Output) -> String {
    output
        .steps
        .iter()
        .filter_map(|s| s.diff.as_deref())
        .collect()
}

fn text(output: &Output) -> String {
    let mut text = String::new();
    if output.steps.is_empty() && output.refusals.is_empty() {
        let line = if output.reboot_required {
            "nothing to change; a reboot is outstanding"
        } else {
            "nothing to do"
        };
        text.push_str(&format!("{}\n", paint(style::GOOD, line)));
    }
    for phase in [Phase::Live, Phase::Trial, Phase::Commit, Phase::EveryBoot] {
        let steps: Vec<&Step> = output.steps.iter().filter(|s| s.phase == phase).collect();
        if steps.is_empty() {
            continue;
        }
        text.push_str(&format!("{}\n", paint(style::BOLD, heading(phase))));
        for step in steps {
            text.push_str(&step_text(step));
        }
    }
    text.push_str(&refusals_text(&output.refusals));
    text.push_str(&output.gdr.as_ref().map(gdr_text).unwrap_or_default());
    text.push_str(&notes_text(&output.notes));
    text
}

/// The decision about GPU memory, and the chain that led to it.
fn gdr_text(decision: &Decision) -> String {
    let way = match decision.path {
        GdrPath::DmaBuf => "DMA-BUF".to_owned(),
        GdrPath::Peermem => "nvidia-peermem".to_owned(),
        GdrPath::None => match &decision.missing {
            Some(missing) if missing.unknown => format!("not known ({})", missing.id),
            Some(missing) => format!("none ({})", missing.id),
            None => "none".to_owned(),
        },
    };
    let kernel = decision.kernel.as_ref();
    let kernel = kernel.map_or(String::new(), |kernel| format!(", kernel {kernel}"));
    let mut text = format!(
        "{}\n",
        paint(style::BOLD, &format!("Way to GPU memory: {way}{kernel}"))
    );
    for link in &decision.evidence {
        let (word, colour) = match link.says {
            Says::Yes => ("yes    ", style::GOOD),
            Says::No => ("no     ", style::BAD),
            Says::Unknown => ("unknown", style::WARN),
            Says::Note => ("       ", style::DIM),
        };
        text.push_str(&format!("  {}  {link}\n", paint(colour, word)));
    }
    text
}

fn heading(phase: Phase) -> &'static str {
    match phase {
        Phase::Live => "Now",
        Phase::Trial => "In one trial boot",
        Phase::Commit => "After the trial is verified",
        Phase::EveryBoot => "At every boot",
    }
}

pub(super) fn step_text(step: &Step) -> String {
    let mut text = format!("  {}  {}\n", paint(style::BOLD, &step.id), step.summary);
    for line in step.diff.iter().flat_map(|d| d.lines()) {
        let colour = match line.bytes().next() {
            Some(b'+') => style::GOOD,
            Some(b'-') => style::BAD,
            _ => style::DIM,
        };
        text.push_str(&format!("      {}\n", paint(colour, line)));
    }
    text.push_str(&format!(
        "      {}\n",
        paint(style::DIM, &format!("undo: {}", step.undo))
    ));
    text
}

pub(super) fn refusals_text(refusals: &[Refusal]) -> String {
    let mut text = String::new();
    for refusal in refusals {
        text.push_str(&format!(
            "{} {}: {}\n",
            paint(style::BAD, "refused"),
            refusal.id,
            refusal.message
        ));
        text.push_str(&format!(
            "  {} {}\n",
            paint(style::BOLD, "do:"),
            refusal.fix
        ));
    }
    text
}

pub(super) fn notes_text(notes: &[String]) -> String {
    notes
        .iter()
        .map(|note| format!("{} {note}\n", paint(style::WARN, "note")))
        .collect()
}
