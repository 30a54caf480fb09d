//! Modules to load: now, and at every boot.

use super::gdr::{Decision, Evidence, GdrPath, Missing, Says};
use super::step::{Action, Phase, Step};
use super::{Input, Plan, unified};
use crate::facts::gdr::PEERMEM;
use crate::kmod::{Refused, fold};
use crate::pci::select::selects;

/// The module that registers the same client as nvidia-peermem, from before the driver had its own.
const LEGACY: &str = "nv_peer_mem";

/// Our own file, so that nobody else's is touched.
pub(crate) const FILE: &str = "/etc/modules-load.d/gdr-agent.conf";

/// Plans them; returns the modules that the trial boot has to load by its command line, because
/// the file would be shared with the known-good boot. `comes` says whether a package of this plan brings the one that is
/// missing.
pub(super) fn plan(
    input: &Input,
    decision: &Decision,
    comes: bool,
    plan: &mut Plan,
) -> Vec<String> {
    notes(decision, comes, plan);
    let way = comes || decision.path == GdrPath::Peermem;
    if !way || !input.policy.peermem.load {
        drop_file(input, plan);
        return Vec::new();
    }
    if make_way(input, plan) {
        load_now(input, plan);
    }
    load_at_boot(input, plan)
}

fn notes(decision: &Decision, comes: bool, plan: &mut Plan) {
    if let (Some(Missing { id, unknown, fix }), false) = (&decision.missing, comes) {
        let against = |link: &&Evidence| matches!(link.says, Says::No | Says::Unknown);
        let chain = decision.evidence.iter().filter(against);
        let chain: Vec<String> = chain.map(ToString::to_string).collect();
        let what = if *unknown {
            "whether there is a way to GPU memory is not known"
        } else {
            "no way to GPU memory was found"
        };
        plan.notes
            .push(format!("{id}: {what}: {}; {fix}", chain.join("; ")));
    }
    for other in &decision.others {
        let kernel = &other.kernel;
        plan.notes.push(match (&other.missing, other.path) {
            (Some(missing), _) => format!(
                "kernel {kernel} would have no way to GPU memory: {}; {}",
                missing.id, missing.fix
            ),
            (None, GdrPath::Peermem) => format!("kernel {kernel} would go through {PEERMEM}"),
            (None, _) => format!("kernel {kernel} would go through DMA-BUF"),
        });
    }
}

fn loaded(input: &Input, name: &str) -> bool {
    let loaded = &input.facts.modules.loaded;
    loaded.get().is_some_and(|l| l.contains(&fold(name)))
}

/// Whether modules may be loaded into the kernel that runs: not for an image, not for a capture.
fn here(input: &Input) -> bool {
    input.facts.live && !input.facts.bake
}

/// Unloads the old module, if nothing uses it. Says whether the name is free then.
fn make_way(input: &Input, plan: &mut Plan) -> bool {
    if !here(input) || !loaded(input, LEGACY) {
        return true;
    }
    let users = input.facts.modules.refcounts.get(LEGACY).copied();
    let id = Refused::NameTaken.id();
    if users != Some(0) {
        plan.notes.push(format!(
            "{id}: {LEGACY} is loaded and in use, and {PEERMEM} cannot register beside it; {}",
            Refused::NameTaken.fix()
        ));
        return false;
    }
    plan.step(Step {
        id: "modules.unload".to_owned(),
        kind: "module-unload".to_owned(),
        summary: format!("unload {LEGACY}, which nothing uses and {PEERMEM} cannot be beside"),
        path: None,
        diff: None,
        phase: Phase::Live,
        undo: format!("load {LEGACY} again"),
        action: Action::UnloadModule(LEGACY.to_owned()),
    });
    plan.notes.push(format!(
        "{id}: its package would load {LEGACY} again at the next boot; {}",
        Refused::NameTaken.fix()
    ));
    true
}

fn load_now(input: &Input, plan: &mut Plan) {
    let facts = input.facts;
    // Without GPU, driver and RDMA core there is nothing that it could register with.
    let devices = &input.policy.devices;
    let gpu = |vendor, device, class| devices.is_gpu(vendor, device, class);
    let gpu = input.functions.iter().any(|f| selects(&gpu, f));
    let ready = gpu && loaded(input, "nvidia") && loaded(input, "ib_core");
    if !here(input) || loaded(input, PEERMEM) || !ready {
        return;
    }
    if let Some(why) = stale_core(input) {
        plan.notes.push(why);
        return;
    }
    if facts.modules.loaded.is_unknown() {
        return;
    }
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

/// After an upgrade of the RDMA stack the old core stays loaded until it is restarted, and what was built
/// against the new one does not fit it.
fn stale_core(input: &Input) -> Option<String> {
    let gdr = &input.facts.gdr;
    let running = input.facts.running.release.get()?;
    let target = gdr.targets.iter().find(|t| t.release == *running)?;
    let core = target.rdma.get()?;
    let (now, file) = (gdr.in_use.ib_core.get()?, core.srcversion.as_ref()?);
    (now != file).then(|| {
        format!(
            "{}: the ib_core that is loaded is not {}: {PEERMEM} is loaded at the next boot; until then, `systemctl restart openibd` would load the new one",
            Refused::AbiMismatch.id(),
            core.path
        )
    })
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
