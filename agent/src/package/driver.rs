//! Which packages are the driver or the kernel, by name: a transaction may add to them and never change them.

use std::collections::BTreeSet;

use super::Installed;

/// Whether a package is part of the NVIDIA driver. Containers' tools have versions of their own.
#[must_use]
pub fn is_driver(name: &str) -> bool {
    const OTHERS: [&str; 6] = [
        "nvidia-container",
        "nvidia-docker",
        "libnvidia-container",
        "nvidia-peer-memory",
        "nvidia-gds",
        "nvidia-fs",
    ];
    const PARTS: [&str; 12] = [
        "nvidia-",
        "libnvidia-",
        "kmod-nvidia",
        "linux-modules-nvidia-",
        "linux-objects-nvidia-",
        "linux-signatures-nvidia-",
        "xserver-xorg-video-nvidia",
        "xorg-x11-nvidia",
        "firmware-nvidia-",
        "kernel-firmware-nvidia",
        "cuda-drivers",
        "libcuda1",
    ];
    !OTHERS.iter().any(|other| name.starts_with(other))
        && (name == "nvidia" || PARTS.iter().any(|part| name.starts_with(part)))
}

/// Whether a package is a kernel that would boot, or the modules of one. Headers are not.
#[must_use]
pub fn is_kernel(name: &str) -> bool {
    if is_driver(name) {
        return false;
    }
    let deb = [
        "linux-image-",
        "linux-modules-",
        "linux-generic",
        "linux-virtual",
    ];
    let rpm = [
        "kernel-core",
        "kernel-modules",
        "kernel-uek",
        "kernel-default",
        "kernel-64k",
    ];
    let rest = ["-devel", "-headers", "-doc", "-syms", "-source", "-macros"];
    name == "kernel"
        || (deb.iter().chain(&rpm).any(|part| name.starts_with(part))
            && !rest.iter().any(|end| name.contains(end)))
}

/// The driver's sets of kernel modules that are installed, each by the package that brings it. More than one is one too
/// many: which of them a kernel gets is decided by the order of their scripts.
#[must_use]
pub fn sets(installed: &Installed) -> BTreeSet<String> {
    let names = installed.packages.iter();
    names.filter_map(|package| set(&package.name)).collect()
}

fn set(name: &str) -> Option<String> {
    if let Some(rest) = name.strip_prefix("linux-modules-nvidia-") {
        return Some(format!("nvidia {}", prebuilt(rest)?));
    }
    if let Some(rest) = name.strip_prefix("nvidia-dkms-") {
        return Some(format!("nvidia {rest}"));
    }
    let debian = [
        "nvidia-kernel-dkms",
        "nvidia-open-kernel-dkms",
        "nvidia-kernel-open-dkms",
    ];
    if debian.contains(&name) {
        return Some(name.to_owned());
    }
    let kmod = name.strip_prefix("kmod-nvidia");
    if kmod.is_some_and(|rest| !rest.contains("common")) {
        // Precompiled modules have the driver's and the kernel's version in the name.
        let version = |part: &&str| part.bytes().next().is_some_and(|b| b.is_ascii_digit());
        let words: Vec<&str> = name.split('-').take_while(|part| !version(part)).collect();
        return Some(words.join("-"));
    }
    let suse = name.starts_with("nvidia-open-driver-") || name.starts_with("nvidia-driver-G");
    (suse && name.contains("-kmp-")).then(|| name.to_owned())
}

/// `570-server-open-6.8.0-45-generic` and `570-server-open-generic` are `570-server-open`.
fn prebuilt(rest: &str) -> Option<String> {
    let mut parts = rest.split('-');
    let mut set = parts.next()?.to_owned();
    for part in parts.take_while(|part| matches!(*part, "server" | "open")) {
        set = format!("{set}-{part}");
    }
    Some(set)
}
