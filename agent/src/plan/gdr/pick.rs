//! The kernel that the question is about.

use grub_config_parser::bls::{Order, compare};

use super::Input;
use crate::facts::gdr::Target;

/// The kernels that count. While an image is built, what runs is the builder's kernel.
pub(super) fn candidates<'a>(input: &Input<'a>) -> impl Iterator<Item = &'a Target> {
    let bake = input.facts.bake;
    let targets = input.facts.gdr.targets.iter();
    targets.filter(move |target| target.installed || !bake)
}

/// The kernel that runs; else the one that boots by default; else the newest.
pub(super) fn kernel<'a>(input: &Input<'a>) -> Option<&'a Target> {
    let running = candidates(input).find(|target| input.runs(target));
    let booted = || {
        let release = default_release(input)?;
        candidates(input).find(|target| target.release == release)
    };
    let newest = || candidates(input).max_by(|a, b| compare(&a.release, &b.release, Order::Rpm));
    running.or_else(booted).or_else(newest)
}

fn default_release(input: &Input) -> Option<String> {
    let menu = input.facts.boot.menu()?.ok()?;
    let entry = menu.entries.into_iter().nth(menu.default?)?;
    let kernel = entry.kernel?;
    let name = kernel.rsplit('/').next()?;
    let release = name
        .strip_prefix("vmlinuz-")
        .or_else(|| name.strip_prefix("vmlinux-"))?;
    Some(release.to_owned())
}
