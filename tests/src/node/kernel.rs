//! What the kernel does to `/proc` and `/sys` at each boot: command line, boot id, IOMMU groups, ACS.

use super::cmdline::{Iommu, iommu, parameters};
use super::config_space::ACS_CONTROL;
use super::spec::Cpu;
use super::tree::{Tree, TreeError};

/// ACS id, as the first word of the capability.
const ACS_ID: u16 = 0x000d;
/// Source validation, request and completion redirect, upstream forwarding: what the kernel turns on
/// for every port that can, once an IOMMU asked for it (drivers/pci/pci.c `pci_std_enable_acs`).
const ACS_KERNEL: u16 = 0x001d;
/// Request redirect, completion redirect, egress control (`pci_disable_acs_redir`).
const ACS_REDIRECT: u16 = 0x002c;

/// Where the node notes what its firmware does; also the sign that a directory is a sample node.
pub(super) const MARK: &str = ".sample-node";

/// What one boot left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Started {
    /// `/proc/sys/kernel/osrelease`
    pub release: String,
    /// `/proc/sys/kernel/random/boot_id`
    pub boot_id: String,
    /// What the IOMMU does.
    pub iommu: Iommu,
    /// Ports with an ACS capability.
    pub acs_ports: usize,
}

/// Starts the kernel at `image` with `cmdline`.
pub(super) fn start(tree: &Tree, image: &str, cmdline: &str) -> Result<Started, TreeError> {
    let release = image
        .rsplit_once("vmlinuz-")
        .map_or("", |(_, version)| version)
        .to_owned();
    let boot_id = boot_id()?;
    tree.file("proc/cmdline", format!("{cmdline}\n"))?;
    tree.file("proc/sys/kernel/osrelease", format!("{release}\n"))?;
    tree.file("proc/sys/kernel/random/boot_id", format!("{boot_id}\n"))?;
    tree.file(
        "proc/version",
        format!("Linux version {release} (builder@sample) (gcc-12) #1 SMP PREEMPT_DYNAMIC\n"),
    )?;
    tree.file("proc/uptime", "31.07 214.66\n")?;
    // what was in memory is gone
    for name in tree.names("run")? {
        tree.remove(&format!("run/{name}"))?;
    }
    let (cpu, table) = match tree.text("proc/cpuinfo")?.contains("AuthenticAMD") {
        true => (Cpu::Amd, "IVRS"),
        false => (Cpu::Intel, "DMAR"),
    };
    let config = tree
        .text(&format!("boot/config-{release}"))
        .unwrap_or_default();
    let default_on = ["_ON=y", "_ON_INTGPU_OFF=y"]
        .iter()
        .any(|end| config.contains(&format!("CONFIG_INTEL_IOMMU_DEFAULT{end}")));
    let iommu = match tree.exists(&format!("sys/firmware/acpi/tables/{table}")) {
        true => iommu(cmdline, cpu, default_on),
        false => Iommu::Off,
    };
    groups(tree, cpu, iommu)?;
    let acs_ports = acs(tree, iommu, cmdline)?;
    Ok(Started {
        release,
        boot_id,
        iommu,
        acs_ports,
    })
}

/// A new random id, from the system that runs the tests.
fn boot_id() -> Result<String, TreeError> {
    Ok(Tree::new("/".as_ref())
        .text("proc/sys/kernel/random/uuid")?
        .trim()
        .to_owned())
}

/// A group for every function: all ports isolate what is below them, or there are no groups at all.
fn groups(tree: &Tree, cpu: Cpu, iommu: Iommu) -> Result<(), TreeError> {
    tree.remove("sys/kernel/iommu_groups")?;
    tree.remove("sys/class/iommu")?;
    tree.remove("sys/devices/virtual/iommu")?;
    tree.dir("sys/kernel/iommu_groups")?;
    tree.dir("sys/class/iommu")?;
    let unit = match cpu {
        Cpu::Intel => "dmar",
        Cpu::Amd => "ivhd",
    };
    if iommu != Iommu::Off {
        for index in 0..2 {
            let name = format!("{unit}{index}");
            let register = match cpu {
                Cpu::Intel => "intel-iommu/version",
                Cpu::Amd => "amd-iommu/features",
            };
            tree.file(
                &format!("sys/devices/virtual/iommu/{name}/{register}"),
                "6:0\n",
            )?;
            tree.link(
                &format!("sys/class/iommu/{name}"),
                &format!("../../devices/virtual/iommu/{name}"),
            )?;
        }
    }
    for (number, bdf) in tree.names("sys/bus/pci/devices")?.iter().enumerate() {
        let dir = device_dir(tree, bdf)?;
        tree.remove(&format!("{dir}/iommu_group"))?;
        let Some(kind) = iommu.group_type() else {
            continue;
        };
        let group = format!("sys/kernel/iommu_groups/{number}");
        tree.file(&format!("{group}/type"), format!("{kind}\n"))?;
        tree.link(
            &format!("{group}/devices/{bdf}"),
            &format!("../../../../{}", dir.trim_start_matches("sys/")),
        )?;
        let up = "../".repeat(dir.matches('/').count());
        tree.link(
            &format!("{dir}/iommu_group"),
            &format!("{up}kernel/iommu_groups/{number}"),
        )?;
    }
    Ok(())
}

/// Sets the control words as the firmware leaves them, then as the kernel does. Returns the number of
/// ports. Registers beyond the end of a short config file exist all the same, but nobody sees them.
fn acs(tree: &Tree, iommu: Iommu, cmdline: &str) -> Result<usize, TreeError> {
    let firmware = firmware_acs(tree)?;
    let redirect_off = disable_acs_redir(cmdline);
    let mut ports = 0;
    for bdf in tree.names("sys/bus/pci/devices")? {
        let dir = device_dir(tree, &bdf)?;
        let path = format!("{dir}/config");
        let mut config = tree.read(&path)?;
        let word = |config: &[u8], at: usize| match config.get(at..at + 2) {
            Some([low, high]) => Some(u16::from_le_bytes([*low, *high])),
            _ => None,
        };
        if word(&config, ACS_CONTROL - 6) != Some(ACS_ID) {
            continue;
        }
        let capability = word(&config, ACS_CONTROL - 2).unwrap_or(0);
        let mut control = firmware;
        if iommu != Iommu::Off {
            control |= capability & ACS_KERNEL;
        }
        if redirect_off.iter().any(|name| names(name, &dir)) {
            control &= !ACS_REDIRECT;
        }
        if let Some(slot) = config.get_mut(ACS_CONTROL..ACS_CONTROL + 2) {
            slot.copy_from_slice(&control.to_le_bytes());
        }
        tree.file(&path, config)?;
        ports += 1;
    }
    Ok(ports)
}

fn firmware_acs(tree: &Tree) -> Result<u16, TreeError> {
    let text = tree.text(MARK)?;
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix("firmware_acs=0x"));
    Ok(value
        .and_then(|hex| u16::from_str_radix(hex, 16).ok())
        .unwrap_or(0))
}

/// The devices that `pci=disable_acs_redir=` names, in all its occurrences.
fn disable_acs_redir(cmdline: &str) -> Vec<String> {
    let mut all = Vec::new();
    for (name, value) in parameters(cmdline) {
        let value = value.unwrap_or_default();
        if name == "pci" {
            // a list of options, where this one has a list of its own
            let lists = value
                .split(',')
                .filter_map(|one| one.strip_prefix("disable_acs_redir="));
            all.extend(lists.flat_map(|list| list.split(';')).map(str::to_owned));
        }
    }
    all
}

/// Is the device at `dir` the one that `name` means: an address, with or without its domain, or the way
/// to it from its root bus (drivers/pci/pci.c `pci_dev_str_match_path`)?
fn names(name: &str, dir: &str) -> bool {
    let way: Vec<&str> = dir
        .split('/')
        .filter(|part| part.matches(':').count() == 2)
        .collect();
    let Some((own, above)) = way.split_last() else {
        return false;
    };
    let mut steps = name.split('/').rev();
    let short = |bdf: &str| bdf.rsplit(':').next().unwrap_or("").to_owned();
    let mut at = *own;
    let mut above = above.iter().rev();
    loop {
        let Some(step) = steps.next() else {
            return false;
        };
        if step.contains(':') {
            let same = step == at || at.strip_prefix("0000:") == Some(step);
            return same && steps.next().is_none();
        }
        if step != short(at) {
            return false;
        }
        match above.next() {
            Some(bridge) => at = bridge,
            None => return false,
        }
    }
}

/// `sys/devices/...` of a function.
fn device_dir(tree: &Tree, bdf: &str) -> Result<String, TreeError> {
    let path = tree.at(&format!("sys/bus/pci/devices/{bdf}"));
    let target = std::fs::read_link(&path).map_err(|source| TreeError {
        what: "reading the link",
        path,
        source,
    })?;
    Ok(format!(
        "sys/{}",
        target.to_string_lossy().trim_start_matches("../")
    ))
}
