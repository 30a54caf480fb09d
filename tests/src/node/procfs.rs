//! `/proc`, but for what changes at each boot: see [`super::kernel`].

use std::fmt::Write as _;

use super::drivers::{Flavour, Rdma};
use super::kmod::REGISTER;
use super::layout::functions;
use super::model::GPU;
use super::spec::{Cpu, ESP_UUID, NodeSpec};
use super::tree::{Tree, TreeError};

/// A line of `/proc/modules`.
pub(super) struct Module {
    pub(super) name: &'static str,
    size: u32,
    users: &'static [&'static str],
    /// Taint letters of a module that is not the distribution's own.
    taint: &'static str,
}

const fn module(name: &'static str, size: u32, users: &'static [&'static str]) -> Module {
    Module {
        name,
        size,
        users,
        taint: "",
    }
}

/// What is loaded on the node.
pub(super) const LOADED: &[Module] = &[
    Module {
        taint: "(OE)",
        ..module("nvidia_uvm", 2_146_304, &[])
    },
    Module {
        taint: "(OE)",
        ..module("nvidia", 11_554_816, &["nvidia_uvm"])
    },
    module("mlx5_ib", 458_752, &[]),
    module("ib_uverbs", 184_320, &["mlx5_ib"]),
    module("ib_core", 462_848, &["ib_uverbs", "mlx5_ib"]),
    module("mlx5_core", 2_002_944, &["mlx5_ib"]),
    module("ixgbe", 372_736, &[]),
    module("nvme", 57_344, &[]),
    module("nvme_core", 184_320, &["nvme"]),
    module("ext4", 983_040, &[]),
];

/// Writes `/proc`.
pub(super) fn write(tree: &Tree, spec: &NodeSpec) -> Result<(), TreeError> {
    tree.file("proc/cpuinfo", cpuinfo(spec))?;
    tree.file("proc/modules", modules())?;
    let peers = match spec.drivers.rdma {
        Rdma::InboxWithPeers | Rdma::Ofed => format!("0000000000000000 T {REGISTER}\t[ib_core]\n"),
        Rdma::Inbox | Rdma::None => String::new(),
    };
    tree.file("proc/kallsyms", format!("{SYMBOLS}{peers}"))?;
    tree.file("proc/self/mounts", MOUNTS)?;
    tree.link("proc/mounts", "self/mounts")?;
    for process in ["self", "1"] {
        tree.file(&format!("proc/{process}/mountinfo"), mountinfo())?;
    }
    tree.file("proc/sys/kernel/arch", "x86_64\n")?;
    let driver = &spec.driver;
    let module = match spec.drivers.flavour {
        Flavour::Open => "Open Kernel Module for x86_64",
        Flavour::Proprietary => "x86_64 Kernel Module",
    };
    tree.file(
        "proc/driver/nvidia/version",
        format!(
            "NVRM version: NVIDIA UNIX {module}  {driver}  Release Build  (builder@sample)  Wed Apr 23 09:12:47 UTC 2025\n\
             GCC version:  gcc version 12.2.0 (Debian 12.2.0-14+deb12u1) \n"
        ),
    )?;
    for function in functions(spec).iter().filter(|f| f.model.id == GPU.id) {
        tree.file(
            &format!("proc/driver/nvidia/gpus/{}/information", function.bdf),
            format!(
                "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 0\nBus Type: \t PCIe\nBus Location: \t {}\n",
                function.bdf
            ),
        )?;
    }
    Ok(())
}

/// Two sockets of four CPUs: as many as it takes to see that there are two.
fn cpuinfo(spec: &NodeSpec) -> String {
    let (vendor, family, model, name) = match spec.cpu {
        Cpu::Intel => ("GenuineIntel", 6, 143, "Intel(R) Xeon(R) Platinum 8480C"),
        Cpu::Amd => ("AuthenticAMD", 25, 17, "AMD EPYC 9654 96-Core Processor"),
    };
    let hypervisor = if spec.hypervisor { " hypervisor" } else { "" };
    let mut text = String::new();
    for cpu in 0..8 {
        let _ = write!(
            text,
            "processor\t: {cpu}\nvendor_id\t: {vendor}\ncpu family\t: {family}\nmodel\t\t: {model}\nmodel name\t: {name}\n\
             physical id\t: {}\nsiblings\t: 4\ncore id\t\t: {}\ncpu cores\t: 4\n\
             flags\t\t: fpu vme de pse tsc msr pae mce cx8 apic sep mtrr pge mca cmov pat clflush mmx fxsr sse sse2 ht syscall nx pdpe1gb rdtscp lm constant_tsc x2apic{hypervisor} lahf_lm\n\
             address sizes\t: 52 bits physical, 57 bits virtual\n\n",
            cpu / 4,
            cpu % 4,
        );
    }
    text
}

fn modules() -> String {
    let mut text = String::new();
    for Module {
        name,
        size,
        users,
        taint,
    } in LOADED
    {
        let mut by: String = users.iter().map(|user| format!("{user},")).collect();
        if by.is_empty() {
            by.push('-');
        }
        let count = users.len();
        let line = format!("{name} {size} {count} {by} Live 0x0000000000000000 {taint}");
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

/// Enough of the symbol table to see which way to GPU memory this kernel knows. The peer-memory interface
/// comes with OFED, and is in no kernel of Debian's.
const SYMBOLS: &str = "\
0000000000000000 T dma_buf_export
0000000000000000 T dma_buf_dynamic_attach
0000000000000000 T ib_register_client\t[ib_core]
0000000000000000 T ib_umem_dmabuf_get\t[ib_uverbs]
0000000000000000 t mlx5_ib_reg_user_mr_dmabuf\t[mlx5_ib]
";

const MOUNTS: &str = "\
sysfs /sys sysfs rw,nosuid,nodev,noexec,relatime 0 0
proc /proc proc rw,nosuid,nodev,noexec,relatime 0 0
udev /dev devtmpfs rw,nosuid,relatime,size=527934464k,nr_inodes=131983616,mode=755,inode64 0 0
tmpfs /run tmpfs rw,nosuid,nodev,noexec,relatime,size=105593864k,mode=755,inode64 0 0
/dev/nvme0n1p2 / ext4 rw,relatime,errors=remount-ro 0 0
securityfs /sys/kernel/security securityfs rw,nosuid,nodev,noexec,relatime 0 0
efivarfs /sys/firmware/efi/efivars efivarfs rw,nosuid,nodev,noexec,relatime 0 0
/dev/nvme0n1p1 /boot/efi vfat rw,relatime,fmask=0077,dmask=0077,codepage=437,iocharset=ascii,shortname=mixed,utf8,errors=remount-ro 0 0
";

/// The same mounts in the newer form: id, parent, device, root, mount point, options, `-`, type, source.
fn mountinfo() -> String {
    let mut text = String::new();
    let fields = MOUNTS
        .lines()
        .map(|line| line.split(' ').collect::<Vec<_>>());
    for (index, mount) in fields.enumerate() {
        let [source, point, kind, options, ..] = mount.as_slice() else {
            continue;
        };
        let device = match *source {
            "/dev/nvme0n1p1" => "259:1".into(),
            "/dev/nvme0n1p2" => "259:2".into(),
            _ => format!("0:{}", 20 + index),
        };
        let parent = if *point == "/" { 1 } else { 24 };
        let _ = writeln!(
            text,
            "{} {parent} {device} / {point} {options} shared:{} - {kind} {source} {options}",
            20 + index,
            index + 1,
        );
    }
    text
}

/// `/etc/fstab` of the same machine.
pub(super) fn fstab() -> String {
    format!(
        "# <file system> <mount point> <type> <options> <dump> <pass>\n\
         UUID={} / ext4 errors=remount-ro 0 1\n\
         UUID={ESP_UUID} /boot/efi vfat umask=0077 0 1\n",
        super::spec::ROOT_UUID,
    )
}
