//! What is: everything that was read, with where from. Nothing here writes or guesses.

mod boot;
mod fact;
pub mod gdr;
mod gpus;
pub mod host;
mod iommu;
mod kernel;
mod loader;
mod modules;
mod more;
mod mounts;
mod nccl_env;
mod os;
pub mod pci;
mod rdma_devices;
mod security;
mod shell;

use schemars::JsonSchema;
use serde::Serialize;

use crate::sys::Root;

pub use boot::{Boot, BootFiles, ENTRIES, EntryOrder, KERNEL_CMDLINE, menu_of, whole_menu};
pub use fact::Fact;
pub use gdr::Gdr;
pub use gpus::{SMI_LIMIT, gpus};
pub use iommu::Iommu;
pub use kernel::{InstalledKernel, RunningKernel, version};
pub use loader::{Loader, grub_dir};
pub use modules::{Modules, refcounts};
pub use more::More;
pub use mounts::Mount;
pub use nccl_env::{nccl_env, nccl_files, nccl_minor};
pub use os::{Arch, Os};
pub use rdma_devices::{RdmaDevice, RdmaPort, rdma_devices};
pub use security::Security;
pub use shell::Sh;

/// Everything that plans and checks are made from.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Facts {
    /// The root directory that was read.
    pub root: String,
    /// Whether that is the running system.
    pub live: bool,
    /// Whether an image is being built: what runs here is then not its own, whatever the root is.
    pub bake: bool,
    /// Whether it is booted, and no chroot.
    #[serde(skip)]
    pub booted: bool,
    /// Distribution.
    pub os: Fact<Os>,
    /// Architecture.
    pub arch: Fact<Arch>,
    /// The kernel that runs.
    pub running: RunningKernel,
    /// The kernels that could boot.
    pub kernels: Fact<Vec<InstalledKernel>>,
    /// IOMMU.
    pub iommu: Iommu,
    /// Kernel modules.
    pub modules: Modules,
    /// How NIC drivers reach GPU memory.
    pub gdr: Gdr,
    /// Boot loader.
    pub boot: Boot,
    /// Secure Boot and lockdown.
    pub security: Security,
    /// The hypervisor, if the machine is virtual.
    pub virtualisation: Fact<Option<String>>,
    /// The node-wide NCCL configuration.
    pub nccl_conf: Fact<String>,
    /// The same with root's file, line by line; running processes only where they were asked for.
    pub nccl_env: crate::nccl_env::NcclEnv,
}

impl Facts {
    /// Takes the root for an image that is being built, or not. In a chroot with `/proc` and `/sys` the kernel that runs is the
    /// builder's, and says nothing about the nodes. In a machine that boots the image while it is made it is the image's own, and
    /// proves its boot entry; the firmware is the builder's there, too.
    pub fn set_bake(&mut self, bake: bool) {
        self.bake = bake;
        if bake {
            if self.builders_runs() {
                let running = &mut self.running;
                for fact in [&mut running.release, &mut running.cmdline] {
                    *fact = Fact::absent(fact.from.clone());
                }
            }
            for fact in [&mut self.iommu.dmar_table, &mut self.iommu.ivrs_table] {
                *fact = Fact::absent(fact.from.clone());
            }
        }
    }

    /// Whether what runs here is the kernel of whoever builds the image.
    #[must_use]
    pub fn builders_runs(&self) -> bool {
        self.bake && !self.booted
    }

    /// Reads a root. What cannot be read is unknown; reading never fails as a whole.
    #[must_use]
    pub fn read(root: &Root) -> Self {
        let running = kernel::running(root);
        let kernels = kernel::installed(root);
        let list = kernels.value.clone().unwrap_or_default();
        let modules = modules::modules(root);
        let gdr = gdr::gdr(root, &list, &running, &modules);
        let os = os::os(root);
        let boot = boot::boot(root, &os);
        Self {
            root: root.path().to_string_lossy().into_owned(),
            live: root.is_live(),
            booted: root.is_booted(),
            bake: false,
            os,
            arch: os::arch(root),
            running,
            kernels,
            iommu: iommu::iommu(root),
            modules,
            gdr,
            boot,
            security: security::security(root),
            virtualisation: security::virtualisation(root),
            nccl_conf: Fact::read(
                "/etc/nccl.conf",
                root.read_if_there("/etc/nccl.conf")
                    .map(|b| b.map(|b| String::from_utf8_lossy(&b).into_owned())),
            ),
            nccl_env: nccl_files(root),
        }
    }
}
