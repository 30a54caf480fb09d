//! Which of root's powers a verb keeps; the others are given up before anything is read.

use super::args::Verb;
use super::{CliError, Context, Exit};
use crate::sys::capabilities::{self, CapabilitySet};

/// To see everything: files of others, the config space of PCI devices past its first 64 bytes, the environment of processes, the
/// kernel's log.
const READ: CapabilitySet = CapabilitySet::DAC_READ_SEARCH
    .union(CapabilitySet::SYS_ADMIN)
    .union(CapabilitySet::SYS_PTRACE)
    .union(CapabilitySet::SYSLOG);

/// To write a report where somebody else's directory is.
const REPORT: CapabilitySet = READ
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::CHOWN)
    .union(CapabilitySet::FOWNER);

/// To change the system: files with their owners and modes, modules, frozen file systems (in `SYS_ADMIN`), children that have
/// another user and have to be ended.
const CHANGE: CapabilitySet = REPORT
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::SYS_MODULE)
    .union(CapabilitySet::KILL);

/// What a change of the running system cannot be made without, and why.
const NEEDED: [(CapabilitySet, &str, &str); 2] = [
    (
        CapabilitySet::SYS_ADMIN,
        "CAP_SYS_ADMIN",
        "to read and write the config space of PCI devices and to freeze /boot",
    ),
    (
        CapabilitySet::DAC_OVERRIDE,
        "CAP_DAC_OVERRIDE",
        "to write files whatever their modes are",
    ),
];

/// Gives up what the verb does not need.
///
/// # Errors
/// The verb changes the running system, and root is without what that takes, as in a container.
pub(super) fn keep(context: &Context, verb: &Verb) -> Result<(), CliError> {
    let (wanted, needs) = match verb {
        // The units have lists of their own (CapabilityBoundingSet=).
        Verb::Boot(_) => return Ok(()),
        Verb::Apply(args) => (CHANGE, args.changes_the_running_system()),
        Verb::Rollback => (CHANGE, true),
        Verb::Verify => (CHANGE, false),
        Verb::Acs(verb) if verb.writes() => (CHANGE, true),
        // perftest locks memory, and the GPU's driver has its own ideas.
        Verb::Bandwidth(_) => return Ok(()),
        Verb::Capture(_) | Verb::Metrics(_) | Verb::Doctor(_) => (REPORT, false),
        Verb::Policy(_)
        | Verb::Facts
        | Verb::Plan
        | Verb::Status
        | Verb::Topology
        | Verb::Acs(_)
        | Verb::Cmdline(_)
        | Verb::NcclLog(_)
        | Verb::Schema { .. } => (READ, false),
    };
    let missing = match capabilities::keep(wanted) {
        Ok(missing) => missing,
        Err(e) => {
            // Whoever forbids it has put this process into a box already.
            tracing::debug!("capabilities are kept as they are: {e}");
            return Ok(());
        }
    };
    let root = rustix::process::geteuid().is_root();
    if !needs || !root || !context.root.is_live() {
        return Ok(());
    }
    match NEEDED.iter().find(|(one, ..)| missing.contains(*one)) {
        None => Ok(()),
        Some((_, name, why)) => {
            let message = format!(
                "this is root without {name}, as in a container, and a change of the running system needs it {why}; nothing was changed"
            );
            Err(CliError::new(Exit::Person, "no-capability", message)
                .help("run it on the host itself; for an image there is `apply --bake`"))
        }
    }
}
