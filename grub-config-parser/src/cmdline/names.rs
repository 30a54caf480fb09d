//! What is known about names: how they compare, which of them may repeat, how long a line may be.

/// Names whose repetitions all count. Everything else is taken as last-wins.
///
/// Sources: Linux `Documentation/admin-guide/kernel-parameters.txt` and the parameters' own setup
/// functions; dracut.cmdline(7); systemd(1), systemd-modules-load(8), kernel-command-line(7).
const ACCUMULATING: &[&str] = &[
    "acpi_osi",
    "blacklist",
    "bond",
    "bridge",
    "console",
    "crashkernel",
    "dyndbg",
    "earlycon",
    "earlyprintk",
    "efi",
    "hugepages",
    "hugepagesz",
    "ifname",
    "initcall_blacklist",
    "ip",
    "memmap",
    "modprobe.blacklist",
    "modules_load",
    "mtdparts",
    "nameserver",
    "netconsole",
    "pci",
    "rd.blacklist",
    "rd.break",
    "rd.dasd",
    "rd.driver.blacklist",
    "rd.driver.post",
    "rd.driver.pre",
    "rd.luks.key",
    "rd.luks.name",
    "rd.luks.options",
    "rd.luks.uuid",
    "rd.lvm.lv",
    "rd.lvm.vg",
    "rd.md.uuid",
    "rd.modules_load",
    "rd.neednet",
    "rd.route",
    "rd.systemd.mask",
    "rd.systemd.wants",
    "rd.udev.rule",
    "rd.zfcp",
    "rd.znet",
    "reserve_mem",
    "systemd.mask",
    "systemd.setenv",
    "systemd.wants",
    "team",
    "usbcore.quirks",
    "video",
    "vlan",
];

/// True if every occurrence of this argument counts (`console=`, `pci=`), false if the last one wins.
pub fn accumulates(name: &str) -> bool {
    ACCUMULATING.iter().any(|known| names_equal(known, name))
        // Every module's dynamic debug queries add up.
        || name.len() > 7 && name.ends_with(".dyndbg")
}

/// Compares names as the kernel does: `-` and `_` are the same character.
pub fn names_equal(a: &str, b: &str) -> bool {
    let fold = |byte: u8| if byte == b'-' { b'_' } else { byte };
    a.len() == b.len() && a.bytes().map(fold).eq(b.bytes().map(fold))
}

/// The kernel's `COMMAND_LINE_SIZE` for an architecture as `uname -m` names it, in bytes; the
/// terminating NUL takes one of them. `None` where it is not known. An s390 kernel can be built with
/// another limit (at least 896, which used to be the fixed value).
pub fn length_limit(machine: &str) -> Option<usize> {
    match machine {
        "x86_64" | "i386" | "i486" | "i586" | "i686" | "aarch64" | "ppc64" | "ppc64le" => {
            Some(2048)
        }
        "s390x" | "loongarch64" => Some(4096),
        "riscv64" | "armv7l" => Some(1024),
        _ => None,
    }
}
