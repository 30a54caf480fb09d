//! `/etc`, `/boot` and `/lib/modules` of a Debian 12 machine.

use super::grub_cfg::{CUSTOM, Menu};
use super::mkconfig;
use super::spec::{Cpu, NodeSpec};
use super::tree::{Tree, TreeError};

/// Writes the distribution's files.
pub(super) fn write(tree: &Tree, spec: &NodeSpec) -> Result<(), TreeError> {
    etc(tree, spec)?;
    grub_scripts(tree)?;
    for kernel in [&spec.kernel, &spec.old_kernel] {
        self::kernel(tree, spec, kernel)?;
        modules(tree, spec, kernel)?;
    }
    boot_loader(tree, spec)
}

fn etc(tree: &Tree, spec: &NodeSpec) -> Result<(), TreeError> {
    tree.file("usr/lib/os-release", OS_RELEASE)?;
    tree.link("etc/os-release", "../usr/lib/os-release")?;
    tree.file("etc/debian_version", "12.11\n")?;
    tree.file("etc/hostname", "sample-gx8\n")?;
    tree.file("etc/machine-id", "3f1d0c7e5b9a4d2c8e6f1a2b3c4d5e6f\n")?;
    tree.file("etc/fstab", super::procfs::fstab())?;
    tree.file(
        "etc/default/grub",
        format!(
            "{DEFAULT_GRUB}GRUB_CMDLINE_LINUX_DEFAULT=\"{}\"\nGRUB_CMDLINE_LINUX=\"{}\"\n",
            spec.cmdline_default, spec.cmdline,
        ),
    )?;
    tree.dir("etc/default/grub.d")?;
    tree.file(
        "etc/modules",
        "# Modules to load at boot time, one a line.\n",
    )?;
    tree.link("etc/modules-load.d/modules.conf", "../modules")?;
    tree.file("etc/modprobe.d/nvidia.conf", spec.drivers.modprobe())?;
    tree.dir("etc/gdr-agent/policy.d")?;
    if let Some(policy) = &spec.policy {
        tree.file("etc/gdr-agent/policy.toml", policy)?;
        tree.mode("etc/gdr-agent/policy.toml", 0o644)?;
    }
    tree.dir("var/lib/gdr-agent")?;
    tree.mode("var/lib/gdr-agent", 0o700)?;
    tree.dir("var/lib/dpkg")?;
    tree.dir("run")?;
    tree.dir("tmp")
}

/// Which scripts there are, and which of them may be executed, is what counts: [`mkconfig`] does their
/// work. 41_custom is the one that makes `custom.cfg` part of the menu, so it has its real content.
fn grub_scripts(tree: &Tree) -> Result<(), TreeError> {
    for name in [
        "00_header",
        "05_debian_theme",
        "10_linux",
        "20_linux_xen",
        "30_os-prober",
        "30_uefi-firmware",
    ] {
        tree.script(
            &format!("etc/grub.d/{name}"),
            "#!/bin/sh\n# a stand-in: see the sample node\n",
        )?;
    }
    tree.script("etc/grub.d/40_custom", "#!/bin/sh\nexec tail -n +3 $0\n")?;
    tree.script(
        "etc/grub.d/41_custom",
        &format!("#!/bin/sh\ncat <<EOF\n{}EOF\n", CUSTOM.replace('$', "\\$")),
    )
}

fn kernel(tree: &Tree, spec: &NodeSpec, version: &str) -> Result<(), TreeError> {
    tree.file(&format!("boot/vmlinuz-{version}"), image(version))?;
    tree.file(&format!("boot/initrd.img-{version}"), INITRD)?;
    tree.file(&format!("boot/config-{version}"), config(version, spec.cpu))
}

/// The header of a kernel image, as far as it says "Linux, this version" (Linux,
/// Documentation/arch/x86/boot.rst).
fn image(version: &str) -> Vec<u8> {
    let mut image = vec![0; 0x400];
    let mut put = |at: usize, bytes: &[u8]| {
        if let Some(slot) = image.get_mut(at..at + bytes.len()) {
            slot.copy_from_slice(bytes);
        }
    };
    put(0x1fe, &[0x55, 0xaa]);
    put(0x202, b"HdrS");
    put(0x206, &0x020f_u16.to_le_bytes());
    // where the version string is, less 0x200
    put(0x20e, &0x0100_u16.to_le_bytes());
    put(
        0x300,
        format!("{version} (builder@sample) #1 SMP PREEMPT_DYNAMIC\0").as_bytes(),
    );
    image
}

/// An archive with nothing but its end in it (Linux, Documentation/driver-api/early-userspace/buffer-format.rst).
const INITRD: &str = concat!(
    "070701",
    "00000000000000000000000000000000000000010000000000000000",
    "000000000000000000000000000000000000000b00000000",
    "TRAILER!!!\0\0\0\0",
);

fn config(version: &str, cpu: Cpu) -> String {
    let family = match cpu {
        Cpu::Intel => "CONFIG_GENERIC_CPU=y\n",
        Cpu::Amd => "CONFIG_GENERIC_CPU=y\nCONFIG_X86_AMD_PLATFORM_DEVICE=y\n",
    };
    format!(
        "#\n# Automatically generated file; DO NOT EDIT.\n# Linux/x86 {version} Kernel Configuration\n#\n{family}{CONFIG}"
    )
}

fn modules(tree: &Tree, spec: &NodeSpec, version: &str) -> Result<(), TreeError> {
    let dir = format!("usr/lib/modules/{version}");
    let mut dep = String::new();
    let mut order = String::new();
    for (path, needs) in MODULES {
        // what is inside them does not matter here
        tree.file(&format!("{dir}/{path}"), "\x7fELF")?;
        dep += &format!("{path}:");
        for need in *needs {
            dep += &format!(" {need}");
        }
        dep.push('\n');
        order += &format!("{path}\n");
    }
    dep += &spec.drivers.write(tree, &dir, version, &spec.driver)?;
    tree.file(&format!("{dir}/modules.dep"), dep)?;
    tree.file(&format!("{dir}/modules.order"), order)?;
    tree.file(&format!("{dir}/modules.builtin"), BUILTIN)?;
    tree.file(
        &format!("{dir}/modules.alias"),
        "# Aliases extracted from modules themselves.\n",
    )?;
    tree.file(
        &format!("{dir}/modules.softdep"),
        "# Soft dependencies extracted from modules themselves.\n",
    )
}

fn boot_loader(tree: &Tree, spec: &NodeSpec) -> Result<(), TreeError> {
    let menu = Menu {
        default: "0".into(),
        timeout: "5".into(),
        cmdline: spec.cmdline.clone(),
        cmdline_default: spec.cmdline_default.clone(),
        kernels: vec![spec.kernel.clone(), spec.old_kernel.clone()],
        scripts: mkconfig::scripts(tree)?,
    };
    tree.file("boot/grub/grub.cfg", menu.text())?;
    tree.mode("boot/grub/grub.cfg", 0o444)?;
    tree.file(
        "boot/grub/grubenv",
        format!("# GRUB Environment Block\n{}", "#".repeat(999)),
    )?;
    for name in [
        "ext2", "gzio", "linux", "loadenv", "normal", "part_gpt", "search", "test",
    ] {
        tree.file(&format!("boot/grub/x86_64-efi/{name}.mod"), "\x7fELF")?;
    }
    tree.file("boot/efi/EFI/debian/grubx64.efi", "MZ")?;
    tree.file(
        "boot/efi/EFI/debian/grub.cfg",
        format!(
            "search.fs_uuid {} root\nset prefix=($root)'/boot/grub'\nconfigfile $prefix/grub.cfg\n",
            super::spec::ROOT_UUID,
        ),
    )
}

const OS_RELEASE: &str = r#"PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"
NAME="Debian GNU/Linux"
VERSION_ID="12"
VERSION="12 (bookworm)"
VERSION_CODENAME=bookworm
ID=debian
"#;

const DEFAULT_GRUB: &str = r#"# If you change this file, run 'update-grub' afterwards to update
# /boot/grub/grub.cfg.

GRUB_DEFAULT=0
GRUB_TIMEOUT=5
GRUB_DISTRIBUTOR=`lsb_release -i -s 2> /dev/null || echo Debian`
"#;

const CONFIG: &str = "\
CONFIG_64BIT=y
CONFIG_X86_64=y
CONFIG_SMP=y
CONFIG_PCI=y
CONFIG_PCIEPORTBUS=y
CONFIG_PCIEAER=y
CONFIG_PCI_MMCONFIG=y
# CONFIG_PCI_P2PDMA is not set
CONFIG_IOMMU_API=y
CONFIG_IOMMU_SUPPORT=y
# CONFIG_IOMMU_DEFAULT_DMA_STRICT is not set
CONFIG_IOMMU_DEFAULT_DMA_LAZY=y
# CONFIG_IOMMU_DEFAULT_PASSTHROUGH is not set
CONFIG_AMD_IOMMU=y
CONFIG_DMAR_TABLE=y
CONFIG_INTEL_IOMMU=y
# CONFIG_INTEL_IOMMU_DEFAULT_ON is not set
CONFIG_INTEL_IOMMU_DEFAULT_ON_INTGPU_OFF=y
CONFIG_DMA_SHARED_BUFFER=y
# CONFIG_DMABUF_MOVE_NOTIFY is not set
CONFIG_INFINIBAND=m
CONFIG_INFINIBAND_USER_ACCESS=m
CONFIG_INFINIBAND_USER_MEM=y
CONFIG_INFINIBAND_ON_DEMAND_PAGING=y
CONFIG_MLX5_CORE=m
CONFIG_MLX5_INFINIBAND=m
CONFIG_MODULES=y
CONFIG_MODULE_SIG=y
# CONFIG_MODULE_SIG_FORCE is not set
CONFIG_SECURITY_LOCKDOWN_LSM=y
CONFIG_LOCK_DOWN_IN_EFI_SECURE_BOOT=y
CONFIG_CMDLINE_BOOL=n
CONFIG_KALLSYMS=y
";

const BUILTIN: &str = "\
kernel/drivers/pci/pcie/aer.ko
kernel/drivers/iommu/iommu.ko
kernel/drivers/iommu/intel/dmar.ko
kernel/drivers/dma-buf/dma-buf.ko
kernel/fs/efivarfs/efivarfs.ko
";

const MODULES: &[(&str, &[&str])] = &[
    (
        "kernel/drivers/net/ethernet/mellanox/mlx5/core/mlx5_core.ko",
        &[],
    ),
    (
        "kernel/drivers/infiniband/hw/mlx5/mlx5_ib.ko",
        &["kernel/drivers/net/ethernet/mellanox/mlx5/core/mlx5_core.ko"],
    ),
    ("kernel/drivers/net/ethernet/intel/ixgbe/ixgbe.ko", &[]),
    ("kernel/drivers/nvme/host/nvme-core.ko", &[]),
    (
        "kernel/drivers/nvme/host/nvme.ko",
        &["kernel/drivers/nvme/host/nvme-core.ko"],
    ),
    ("kernel/fs/ext4/ext4.ko", &[]),
];
