//! Questions that several scenarios put to the machine.

use gdr_tests::machine::{Error, Machine};

/// The kernel's command line.
pub(crate) fn cmdline(machine: &mut Machine) -> Result<Vec<String>, Error> {
    Ok(machine
        .ok("cat /proc/cmdline")?
        .split_whitespace()
        .map(str::to_owned)
        .collect())
}

/// The kinds of IOMMU groups there are, each once: `identity`, `DMA-FQ`, ...
pub(crate) fn group_types(machine: &mut Machine) -> Result<String, Error> {
    machine.ok("cat /sys/kernel/iommu_groups/*/type | sort -u | paste -sd' '")
}

/// The root ports above the GPU's stand-in, the NIC's, and the third device that is on no path.
pub(crate) const GPU_PORT: &str = "0000:00:10.0";
pub(crate) const NIC_PORT: &str = "0000:00:11.0";
pub(crate) const OTHER_PORT: &str = "0000:00:12.0";

/// The ACS control word of a port.
pub(crate) fn acs(machine: &mut Machine, port: &str) -> Result<u16, Error> {
    let word = machine.ok(&format!("setpci -s {port} ECAP_ACS+0x6.w"))?;
    Ok(u16::from_str_radix(&word, 16).unwrap())
}

/// The value of a variable in grubenv, as GRUB's own tool reads it.
pub(crate) fn grubenv(machine: &mut Machine, name: &str) -> Result<Option<String>, Error> {
    let list = machine.ok("grub-editenv /boot/grub/grubenv list")?;
    let value = |line: &str| {
        line.strip_prefix(name)?
            .strip_prefix('=')
            .map(str::to_owned)
    };
    Ok(list.lines().find_map(value))
}
