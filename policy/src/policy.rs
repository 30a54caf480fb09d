//! The policy: what a node should be. Doc comments here are the descriptions in the JSON schema.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check;
use crate::types::{
    AcsBit, AcsMethod, AcsScope, AfterFailure, Bake, BusyGpu, CheckGroup, Coordinator, Duration,
    Fallback, FilePath, FleetlockGroup, FleetlockUrl, GdrPath, IommuMode, KernelArg, Peer,
    PeermemPackage, Selector, TimeZone, WallMessage, Window,
};

/// The policy format that this crate reads.
pub const VERSION: u32 = 1;

/// The policy of gdr-agent: what a GPU node should be. Everything but `version` has a default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", deny_unknown_fields)]
#[schemars(rename = "Policy", title = "gdr-agent policy")]
pub struct Policy {
    /// The format of the file. Required in policy.toml; a drop-in may repeat it.
    #[schemars(extend("const" = 1))]
    pub version: u32,
    /// Which PCI functions count as a GPU and which as a NIC.
    #[serde(default)]
    pub devices: Devices,
    /// How NIC drivers reach GPU memory.
    #[serde(default)]
    pub gdr: Gdr,
    /// The nvidia-peermem module.
    #[serde(default)]
    pub peermem: Peermem,
    /// The kernel command line.
    #[serde(default)]
    pub kernel: Kernel,
    /// PCIe access control services, which can send GPU-NIC traffic through the root complex.
    #[serde(default)]
    pub acs: Acs,
    /// The one boot that tries a new command line.
    #[serde(default)]
    pub trial: Trial,
    /// Who is asked before a reboot, and how many there may be.
    #[serde(default)]
    pub reboot: Reboot,
    /// What must hold after the trial boot, and later.
    #[serde(default)]
    pub verify: Verify,
}

/// Which PCI functions count as a GPU and which as a NIC.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Devices {
    /// GPUs, as vendor:device/class. One match is enough.
    #[schemars(length(min = 1, max = 64), extend("uniqueItems" = true))]
    pub gpu: Vec<Selector>,
    /// NICs, as vendor:device/class. One match is enough.
    #[schemars(length(min = 1, max = 64), extend("uniqueItems" = true))]
    pub nic: Vec<Selector>,
}

impl Devices {
    /// Whether a function with these ids and this class (base class and subclass) counts as a GPU.
    pub fn is_gpu(&self, vendor: u16, device: u16, class: u16) -> bool {
        self.gpu.iter().any(|s| s.matches(vendor, device, class))
    }

    /// Whether it counts as a NIC.
    pub fn is_nic(&self, vendor: u16, device: u16, class: u16) -> bool {
        self.nic.iter().any(|s| s.matches(vendor, device, class))
    }
}

/// How NIC drivers reach GPU memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Gdr {
    /// The way that is set up and verified.
    pub path: GdrPath,
}

/// The nvidia-peermem module. Without effect where `gdr.path` leads to DMA-BUF.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Peermem {
    /// The package that brings the module.
    pub package: PeermemPackage,
    /// Load the module now and at every boot.
    pub load: bool,
}

/// The kernel command line. Arguments that are not named here stay as they are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Kernel {
    /// What the IOMMU does to the DMA of trusted devices. Which arguments that takes on this CPU
    /// and kernel is the agent's knowledge.
    pub iommu: IommuMode,
    /// Arguments that must be there.
    #[schemars(length(max = 64), extend("uniqueItems" = true))]
    pub set: Vec<KernelArg>,
    /// Arguments that must not be there: a bare name, or exactly one name=value.
    #[schemars(length(max = 64), extend("uniqueItems" = true))]
    pub remove: Vec<KernelArg>,
}

/// PCIe access control services.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Acs {
    /// The bridges whose redirect bits are cleared.
    pub scope: AcsScope,
    /// The bits that are cleared. Only redirect bits may be.
    #[schemars(extend("uniqueItems" = true))]
    pub clear: Vec<AcsBit>,
    /// How they are cleared.
    pub method: AcsMethod,
}

/// The one boot that tries a new command line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Trial {
    /// What to do where GRUB cannot fall back by itself.
    pub fallback: Fallback,
    /// Seconds between a panic and the reboot; trial boots only.
    #[schemars(range(min = 1, max = 3600))]
    pub panic: u32,
    /// The trial is healthy by then, or the node goes back; 1m to 24h.
    pub deadline: Duration,
    /// What an image boots first.
    pub bake: Bake,
}

/// Who is asked before a reboot, and how many there may be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Reboot {
    /// Who is asked.
    pub coordinator: Coordinator,
    /// Whether the agent may ask for a reboot by itself. Off by default: a policy that does not
    /// say so stages its changes and waits for somebody to reboot the node or to run
    /// `gdr-agent apply --reboot`.
    pub allow: bool,
    /// Reboots that this policy may cause before it waits for a person.
    #[schemars(range(max = 10))]
    pub max: u32,
    /// Wait while somebody holds a logind inhibitor.
    pub respect_inhibitors: bool,
    /// How long before a reboot through logind people on the node are warned; 10s to 24h. Without
    /// it, or on the way back from a failed trial, the machine goes down at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<Duration>,
    /// What people on the node read about a reboot through logind, after the agent's own words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<WallMessage>,
    /// What must be open before anybody is asked.
    pub gates: Gates,
    /// The FleetLock server; needed by `coordinator = "fleetlock"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fleetlock: Option<Fleetlock>,
}

/// What must be open before anybody is asked for a reboot. `/etc/gdr-agent/pre-reboot.d` belongs to
/// them: programs there are run in order of their names, and one that does not exit with 0 says
/// "not now".
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Gates {
    /// What to do while a process computes on a GPU.
    pub gpu: BusyGpu,
    /// When reboots may be asked for; an empty list is always. The way back from a failed trial does
    /// not wait for a window.
    #[schemars(length(max = 64), extend("uniqueItems" = true))]
    pub windows: Vec<Window>,
    /// The clock that windows are read on.
    pub time_zone: TimeZone,
    /// While this file is there, nothing reboots.
    pub stop_file: FilePath,
    /// While this URL is there (200), or cannot be known not to be (404 or 410), nothing reboots.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_url: Option<FleetlockUrl>,
    /// How long one program in pre-reboot.d may run; 1s to 1h.
    pub hook_limit: Duration,
}

/// A FleetLock server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fleetlock {
    /// Its base URL.
    pub url: FleetlockUrl,
    /// The group that the node belongs to.
    #[serde(default = "default_group")]
    pub group: FleetlockGroup,
    /// A file with certificates of authorities, in PEM form, that count beside the system's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<FilePath>,
    /// What becomes of the slot of a node whose trial failed.
    #[serde(default = "default_failed")]
    pub failed: AfterFailure,
}

/// What must hold after the trial boot, and later.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Verify {
    /// Groups of checks that must be met; a failed or unknown one rolls a trial back.
    #[schemars(extend("uniqueItems" = true))]
    pub require: Vec<CheckGroup>,
    /// Groups of checks that are reported and decide nothing.
    #[schemars(extend("uniqueItems" = true))]
    pub warn: Vec<CheckGroup>,
    /// A perftest run after the trial boot; none without this table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<Bandwidth>,
}

/// A perftest run after the trial boot. `bandwidth` in `verify.require` lets it decide; without
/// that it is reported.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bandwidth {
    /// The other end.
    #[serde(default = "default_peer")]
    pub peer: Peer,
    /// The least average bandwidth, in Gbit/s.
    #[schemars(range(min = 0.1, max = 10000.0))]
    pub min_gbps: f64,
}

/// Serde's derive with `remote = "Self"` makes inherent functions of the same names; the traits
/// wrap them, so that no policy is deserialized unchecked.
impl<'de> Deserialize<'de> for Policy {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let policy = Self::deserialize(deserializer)?;
        let wrong: Vec<String> = check::errors(&policy)
            .into_iter()
            .map(|finding| format!("{}: {}", finding.key(), finding.message))
            .collect();
        if wrong.is_empty() {
            Ok(policy)
        } else {
            Err(serde::de::Error::custom(wrong.join("; ")))
        }
    }
}

impl Serialize for Policy {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, serializer)
    }
}

fn default_group() -> FleetlockGroup {
    crate::defaults::fleetlock_group()
}

fn default_failed() -> AfterFailure {
    AfterFailure::Release
}

fn default_peer() -> Peer {
    crate::defaults::peer()
}
