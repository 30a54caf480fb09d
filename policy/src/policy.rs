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
    #[schemars(extend("examples" = [1], "x-since" = "0.1.0", "const" = 1))]
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
    /// GPUs, as vendor:device/class with four hex digits each, or `*` for any; `lspci -nn` prints
    /// the numbers. One match is enough.
    #[schemars(length(min = 1, max = 64), extend("examples" = [["10de:*/0302"]], "x-since" = "0.1.0", "uniqueItems" = true))]
    pub gpu: Vec<Selector>,
    /// NICs, written as in `devices.gpu`. One match is enough. A management port that matches
    /// counts, too: its path to each GPU is then judged and cleared.
    #[schemars(length(min = 1, max = 64), extend("examples" = [["15b3:*/0207", "1dd8:*/0200"]], "x-since" = "0.1.0", "uniqueItems" = true))]
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
    /// The way to GPU memory that is set up and verified. Naming one makes a fleet alike: a node
    /// that cannot have it fails the check `gdr-path` instead of taking the other.
    #[schemars(extend("examples" = ["dma-buf"], "x-since" = "0.1.0"))]
    pub path: GdrPath,
}

/// The nvidia-peermem module. Without effect where `gdr.path` leads to DMA-BUF.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Peermem {
    /// The package that brings the module. It is installed live, before any reboot; the package
    /// manager and its repositories are the node's own.
    #[schemars(extend("examples" = ["none"], "x-since" = "0.1.0"))]
    pub package: PeermemPackage,
    /// Load the module now and at every boot. The file in modules-load.d is written only after the
    /// trial; the trial boot has the module on its command line.
    #[schemars(extend("examples" = [false], "x-since" = "0.1.0"))]
    pub load: bool,
}

/// The kernel command line. Arguments that are not named here stay as they are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Kernel {
    /// What the IOMMU does to the DMA of trusted devices. Which arguments that takes on this CPU
    /// and kernel is the agent's knowledge; the check `iommu` looks at the groups' type, not at the
    /// arguments.
    #[schemars(extend("examples" = ["keep"], "x-since" = "0.1.0"))]
    pub iommu: IommuMode,
    /// Arguments that must be there. One that is there and counts stays where it is; another is
    /// added at the end, where the kernel takes it over an earlier value of the same name.
    #[schemars(length(max = 64), extend("examples" = [["pci=realloc=off", "transparent_hugepage=madvise"]], "x-since" = "0.1.0", "uniqueItems" = true))]
    pub set: Vec<KernelArg>,
    /// Arguments that must not be there: a bare name takes every value of it, name=value exactly
    /// that one.
    #[schemars(length(max = 64), extend("examples" = [["pcie_acs_override", "pci=nomsi"]], "x-since" = "0.1.0", "uniqueItems" = true))]
    pub remove: Vec<KernelArg>,
}

/// PCIe access control services.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Acs {
    /// The bridges whose redirect bits are cleared, and that the check `acs` looks at.
    #[schemars(extend("examples" = ["bridges"], "x-since" = "0.1.0"))]
    pub scope: AcsScope,
    /// The bits that are cleared. Only redirect bits may be; isolation by source validation stays.
    #[schemars(extend("examples" = [["RR", "CR"]], "x-since" = "0.1.0", "uniqueItems" = true))]
    pub clear: Vec<AcsBit>,
    /// How they are cleared. ACS is volatile: whatever the method, every boot looks at the
    /// registers again.
    #[schemars(extend("examples" = ["config-space"], "x-since" = "0.1.0"))]
    pub method: AcsMethod,
}

/// The one boot that tries a new command line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Trial {
    /// What to do where GRUB cannot fall back by itself, for instance because it cannot write
    /// grubenv on btrfs.
    #[schemars(extend("examples" = ["best-effort"], "x-since" = "0.1.0"))]
    pub fallback: Fallback,
    /// Seconds between a panic and the reboot; trial boots only.
    #[schemars(range(min = 1, max = 3600), extend("examples" = [60], "x-since" = "0.1.0"))]
    pub panic: u32,
    /// The trial is healthy by then, or the node goes back; 1m to 24h. It counts from the start of
    /// the trial boot, so leave time for drivers and the fabric.
    #[schemars(extend("examples" = ["20m"], "x-since" = "0.1.0"))]
    pub deadline: Duration,
    /// What an image boots first, after `apply --bake`.
    #[schemars(extend("examples" = ["commit"], "x-since" = "0.1.0"))]
    pub bake: Bake,
}

/// Who is asked before a reboot, and how many there may be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Reboot {
    /// Who is asked before a reboot.
    #[schemars(extend("examples" = ["sentinel"], "x-since" = "0.1.0"))]
    pub coordinator: Coordinator,
    /// Whether the agent may ask for a reboot by itself. Off by default: a policy that does not
    /// say so stages its changes and waits for
    /// `gdr-agent apply --reboot`.
    #[schemars(extend("examples" = [true], "x-since" = "0.1.0"))]
    pub allow: bool,
    /// Reboots that this policy may cause before it waits for a person: the trial, and one way
    /// back. 0 lets it cause none.
    #[schemars(range(max = 10), extend("examples" = [4], "x-since" = "0.1.0"))]
    pub max: u32,
    /// Wait while somebody holds a logind inhibitor, as package managers do in the middle of their
    /// work.
    #[schemars(extend("examples" = [false], "x-since" = "0.1.0"))]
    pub respect_inhibitors: bool,
    /// How long before a reboot through logind people on the node are warned; 10s to 24h. Without
    /// it, or on the way back from a failed trial, the machine goes down at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["10m"], "x-since" = "0.1.0"))]
    pub delay: Option<Duration>,
    /// What people on the node read about a reboot through logind, after the agent's own words.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["new kernel settings, ask ops@example.com"], "x-since" = "0.1.0"))]
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
    #[schemars(extend("examples" = ["ignore"], "x-since" = "0.1.0"))]
    pub gpu: BusyGpu,
    /// When reboots may be asked for; an empty list is always. A window that ends before it begins
    /// goes on after midnight. The way back from a failed trial does not wait for a window.
    #[schemars(length(max = 64), extend("examples" = [["Mon-Fri 22:00-06:00", "Sat,Sun 00:00-24:00"]], "x-since" = "0.1.0", "uniqueItems" = true))]
    pub windows: Vec<Window>,
    /// The clock that windows are read on.
    #[schemars(extend("examples" = ["Europe/Berlin"], "x-since" = "0.1.0"))]
    pub time_zone: TimeZone,
    /// While this file is there, nothing reboots, the way back from a failed trial included. Its
    /// first line is shown as the reason.
    #[schemars(extend("examples" = ["/srv/fleet/stop"], "x-since" = "0.1.0"))]
    pub stop_file: FilePath,
    /// While this URL is there (200), or cannot be known not to be (404 or 410), nothing reboots.
    /// Not set: no URL is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["https://ops.example/stop-gpu-reboots"], "x-since" = "0.1.0"))]
    pub stop_url: Option<FleetlockUrl>,
    /// How long one program in pre-reboot.d may run; 1s to 1h. Then it is killed with its children,
    /// which counts as "not now".
    #[schemars(extend("examples" = ["15m"], "x-since" = "0.1.0"))]
    pub hook_limit: Duration,
}

/// A FleetLock server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fleetlock {
    /// Its base URL. A user name or password in it is refused, since everybody who may read the
    /// policy or the reports would see it.
    #[schemars(extend("examples" = ["https://fleetlock.example:9090/"], "x-since" = "0.1.0"))]
    pub url: FleetlockUrl,
    /// The group that the node belongs to. Nodes of a group share its reboot slots.
    #[serde(default = "default_group")]
    #[schemars(extend("examples" = ["gpu"], "x-since" = "0.1.0"))]
    pub group: FleetlockGroup,
    /// A file with certificates of authorities, in PEM form, that count beside the system's. Not
    /// set: the system's alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["/etc/gdr-agent/fleetlock-ca.pem"], "x-since" = "0.1.0"))]
    pub ca: Option<FilePath>,
    /// What becomes of the slot of a node whose trial failed.
    #[serde(default = "default_failed")]
    #[schemars(extend("examples" = ["hold"], "x-since" = "0.1.0"))]
    pub failed: AfterFailure,
}

/// What must hold after the trial boot, and later.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Verify {
    /// Groups of checks that must be met; a failed or unknown one rolls a trial back.
    #[schemars(extend("examples" = [["cmdline", "iommu", "acs", "gdr-path", "bar1", "modules"]], "x-since" = "0.1.0", "uniqueItems" = true))]
    pub require: Vec<CheckGroup>,
    /// Groups of checks that are reported and decide nothing.
    #[schemars(extend("examples" = [["link", "numa"]], "x-since" = "0.1.0", "uniqueItems" = true))]
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
    #[schemars(extend("examples" = ["gpu-node-17.example"], "x-since" = "0.1.0"))]
    pub peer: Peer,
    /// The least average bandwidth, in Gbit/s. No default; about 95 % of the link is a fair bar.
    #[schemars(range(min = 0.1, max = 10000.0), extend("examples" = [380.0], "x-since" = "0.1.0"))]
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
