//! What a made-up server is like: the ordinary one, and every way in which tests bend it.

/// Who made the CPUs. Decides the firmware table of the IOMMU, and what turns it on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cpu {
    /// VT-d, table `DMAR`.
    Intel,
    /// AMD-Vi, table `IVRS`.
    Amd,
}

/// What `/sys/kernel/security/lockdown` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lockdown {
    /// `[none] integrity confidentiality`
    None,
    /// `none [integrity] confidentiality`: config space cannot be written.
    Integrity,
    /// `none integrity [confidentiality]`
    Confidentiality,
}

/// A made-up server. [`NodeSpec::default`] is an eight-GPU, eight-NIC Intel machine on Debian 12,
/// ACS on, the IOMMU translating: everything that the policy in it asks for is still to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeSpec {
    /// Whose boot configuration it has.
    pub family: super::Family,
    /// Who made the CPUs.
    pub cpu: Cpu,
    /// The PCI functions of a machine that is arranged otherwise, parents before children; none is the
    /// ordinary arrangement, which the fields below bend.
    pub functions: Option<Vec<super::layout::Function>>,
    /// Is there an IOMMU in the firmware's tables?
    pub iommu: bool,
    /// Are the eight fast NICs there? The management NIC always is.
    pub nics: bool,
    /// Empty downstream ports that each switch has besides those with a device.
    pub spare_ports: u8,
    /// Is this a virtual machine? Then CPU flag and DMI say so.
    pub hypervisor: bool,
    /// Does the firmware enforce signatures?
    pub secure_boot: bool,
    /// Kernel lockdown.
    pub lockdown: Lockdown,
    /// Bytes that a config file holds: 4096 for root, 64 for others, 256 where the kernel cannot reach
    /// extended space.
    pub config_len: usize,
    /// Have the ports an ACS capability at all?
    pub acs: bool,
    /// ACS capability word of the ports that have one.
    pub acs_capability: u16,
    /// What the firmware leaves in the control words before the kernel comes.
    pub firmware_acs: u16,
    /// Bytes of a GPU's BAR1. 256 MiB is what a machine without large BARs shows.
    pub bar1: u64,
    /// `uname -r` of the kernel that boots by default.
    pub kernel: String,
    /// The one before it, still installed.
    pub old_kernel: String,
    /// `GRUB_CMDLINE_LINUX_DEFAULT`.
    pub cmdline_default: String,
    /// `GRUB_CMDLINE_LINUX`.
    pub cmdline: String,
    /// Version of the NVIDIA driver.
    pub driver: String,
    /// The kernel's modules that have to do with GPU memory and NICs.
    pub drivers: super::drivers::Drivers,
    /// A `sample-node` binary, which becomes the machine's GRUB tools; none leaves it without them, and
    /// then no command line can be made permanent.
    pub tools: Option<std::path::PathBuf>,
    /// `/etc/gdr-agent/policy.toml`; none leaves the machine without a policy.
    pub policy: Option<String>,
}

impl Default for NodeSpec {
    fn default() -> Self {
        NodeSpec {
            family: super::Family::Debian,
            cpu: Cpu::Intel,
            functions: None,
            iommu: true,
            nics: true,
            spare_ports: 0,
            hypervisor: false,
            secure_boot: false,
            lockdown: Lockdown::None,
            config_len: 4096,
            acs: true,
            // SV TB RR CR UF DT
            acs_capability: 0x005f,
            firmware_acs: 0,
            bar1: 128 << 30,
            kernel: "6.1.0-37-amd64".into(),
            old_kernel: "6.1.0-35-amd64".into(),
            cmdline_default: "quiet".into(),
            cmdline: "console=tty0 console=ttyS0,115200n8".into(),
            driver: "570.148.08".into(),
            drivers: super::drivers::Drivers::default(),
            tools: None,
            policy: Some(POLICY.into()),
        }
    }
}

/// The policy of the ordinary node.
pub const POLICY: &str = r#"version = 1

# Eight H100 and eight ConnectX-7.
[devices]
gpu = ["10de:*/0302"]
nic = ["15b3:*/0207"]

[kernel]
iommu = "passthrough"

[acs]
scope = "paths"

# Nobody to ask on a made-up machine: it is rebooted by hand.
[reboot]
coordinator = "none"
"#;

/// File system UUID of the root partition.
pub const ROOT_UUID: &str = "5d0f3c1a-7b42-4e86-9a10-2f6c8e4b7d93";
/// Volume id of the EFI system partition.
pub const ESP_UUID: &str = "4C1E-A7B2";
