//! `/sys`: the PCI tree and everything else that does not change from boot to boot. What the kernel
//! decides at each boot (IOMMU groups, ACS) is in [`super::kernel`].

use std::fmt::Write as _;

use super::config_space::config_space;
use super::layout::{Function, functions};
use super::model::NIC;
use super::spec::{Cpu, Lockdown, NodeSpec};
use super::tree::{Tree, TreeError};

/// Writes `/sys`.
pub(super) fn write(tree: &Tree, spec: &NodeSpec) -> Result<(), TreeError> {
    let all = functions(spec);
    for function in &all {
        pci_function(tree, function, spec)?;
    }
    for (index, nic) in all.iter().filter(|f| f.model.id == NIC.id).enumerate() {
        infiniband(tree, nic, index)?;
    }
    firmware(tree, spec)?;
    dmi(tree, spec)?;
    modules(tree, spec)?;
    let lockdown = match spec.lockdown {
        Lockdown::None => "[none] integrity confidentiality\n",
        Lockdown::Integrity => "none [integrity] confidentiality\n",
        Lockdown::Confidentiality => "none integrity [confidentiality]\n",
    };
    tree.file("sys/kernel/security/lockdown", lockdown)?;
    tree.dir("sys/kernel/iommu_groups")?;
    tree.dir("sys/class/iommu")?;
    for node in ["node0", "node1"] {
        tree.dir(&format!("sys/devices/system/node/{node}"))?;
    }
    Ok(())
}

/// `../` often enough to get from directory `dir` back to `/sys`.
fn up(dir: &str) -> String {
    "../".repeat(dir.matches('/').count())
}

fn pci_function(tree: &Tree, function: &Function, spec: &NodeSpec) -> Result<(), TreeError> {
    let Function {
        bdf, dir, model, ..
    } = function;
    let file = |name: &str, text: String| tree.file(&format!("{dir}/{name}"), text + "\n");
    file("vendor", format!("0x{:04x}", model.id.0))?;
    file("device", format!("0x{:04x}", model.id.1))?;
    file("subsystem_vendor", format!("0x{:04x}", model.subsystem.0))?;
    file("subsystem_device", format!("0x{:04x}", model.subsystem.1))?;
    file("class", format!("0x{:06x}", model.class))?;
    file("revision", format!("0x{:02x}", model.revision))?;
    file("numa_node", function.numa.to_string())?;
    file(
        "local_cpulist",
        if function.numa == 0 { "0-3" } else { "4-7" }.into(),
    )?;
    file("irq", "0".into())?;
    file("enable", "1".into())?;
    file("modalias", modalias(function))?;
    file("uevent", uevent(function))?;
    if model.port != super::model::Port::Integrated {
        let (speed, width) = model.link;
        for which in ["current", "max"] {
            file(
                &format!("{which}_link_speed"),
                format!("{} PCIe", speed_name(speed)),
            )?;
            file(&format!("{which}_link_width"), width.to_string())?;
        }
    }
    tree.file(&format!("{dir}/resource"), resource(function))?;
    tree.file(&format!("{dir}/config"), config_space(function, spec))?;
    let up = up(dir);
    tree.link(&format!("{dir}/subsystem"), &format!("{up}bus/pci"))?;
    tree.link(
        &format!("sys/bus/pci/devices/{bdf}"),
        &format!("../../../{}", dir.trim_start_matches("sys/")),
    )?;
    if let Some(driver) = model.driver {
        tree.link(
            &format!("{dir}/driver"),
            &format!("{up}bus/pci/drivers/{driver}"),
        )?;
        tree.link(
            &format!("sys/bus/pci/drivers/{driver}/{bdf}"),
            &format!("../../../../{}", dir.trim_start_matches("sys/")),
        )?;
    }
    Ok(())
}

fn speed_name(generation: u8) -> &'static str {
    match generation {
        1 => "2.5 GT/s",
        2 => "5.0 GT/s",
        3 => "8.0 GT/s",
        4 => "16.0 GT/s",
        5 => "32.0 GT/s",
        _ => "64.0 GT/s",
    }
}

fn modalias(function: &Function) -> String {
    let model = &function.model;
    format!(
        "pci:v{:08X}d{:08X}sv{:08X}sd{:08X}bc{:02X}sc{:02X}i{:02X}",
        model.id.0,
        model.id.1,
        model.subsystem.0,
        model.subsystem.1,
        model.class >> 16,
        (model.class >> 8) & 0xff,
        model.class & 0xff,
    )
}

fn uevent(function: &Function) -> String {
    let model = &function.model;
    let driver = model
        .driver
        .map(|name| format!("DRIVER={name}\n"))
        .unwrap_or_default();
    format!(
        "{driver}PCI_CLASS={:X}\nPCI_ID={:04X}:{:04X}\nPCI_SUBSYS_ID={:04X}:{:04X}\nPCI_SLOT_NAME={}\nMODALIAS={}",
        model.class,
        model.id.0,
        model.id.1,
        model.subsystem.0,
        model.subsystem.1,
        function.bdf,
        modalias(function),
    )
}

/// One line for each resource: first address, last address, flags (`IORESOURCE_*`, linux/ioport.h).
/// Seven for a device; a bridge has its windows after the seven and the six of SR-IOV.
fn resource(function: &Function) -> String {
    const MEM: u64 = 0x200;
    const PREFETCH: u64 = 0x2000;
    const MEM_64: u64 = 0x0010_0000;
    const SIZE_ALIGN: u64 = 0x0004_0000;
    let mut lines = vec![(0, 0, 0); if function.buses.is_some() { 17 } else { 7 }];
    for region in &function.regions {
        // the low bits are those of the register itself
        let flags = match region.bar.prefetchable {
            true => MEM | PREFETCH | MEM_64 | SIZE_ALIGN | 0xc,
            false => MEM | SIZE_ALIGN,
        };
        if let Some(line) = lines.get_mut(region.bar.index) {
            *line = (region.start, region.start + region.bar.size - 1, flags);
        }
    }
    for (at, window, flags) in [
        (14, function.memory, MEM),
        (15, function.prefetch, MEM | PREFETCH | MEM_64 | 1),
    ] {
        if let (Some(line), Some((first, last))) = (lines.get_mut(at), window) {
            *line = (first, last, flags);
        }
    }
    let mut text = String::new();
    for (first, last, flags) in lines {
        let _ = writeln!(text, "0x{first:016x} 0x{last:016x} 0x{flags:016x}");
    }
    text
}

fn infiniband(tree: &Tree, nic: &Function, index: usize) -> Result<(), TreeError> {
    let name = format!("mlx5_{index}");
    let dir = format!("{}/infiniband/{name}", nic.dir);
    tree.file(&format!("{dir}/fw_ver"), "28.43.1014\n")?;
    tree.file(&format!("{dir}/hca_type"), "MT4129\n")?;
    tree.file(&format!("{dir}/node_type"), "1: CA\n")?;
    for (file, text) in [
        ("state", "4: ACTIVE\n"),
        ("phys_state", "5: LinkUp\n"),
        ("rate", "400 Gb/sec (4X NDR)\n"),
        ("link_layer", "InfiniBand\n"),
    ] {
        tree.file(&format!("{dir}/ports/1/{file}"), text)?;
    }
    tree.link(&format!("{dir}/device"), &format!("../../../{}", nic.bdf))?;
    tree.link(
        &format!("sys/class/infiniband/{name}"),
        &format!("../../{}", dir.trim_start_matches("sys/")),
    )
}

/// The IOMMU's table is what makes the kernel look for one. Only its header is filled in.
fn firmware(tree: &Tree, spec: &NodeSpec) -> Result<(), TreeError> {
    if spec.iommu {
        let (name, signature) = match spec.cpu {
            Cpu::Intel => ("DMAR", *b"DMAR"),
            Cpu::Amd => ("IVRS", *b"IVRS"),
        };
        tree.file(
            &format!("sys/firmware/acpi/tables/{name}"),
            acpi_table(signature),
        )?;
    }
    tree.file("sys/firmware/efi/fw_platform_size", "64\n")?;
    // four bytes of attributes, then the value
    let enforced = u8::from(spec.secure_boot);
    let global = "8be4df61-93ca-11d2-aa0d-00e098032b8c";
    tree.file(
        &format!("sys/firmware/efi/efivars/SecureBoot-{global}"),
        [6, 0, 0, 0, enforced],
    )?;
    tree.file(
        &format!("sys/firmware/efi/efivars/SetupMode-{global}"),
        [6, 0, 0, 0, 0],
    )
}

/// A header and twelve bytes of body (ACPI Specification, 5.2.6); all bytes add up to 0.
fn acpi_table(signature: [u8; 4]) -> Vec<u8> {
    let mut table = signature.to_vec();
    table.extend(48_u32.to_le_bytes());
    // revision, then the checksum, set below
    table.extend([1, 0]);
    table.extend(b"SAMPLEGPUNODE   ");
    table.extend([1, 0, 0, 0]);
    table.extend(b"GDR ");
    table.extend([1, 0, 0, 0]);
    table.resize(48, 0);
    let sum = table.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
    if let Some(checksum) = table.get_mut(9) {
        *checksum = 0_u8.wrapping_sub(sum);
    }
    table
}

fn dmi(tree: &Tree, spec: &NodeSpec) -> Result<(), TreeError> {
    let (vendor, product) = match spec.hypervisor {
        true => ("QEMU", "Standard PC (Q35 + ICH9, 2009)"),
        false => ("Sample Systems", "GX8 eight-GPU server"),
    };
    let dir = "sys/devices/virtual/dmi/id";
    for (name, text) in [
        ("sys_vendor", vendor),
        ("product_name", product),
        ("board_vendor", vendor),
        ("board_name", "GX8-MB"),
        ("bios_vendor", "Sample BIOS"),
        ("bios_version", "1.4.2"),
        ("chassis_type", if spec.hypervisor { "1" } else { "23" }),
    ] {
        tree.file(&format!("{dir}/{name}"), format!("{text}\n"))?;
    }
    tree.link("sys/class/dmi/id", "../../devices/virtual/dmi/id")
}

fn modules(tree: &Tree, spec: &NodeSpec) -> Result<(), TreeError> {
    for name in super::procfs::LOADED.iter().map(|module| module.name) {
        tree.file(&format!("sys/module/{name}/initstate"), "live\n")?;
        if name.starts_with("nvidia") {
            tree.file(
                &format!("sys/module/{name}/version"),
                format!("{}\n", spec.driver),
            )?;
        }
    }
    Ok(())
}
