//! GRUB: the entry that boots today, and whether anything can be tried once here.

use gdr_policy::Fallback;
use grub_config_parser::cfg::Entry;
use grub_config_parser::cmdline::CommandLine;

use super::hook::without_extras;
use super::keep::Keep;
use super::{Input, Plan};
use crate::facts::Loader;

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
                format!("what grub.cfg would boot is not known: {e}"),
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
        .any(|command| command.name() == "devicetree")
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
