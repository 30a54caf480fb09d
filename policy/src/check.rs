//! What no single value shows: ranges, repeats, and keys that contradict each other. The same
//! checks run on a policy read from TOML and on one read back from JSON.

use std::ops::RangeInclusive;

use crate::diagnostic::Severity;
use crate::escape::quote;
use crate::policy::{Policy, VERSION};
use crate::types::{AcsScope, CheckGroup, Coordinator, IommuMode, KernelArg};

/// Seconds from a panic to the reboot.
pub(crate) const PANIC: RangeInclusive<u32> = 1..=3600;
/// Reboots that one policy may cause.
pub(crate) const REBOOTS: RangeInclusive<u32> = 0..=10;
/// Entries of one list.
pub(crate) const LIST: usize = 64;
const DEADLINE_SECS: RangeInclusive<u64> = 60..=24 * 3600;
const DELAY_SECS: RangeInclusive<u64> = 10..=24 * 3600;
const HOOK_SECS: RangeInclusive<u64> = 1..=3600;
const GBPS: RangeInclusive<f64> = 0.1..=10_000.0;
/// Arguments that `kernel.iommu` decides about.
const IOMMU_ARGS: [&str; 4] = ["iommu", "intel_iommu", "amd_iommu", "iommu.passthrough"];

/// A place in the policy: a key, and the entry where the key holds a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct At {
    pub(crate) key: &'static str,
    pub(crate) entry: Option<usize>,
}

impl At {
    const fn key(key: &'static str) -> Self {
        Self { key, entry: None }
    }

    const fn entry(key: &'static str, entry: usize) -> Self {
        Self {
            key,
            entry: Some(entry),
        }
    }
}

/// One thing wrong. `at` names every key that plays a part, the best one to show first.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    pub(crate) severity: Severity,
    pub(crate) at: Vec<At>,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
}

impl Finding {
    /// The key that is shown.
    pub(crate) fn key(&self) -> &'static str {
        self.at.first().map_or("version", |at| at.key)
    }

    fn error(at: impl Into<Vec<At>>, message: String) -> Self {
        Self {
            severity: Severity::Error,
            at: at.into(),
            message,
            help: None,
        }
    }

    fn warning(at: impl Into<Vec<At>>, message: String) -> Self {
        Self {
            severity: Severity::Warning,
            at: at.into(),
            message,
            help: None,
        }
    }

    fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// The findings that make a policy invalid.
pub(crate) fn errors(policy: &Policy) -> Vec<Finding> {
    let mut found = findings(policy);
    found.retain(|finding| finding.severity == Severity::Error);
    found
}

/// All findings.
pub(crate) fn findings(policy: &Policy) -> Vec<Finding> {
    let mut out = Vec::new();
    ranges(policy, &mut out);
    lists(policy, &mut out);
    kernel(policy, &mut out);
    reboot(policy, &mut out);
    verify(policy, &mut out);
    out
}

/// Why a number is outside its range.
pub(crate) fn outside(found: impl std::fmt::Display, range: &RangeInclusive<u32>) -> String {
    format!(
        "{found} is not between {} and {}",
        range.start(),
        range.end()
    )
}

fn ranges(policy: &Policy, out: &mut Vec<Finding>) {
    let mut range = |key, value: u32, range: RangeInclusive<u32>| {
        if !range.contains(&value) {
            out.push(Finding::error([At::key(key)], outside(value, &range)));
        }
    };
    range("trial.panic", policy.trial.panic, PANIC);
    range("reboot.max", policy.reboot.max, REBOOTS);
    if policy.version != VERSION {
        let (message, help) = unsupported(policy.version);
        out.push(Finding::error([At::key("version")], message).help(help));
    }
    if !DEADLINE_SECS.contains(&policy.trial.deadline.as_secs()) {
        let message = format!("{} is not between 1m and 24h", policy.trial.deadline);
        out.push(Finding::error([At::key("trial.deadline")], message));
    }
    let limit = policy.reboot.gates.hook_limit;
    if !HOOK_SECS.contains(&limit.as_secs()) {
        let message = format!("{limit} is not between 1s and 1h");
        out.push(Finding::error(
            [At::key("reboot.gates.hook_limit")],
            message,
        ));
    }
    if let Some(delay) = policy.reboot.delay
        && !DELAY_SECS.contains(&delay.as_secs())
    {
        let message = format!("{delay} is not between 10s and 24h");
        let help = "leave it out for a reboot at once";
        out.push(Finding::error([At::key("reboot.delay")], message).help(help));
    }
    if let Some(bandwidth) = &policy.verify.bandwidth
        && !GBPS.contains(&bandwidth.min_gbps)
    {
        let message = format!("{} is not between 0.1 and 10000 Gbit/s", bandwidth.min_gbps);
        out.push(Finding::error(
            [At::key("verify.bandwidth.min_gbps")],
            message,
        ));
    }
}

/// Message and help for a format that this crate does not read.
pub(crate) fn unsupported(version: impl std::fmt::Display) -> (String, String) {
    (
        format!("policy version {version} is not supported"),
        format!("this gdr-agent reads version = {VERSION}"),
    )
}

fn lists(policy: &Policy, out: &mut Vec<Finding>) {
    let Policy {
        devices,
        kernel,
        acs,
        verify,
        ..
    } = policy;
    let arg = |arg: &KernelArg| match arg.value() {
        Some(value) => format!("{}={value}", arg.folded_name()),
        None => arg.folded_name(),
    };
    repeats("devices.gpu", &devices.gpu, ToString::to_string, out);
    repeats("devices.nic", &devices.nic, ToString::to_string, out);
    repeats("kernel.set", &kernel.set, arg, out);
    repeats("kernel.remove", &kernel.remove, arg, out);
    repeats("acs.clear", &acs.clear, ToString::to_string, out);
    repeats(
        "reboot.gates.windows",
        &policy.reboot.gates.windows,
        ToString::to_string,
        out,
    );
    repeats("verify.require", &verify.require, ToString::to_string, out);
    repeats("verify.warn", &verify.warn, ToString::to_string, out);

    for (key, list) in [("devices.gpu", &devices.gpu), ("devices.nic", &devices.nic)] {
        if list.is_empty() {
            let message = "an empty list matches no device, so no path could be found".to_owned();
            out.push(
                Finding::error([At::key(key)], message)
                    .help("leave the key out to have its default"),
            );
        }
    }
    for (index, nic) in devices.nic.iter().enumerate() {
        if let Some(gpu) = devices.gpu.iter().position(|gpu| gpu == nic) {
            let at = [
                At::entry("devices.nic", index),
                At::entry("devices.gpu", gpu),
            ];
            out.push(Finding::error(
                at,
                format!("`{nic}` is a GPU and a NIC at once"),
            ));
        }
    }
}

fn repeats<T>(key: &'static str, list: &[T], same: impl Fn(&T) -> String, out: &mut Vec<Finding>) {
    if list.len() > LIST {
        out.push(Finding::error(
            [At::key(key)],
            format!("more than {LIST} entries"),
        ));
        return;
    }
    let texts: Vec<String> = list.iter().map(same).collect();
    for (index, text) in texts.iter().enumerate() {
        if texts.iter().take(index).any(|earlier| earlier == text) {
            let at = [At::entry(key, index)];
            out.push(Finding::error(
                at,
                format!("{} is listed twice", quote(text)),
            ));
        }
    }
}

fn kernel(policy: &Policy, out: &mut Vec<Finding>) {
    let kernel = &policy.kernel;
    for (key, list) in [
        ("kernel.set", &kernel.set),
        ("kernel.remove", &kernel.remove),
    ] {
        for (index, arg) in list.iter().enumerate() {
            let at = At::entry(key, index);
            if let Some(why) = arg.reserved() {
                let message = format!(
                    "`{}` may be neither set nor removed by a policy",
                    arg.name()
                );
                out.push(Finding::error([at], message).help(why));
            }
            if kernel.iommu != IommuMode::Keep && IOMMU_ARGS.contains(&arg.folded_name().as_str()) {
                let message = format!("`{arg}` and kernel.iommu both decide about the IOMMU");
                out.push(
                    Finding::warning([at, At::key("kernel.iommu")], message)
                        .help("leave it out, or write kernel.iommu = \"keep\""),
                );
            }
        }
    }
    for (index, remove) in kernel.remove.iter().enumerate() {
        let same = |set: &KernelArg| set.folded_name() == remove.folded_name();
        if let Some(set) = kernel.set.iter().position(same) {
            let at = [
                At::entry("kernel.remove", index),
                At::entry("kernel.set", set),
            ];
            let message = format!("`{}` is both set and removed", remove.name());
            out.push(Finding::error(at, message).help(
                "setting an argument already wins over its other values; leave it out of remove",
            ));
        }
    }
}

fn reboot(policy: &Policy, out: &mut Vec<Finding>) {
    let reboot = &policy.reboot;
    if reboot.coordinator == Coordinator::Fleetlock && reboot.fleetlock.is_none() {
        let at = [
            At::key("reboot.coordinator"),
            At::key("reboot.fleetlock.url"),
        ];
        let message = "coordinator = \"fleetlock\" needs the server's URL".to_owned();
        out.push(
            Finding::error(at, message).help("add [reboot.fleetlock] with url = \"https://...\""),
        );
    }
    // Only logind is told when and with which words; the others have settings of their own.
    let logind = matches!(
        reboot.coordinator,
        Coordinator::Logind | Coordinator::Fleetlock
    );
    for (key, set) in [
        ("reboot.delay", reboot.delay.is_some()),
        ("reboot.message", reboot.message.is_some()),
    ] {
        if set && !logind {
            let at = [At::key(key), At::key("reboot.coordinator")];
            let message = format!(
                "{key} means nothing to coordinator = \"{}\"",
                reboot.coordinator
            );
            out.push(
                Finding::warning(at, message)
                    .help("leave it out; it is for \"logind\" and \"fleetlock\""),
            );
        }
    }
}

fn verify(policy: &Policy, out: &mut Vec<Finding>) {
    let verify = &policy.verify;
    for (index, group) in verify.warn.iter().enumerate() {
        if let Some(require) = verify.require.iter().position(|other| other == group) {
            let at = [
                At::entry("verify.warn", index),
                At::entry("verify.require", require),
            ];
            out.push(
                Finding::error(
                    at,
                    format!("`{group}` is both required and only warned about"),
                )
                .help("write the list that it should leave, without it"),
            );
        }
    }
    for (key, list) in [
        ("verify.require", &verify.require),
        ("verify.warn", &verify.warn),
    ] {
        let position = list
            .iter()
            .position(|group| *group == CheckGroup::Bandwidth);
        if let Some(index) = position
            && verify.bandwidth.is_none()
        {
            let at = [At::entry(key, index), At::key("verify.bandwidth.min_gbps")];
            out.push(
                Finding::error(
                    at,
                    "`bandwidth` needs to know how much is enough".to_owned(),
                )
                .help("add [verify.bandwidth] with min_gbps"),
            );
        }
    }
    if policy.acs.scope == AcsScope::Keep && verify.require.contains(&CheckGroup::Acs) {
        out.push(
            Finding::warning(
                [At::key("acs.scope"), At::key("verify.require")],
                "acs is required, but scope = \"keep\" changes nothing about it".to_owned(),
            )
            .help("move \"acs\" from verify.require to verify.warn"),
        );
    }
}
