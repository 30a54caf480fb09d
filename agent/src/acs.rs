//! Clearing and restoring ACS redirection on a machine: read, decide, save the old words, write,
//! read back. The decisions are [`crate::pci::clear`]'s and [`crate::pci::saved`]'s.

pub mod repairs;

use gdr_policy::{AcsMethod, AcsScope, Devices, Policy};

use crate::facts::pci::{Depth, conditions, functions};
use crate::pci::by_kernel;
use crate::pci::clear::{self, AcsPlan, ByKernel, Conditions, Lockdown, Request, Scope};
use crate::pci::saved::{self, RestoreAction, RestoreDecision, Saved, SavedPort};
use crate::pci::select::Selectors;
use crate::pci::topology::{Topology, handed_to_a_guest};
use crate::pci::tree::Tree;
use crate::pci::{Bdf, acs};
use crate::sys::pci_config::{ConfigError, ConfigFile, DEVICES};
use crate::sys::{Root, SysError, write};

/// Where old control words are kept.
pub const SAVED: &str = "/var/lib/gdr-agent/acs/saved.json";
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Why nothing could be done at all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AcsError {
    /// The file of old words cannot be read or written; without it nothing is cleared.
    #[error(transparent)]
    Sys(#[from] SysError),
    /// The file of old words is damaged, or of another version.
    #[error("{} cannot be used: {why}; move it away to start a new one, after noting the control words in it", path.display())]
    Damaged {
        /// The file.
        path: std::path::PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

/// What became of one port.
#[derive(Debug)]
pub struct Outcome {
    /// Its address.
    pub bdf: Bdf,
    /// Its bits had been cleared before in this boot, and came back.
    pub again: bool,
    /// The control word that was read back, or why it could not be written.
    pub result: Result<u16, ConfigError>,
}

/// The policy's wishes in the words of [`crate::pci::clear`].
#[must_use]
pub fn request(policy: &Policy) -> Request {
    Request {
        scope: match policy.acs.scope {
            AcsScope::Paths => Scope::Paths,
            AcsScope::Bridges => Scope::Bridges,
            AcsScope::All => Scope::All,
            AcsScope::Keep => Scope::Keep,
        },
        mask: policy
            .acs
            .clear
            .iter()
            .fold(0, |mask, bit| mask | bit.mask()),
    }
}

/// Whether the kernel's command line turns redirection off on this node, and no register is written.
#[must_use]
pub fn by_kernel(policy: &Policy, conditions: Conditions) -> bool {
    match policy.acs.method {
        _ if policy.acs.scope == AcsScope::Keep => false,
        AcsMethod::ConfigSpace => false,
        AcsMethod::Cmdline => true,
        // What cannot be written can still be asked of the kernel.
        AcsMethod::Auto => matches!(
            conditions.lockdown,
            Lockdown::Integrity | Lockdown::Confidentiality
        ),
    }
}

/// Adds to a plan what the kernel's command line has to say, where that is the policy's way.
pub fn ask_kernel(
    plan: &mut AcsPlan,
    tree: &Tree<'_>,
    policy: &Policy,
    conditions: Conditions,
    release: Option<&str>,
) {
    if !by_kernel(policy, conditions) {
        return;
    }
    // Writing is not what is done, so what forbids it refuses nothing; a guest's registers stay a guest's.
    plan.refusals.retain(|refusal| refusal.id != "acs.lockdown");
    let mut refuse = |id: &str, text: String, fix: &str| {
        plan.refusals.push(clear::Refusal {
            id: id.to_owned(),
            bdf: None,
            text,
            fix: fix.to_owned(),
        });
    };
    let mut argument = None;
    let right = by_kernel::kernel(release.unwrap_or_default());
    if conditions.in_vm == Some(true) {
        // The refusal that is there says what helps.
    } else if request(policy).mask != crate::pci::acs::REDIRECT {
        refuse(
            "acs.cmdline-bits",
            "the kernel's parameter turns off RR, CR and EC together, and `acs.clear` does not name all three".to_owned(),
            "set `acs.clear = [\"RR\", \"CR\", \"EC\"]`, or `acs.method = \"config-space\"`",
        );
    } else if let by_kernel::Kernel::Doubtful(why) = right {
        refuse(
            "acs.kernel-bug",
            format!(
                "`pci=disable_acs_redir=` is not used on kernel {}: {why}",
                release.unwrap_or("(unknown)")
            ),
            "install a kernel that has the fix, set `acs.method = \"config-space\"`, or turn ACS off in the firmware setup",
        );
    } else {
        argument = by_kernel::argument(tree, &plan.in_scope);
        if argument.is_none() && !plan.in_scope.is_empty() {
            refuse(
                "acs.way-unknown",
                "the way from the root bus to one of the ports is not known, so the kernel cannot be told which it is".to_owned(),
                "run it as root on the node",
            );
        }
    }
    plan.by_kernel = Some(ByKernel { argument });
}

/// Reads the ports as far as a policy's decision about ACS needs it, and lends what was decided.
///
/// # Errors
/// The PCI functions cannot be listed.
pub fn decide<T>(
    root: &Root,
    policy: &Policy,
    then: impl FnOnce(&Tree<'_>, &Topology, &AcsPlan, Conditions) -> T,
) -> Result<T, SysError> {
    let request = request(policy);
    let conditions = conditions(root);
    with_selectors(&policy.devices, |selectors| {
        let endpoints = request.scope == Scope::All;
        let functions = functions(
            root,
            &Depth::Acs {
                selectors,
                endpoints,
            },
        )?;
        let tree = Tree::build(&functions);
        let topology = Topology::of(&tree, selectors);
        let plan = clear::plan(&tree, &topology, request, conditions);
        Ok(then(&tree, &topology, &plan, conditions))
    })
}

/// Lends a policy's selectors to `use_them`.
pub fn with_selectors<T>(devices: &Devices, use_them: impl FnOnce(Selectors<'_>) -> T) -> T {
    let gpu = |vendor, device, class| devices.is_gpu(vendor, device, class);
    let nic = |vendor, device, class| devices.is_nic(vendor, device, class);
    use_them(Selectors {
        gpu: &gpu,
        nic: &nic,
    })
}

/// Clears the ports that a plan names. Their old words are on disk before the first write. A port
/// that fails does not stop the others; each port's bits are independent.
///
/// # Errors
/// [`AcsError`] when the old words cannot be kept; nothing was written then.
pub fn clear(root: &Root, tree: &Tree<'_>, plan: &AcsPlan) -> Result<Vec<Outcome>, AcsError> {
    if plan.to_clear().next().is_none() {
        return Ok(Vec::new());
    }
    let boot_id = root.text_if_there(BOOT_ID)?;
    let mut saved = load(root)?;
    let before = saved.clone();
    let nameless = saved.remember(tree, plan, boot_id.as_deref());
    if saved != before {
        store(root, &saved)?;
    }
    let mut outcomes = Vec::new();
    for port in plan.to_clear() {
        let (Some(offset), Some(ctl), Some(new)) = (port.offset, port.ctl, port.new) else {
            continue;
        };
        let result = if nameless.contains(&port.bdf) {
            let why = "its ids are not known, so its old control word could not be kept".to_owned();
            let path = root.outside(&format!("{DEVICES}/{}", port.bdf));
            Err(SysError::Refused {
                action: "write",
                path,
                why,
            }
            .into())
        } else {
            set(root, port.bdf, offset, ctl & !new, 0)
        };
        let of_this_boot = |saved: &&SavedPort| {
            saved.bdf == port.bdf && saved.boot_id.is_some() && saved.boot_id == boot_id
        };
        outcomes.push(Outcome {
            bdf: port.bdf,
            again: before.ports.iter().any(|saved| of_this_boot(&saved)),
            result,
        });
    }
    Ok(outcomes)
}

/// What `acs restore` would do.
///
/// # Errors
/// [`AcsError`] when the file of old words cannot be used.
pub fn restore_plan(root: &Root, tree: &Tree<'_>) -> Result<Vec<RestoreDecision>, AcsError> {
    Ok(saved::restore(tree, &load(root)?))
}

/// Puts back the words of ports below which a device was handed to a guest after they were cleared:
/// the guest's isolation. The kernel does not look at ACS again when that happens.
///
/// # Errors
/// [`AcsError`] when the file of old words cannot be used.
pub fn isolate(
    root: &Root,
    tree: &Tree<'_>,
    topology: &Topology,
) -> Result<Vec<Outcome>, AcsError> {
    let of_guest = |bdf: Bdf| {
        let below = topology
            .bridge(bdf)
            .is_some_and(|bridge| !bridge.passthrough_below.is_empty());
        let function = tree
            .find(bdf)
            .and_then(|id| tree.node(id))
            .and_then(|node| node.function);
        below || function.is_some_and(handed_to_a_guest)
    };
    // Reading the old words costs more than looking whether there is a guest at all.
    if !tree
        .nodes()
        .any(|(_, node)| node.function.is_some_and(handed_to_a_guest))
    {
        return Ok(Vec::new());
    }
    let boot_id = root.text_if_there(BOOT_ID)?;
    let mut saved = load(root)?;
    // What was read in another boot says nothing about what this one's kernel wants.
    saved
        .ports
        .retain(|port| port.boot_id.is_some() && port.boot_id == boot_id && of_guest(port.bdf));
    restore(root, &saved::restore(tree, &saved))
}

/// Writes saved words back and forgets those that are back in force.
///
/// # Errors
/// [`AcsError`] when the file of old words cannot be used; if only forgetting failed, the registers
/// were written.
pub fn restore(root: &Root, decisions: &[RestoreDecision]) -> Result<Vec<Outcome>, AcsError> {
    let mut outcomes = Vec::new();
    let mut done: Vec<Bdf> = Vec::new();
    for decision in decisions {
        match (decision.action, decision.new) {
            (RestoreAction::AlreadyRestored, _) => done.push(decision.bdf),
            (RestoreAction::Restore, Some(new)) => {
                let result = set(root, decision.bdf, decision.offset, decision.mask, new);
                if result.is_ok() {
                    done.push(decision.bdf);
                }
                outcomes.push(Outcome {
                    bdf: decision.bdf,
                    again: false,
                    result,
                });
            }
            _ => {}
        }
    }
    if !done.is_empty() {
        let mut saved = load(root)?;
        saved.ports.retain(|port| !done.contains(&port.bdf));
        if saved.ports.is_empty() {
            write::remove(root, SAVED)?;
        } else {
            store(root, &saved)?;
        }
    }
    Ok(outcomes)
}

fn set(root: &Root, bdf: Bdf, offset: u16, mask: u16, value: u16) -> Result<u16, ConfigError> {
    let register = (acs::CAPABILITY_ID, offset, acs::CONTROL_OFFSET);
    let file = ConfigFile::open_writable(root, bdf)?;
    file.set_bits(register, mask, value)
        .map(|written| written.new)
}

fn load(root: &Root) -> Result<Saved, AcsError> {
    let Some(bytes) = root.read_if_there(SAVED)? else {
        return Ok(Saved::default());
    };
    let damaged = |why: String| AcsError::Damaged {
        path: root.outside(SAVED),
        why,
    };
    let mut saved: Saved =
        serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
    if saved.version != saved::VERSION {
        return Err(damaged(format!(
            "it has version {}, this agent knows {}",
            saved.version,
            saved::VERSION
        )));
    }
    saved.ports.sort_by_key(|port| port.bdf);
    saved.ports.dedup_by_key(|port| port.bdf);
    Ok(saved)
}

fn store(root: &Root, saved: &Saved) -> Result<(), SysError> {
    let mut bytes = serde_json::to_vec_pretty(saved).map_err(|error| SysError::Refused {
        action: "write",
        path: root.outside(SAVED),
        why: error.to_string(),
    })?;
    bytes.push(b'\n');
    write::replace(root, SAVED, &bytes, None)
}
