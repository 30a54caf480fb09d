//! Distributions other than Debian, as far as booting goes: where GRUB's files are, what its menu is made
//! of, and what installing a kernel or running grub2-mkconfig does to that.
//!
//! After Red Hat's grub2 (util/grub.d/10_linux.in, grub-core/commands/blscfg.c, branches rhel-8, rhel-9,
//! fedora-43), its 20-grub.install, and SUSE's grub2.

use super::mkconfig::MkconfigError;
use super::spec::{NodeSpec, ROOT_UUID};
use super::tree::{Tree, TreeError};

/// Whose boot configuration a node has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// Drop-ins, and a menu from grub-mkconfig.
    Debian,
    /// Entries with `$kernelopts`, which grubenv has.
    El8,
    /// The same with GRUB's files on the EFI system partition, to which a link leads.
    El8Efi,
    /// Entries with literal options, and `/etc/kernel/cmdline`.
    El9,
    /// The same, and grub2-mkconfig writes the options of all entries anew; no `/etc/kernel/cmdline`.
    Fedora,
    /// `/etc/default/grub` without drop-ins, and a menu from grub2-mkconfig.
    Suse,
}

impl Family {
    /// GRUB's `$prefix`, from the root.
    pub(super) fn grub_dir(self) -> &'static str {
        match self {
            Self::Debian => "boot/grub",
            Self::El8Efi => "boot/efi/EFI/redhat",
            Self::El8 | Self::El9 | Self::Fedora | Self::Suse => "boot/grub2",
        }
    }

    /// What `/bin/sh` leads to.
    pub(super) fn shell(self) -> &'static str {
        match self {
            Self::Debian => "dash",
            Self::El8 | Self::El8Efi | Self::El9 | Self::Fedora | Self::Suse => "bash",
        }
    }

    pub(super) fn has_entries(self) -> bool {
        matches!(self, Self::El8 | Self::El8Efi | Self::El9 | Self::Fedora)
    }

    fn os_release(self) -> &'static str {
        match self {
            Self::Debian => "",
            Self::El8 | Self::El8Efi => {
                "NAME=\"Rocky Linux\"\nID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\nVERSION_ID=\"8.10\"\nPRETTY_NAME=\"Rocky Linux 8.10\"\n"
            }
            Self::El9 => {
                "NAME=\"Rocky Linux\"\nID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\nVERSION_ID=\"9.4\"\nPRETTY_NAME=\"Rocky Linux 9.4\"\n"
            }
            Self::Fedora => {
                "NAME=\"Fedora Linux\"\nID=fedora\nVERSION_ID=43\nPRETTY_NAME=\"Fedora Linux 43\"\n"
            }
            Self::Suse => {
                "NAME=\"SLES\"\nID=\"sles\"\nID_LIKE=\"suse\"\nVERSION_ID=\"15.6\"\nPRETTY_NAME=\"SUSE Linux Enterprise Server 15 SP6\"\n"
            }
        }
    }

    /// Which family's node this is; GRUB and the tools find out by themselves.
    pub(super) fn of(tree: &Tree) -> Self {
        let os = tree.text("usr/lib/os-release").unwrap_or_default();
        let old = os.contains("VERSION_ID=\"8");
        match () {
            () if os.contains("suse") => Self::Suse,
            () if os.contains("ID=fedora") => Self::Fedora,
            () if os.contains("rocky") && old && tree.exists("boot/efi/EFI/redhat/grub.cfg") => {
                Self::El8Efi
            }
            () if os.contains("rocky") && old => Self::El8,
            () if os.contains("rocky") => Self::El9,
            () => Self::Debian,
        }
    }
}

const ENTRIES: &str = "boot/loader/entries";
const MACHINE: &str = "3f1d0c7e5b9a4d2c8e6f1a2b3c4d5e6f";

/// Makes the Debian node that is there another family's.
pub(super) fn convert(tree: &Tree, spec: &NodeSpec) -> Result<(), TreeError> {
    let family = spec.family;
    if family == Family::Debian {
        return Ok(());
    }
    tree.file("usr/lib/os-release", family.os_release())?;
    tree.remove("etc/debian_version")?;
    tree.remove("etc/default/grub.d")?;
    let menu = tree.read("boot/grub/grub.cfg")?;
    tree.remove("boot/grub")?;
    tree.remove("boot/efi/EFI/debian")?;
    for (old, new) in [
        ("usr/sbin/grub-mkconfig", "usr/sbin/grub2-mkconfig"),
        ("usr/sbin/update-grub", ""),
        ("usr/bin/grub-script-check", "usr/bin/grub2-script-check"),
    ] {
        if tree.exists(old) {
            tree.remove(old)?;
            if !new.is_empty() {
                tree.link(new, "../lib/sample-node")?;
            }
        }
    }
    let dir = family.grub_dir();
    if !family.has_entries() {
        tree.file(&format!("{dir}/grub.cfg"), menu)?;
        return env(tree, dir, "");
    }
    tree.file(
        "etc/default/grub",
        format!(
            "GRUB_TIMEOUT=5\nGRUB_DISTRIBUTOR=\"$(echo Rocky)\"\nGRUB_DEFAULT=saved\n\
             GRUB_DISABLE_SUBMENU=true\nGRUB_CMDLINE_LINUX=\"{}\"\nGRUB_ENABLE_BLSCFG=true\n",
            spec.cmdline
        ),
    )?;
    tree.file(
        &format!("{dir}/grub.cfg"),
        MENU.replace("@UUID@", ROOT_UUID),
    )?;
    tree.mode(&format!("{dir}/grub.cfg"), 0o600)?;
    let saved = format!("saved_entry={MACHINE}-{}\n", spec.kernel);
    let options = format!("root=UUID={ROOT_UUID} ro {} ", spec.cmdline);
    match family {
        Family::El8 | Family::El8Efi => env(tree, dir, &format!("{saved}kernelopts={options}\n"))?,
        _ => env(tree, dir, &saved)?,
    }
    if family == Family::El8Efi {
        tree.link("boot/grub2/grubenv", "../efi/EFI/redhat/grubenv")?;
    }
    if family == Family::El9 {
        tree.file("etc/kernel/cmdline", format!("{}\n", options.trim_end()))?;
    }
    for kernel in [&spec.kernel, &spec.old_kernel] {
        entry(tree, family, kernel, options.trim_end())?;
    }
    let rescue = format!("{ENTRIES}/{MACHINE}-0-rescue.conf");
    tree.file(
        &rescue,
        format!(
            "title Rescue\nversion 0-rescue-{MACHINE}\nlinux /boot/vmlinuz-{}\ninitrd /boot/initrd.img-{}\noptions {}\n",
            spec.old_kernel,
            spec.old_kernel,
            options.trim_end()
        ),
    )
}

/// A grubenv of the size that GRUB makes.
fn env(tree: &Tree, dir: &str, variables: &str) -> Result<(), TreeError> {
    let text = format!("# GRUB Environment Block\n{variables}");
    tree.file(
        &format!("{dir}/grubenv"),
        format!("{text}{}", "#".repeat(1024 - text.len())),
    )
}

fn entry(tree: &Tree, family: Family, kernel: &str, options: &str) -> Result<(), TreeError> {
    let options = match family {
        Family::El8 | Family::El8Efi => "$kernelopts $tuned_params",
        _ => options,
    };
    tree.file(
        &format!("{ENTRIES}/{MACHINE}-{kernel}.conf"),
        format!(
            "title Linux ({kernel})\nversion {kernel}\nlinux /boot/vmlinuz-{kernel}\ninitrd /boot/initrd.img-{kernel}\n\
             options {options}\ngrub_users $grub_users\ngrub_arg --unrestricted\ngrub_class kernel\n"
        ),
    )
}

/// What installing a kernel package does to the boot configuration; the kernel becomes the default.
pub fn install_kernel(tree: &Tree, kernel: &str) -> Result<(), MkconfigError> {
    let family = Family::of(tree);
    tree.file(&format!("boot/vmlinuz-{kernel}"), "MZ")?;
    tree.file(&format!("boot/initrd.img-{kernel}"), "0707")?;
    if !family.has_entries() {
        return super::mkconfig::regenerate(tree, None);
    }
    let options = match tree.text("etc/kernel/cmdline") {
        Ok(text) => text.split_whitespace().collect::<Vec<_>>().join(" "),
        // 20-grub.install: the running kernel's, less what the loader adds
        Err(_) => tree
            .text("proc/cmdline")?
            .split_whitespace()
            .filter(|arg| !arg.starts_with("BOOT_IMAGE=") && !arg.starts_with("initrd="))
            .collect::<Vec<_>>()
            .join(" "),
    };
    entry(tree, family, kernel, &options)?;
    let path = format!("{}/grubenv", family.grub_dir());
    let block = tree.read(&path)?;
    let saved = format!("{MACHINE}-{kernel}");
    let block =
        super::grub::save_env(&block, "saved_entry", Some(&saved)).map_err(|source| TreeError {
            what: "setting saved_entry in",
            path: tree.at(&path),
            source: std::io::Error::other(source),
        })?;
    Ok(tree.file(&path, block)?)
}

/// What Fedora's grub2-mkconfig does to the entries: their options come from `/etc/default/grub`.
pub fn rewrite_entries(tree: &Tree) -> Result<(), MkconfigError> {
    let menu = super::mkconfig::menu(tree)?;
    let options = format!(
        "root=UUID={ROOT_UUID} ro {} {}",
        menu.cmdline, menu.cmdline_default
    );
    for name in tree.names(ENTRIES)? {
        let path = format!("{ENTRIES}/{name}");
        let text = tree.text(&path)?;
        let lines = text
            .lines()
            .map(|line| match line.strip_prefix("options ") {
                Some(_) => format!("options {}\n", options.trim_end()),
                None => format!("{line}\n"),
            });
        tree.file(&path, lines.collect::<String>())?;
    }
    Ok(())
}

/// What grub2-mkconfig writes where entries are in files of their own.
const MENU: &str = r#"set pager=1

if [ -f ${config_directory}/grubenv ]; then
  load_env -f ${config_directory}/grubenv
elif [ -s $prefix/grubenv ]; then
  load_env
fi
if [ "${next_entry}" ] ; then
   set default="${next_entry}"
   set next_entry=
   save_env next_entry
   set boot_once=true
else
   set default="${saved_entry}"
fi

if [ x"${feature_menuentry_id}" = xy ]; then
  menuentry_id_option="--id"
else
  menuentry_id_option=""
fi

export menuentry_id_option

if [ "${prev_saved_entry}" ]; then
  set saved_entry="${prev_saved_entry}"
  save_env saved_entry
  set prev_saved_entry=
  save_env prev_saved_entry
  set boot_once=true
fi

function load_video {
  if [ x$feature_all_video_module = xy ]; then
    insmod all_video
  fi
}

set timeout_style=menu
set timeout=5

insmod part_gpt
insmod ext2
search --no-floppy --fs-uuid --set=root @UUID@
insmod blscfg
blscfg

if [ -f  ${config_directory}/custom.cfg ]; then
  source ${config_directory}/custom.cfg
elif [ -z "${config_directory}" -a -f  $prefix/custom.cfg ]; then
  source $prefix/custom.cfg
fi
"#;
