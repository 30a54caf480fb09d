//! What kind of shutdown is under way. A trial is armed in the shutdown path and only for a real
//! reboot: soft-reboot and kexec skip the boot loader, and a power-off may be followed by a
//! power-on months later.

use super::bus::{Bus, Fault, Service, Session};
use super::refusal::one_line;

pub(super) const SYSTEMD: Service<'static> = Service {
    name: "org.freedesktop.systemd1",
    path: "/org/freedesktop/systemd1",
    interface: "org.freedesktop.systemd1.Manager",
};

/// Where a unit is on the bus. Loads it where systemd has not yet, or has forgotten it.
pub(super) async fn load_unit(
    session: &Session,
    name: &'static str,
) -> Result<zbus::OwnedObjectPath, Fault> {
    session.ask(&SYSTEMD, "LoadUnit", &name).await
}

/// The unit at [`load_unit`]'s path.
pub(super) fn unit_at(path: &zbus::OwnedObjectPath) -> Service<'_> {
    Service {
        name: SYSTEMD.name,
        path: path.as_str(),
        interface: "org.freedesktop.systemd1.Unit",
    }
}

/// Whether systemd would refuse to start what a reboot is.
pub(super) async fn reboot_is_masked(session: &Session) -> Result<bool, Fault> {
    let path = load_unit(session, "reboot.target").await?;
    let load: String = session.property(&unit_at(&path), "LoadState").await?;
    Ok(load == "masked")
}

/// Which way the system goes down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShutdownKind {
    /// Nothing is under way.
    None,
    /// Through firmware and boot loader.
    Reboot,
    /// Off.
    PowerOff,
    /// Halted, still powered.
    Halt,
    /// Straight into another kernel, past firmware and boot loader.
    Kexec,
    /// Userspace only; the kernel goes on running.
    SoftReboot,
}

impl ShutdownKind {
    fn of_target(unit: &str) -> Option<Self> {
        Some(match unit {
            "reboot.target" => Self::Reboot,
            "poweroff.target" => Self::PowerOff,
            "halt.target" => Self::Halt,
            "kexec.target" => Self::Kexec,
            "soft-reboot.target" => Self::SoftReboot,
            _ => return None,
        })
    }
}

/// Why the kind of shutdown is not known. To be treated as "not a reboot".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShutdownUnknown {
    /// systemd could not be asked anywhere.
    #[error("systemd could not be asked what shutdown is under way: {}", tried.join("; "))]
    Unreachable {
        /// What was tried, and why it failed.
        tried: Vec<String>,
    },
    /// systemd has start jobs for more than one kind.
    #[error("systemd has start jobs for several kinds of shutdown at once: {}", units.join(", "))]
    Ambiguous {
        /// The targets.
        units: Vec<String>,
    },
}

/// Asks systemd's job queue on each of these in turn, until one answers. Use [`Bus::system`] and
/// then `Bus::peer("/run/systemd/private")`, which is there even when the message bus has gone.
///
/// # Errors
/// Nothing answered, or the answer names several kinds.
pub fn pending_shutdown(places: &[Bus]) -> Result<ShutdownKind, ShutdownUnknown> {
    let mut tried = Vec::new();
    for bus in places {
        match bus.run(start_jobs(bus)) {
            Ok(units) => return judge(&units),
            Err(fault) => tried.push(fault.to_string()),
        }
    }
    Err(ShutdownUnknown::Unreachable { tried })
}

/// The units that are to be started.
async fn start_jobs(bus: &Bus) -> Result<Vec<String>, Fault> {
    // id, unit, type, state, job object, unit object
    type Job = (
        u32,
        String,
        String,
        String,
        zbus::OwnedObjectPath,
        zbus::OwnedObjectPath,
    );
    let session = bus.open().await?;
    let jobs: Vec<Job> = session.ask(&SYSTEMD, "ListJobs", &()).await?;
    Ok(jobs
        .into_iter()
        .filter(|job| job.2 == "start")
        .map(|job| job.1)
        .collect())
}

fn judge(units: &[String]) -> Result<ShutdownKind, ShutdownUnknown> {
    let mut found = units
        .iter()
        .filter_map(|u| ShutdownKind::of_target(u).map(|kind| (u, kind)));
    match (found.next(), found.next()) {
        (None, _) => Ok(ShutdownKind::None),
        (Some((_, kind)), None) => Ok(kind),
        (Some(_), Some(_)) => Err(ShutdownUnknown::Ambiguous {
            units: units
                .iter()
                .filter(|u| ShutdownKind::of_target(u).is_some())
                .map(|u| one_line(u))
                .collect(),
        }),
    }
}
