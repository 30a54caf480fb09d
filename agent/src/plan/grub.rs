//! GRUB: the entry that boots today, the trial entry, and what makes its arguments last.

use gdr_policy::Fallback;
use grub_config_parser::cfg::Entry;
use grub_config_parser::cmdline::CommandLine;

use super::cmdline::Edits;
use super::default_files::{self, Change, DROP_IN, MAIN};
use super::entries;
use super::hook::{hook_block, trial_args, without_extras};
use super::keep::Keep;
use super::step::Refusal;
use super::step::{Action, Phase, Step};
use super::{Input, Plan, unified};
use crate::facts::Loader;
use crate::journal::Trial;

/// What boots today.
#[derive(Debug, Clone)]
pub(super) struct Base {
    /// The kernel, as GRUB names it.
    pub(super) kernel: String,
    pub(super) initrds: Vec<String>,
    pub(super) preamble: Vec<String>,
    pub(super) keep: Keep,
    pub(super) place: usize,
    /// The default entry's arguments.
    pub(super) known_good: CommandLine,
    /// The running kernel's, without `BOOT_IMAGE=` and what a trial adds.
    pub(super) running: Option<CommandLine>,
}

/// Reads the default entry, or says why no command line can be tried here.
pub(super) fn base(input: &Input, plan: &mut Plan) -> Option<Base> {
    let boot = &input.facts.boot;
    if let Some(why) = boot.files.unreadable.first() {
        plan.refuse(
            "boot.unreadable",
            why.clone(),
            "make it readable and run the command again",
        );
        return None;
    }
    match boot.loader.get() {
        Some(Loader::Grub) => {}
        other => {
            refuse_loader(other.copied(), plan);
            return None;
        }
    }
    if let (Some(other), Some(own)) = (boot.other_menus.first(), boot.in_grub_dir("grub.cfg")) {
        plan.refuse(
            "boot.two-menus",
            format!(
                "{own} and {other} both have a menu, and which of them GRUB reads is not known"
            ),
            "remove the one that is not used (`efibootmgr -v` shows where GRUB starts from)",
        );
        return None;
    }
    if !boot.default_is_certain() {
        plan.refuse(
            "boot.order-unknown",
            format!(
                "which of the entries in {} boots by default is not known: {}",
                crate::facts::ENTRIES,
                boot.entry_order.why_missing()
            ),
            "name it: `grub2-set-default ID` (`grub2-editenv list` shows saved_entry)",
        );
        return None;
    }
    let (entry, place) = match boot.menu() {
        None => {
            let fix = "run `update-grub` on the running system, then the command again";
            plan.refuse("boot.no-menu", "there is no grub.cfg", fix);
            return None;
        }
        Some(Err(e)) => {
            let fix = "run `update-grub`, and look at what its error says";
            plan.refuse(
                "boot.menu-unreadable",
                format!(
                    "grub.cfg is not a GRUB script: line {}: {}",
                    e.line, e.message
                ),
                fix,
            );
            return None;
        }
        Some(Ok(menu)) => {
            hook_can_run(input, &menu, plan);
            for name in ["early_initrd", "devicetree"] {
                if menu
                    .bls_variables
                    .get(name)
                    .is_some_and(|set| !set.value.is_empty())
                {
                    plan.refuse(
                        "boot.entry-variable",
                        format!("GRUB's variable `{name}` is part of every boot entry here, and a trial would leave it out"),
                        "set `kernel.iommu = \"keep\"` with no `kernel.set` and `kernel.remove`, and edit the line with the distribution's tool",
                    );
                }
            }
            let place = menu.default_place;
            let default = menu.default.and_then(|at| menu.entries.into_iter().nth(at));
            let Some(entry) = default else {
                let fix = "run `update-grub` on the running system: in a chroot on a loop device it writes no Linux entry";
                plan.refuse(
                    "boot.no-default",
                    "grub.cfg has no entry that boots by default",
                    fix,
                );
                return None;
            };
            (entry, place)
        }
    };
    let Entry {
        kernel: Some(kernel),
        ..
    } = &entry
    else {
        plan.refuse(
            "boot.default-not-linux",
            format!("the default entry `{}` boots no Linux kernel", entry.title),
            "make a Linux entry the default",
        );
        return None;
    };
    if entry
        .commands
        .iter()
        .any(|command| command.name == "devicetree")
    {
        plan.refuse(
            "boot.devicetree",
            format!("the default entry `{}` loads a device tree, which a trial would leave out", entry.title),
            "set `kernel.iommu = \"keep\"` with no `kernel.set` and `kernel.remove`, and edit the line with the distribution's tool",
        );
        return None;
    }
    let running = input
        .facts
        .running
        .cmdline
        .get()
        .map(|line| without_extras(&CommandLine::parse(line)));
    Some(Base {
        kernel: kernel.clone(),
        initrds: entry.initrds.clone(),
        preamble: entry.preamble(),
        keep: Keep::of(&entry, boot),
        place,
        known_good: entry.cmdline.clone(),
        running,
    })
}

fn refuse_loader(loader: Option<Loader>, plan: &mut Plan) {
    let (message, fix) = match loader {
        Some(Loader::Ostree) => (
            "an OSTree or bootc deployment owns the command line",
            "use `rpm-ostree kargs` or `bootc loader-entries`",
        ),
        Some(Loader::SystemdBoot) => (
            "systemd-boot boots this machine",
            "edit /etc/kernel/cmdline and run `kernel-install add-all`",
        ),
        Some(Loader::GrubBls) => (
            "GRUB reads entries from the EFI system partition here and has no menu file, so nothing can be tried once",
            "use `update-bootloader --add-option`, or `sdbootutil`",
        ),
        Some(Loader::Uki) => (
            "a unified kernel image boots this machine, and its command line is part of it",
            "build it with the arguments: /etc/kernel/cmdline and `kernel-install add-all`, or `ukify build --cmdline=`",
        ),
        Some(Loader::Zipl) => (
            "zipl boots this machine",
            "edit the entries in /boot/loader/entries and run `zipl`",
        ),
        Some(Loader::Grub | Loader::Unknown) | None => (
            "no boot loader that this version knows was found",
            "look at `gdr-agent facts`, boot.*",
        ),
    };
    plan.refuse(
        "boot.loader-unsupported",
        message,
        format!("{fix}, and set `kernel.iommu = \"keep\"` in the policy"),
    );
}

/// Whether GRUB will run our hook and can disarm it; where not, a trial is refused.
fn hook_can_run(input: &Input, menu: &grub_config_parser::cfg::Menu, plan: &mut Plan) {
    let boot = &input.facts.boot;
    if !menu
        .sources
        .iter()
        .any(|path| path.ends_with("/custom.cfg"))
    {
        plan.refuse(
            "boot.no-hook",
            "grub.cfg does not read custom.cfg, so no entry can be tried once",
            "make /etc/grub.d/41_custom executable and run `update-grub`",
        );
    }
    if menu.timeout.as_deref() == Some("-1") {
        plan.refuse(
            "boot.menu-waits",
            "GRUB's menu waits for a key for ever, so no reboot comes back by itself",
            "set GRUB_TIMEOUT to 0 or more and run `update-grub`",
        );
    }
    match (&boot.files.grubenv, boot.grubenv.is_unknown()) {
        (Some(_), false) => {}
        (Some(_), true) => {
            let why = boot.grubenv.unknown.clone().unwrap_or_default();
            plan.refuse(
                "boot.grubenv-damaged",
                format!("grubenv is damaged: {why}"),
                "run `grub-editenv - create`, and set again what was in it",
            );
        }
        (None, _) => plan.refuse(
            "boot.no-grubenv",
            "there is no grubenv, in which GRUB disarms a trial",
            "run `grub-editenv - create`",
        ),
    }
    if let Some(mount) = boot
        .entries_mount
        .get()
        .filter(|m| m.read_only && !boot.files.entries.is_empty())
    {
        plan.refuse(
            "boot.read-only",
            format!("{} is mounted read-only", mount.point),
            format!("`mount -o remount,rw {}`", mount.point),
        );
    }
    if let Some(mount) = boot.mount.get() {
        if mount.read_only {
            plan.refuse(
                "boot.read-only",
                format!("{} is mounted read-only", mount.point),
                format!("`mount -o remount,rw {}`", mount.point),
            );
        }
        if !mount.grub_can_write() && input.policy.trial.fallback == Fallback::Required {
            plan.refuse(
                "boot.grub-cannot-write",
                format!(
                    "GRUB cannot write to {} ({} on {}), so it could not disarm a trial",
                    mount.point, mount.kind, mount.source
                ),
                "put /boot on a plain ext4 or xfs partition",
            );
        }
    }
}

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
    for (path, old, new) in changes.files {
        let entry = path.starts_with(crate::facts::ENTRIES);
        plan.step(Step {
            id: if entry {
                format!("cmdline.entry:{}", path.rsplit('/').next().unwrap_or(&path))
            } else {
                "cmdline.new-kernels".to_owned()
            },
            kind: if entry {
                "boot-entry"
            } else {
                "kernel-cmdline"
            }
            .to_owned(),
            summary: if entry {
                "keep the arguments in this kernel's entry".to_owned()
            } else {
                "keep the arguments for kernels to come".to_owned()
            },
            diff: Some(unified(&path, old.as_deref(), new.as_deref())),
            path: Some(path.clone()),
            phase: Phase::Commit,
            undo: if old.is_none() {
                "remove the file"
            } else {
                "the file as it was"
            }
            .to_owned(),
            action: Action::Write {
                path,
                bytes: new,
                boot: entry,
            },
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

fn default_step((path, old, new): Change) -> Step {
    let own = path == DROP_IN;
    let added = own || (path == MAIN && longer(old.as_deref(), new.as_deref()));
    Step {
        id: if own {
            "cmdline.default".to_owned()
        } else if added {
            format!("cmdline.default:{path}")
        } else {
            format!("cmdline.remove:{path}")
        },
        kind: "grub-default".to_owned(),
        summary: if new.is_none() {
            "no argument is left to keep".to_owned()
        } else if added {
            "keep the arguments for every kernel".to_owned()
        } else {
            format!("take arguments out of {path}")
        },
        diff: Some(unified(&path, old.as_deref(), new.as_deref())),
        path: Some(path.clone()),
        phase: Phase::Commit,
        undo: if old.is_none() {
            "remove the file"
        } else {
            "the file as it was"
        }
        .to_owned(),
        action: Action::Write {
            path,
            bytes: new,
            boot: false,
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
