//! What only `doctor` asks for: the kernel log, limits, the fabric manager, a process. It costs more than the
//! facts that a plan is made from, and no plan needs it.

use schemars::JsonSchema;
use serde::Serialize;

use super::fact::{Fact, text};
use crate::doctor::kernel_log;
use crate::sys::{EntryKind, Root, SysError};

/// What was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Host {
    /// The lines of the kernel log that mean something here, with the check that each belongs to.
    pub kernel_log: Fact<Vec<(String, String)>>,
    /// Lines about `memlock`, each with its file and line, in the order in which pam_limits(8) reads them.
    pub memlock: Fact<Vec<(String, String)>>,
    /// The control group of the fabric manager's unit: whether processes are in it.
    pub fabric_manager: Fact<bool>,
    /// The packages that ask for a reboot, or the file itself where it names none.
    pub reboot_required: Fact<String>,
    /// The process that was asked about.
    pub process: Option<Process>,
}

/// A process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// The device files that it has mapped.
    pub devices: Fact<Vec<String>>,
    /// `Max locked memory`, the soft limit: `unlimited` or bytes.
    pub memlock: Fact<String>,
}

/// Reads it, with one process if one was named.
#[must_use]
pub fn read(root: &Root, pid: Option<u32>) -> Host {
    let log = crate::sys::kernel_log::whole(root).map(|lines| {
        let lines = lines?.into_iter();
        let known = lines.filter_map(|line| Some((kernel_log::classify(&line)?.to_owned(), line)));
        Some(known.collect())
    });
    Host {
        kernel_log: Fact::read("/dev/kmsg", log),
        memlock: Fact::read("/etc/security/limits.conf", memlock(root).map(Some)),
        fabric_manager: fabric_manager(root),
        reboot_required: reboot_required(root),
        process: pid.map(|pid| process(root, pid)),
    }
}

fn memlock(root: &Root) -> Result<Vec<(String, String)>, SysError> {
    let mut found = Vec::new();
    let mut files = vec!["/etc/security/limits.conf".to_owned()];
    for entry in root.list("/etc/security/limits.d")? {
        if entry.kind != EntryKind::Dir && entry.name.ends_with(".conf") {
            files.push(format!("/etc/security/limits.d/{}", entry.name));
        }
    }
    for path in files {
        let text = root.text_if_there(&path)?.unwrap_or_default();
        let lines = text.lines().enumerate().filter_map(|(at, line)| {
            let line = line.split('#').next().unwrap_or_default().trim();
            let item = line.split_whitespace().nth(2)?;
            (item == "memlock").then(|| (format!("{path}:{}", at + 1), line.to_owned()))
        });
        found.extend(lines);
    }
    Ok(found)
}

/// The unit's control group, in either hierarchy: systemd makes it when it starts the unit, and it goes with
/// the last process.
fn fabric_manager(root: &Root) -> Fact<bool> {
    let unit = "nvidia-fabricmanager.service";
    let mut seen = false;
    for slice in [
        "/sys/fs/cgroup/system.slice",
        "/sys/fs/cgroup/systemd/system.slice",
    ] {
        let path = format!("{slice}/{unit}/cgroup.procs");
        match (root.stat(slice), root.text_if_there(&path)) {
            (_, Ok(Some(processes))) => return Fact::known(!processes.is_empty(), path),
            (Err(e), _) | (_, Err(e)) => return Fact::unknown(path, e.to_string()),
            (Ok(there), Ok(None)) => seen |= there.is_some(),
        }
    }
    let path = format!("/sys/fs/cgroup/system.slice/{unit}");
    if seen {
        Fact::known(false, path)
    } else {
        Fact::absent(path)
    }
}

/// Debian and Ubuntu: update-notifier's files, which needrestart and unattended-upgrades write as well.
fn reboot_required(root: &Root) -> Fact<String> {
    let path = "/run/reboot-required";
    match (
        root.stat(path),
        root.text_if_there("/run/reboot-required.pkgs"),
    ) {
        (Ok(None), _) => Fact::absent(path),
        (Err(e), _) | (_, Err(e)) => Fact::unknown(path, e.to_string()),
        (Ok(Some(_)), Ok(packages)) => {
            let packages = packages.unwrap_or_default();
            let mut names: Vec<&str> = packages.split_whitespace().collect();
            names.sort_unstable();
            names.dedup();
            Fact::known(names.join(", "), path)
        }
    }
}

fn process(root: &Root, pid: u32) -> Process {
    let devices = text(root, &format!("/proc/{pid}/maps")).and_then(|maps| {
        let mut devices: Vec<String> = maps
            .lines()
            .filter_map(|line| line.split_whitespace().nth(5))
            .filter(|path| path.starts_with("/dev/nvidia") || path.starts_with("/dev/infiniband/"))
            .map(str::to_owned)
            .collect();
        devices.sort_unstable();
        devices.dedup();
        Some(devices)
    });
    let memlock = text(root, &format!("/proc/{pid}/limits")).and_then(|limits| {
        let line = limits
            .lines()
            .find_map(|line| line.strip_prefix("Max locked memory"))?;
        Some(line.split_whitespace().next()?.to_owned())
    });
    Process {
        pid,
        devices,
        memlock,
    }
}
