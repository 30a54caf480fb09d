//! The unit that arms the trial at shutdown: it has to be active while the machine is still up, since a unit
//! that was never started has nothing that systemd could stop. The first boot after an installation has it enabled and
//! not started.

use std::time::Duration;

use super::bus::{Bus, Fault, Session};
use super::refusal::{Refusal, one_line};
use super::shutdown_kind::{SYSTEMD, load_unit, unit_at};
use crate::sys::{BOOTED, Root, SysError, clock};

/// Its name.
pub const ARM_UNIT: &str = "gdr-agent-arm.service";

/// How long its start may take; it has nothing to do but to wait for units of the boot.
const START: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(100);

/// Sees to it that the shutdown of this boot arms a granted trial. Does nothing where systemd does not run the machine.
///
/// # Errors
/// Why it would not, and what to do.
pub fn arm_unit_active(root: &Root) -> Result<(), Refusal> {
    let booted = root
        .stat(BOOTED)
        .map_err(|e: SysError| refused(&e.to_string()))?;
    if !root.is_live() || booted.is_none() {
        return Ok(());
    }
    // The second is there when the message bus is not.
    start_arm_unit(&[Bus::system(), Bus::peer("/run/systemd/private")], START)
}

/// Asks the first of these that answers for the unit's state, and starts it where it is not active.
///
/// # Errors
/// Why it is not active after `limit`, and what to do.
pub fn start_arm_unit(places: &[Bus], limit: Duration) -> Result<(), Refusal> {
    let mut tried = Vec::new();
    for bus in places {
        match bus.run(state(bus)) {
            Ok(state) => return start(bus, &state, limit),
            Err(fault @ Fault::Error { .. }) => return Err(refused(&explain(&fault))),
            Err(fault) => tried.push(fault.to_string()),
        }
    }
    Err(Refusal::Unreachable {
        text: format!(
            "whether {ARM_UNIT} is active, which arms the trial at shutdown, could not be asked: {}; see `systemctl status {ARM_UNIT}`",
            tried.join("; ")
        ),
    })
}

/// What systemd says about the unit.
#[derive(Debug)]
struct State {
    load: String,
    active: String,
    /// Whether a job for it is queued.
    job: bool,
    /// Whether the unit's conditions were met when it was last started.
    conditions: bool,
}

fn start(bus: &Bus, before: &State, limit: Duration) -> Result<(), Refusal> {
    loaded(&before.load)?;
    if before.active == "active" {
        return Ok(());
    }
    let until = clock::now() + limit;
    if let Err(fault) = bus.run(start_job(bus)) {
        return Err(refused(&explain(&fault)));
    }
    loop {
        let now = bus.run(state(bus)).map_err(|e| refused(&explain(&e)))?;
        match now.active.as_str() {
            "active" => return Ok(()),
            "failed" => {
                return Err(refused(
                    "its start failed; see `journalctl -u gdr-agent-arm.service`",
                ));
            }
            "inactive" if !now.job && !now.conditions => {
                return Err(refused(
                    "its conditions are not met (`systemctl status gdr-agent-arm.service`)",
                ));
            }
            "inactive" if !now.job => {
                return Err(refused(
                    "it was started and is inactive again; see `journalctl -u gdr-agent-arm.service`",
                ));
            }
            other if clock::now() >= until => {
                return Err(refused(&format!(
                    "it was started and is still {} after {limit:?}; see `systemctl list-jobs`",
                    one_line(other)
                )));
            }
            _ => clock::sleep(PAUSE),
        }
    }
}

fn loaded(load: &str) -> Result<(), Refusal> {
    match load {
        "loaded" => Ok(()),
        "not-found" => Err(refused(
            "systemd does not know it; install the package again, or run `systemctl daemon-reload`",
        )),
        "masked" => Err(refused(
            "somebody has masked it; `systemctl unmask gdr-agent-arm.service`",
        )),
        other => Err(refused(&format!(
            "systemd could not load it ({}); see `systemctl status gdr-agent-arm.service`",
            one_line(other)
        ))),
    }
}

async fn start_job(bus: &Bus) -> Result<(), Fault> {
    let session = bus.open().await?;
    // Never in the place of a job that is queued: that might be part of a shutdown.
    let job = session.call(&SYSTEMD, "StartUnit", &(ARM_UNIT, "fail"));
    job.await.map(drop)
}

async fn state(bus: &Bus) -> Result<State, Fault> {
    let session: Session = bus.open().await?;
    let path = load_unit(&session, ARM_UNIT).await?;
    let unit = unit_at(&path);
    let (job, _): (u32, zbus::OwnedObjectPath) = session.property(&unit, "Job").await?;
    Ok(State {
        load: session.property(&unit, "LoadState").await?,
        active: session.property(&unit, "ActiveState").await?,
        job: job != 0,
        conditions: session.property(&unit, "ConditionResult").await?,
    })
}

fn explain(fault: &Fault) -> String {
    let todo = match fault {
        Fault::Error { name, .. } if name.ends_with(".UnitMasked") => {
            "`systemctl unmask gdr-agent-arm.service`"
        }
        Fault::Error { name, .. } if name.ends_with(".NoSuchUnit") => {
            "install the package again, or run `systemctl daemon-reload`"
        }
        Fault::Error { name, .. } if super::faults::says_denied(name) => {
            "run gdr-agent as root, and see whether polkit or SELinux forbids it"
        }
        _ => "see `systemctl status gdr-agent-arm.service`",
    };
    format!("{fault}; {todo}")
}

fn refused(why: &str) -> Refusal {
    Refusal::NotPermitted {
        text: format!(
            "{ARM_UNIT} is not active, without which a reboot would not try the new command line: {why}"
        ),
    }
}
