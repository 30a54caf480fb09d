//! The package that brings nvidia-peermem, where it is missing.

use super::step::{Action, Phase, Step};
use super::{Decision, Input, Plan};
use crate::package::{Change, Install};
use crate::plain::counted;

/// Plans it; says whether the kernel that the decision is about gets its module by that.
pub(super) fn plan(input: &Input, decision: &Decision, plan: &mut Plan) -> bool {
    let Some(survey) = input.packages else {
        return false;
    };
    plan.notes.extend(survey.notes.iter().cloned());
    for problem in &survey.problems {
        plan.refuse(problem.id, problem.message.clone(), problem.fix.clone());
    }
    let Some(install) = &survey.install else {
        return false;
    };
    plan.step(step(install));
    let kernel = decision.kernel.as_ref();
    kernel.is_some_and(|kernel| install.kernels.contains(kernel))
}

fn step(install: &Install) -> Step {
    let specs = install.specs.join(", ");
    let kernels = install.kernels.join(", ");
    let others = install.changes.len().saturating_sub(install.specs.len());
    let with = match others {
        0 => String::new(),
        n => format!(", and {} with it", counted(n, "package")),
    };
    Step {
        id: "package.install".to_owned(),
        kind: "package".to_owned(),
        summary: format!(
            "install {specs} with {} for kernel {kernels}{with}",
            install.manager.name()
        ),
        path: None,
        diff: Some(install.changes.iter().map(line).collect()),
        phase: Phase::Live,
        undo: "none: packages stay installed, and a rollback says which".to_owned(),
        action: Action::Install(install.clone()),
    }
}

fn line(change: &Change) -> String {
    let name = &change.name;
    let old = change.old.as_ref().map(|old| format!("-{name} {old}\n"));
    let new = change.new.as_ref().map(|new| format!("+{name} {new}\n"));
    format!("{}{}", old.unwrap_or_default(), new.unwrap_or_default())
}
