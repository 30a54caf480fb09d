//! What the platform forbids: Secure Boot, lockdown, and whether this is a virtual machine.

use schemars::JsonSchema;
use serde::Serialize;

use super::fact::{Fact, text};
use crate::sys::{Root, SysError};

/// Secure Boot and lockdown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Security {
    /// The firmware's `SecureBoot` variable.
    pub secure_boot: Fact<bool>,
    /// The mode in brackets of `/sys/kernel/security/lockdown`: `none`, `integrity`,
    /// `confidentiality`.
    pub lockdown: Fact<String>,
}

pub(super) fn security(root: &Root) -> Security {
    Security {
        secure_boot: secure_boot(root),
        lockdown: lockdown(root),
    }
}

/// The mode of lockdown alone: the other half is a call into the firmware.
pub(super) fn lockdown(root: &Root) -> Fact<String> {
    text(root, "/sys/kernel/security/lockdown").and_then(|t| {
        let (_, rest) = t.split_once('[')?;
        Some(rest.split_once(']')?.0.to_owned())
    })
}

fn secure_boot(root: &Root) -> Fact<bool> {
    let path = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c";
    // Four bytes of attributes, then the value (Linux Documentation/filesystems/efivarfs.rst).
    Fact::read(path, root.read_if_there(path)).and_then(|b| b.get(4).map(|v| *v == 1))
}

/// Whether this machine is virtual, by what the machine itself shows.
pub(super) fn virtualisation(root: &Root) -> Fact<Option<String>> {
    match read_virtualisation(root) {
        Ok(fact) => fact,
        Err(e) => Fact::unknown("/proc/cpuinfo", e.to_string()),
    }
}

fn read_virtualisation(root: &Root) -> Result<Fact<Option<String>>, SysError> {
    let cpuinfo = "/proc/cpuinfo";
    let cpu = root.text_if_there(cpuinfo)?;
    // The CPUID hypervisor bit is set by every hypervisor that does not hide itself.
    if let Some(text) = &cpu {
        let flags = text
            .lines()
            .find(|l| l.starts_with("flags"))
            .unwrap_or_default();
        if flags.split_whitespace().any(|f| f == "hypervisor") {
            return Ok(Fact::known(Some("hypervisor flag".to_owned()), cpuinfo));
        }
    }
    for name in ["sys_vendor", "product_name", "bios_vendor", "board_vendor"] {
        let path = format!("/sys/class/dmi/id/{name}");
        if let Some(found) = root
            .text_if_there(&path)?
            .as_deref()
            .and_then(virtual_vendor)
        {
            return Ok(Fact::known(Some(found.to_owned()), path));
        }
    }
    let hypervisor = "/sys/hypervisor/type";
    if let Some(kind) = root.text_if_there(hypervisor)? {
        return Ok(Fact::known(Some(kind), hypervisor));
    }
    Ok(match cpu {
        Some(_) => Fact::known(None, cpuinfo),
        None => Fact::unknown(
            cpuinfo,
            "it is not there: nothing says whether this is a virtual machine",
        ),
    })
}

/// The strings that hypervisors put into DMI tables. `Amazon EC2` and `Google` are on bare metal
/// instances too, so they do not count by themselves.
fn virtual_vendor(text: &str) -> Option<&'static str> {
    const NAMES: [(&str, &str); 13] = [
        ("QEMU", "qemu"),
        ("KVM", "kvm"),
        ("Standard PC (", "qemu"),
        ("OpenStack", "kvm"),
        ("KubeVirt", "kvm"),
        ("VMware", "vmware"),
        ("VirtualBox", "virtualbox"),
        ("innotek GmbH", "virtualbox"),
        ("Xen", "xen"),
        ("Bochs", "bochs"),
        ("Parallels", "parallels"),
        ("BHYVE", "bhyve"),
        ("Virtual Machine", "microsoft"),
    ];
    NAMES
        .iter()
        .find(|(needle, _)| text.contains(needle))
        .map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vendors() {
        assert_eq!(virtual_vendor("QEMU"), Some("qemu"));
        assert_eq!(virtual_vendor("Virtual Machine"), Some("microsoft"));
        assert_eq!(virtual_vendor("Supermicro"), None);
        assert_eq!(virtual_vendor("Amazon EC2"), None);
    }
}
