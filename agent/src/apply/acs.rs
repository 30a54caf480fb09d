//! ACS as a transaction and the boot units want it: clear by a policy, put back.

use gdr_policy::Policy;

use super::engine::EngineError;
use crate::acs::{self, AcsError, repairs};
use crate::pci::Bdf;
use crate::plain::counted;
use crate::sys::{Root, SysError};
use crate::world::Ports;
use crate::{events, state, sys};

/// Clears the ports that a policy names; a port that does not take it is an error.
pub(super) fn clear_for(root: &Root, ports: &Ports<'_>) -> Result<(), EngineError> {
    if ports.acs.by_kernel.is_some() {
        return Ok(());
    }
    let outcomes = acs::clear(root, &ports.tree, &ports.acs).map_err(failed)?;
    for outcome in outcomes {
        if let Err(e) = outcome.result {
            return Err(SysError::Refused {
                action: "clear ACS on",
                path: root.outside(&format!("{}/{}", sys::pci_config::DEVICES, outcome.bdf)),
                why: e.to_string(),
            }
            .into());
        }
    }
    Ok(())
}

/// Clears again what the trial's policy (`trial`) or else the committed policy names. Returns a line
/// for the ports that were cleared and one for each that could not be.
///
/// # Errors
/// The state cannot be read, or the old words cannot be kept.
pub fn early(root: &Root, trial: Option<&Policy>) -> Result<Vec<String>, EngineError> {
    let committed = match trial {
        Some(_) => None,
        None => state::committed(root)?.map(|c| c.policy),
    };
    // No policy is in force: nothing is touched, whatever lies in /etc.
    let Some(policy) = trial.or(committed.as_ref()) else {
        return Ok(Vec::new());
    };
    let (refusals, isolated, outcomes) =
        acs::decide(root, policy, |tree, topology, plan, conditions| {
            if acs::by_kernel(policy, conditions) {
                return (Vec::new(), Ok(Vec::new()), Ok(Vec::new()));
            }
            let isolated = acs::isolate(root, tree, topology);
            let cleared = acs::clear(root, tree, plan);
            (plan.refusals.clone(), isolated, cleared)
        })?;
    let mut lines: Vec<String> = refusals
        .iter()
        .map(|r| format!("{}: {}; {}", r.id, r.text, r.fix))
        .collect();
    for outcome in isolated.map_err(failed)? {
        lines.push(match outcome.result {
            Ok(_) => format!(
                "ACS was put back on {}: a device below it was handed to a guest",
                outcome.bdf
            ),
            Err(e) => format!(
                "{}: a device below it was handed to a guest, and ACS could not be put back: {e}",
                outcome.bdf
            ),
        });
    }
    let outcomes = outcomes.map_err(failed)?;
    let mut cleared: Vec<(Bdf, bool)> = Vec::new();
    for outcome in outcomes {
        match outcome.result {
            Ok(_) => cleared.push((outcome.bdf, outcome.again)),
            Err(e) => lines.push(format!("{}: {e}", outcome.bdf)),
        }
    }
    for (again, what) in [
        (false, "ACS redirection cleared on"),
        (
            true,
            "ACS redirection had come back and was cleared again on",
        ),
    ] {
        let ports: Vec<String> = cleared
            .iter()
            .filter(|port| port.1 == again)
            .map(|(bdf, _)| bdf.to_string())
            .collect();
        if !ports.is_empty() {
            lines.push(format!(
                "{what} {}: {}",
                counted(ports.len(), "port"),
                ports.join(" ")
            ));
        }
    }
    let boot = super::boot_id(root);
    let back = cleared.iter().filter(|port| port.1);
    events::tell(
        root,
        back.filter_map(|(port, _)| events::acs_came_back(*port, &boot)),
    );
    // The paths are what counts; a count that cannot be kept must not stop a boot.
    if let Err(e) = repairs::count(root, &cleared) {
        lines.push(format!("the repairs of ACS are not counted: {e}"));
    }
    Ok(lines)
}

/// Puts back every control word that was saved in this boot.
pub(super) fn restore(root: &Root, policy: &Policy) -> Result<Vec<String>, EngineError> {
    let outcomes = acs::decide(root, policy, |tree, _, _, _| {
        let decisions = acs::restore_plan(root, tree)?;
        acs::restore(root, &decisions)
    })?;
    let failures = outcomes
        .map_err(failed)?
        .into_iter()
        .filter_map(|o| o.result.err().map(|e| (o.bdf, e)));
    Ok(failures
        .map(|(bdf, e)| format!("ACS of {bdf} was not put back: {e}; any reboot puts it back"))
        .collect())
}

fn failed(e: AcsError) -> EngineError {
    match e {
        AcsError::Sys(e) => e.into(),
        e => SysError::Process {
            program: "acs".to_owned(),
            why: e.to_string(),
        }
        .into(),
    }
}
