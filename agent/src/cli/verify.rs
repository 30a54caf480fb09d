//! `gdr-agent verify`

use schemars::JsonSchema;
use serde::Serialize;

use super::output::{paint, style};
use super::status::{self, Status};
use super::{CliError, Context, Exit, apply, load};
use crate::apply::boot_id;
use crate::checks::{self, Check, Outcome, Severity};
use crate::journal::Record;
use crate::machine::State;
use crate::measure::recorded;
use crate::nccl_log::harmless;
use crate::world::World;

/// The JSON of `verify`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// `gdr-agent/verify/v1`
    schema: &'static str,
    /// `met` only if every required check is met.
    verdict: Outcome,
    /// The answers.
    checks: Vec<Check>,
    /// Where the transaction stands, when this run decided one.
    status: Option<Status>,
}

pub(super) fn run(context: &Context) -> Result<Exit, CliError> {
    let on_trial = status::last(&context.root)?.filter(|r| r.txn.state == State::TrialBooted);
    let policy = match &on_trial {
        Some(record) => record.work.policy.clone(),
        None => load::policy(context)?.loaded.policy,
    };
    let mut world = World::read(&context.root, &policy)?;
    // plans are made from files alone; here jobs that run count too
    world.read_more(&context.root, &policy, None);
    let tell = |text: &str| context.out.progress(text);
    let mut engine = None;
    if on_trial.is_some() {
        apply::needs_root(context, "verify")?;
        let there = |r: &Record| {
            recorded(&context.root, r.txn.id.as_str(), &boot_id(&context.root)).is_some()
        };
        // The unit has the ports and the GPUs; what is measured beside it would end the trial.
        if context.root.is_live()
            && checks::measures(&policy)
            && !on_trial.as_ref().is_some_and(there)
        {
            let message =
                "the trial's bandwidth is being measured; its verification follows by itself";
            return Err(CliError::new(Exit::Person, "measuring", message.to_owned()).help(
                "`gdr-agent status` says how it went, `journalctl -u gdr-agent-bandwidth.service` how far it is",
            ));
        }
        let mut opened = context.engine("verify")?.telling(&tell);
        world.more.measured = opened.measure(&world, &policy)?;
        opened.measured(world.more.measured.clone());
        engine = Some(opened);
    } else {
        world.more.measured = world.measure(&context.root, &policy, false, &tell);
    }
    let checks = world.checks(&policy);
    let verdict = checks::verdict(&checks);
    let mut output = Output {
        schema: "gdr-agent/verify/v1",
        verdict,
        checks,
        status: None,
    };
    let mut exit = if verdict == Outcome::Met {
        Exit::Done
    } else {
        Exit::Pending
    };
    if let Some(mut engine) = engine {
        engine.verify_trial()?;
        if let Some(record) = engine.last() {
            output.status = Some(Status::of(&context.root, record));
            exit = status::exit(record);
        }
    }
    context.out.result(&output, || text(&output))?;
    Ok(exit)
}

fn text(output: &Output) -> String {
    let mut text = String::new();
    for check in &output.checks {
        let (word, colour) = match (check.outcome, check.severity) {
            (Outcome::Met, _) => ("met    ", style::GOOD),
            (Outcome::Failed, Severity::Required) => ("failed ", style::BAD),
            (Outcome::Failed, Severity::Warning | Severity::Note) => ("warning", style::WARN),
            (Outcome::Unknown, _) => ("unknown", style::WARN),
        };
        text.push_str(&format!(
            "{}  {:24} {}\n",
            paint(colour, word),
            check.id,
            harmless(check.subject.as_bytes())
        ));
        if check.outcome != Outcome::Met {
            for line in &check.evidence {
                text.push_str(&format!("         {}\n", harmless(line.as_bytes())));
            }
            if let Some(fix) = &check.fix {
                text.push_str(&format!("         {} {fix}\n", paint(style::BOLD, "do:")));
            }
        }
    }
    let word = match output.verdict {
        Outcome::Met => paint(style::GOOD, "every required check is met"),
        Outcome::Failed => paint(style::BAD, "a required check failed"),
        Outcome::Unknown => paint(style::WARN, "a required check has no answer"),
    };
    text.push_str(&format!("{word}\n"));
    if let Some(status) = &output.status {
        text.push_str(&status::text(status));
    }
    text
}
