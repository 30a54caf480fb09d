//! Modules to load: now, and at every boot.

use super::gdr::{GdrPath, decide};
use super::step::{Action, Phase, Step};
use super::{Input, Plan, unified};
use crate::facts::fold;

/// The module that carries peer memory, as modprobe knows it.
const PEERMEM: &str = "nvidia-peermem";

/// Our own file, so that nobody else's is touched.
const FILE: &str = "/etc/modules-load.d/gdr-agent.conf";

/// Plans them; returns the modules that the trial boot has to load by its command line, because
/// the file would be shared with the known-good boot.
pub(super) fn plan(input: &Input, plan: &mut Plan) -> Vec<String> {
    let decision = decide(input.policy, input.facts);
    if let Some(id) = &decision.missing {
        plan.notes.push(format!(
            "{id}: no way to GPU memory was found: {}",
            decision.evidence.join("; ")
        ));
    }
    if let gdr_policy::PeermemPackage::Name(name) = &input.policy.peermem.package {
        plan.refuse(
            "package.unmanaged",
            format!("the policy names package {name}, and this version does not install packages"),
            "install it with the package manager and set `peermem.package = \"none\"`",
        );
    }
    if decision.path != GdrPath::Peermem || !input.policy.peermem.load {
        drop_file(input, plan);
        return Vec::new();
    }
    load_now(input, plan);
    load_at_boot(input, plan)
}

fn load_now(input: &Input, plan: &mut Plan) {
    let modules = &input.facts.modules;
    let there = |name: &str| {
        modules
            .loaded
            .get()
            .is_some_and(|l| l.contains(&fold(name)))
    };
    // Without driver and RDMA core there is nothing that it could register with.
    if input.facts.live && !there(PEERMEM) && there("nvidia") && there("ib_core") {
        plan.step(Step {
            id: "modules.load".to_owned(),
            kind: "module-load".to_owned(),
            summary: format!("load {PEERMEM}"),
            path: None,
            diff: None,
            phase: Phase::Live,
            undo: format!("unload {PEERMEM} if nothing uses it"),
            action: Action::LoadModule(PEERMEM.to_owned()),
        });
    }
}

fn load_at_boot(input: &Input, plan: &mut Plan) -> Vec<String> {
    match (
        &input.facts.modules.load_at_boot.value,
        &input.facts.modules.load_at_boot.unknown,
    ) {
        (Some(files), _) if files.contains_key(&fold(PEERMEM)) => return Vec::new(),
        (_, Some(why)) => {
            plan.refuse(
                "modules.unreadable",
                why.clone(),
                "make /etc/modules-load.d readable and run the command again",
            );
            return Vec::new();
        }
        _ => {}
    }
    let text = format!(
        "# From the policy of gdr-agent; `gdr-agent rollback` removes this file.\n{PEERMEM}\n"
    )
    .into_bytes();
    plan.step(Step {
        id: "modules.load-at-boot".to_owned(),
        kind: "modules-load".to_owned(),
        summary: format!("load {PEERMEM} at every boot"),
        path: Some(FILE.to_owned()),
        diff: Some(unified(FILE, None, Some(&text))),
        phase: Phase::Commit,
        undo: "remove the file".to_owned(),
        action: Action::Write {
            path: FILE.to_owned(),
            bytes: Some(text),
            boot: false,
        },
    });
    vec![PEERMEM.to_owned()]
}

/// Our own file goes when the policy does not want it any more.
fn drop_file(input: &Input, plan: &mut Plan) {
    let asked = input.facts.modules.load_at_boot.get();
    if !asked.is_some_and(|files| files.values().any(|path| path == FILE)) {
        return;
    }
    plan.step(Step {
        id: "modules.load-at-boot".to_owned(),
        kind: "modules-load".to_owned(),
        summary: format!("load {PEERMEM} at boot no more"),
        path: Some(FILE.to_owned()),
        diff: None,
        phase: Phase::Commit,
        undo: "the file as it was".to_owned(),
        action: Action::Write {
            path: FILE.to_owned(),
            bytes: None,
            boot: false,
        },
    });
}
