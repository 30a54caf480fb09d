//! The steps that try a command line and then make it the default, for kernels to come too.

use grub_config_parser::cmdline::CommandLine;

use super::cmdline::Edits;
use super::default_files::{self, Change, DROP_IN, MAIN};
use super::entries;
use super::grub::Base;
use super::hook::{hook_block, trial_args};
use super::keep::Keep;
use super::step::{Action, Phase, Refusal, Step};
use super::{Input, Plan, unified};
use crate::journal::Trial;

/// The steps that try a command line and then make it the default.
pub(super) fn steps(
    input: &Input,
    base: &Base,
    edits: &Edits,
    target: &CommandLine,
    modules: &[String],
    plan: &mut Plan,
) {
    let boot = &input.facts.boot;
    let trial = Trial {
        preamble: base.preamble.clone(),
        kernel: base.kernel.clone(),
        initrds: base.initrds.clone(),
        fallback: base.place,
        known_good: base.known_good.to_string(),
        target: target.to_string(),
        args: trial_args(input, target, modules),
    };
    if let Err(why) = hook_block(&trial, input.txn) {
        plan.refuse(
            "cmdline.unquotable",
            why,
            "take the argument out of /etc/default/grub, or quote it whole",
        );
        return;
    }
    let Some(custom) = boot.in_grub_dir("custom.cfg") else {
        return;
    };
    plan.step(Step {
        id: "cmdline.trial".to_owned(),
        kind: "trial-entry".to_owned(),
        summary: "boot the new command line once, and go back by itself if it fails".to_owned(),
        path: Some(custom),
        diff: Some(unified(
            "/proc/cmdline",
            Some(&lines(&trial.known_good)),
            Some(&lines(&trial.args)),
        )),
        phase: Phase::Trial,
        undo: "take the entry out of custom.cfg and disarm grubenv".to_owned(),
        action: Action::TrialEntry,
    });
    let on_fat = boot.mount.get().is_some_and(|mount| mount.kind == "vfat");
    if base.keep != Keep::Entries && on_fat {
        plan.refuse(
            "boot.menu-on-fat",
            "GRUB's menu is on a FAT file system, where replacing it is not safe against a power cut",
            "set GRUB_ENABLE_BLSCFG=true, or move the menu to /boot",
        );
        return;
    }
    let kept = match base.keep {
        Keep::DropIn | Keep::MainFile => in_defaults(input, base, edits, target, &trial, plan),
        Keep::Entries => in_entries(input, base, edits, target, &trial, plan),
    };
    match kept {
        Ok(()) => plan.trial = Some(trial),
        Err(refusal) => plan.refusals.push(refusal),
    }
}

/// One argument a line, as a diff shows it.
fn lines(line: &str) -> Vec<u8> {
    line.split(' ')
        .flat_map(|arg| format!("{arg}\n").into_bytes())
        .collect()
}

fn in_defaults(
    input: &Input,
    base: &Base,
    edits: &Edits,
    target: &CommandLine,
    trial: &Trial,
    plan: &mut Plan,
) -> Result<(), Refusal> {
    for change in default_files::changes(input, base, edits, target)? {
        plan.step(default_step(change));
    }
    if let Some(menu) = input.facts.boot.in_grub_dir("grub.cfg") {
        let summary =
            "regenerate GRUB's menu and check that its default entry boots exactly what was tried";
        plan.step(menu_step(menu, summary, trial, Action::Menu));
    }
    Ok(())
}

fn in_entries(
    input: &Input,
    base: &Base,
    edits: &Edits,
    target: &CommandLine,
    trial: &Trial,
    plan: &mut Plan,
) -> Result<(), Refusal> {
    // What grub2-mkconfig would write is kept in step where that can be done; it makes no menu here.
    if !input.facts.boot.reads_drop_ins {
        match default_files::changes(input, base, edits, target) {
            Ok(changes) => changes.into_iter().map(default_step).for_each(|s| plan.step(s)),
            Err(why) => plan.notes.push(format!(
                "{}: {}; `grub2-mkconfig` may write other arguments into the entries than the policy's",
                why.id, why.message
            )),
        }
    }
    let changes = entries::changes(input, edits, target, &mut plan.notes)?;
    entry_steps(input, changes, plan);
    if let Some(menu) = input.facts.boot.in_grub_dir("grub.cfg") {
        let summary = "check that the default entry boots exactly what was tried";
        plan.step(menu_step(menu, summary, trial, Action::CheckMenu));
    }
    Ok(())
}

/// The default entry's arguments are right already; what else on the node gives kernels theirs may not be.
pub(super) fn same_elsewhere(
    input: &Input,
    base: &Base,
    edits: &Edits,
    target: &CommandLine,
    plan: &mut Plan,
) {
    if base.keep != Keep::Entries {
        return;
    }
    match entries::changes(input, edits, target, &mut plan.notes) {
        Ok(mut changes) => {
            // A template that nobody has made is not missing here.
            changes.files.retain(|(_, old, _)| old.is_some());
            entry_steps(input, changes, plan);
        }
        Err(why) => plan.notes.push(format!("{}: {}", why.id, why.message)),
    }
}

/// The variable comes last of all, since it may be what the default entry reads.
fn entry_steps(input: &Input, changes: entries::Changes, plan: &mut Plan) {
    for change in changes.files {
        let path = &change.0;
        let entry = path.starts_with(crate::facts::ENTRIES);
        plan.step(if entry {
            let id = format!("cmdline.entry:{}", path.rsplit('/').next().unwrap_or(path));
            let summary = "keep the arguments in this kernel's entry";
            write_step(&id, "boot-entry", summary, change, entry)
        } else {
            let summary = "keep the arguments for kernels to come";
            write_step(
                "cmdline.new-kernels",
                "kernel-cmdline",
                summary,
                change,
                entry,
            )
        });
    }
    if let Some((name, old, new)) = changes.env {
        let path = input.facts.boot.in_grub_dir("grubenv").unwrap_or_default();
        plan.step(Step {
            id: format!("cmdline.env:{name}"),
            kind: "grubenv".to_owned(),
            summary: format!("keep the arguments in `{name}`, which every kernel's entry reads"),
            diff: Some(unified(&path, Some(&lines(&old)), Some(&lines(&new)))),
            path: Some(path),
            phase: Phase::Commit,
            undo: "the value as it was".to_owned(),
            action: Action::SetEnv { name, value: new },
        });
    }
}

fn default_step(change: Change) -> Step {
    let (path, old, new) = &change;
    let own = path == DROP_IN;
    let added = own || (path == MAIN && longer(old.as_deref(), new.as_deref()));
    let id = if own {
        "cmdline.default".to_owned()
    } else if added {
        format!("cmdline.default:{path}")
    } else {
        format!("cmdline.remove:{path}")
    };
    let summary = if new.is_none() {
        "no argument is left to keep".to_owned()
    } else if added {
        "keep the arguments for every kernel".to_owned()
    } else {
        format!("take arguments out of {path}")
    };
    write_step(&id, "grub-default", &summary, change, false)
}

/// A file that the commit writes; `boot` where GRUB reads it.
fn write_step(id: &str, kind: &str, summary: &str, (path, old, new): Change, boot: bool) -> Step {
    let undo = if old.is_none() {
        "remove the file"
    } else {
        "the file as it was"
    };
    Step {
        id: id.to_owned(),
        kind: kind.to_owned(),
        summary: summary.to_owned(),
        diff: Some(unified(&path, old.as_deref(), new.as_deref())),
        path: Some(path.clone()),
        phase: Phase::Commit,
        undo: undo.to_owned(),
        action: Action::Write {
            path,
            bytes: new,
            boot,
        },
    }
}

fn longer(old: Option<&[u8]>, new: Option<&[u8]>) -> bool {
    new.map_or(0, <[u8]>::len) > old.map_or(0, <[u8]>::len)
}

fn menu_step(menu: String, summary: &str, trial: &Trial, action: Action) -> Step {
    Step {
        id: "cmdline.menu".to_owned(),
        kind: "grub-menu".to_owned(),
        summary: summary.to_owned(),
        diff: Some(unified(
            &menu,
            Some(&lines(&trial.known_good)),
            Some(&lines(&trial.target)),
        )),
        path: Some(menu),
        phase: Phase::Commit,
        undo: "the menu as it was".to_owned(),
        action,
    }
}
