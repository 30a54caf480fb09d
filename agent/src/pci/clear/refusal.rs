//! When ACS must not be written, and what to do instead.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::pci::Bdf;

/// Kernel lockdown, `/sys/kernel/security/lockdown`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Lockdown {
    /// Not in force.
    None,
    /// Configuration space cannot be written.
    Integrity,
    /// Nor can kernel memory be read.
    Confidentiality,
    /// The file is not there or says something else; the write itself will tell.
    Unknown,
}

/// What the machine is like, as far as that decides about writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conditions {
    /// It is a virtual machine; `None` when that could not be found out.
    pub in_vm: Option<bool>,
    /// Kernel lockdown.
    pub lockdown: Lockdown,
    /// An IOMMU is in use; `None` when that could not be found out.
    pub iommu: Option<bool>,
    /// The registers are those of the running machine, not files in a directory.
    pub live: bool,
}

/// A reason not to write, with a stable id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Refusal {
    /// `acs.in-vm`, `acs.lockdown` or `acs.vfio`.
    pub id: String,
    /// The port, when only one is concerned.
    pub bdf: Option<Bdf>,
    /// What is the matter.
    pub text: String,
    /// What to do instead.
    pub fix: String,
}

impl Refusal {
    /// A device below (or at) the port belongs to a guest.
    pub(super) fn vfio(bdf: Bdf, below: &[Bdf]) -> Self {
        let names: Vec<String> = below.iter().take(4).map(Bdf::to_string).collect();
        let more = below.len().saturating_sub(names.len());
        let more = if more == 0 {
            String::new()
        } else {
            format!(" and {more} more")
        };
        Self {
            id: "acs.vfio".to_owned(),
            bdf: Some(bdf),
            text: format!(
                "{}{more} below {bdf} is bound to a passthrough driver; clearing ACS would end its isolation",
                names.join(", ")
            ),
            fix: "stop the guest and give the device back to its host driver, or leave this port with scope = \"keep\"; \
                  for GPUDirect inside the guest use ATS and ACS Direct Translated P2P"
                .to_owned(),
        }
    }
}

impl Refusal {
    /// The kernel refused a write although its lockdown mode could not be read before.
    #[must_use]
    pub fn lockdown() -> Self {
        let (id, text, fix) = LOCKDOWN;
        Self {
            id: id.to_owned(),
            bdf: None,
            text: text.to_owned(),
            fix: fix.to_owned(),
        }
    }
}

const LOCKDOWN: (&str, &str, &str) = (
    "acs.lockdown",
    "kernel lockdown is in force (/sys/kernel/security/lockdown): the kernel refuses every write to configuration space",
    "use the kernel command line (method = \"cmdline\": pci=disable_acs_redir= or pci=config_acs=), turn ACS off in the firmware \
     setup, or boot without lockdown",
);

impl Conditions {
    /// The reason not to write any port, if there is one.
    #[must_use]
    pub fn refusal(self) -> Option<Refusal> {
        let (id, text, fix) = match (self.in_vm, self.lockdown) {
            (Some(true), _) => (
                "acs.in-vm",
                "this is a virtual machine: its ACS registers are emulated, and clearing them here changes no hardware",
                "on the host: enable ATS on the NIC (mlxconfig set ATS_ENABLED=true) and ACS Direct Translated P2P on the ports above \
                 GPU and NIC; on vSphere set pciPassthru.allowP2P and pciPassthru.RelaxACSforP2P",
            ),
            (None, _) if self.live => (
                "acs.in-vm",
                "whether this is a virtual machine could not be found out, and ACS must not be cleared in one",
                "mount /sys and /proc completely and run as root",
            ),
            (_, Lockdown::Integrity | Lockdown::Confidentiality) => LOCKDOWN,
            _ => return None,
        };
        Some(Refusal {
            id: id.to_owned(),
            bdf: None,
            text: text.to_owned(),
            fix: fix.to_owned(),
        })
    }

    pub(super) fn note(self) -> Option<String> {
        (self.in_vm.is_none() && !self.live).then(|| {
            "the root does not say whether it is of a virtual machine; taken for a physical one"
                .to_owned()
        })
    }
}
