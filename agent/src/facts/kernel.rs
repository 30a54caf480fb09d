//! Kernels: those that are installed and the one that runs.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;

use super::fact::{Fact, text};
use crate::sys::{EntryKind, Root, SysError};

/// A kernel that could be booted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct InstalledKernel {
    /// `uname -r` of it.
    pub release: String,
    /// Its image, such as `/boot/vmlinuz-6.12.0`.
    pub image: Option<String>,
    /// Its initramfs.
    pub initrd: Option<String>,
    /// Whether `/lib/modules/RELEASE` is there.
    pub modules: bool,
}

/// The kernel that runs; all absent in an image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RunningKernel {
    /// `uname -r`.
    pub release: Fact<String>,
    /// The command line that it was booted with: the only truth about what booted.
    pub cmdline: Fact<String>,
    /// The boot's identity: the only proof of a reboot.
    pub boot_id: Fact<String>,
    /// Whether this is a crash kernel (`/proc/vmcore` is there), which is to be left alone.
    pub crash_kernel: Fact<bool>,
}

pub(super) fn running(root: &Root) -> RunningKernel {
    let vmcore = "/proc/vmcore";
    let crash_kernel = match root.stat(vmcore) {
        Ok(found) => Fact::known(found.is_some(), vmcore),
        Err(e) => Fact::unknown(vmcore, e.to_string()),
    };
    RunningKernel {
        release: text(root, "/proc/sys/kernel/osrelease"),
        cmdline: text(root, "/proc/cmdline"),
        boot_id: text(root, "/proc/sys/kernel/random/boot_id"),
        crash_kernel,
    }
}

pub(super) fn installed(root: &Root) -> Fact<Vec<InstalledKernel>> {
    match read_installed(root) {
        Ok(kernels) => Fact::known(kernels, "/boot"),
        Err(e) => Fact::unknown("/boot", e.to_string()),
    }
}

fn read_installed(root: &Root) -> Result<Vec<InstalledKernel>, SysError> {
    let boot = root.list("/boot")?;
    let boot: BTreeSet<&str> = boot
        .iter()
        .filter(|e| e.kind != EntryKind::Dir)
        .map(|e| e.name.as_str())
        .collect();
    let modules = root.list("/lib/modules")?;
    let modules: BTreeSet<&str> = modules.iter().map(|e| e.name.as_str()).collect();
    let images = boot.iter().filter_map(|name| {
        name.strip_prefix("vmlinuz-")
            .or_else(|| name.strip_prefix("vmlinux-"))
    });
    let releases: BTreeSet<&str> = images.chain(modules.iter().copied()).collect();
    let find = |names: [String; 3]| {
        names
            .into_iter()
            .find(|n| boot.contains(n.as_str()))
            .map(|n| format!("/boot/{n}"))
    };
    Ok(releases
        .into_iter()
        .map(|release| InstalledKernel {
            release: release.to_owned(),
            image: find([
                format!("vmlinuz-{release}"),
                format!("vmlinux-{release}"),
                String::new(),
            ]),
            initrd: find([
                format!("initrd.img-{release}"),
                format!("initramfs-{release}.img"),
                format!("initrd-{release}"),
            ]),
            modules: modules.contains(release),
        })
        .collect())
}

/// A kernel release as numbers, for "since 6.11" questions: `6.8.0-45-generic` is (6, 8).
#[must_use]
pub fn version(release: &str) -> Option<(u32, u32)> {
    let mut parts = release.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions() {
        assert_eq!(version("6.8.0-45-generic"), Some((6, 8)));
        assert_eq!(version("5.14.0-427.el9.x86_64"), Some((5, 14)));
        assert_eq!(version("7"), None);
    }
}
