//! Every key of the format: its path, and how its value gets into the policy.

use crate::check;
use crate::draft::Draft;
use crate::policy::VERSION;
use crate::problems::Problem;
use crate::value::{Context, FromToml, Value, whole_number};

/// Reads a value into the draft; `false` if nothing was stored. The context knows why.
type Read = fn(&mut Draft, &Value<'_>, &mut Context<'_>) -> bool;

/// A key of the format.
pub(crate) struct Key {
    /// With dots: `kernel.iommu`.
    pub(crate) path: &'static str,
    pub(crate) read: Read,
}

impl Key {
    /// Table and name; the table of a top-level key is empty.
    pub(crate) fn split(&self) -> (&'static str, &'static str) {
        self.path.rsplit_once('.').unwrap_or(("", self.path))
    }
}

pub(crate) const KEYS: &[Key] = &[
    Key {
        path: "version",
        read: version,
    },
    Key {
        path: "devices.gpu",
        read: |d, v, c| set(&mut d.policy.devices.gpu, v, c),
    },
    Key {
        path: "devices.nic",
        read: |d, v, c| set(&mut d.policy.devices.nic, v, c),
    },
    Key {
        path: "gdr.path",
        read: |d, v, c| set(&mut d.policy.gdr.path, v, c),
    },
    Key {
        path: "peermem.package",
        read: |d, v, c| set(&mut d.policy.peermem.package, v, c),
    },
    Key {
        path: "peermem.load",
        read: |d, v, c| set(&mut d.policy.peermem.load, v, c),
    },
    Key {
        path: "kernel.iommu",
        read: |d, v, c| set(&mut d.policy.kernel.iommu, v, c),
    },
    Key {
        path: "kernel.set",
        read: |d, v, c| set(&mut d.policy.kernel.set, v, c),
    },
    Key {
        path: "kernel.remove",
        read: |d, v, c| set(&mut d.policy.kernel.remove, v, c),
    },
    Key {
        path: "acs.scope",
        read: |d, v, c| set(&mut d.policy.acs.scope, v, c),
    },
    Key {
        path: "acs.clear",
        read: |d, v, c| set(&mut d.policy.acs.clear, v, c),
    },
    Key {
        path: "acs.method",
        read: |d, v, c| set(&mut d.policy.acs.method, v, c),
    },
    Key {
        path: "trial.fallback",
        read: |d, v, c| set(&mut d.policy.trial.fallback, v, c),
    },
    Key {
        path: "trial.panic",
        read: panic,
    },
    Key {
        path: "trial.deadline",
        read: |d, v, c| set(&mut d.policy.trial.deadline, v, c),
    },
    Key {
        path: "trial.bake",
        read: |d, v, c| set(&mut d.policy.trial.bake, v, c),
    },
    Key {
        path: "reboot.coordinator",
        read: |d, v, c| set(&mut d.policy.reboot.coordinator, v, c),
    },
    Key {
        path: "reboot.allow",
        read: |d, v, c| set(&mut d.policy.reboot.allow, v, c),
    },
    Key {
        path: "reboot.max",
        read: reboots,
    },
    Key {
        path: "reboot.respect_inhibitors",
        read: |d, v, c| set(&mut d.policy.reboot.respect_inhibitors, v, c),
    },
    Key {
        path: "reboot.delay",
        read: |d, v, c| set(&mut d.policy.reboot.delay, v, c),
    },
    Key {
        path: "reboot.message",
        read: |d, v, c| set(&mut d.policy.reboot.message, v, c),
    },
    Key {
        path: "reboot.gates.gpu",
        read: |d, v, c| set(&mut d.policy.reboot.gates.gpu, v, c),
    },
    Key {
        path: "reboot.gates.windows",
        read: |d, v, c| set(&mut d.policy.reboot.gates.windows, v, c),
    },
    Key {
        path: "reboot.gates.time_zone",
        read: |d, v, c| set(&mut d.policy.reboot.gates.time_zone, v, c),
    },
    Key {
        path: "reboot.gates.stop_file",
        read: |d, v, c| set(&mut d.policy.reboot.gates.stop_file, v, c),
    },
    Key {
        path: "reboot.gates.stop_url",
        read: |d, v, c| set(&mut d.policy.reboot.gates.stop_url, v, c),
    },
    Key {
        path: "reboot.gates.hook_limit",
        read: |d, v, c| set(&mut d.policy.reboot.gates.hook_limit, v, c),
    },
    Key {
        path: "reboot.fleetlock.url",
        read: |d, v, c| set(&mut d.url, v, c),
    },
    Key {
        path: "reboot.fleetlock.group",
        read: |d, v, c| set(&mut d.group, v, c),
    },
    Key {
        path: "reboot.fleetlock.ca",
        read: |d, v, c| set(&mut d.ca, v, c),
    },
    Key {
        path: "reboot.fleetlock.failed",
        read: |d, v, c| set(&mut d.after_failure, v, c),
    },
    Key {
        path: "verify.require",
        read: |d, v, c| set(&mut d.policy.verify.require, v, c),
    },
    Key {
        path: "verify.warn",
        read: |d, v, c| set(&mut d.policy.verify.warn, v, c),
    },
    Key {
        path: "verify.bandwidth.peer",
        read: |d, v, c| set(&mut d.peer, v, c),
    },
    Key {
        path: "verify.bandwidth.min_gbps",
        read: |d, v, c| set(&mut d.min_gbps, v, c),
    },
];

/// The key of this path.
pub(crate) fn find(path: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.path == path)
}

/// Whether the path is a table of the format.
pub(crate) fn is_table(path: &str) -> bool {
    KEYS.iter().any(|key| {
        key.path
            .strip_prefix(path)
            .is_some_and(|rest| rest.starts_with('.'))
    })
}

/// The names of the keys and tables directly in a table; the empty path is the top level.
pub(crate) fn names_in(table: &str) -> Vec<&'static str> {
    let mut names = Vec::new();
    for key in KEYS {
        let rest = match table {
            "" => Some(key.path),
            _ => key
                .path
                .strip_prefix(table)
                .and_then(|rest| rest.strip_prefix('.')),
        };
        let name = rest.map(|rest| rest.split_once('.').map_or(rest, |(name, _)| name));
        if let Some(name) = name
            && !names.contains(&name)
        {
            names.push(name);
        }
    }
    names
}

fn set<T: FromToml>(slot: &mut T, value: &Value<'_>, context: &mut Context<'_>) -> bool {
    T::from_toml(value, context)
        .map(|new| *slot = new)
        .is_some()
}

fn panic(draft: &mut Draft, value: &Value<'_>, context: &mut Context<'_>) -> bool {
    let slot = &mut draft.policy.trial.panic;
    whole_number(value, &check::PANIC, context)
        .map(|new| *slot = new)
        .is_some()
}

fn reboots(draft: &mut Draft, value: &Value<'_>, context: &mut Context<'_>) -> bool {
    let slot = &mut draft.policy.reboot.max;
    whole_number(value, &check::REBOOTS, context)
        .map(|new| *slot = new)
        .is_some()
}

/// Each file is held to the version by itself: a drop-in cannot make up for a first file of
/// another format.
fn version(_: &mut Draft, value: &Value<'_>, context: &mut Context<'_>) -> bool {
    let Some(found) = value.get_ref().as_integer() else {
        return whole_number(value, &(VERSION..=VERSION), context).is_some();
    };
    let supported = u32::from_str_radix(found.as_str(), found.radix()) == Ok(VERSION);
    if !supported {
        let (message, help) = check::unsupported(found);
        context.refuse(Problem::error(value.span(), message).help(help));
    }
    supported
}
