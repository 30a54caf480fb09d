//! The coordinator that a policy names, put together.

use gdr_policy::{Coordinator as Named, Policy};

use super::desk::Lock;
use super::{
    Bus, Coordinator, FleetLock, Http, Logind, NoCoordinator, Refusal, Trust, Unsupported, node_id,
};
use crate::sys::Root;

/// Who is asked for a reboot under this policy.
///
/// # Errors
/// What it needs is not there: the machine's identity, a certificate file.
pub fn choose(root: &Root, policy: &Policy) -> Result<Box<dyn Coordinator>, Refusal> {
    let reboot = &policy.reboot;
    Ok(match reboot.coordinator {
        Named::Logind => logind(),
        Named::None => Box::new(NoCoordinator),
        Named::Rebootmgr => Box::new(Unsupported::Rebootmgr),
        Named::Sentinel => Box::new(Unsupported::Sentinel),
        Named::Fleetlock => {
            // The policy's own check sees to it; a record from elsewhere may lack it.
            let Some(server) = &reboot.fleetlock else {
                return Err(Refusal::NotPermitted {
                    text: "the policy names no FleetLock server ([reboot.fleetlock] url)"
                        .to_owned(),
                });
            };
            let id = root
                .text_if_there("/etc/machine-id")
                .map_err(|e| e.to_string())
                .and_then(|text| node_id(&text.unwrap_or_default()))
                .map_err(|text| Refusal::NotPermitted { text })?;
            let lock = Lock {
                url: server.url.clone(),
                group: server.group.clone(),
                id,
                ca: None,
                held: false,
                since: 0,
            };
            fleetlock(root, lock, logind())?
        }
    })
}

/// Who is told that this lock is not needed any more.
///
/// # Errors
/// Its certificate file cannot be used.
pub fn release_of(root: &Root, lock: &Lock) -> Result<Box<dyn Coordinator>, Refusal> {
    fleetlock(root, lock.clone(), Box::new(NoCoordinator))
}

/// Whether asking takes more than the socket of a bus: a network, or programs of the operator's.
#[must_use]
pub fn needs_network(_root: &Root, policy: &Policy) -> bool {
    policy.reboot.coordinator == Named::Fleetlock
}

fn fleetlock(
    root: &Root,
    lock: Lock,
    next: Box<dyn Coordinator>,
) -> Result<Box<dyn Coordinator>, Refusal> {
    let trust = Trust::read(root, lock.ca.as_deref()).map_err(|why| Refusal::NotPermitted {
        text: format!("the certificates for {} cannot be used: {why}", lock.url),
    })?;
    Ok(Box::new(FleetLock::new(Http::new(trust), lock, next)))
}

fn logind() -> Box<dyn Coordinator> {
    Box::new(Logind::new(Bus::system()))
}
