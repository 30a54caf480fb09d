//! The coordinator that a policy names, put together.
//!
//! ```text
//! stop file, stop URL, window  ->  slot (FleetLock)  ->  programs, GPU  ->  logind | rebootmgr | sentinel
//! ```
//!
//! What needs nothing from the node is asked first. Programs may drain the node, so that they are run
//! only once the fleet has given the node a slot, and the GPUs are looked at after that. Without
//! programs nothing would empty the node, so no slot is taken while a GPU is busy.

use gdr_policy::{BusyGpu, Coordinator as Named, Policy};

use super::desk::Lock;
use super::gates::{Gate, Gated};
use super::gpu::Gpu;
use super::hooks::{self, Hooks};
use super::stop::{StopFile, StopUrl};
use super::windows::Windows;
use super::{
    Bus, Coordinator, FleetLock, Http, Logind, NoCoordinator, Rebootmgr, Refusal, Sentinel, Trust,
    node_id,
};
use crate::sys::{Root, SysError};

/// Who is asked for a reboot under this policy.
///
/// # Errors
/// What it needs is not there: the machine's identity, a certificate file.
pub fn choose(root: &Root, policy: &Policy) -> Result<Box<dyn Coordinator>, Refusal> {
    let reboot = &policy.reboot;
    let last: Box<dyn Coordinator> = match reboot.coordinator {
        Named::None => return Ok(Box::new(NoCoordinator)),
        Named::Logind | Named::Fleetlock => {
            let message = reboot.message.as_ref().map(ToString::to_string);
            let delay = reboot.delay.map(Into::into);
            Box::new(
                Logind::new(Bus::system())
                    .warning(delay, message)
                    .respecting_inhibitors(reboot.respect_inhibitors),
            )
        }
        Named::Rebootmgr => Box::new(Rebootmgr::new(Bus::system())),
        Named::Sentinel => Box::new(Sentinel::new(again(root)?)),
    };
    let programs = hooks::any(root).map_err(|e| unusable(&e))?;
    let mut before: Vec<Box<dyn Gate>> = Vec::new();
    let mut after: Vec<Box<dyn Gate>> = Vec::new();
    let gates = &reboot.gates;
    before.push(Box::new(StopFile {
        root: again(root)?,
        path: gates.stop_file.to_string(),
    }));
    if let Some(url) = &gates.stop_url {
        before.push(Box::new(StopUrl {
            http: http(
                root,
                reboot
                    .fleetlock
                    .as_ref()
                    .and_then(|f| f.ca.as_ref())
                    .map(AsRef::as_ref),
            )?,
            url: url.to_string(),
        }));
    }
    if !gates.windows.is_empty() {
        before.push(Box::new(Windows {
            root: again(root)?,
            windows: gates.windows.clone(),
            zone: gates.time_zone.clone(),
            delay: reboot.delay.map_or(0, gdr_policy::Duration::as_secs),
        }));
    }
    if programs {
        let limit = gates.hook_limit.into();
        after.push(Box::new(Hooks::new(again(root)?, hooks::DIR, limit)));
    }
    if gates.gpu == BusyGpu::Wait {
        let gpu = Box::new(Gpu { root: again(root)? });
        if programs {
            after.push(gpu);
        } else {
            before.push(gpu);
        }
    }
    let last: Box<dyn Coordinator> = Box::new(Gated::new(after, last));
    let locked = match reboot.coordinator {
        Named::Fleetlock => fleetlock(root, lock(root, policy)?, last)?,
        _ => last,
    };
    Ok(Box::new(Gated::new(before, locked)))
}

/// Who is told that this lock is not needed any more.
///
/// # Errors
/// Its certificate file cannot be used.
pub fn release_of(root: &Root, lock: &Lock) -> Result<Box<dyn Coordinator>, Refusal> {
    fleetlock(root, lock.clone(), Box::new(NoCoordinator))
}

/// Whether asking takes more than the socket of a bus: a network, programs of the operator's, files in /run. Another
/// unit does that than the ones that may write under /boot.
#[must_use]
pub fn asked_apart(root: &Root, policy: &Policy) -> bool {
    let reboot = &policy.reboot;
    // A directory that cannot be listed is an error where it is asked.
    let programs = hooks::any(root).unwrap_or(true);
    matches!(reboot.coordinator, Named::Fleetlock | Named::Sentinel)
        || reboot.gates.stop_url.is_some()
        || programs
}

/// What is asked for and given back at the policy's FleetLock server.
fn lock(root: &Root, policy: &Policy) -> Result<Lock, Refusal> {
    // The policy's own check sees to it; a record from elsewhere may lack it.
    let Some(server) = &policy.reboot.fleetlock else {
        return Err(Refusal::NotPermitted {
            text: "the policy names no FleetLock server ([reboot.fleetlock] url)".to_owned(),
        });
    };
    let id = root
        .text_if_there("/etc/machine-id")
        .map_err(|e| e.to_string())
        .and_then(|text| node_id(&text.unwrap_or_default()))
        .map_err(|text| Refusal::NotPermitted { text })?;
    Ok(Lock {
        url: server.url.clone(),
        group: server.group.clone(),
        id,
        ca: server.ca.as_ref().map(ToString::to_string),
        held: false,
        since: 0,
    })
}

fn fleetlock(
    root: &Root,
    lock: Lock,
    next: Box<dyn Coordinator>,
) -> Result<Box<dyn Coordinator>, Refusal> {
    let http = http(root, lock.ca.as_deref())?;
    Ok(Box::new(FleetLock::new(http, lock, next)))
}

fn http(root: &Root, ca: Option<&str>) -> Result<Http, Refusal> {
    let trust = Trust::read(root, ca).map_err(|why| Refusal::NotPermitted {
        text: format!("the certificates that servers are judged by cannot be used: {why}"),
    })?;
    Ok(Http::new(trust))
}

/// The root once more: a coordinator may outlive the one that it was chosen with.
fn again(root: &Root) -> Result<Root, Refusal> {
    Root::open(root.path()).map_err(|e| unusable(&e))
}

fn unusable(e: &SysError) -> Refusal {
    Refusal::NotPermitted {
        text: e.to_string(),
    }
}
