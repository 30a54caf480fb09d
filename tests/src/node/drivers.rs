//! `/lib/modules`: what of a kernel's modules matters to GPUDirect RDMA, in every state that nodes are found in.

use super::kmod::{Kmod, OPTIONS, Packing, REGISTER, UNREGISTER};
use super::tree::{Tree, TreeError};

/// Which of NVIDIA's two sets of kernel modules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flavour {
    /// Exports GPU memory as DMA-BUF.
    Open,
    /// Does not.
    Proprietary,
}

/// Where the RDMA core is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rdma {
    /// The kernel's own, without the peer-memory interface: Debian, Red Hat, SUSE.
    Inbox,
    /// The kernel's own, with it: Ubuntu.
    InboxWithPeers,
    /// Installed over the kernel's own, with it.
    Ofed,
    /// There is none.
    None,
}

/// In which state nvidia-peermem is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peermem {
    /// Built against the RDMA core that is there.
    Good,
    /// Built where no interface was found: it registers nowhere.
    Stub,
    /// Built against another version of the interface.
    OtherInterface,
    /// Built against another build of the same release.
    OtherBuild,
    /// Built for another release.
    OtherKernel,
    /// Built for a kernel with other options, without versions of symbols.
    OtherOptions,
    /// Of another driver version than the driver.
    OtherDriver,
    /// No module.
    None,
}

/// The modules of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drivers {
    /// The NVIDIA driver.
    pub flavour: Flavour,
    /// The RDMA core.
    pub rdma: Rdma,
    /// nvidia-peermem.
    pub peermem: Peermem,
    /// How modules are packed.
    pub packing: Packing,
    /// Who signed the NVIDIA modules; nobody signs what DKMS builds.
    pub signer: Option<String>,
    /// Whether the driver's modules have Debian's names.
    pub debian_names: bool,
}

impl Default for Drivers {
    /// Debian 12 with the open driver from DKMS: a stub, which the open driver does not need.
    fn default() -> Self {
        Drivers {
            flavour: Flavour::Open,
            rdma: Rdma::Inbox,
            peermem: Peermem::Stub,
            packing: Packing::None,
            signer: None,
            debian_names: true,
        }
    }
}

/// The version of the interface that the RDMA core has.
const INTERFACE: u32 = 0x1d0c_5e5a;
/// Another one.
const OTHER_INTERFACE: u32 = 0x9b2f_0e11;
/// The version of a structure that every module depends on.
const LAYOUT: u32 = 0x9060_323f;
/// The same in another build.
const OTHER_LAYOUT: u32 = 0x2a7c_11d4;

/// Who signs the kernel's own modules.
pub const KERNEL_SIGNER: &str = "Debian Secure Boot CA";

impl Drivers {
    /// Writes the modules, and returns the lines of `modules.dep` for them.
    pub(super) fn write(
        &self,
        tree: &Tree,
        dir: &str,
        release: &str,
        version: &str,
    ) -> Result<String, TreeError> {
        let mut dep = String::new();
        let mut put = |path: String, kmod: &Kmod| {
            let path = format!("{path}{}", self.packing.suffix());
            let bytes = kmod.bytes().map_err(std::io::Error::other);
            let bytes = bytes.and_then(|bytes| self.packing.pack(&bytes));
            let bytes = bytes.map_err(|source| TreeError {
                what: "building",
                path: tree.at(&format!("{dir}/{path}")),
                source,
            })?;
            dep += &format!("{path}:\n");
            tree.file(&format!("{dir}/{path}"), bytes)
        };
        let core = match self.rdma {
            Rdma::Inbox | Rdma::InboxWithPeers => Some("kernel/drivers/infiniband/core"),
            Rdma::Ofed => Some("updates/dkms"),
            Rdma::None => None,
        };
        if let Some(place) = core {
            put(format!("{place}/ib_core.ko"), &self.core(release))?;
            put(format!("{place}/ib_uverbs.ko"), &self.uverbs(release))?;
        }
        let names = self.names();
        let mut main = Kmod::new("nvidia", &vermagic(release));
        main.info("version", version)
            .info("license", self.license())
            .need("module_layout", LAYOUT)
            .export("nvidia_p2p_get_pages", 0x0de0_6c5b);
        main.signer.clone_from(&self.signer);
        put(format!("updates/dkms/{}.ko", names.0), &main)?;
        if let Some(kmod) = self.peermem(release, version) {
            put(format!("updates/dkms/{}.ko", names.1), &kmod)?;
        }
        Ok(dep)
    }

    /// File names of the driver and of nvidia-peermem.
    pub(super) fn names(&self) -> (&'static str, &'static str) {
        match (self.debian_names, self.flavour) {
            (false, _) => ("nvidia", "nvidia-peermem"),
            (true, Flavour::Open) => ("nvidia-current-open", "nvidia-current-open-peermem"),
            (true, Flavour::Proprietary) => ("nvidia-current", "nvidia-current-peermem"),
        }
    }

    fn license(&self) -> &'static str {
        match self.flavour {
            Flavour::Open => "Dual MIT/GPL",
            Flavour::Proprietary => "NVIDIA",
        }
    }

    fn core(&self, release: &str) -> Kmod {
        let mut core = Kmod::new("ib_core", &vermagic(release));
        core.info("license", "Dual BSD/GPL")
            .info("srcversion", "A41B0D0C0C6D5D5F7E0B7E1")
            .need("module_layout", LAYOUT)
            .need("_printk", 0x9299_7ed8)
            .export("ib_register_client", 0xe2ff_cd05);
        if matches!(self.rdma, Rdma::InboxWithPeers | Rdma::Ofed) {
            core.export(REGISTER, INTERFACE)
                .export(UNREGISTER, INTERFACE ^ 1);
        }
        core.signer = Some(KERNEL_SIGNER.to_owned());
        core
    }

    fn uverbs(&self, release: &str) -> Kmod {
        let mut uverbs = Kmod::new("ib_uverbs", &vermagic(release));
        uverbs
            .need("module_layout", LAYOUT)
            .need("ib_register_client", 0xe2ff_cd05)
            .export("ib_umem_dmabuf_get", 0x51c3_9f27);
        uverbs
    }

    fn peermem(&self, release: &str, version: &str) -> Option<Kmod> {
        let other_release = "6.1.0-33-amd64";
        let magic = match self.peermem {
            Peermem::None => return None,
            Peermem::OtherKernel => vermagic(other_release),
            Peermem::OtherOptions => format!("{release} SMP mod_unload "),
            _ => vermagic(release),
        };
        let version = match self.peermem {
            Peermem::OtherDriver => "535.261.03",
            _ => version,
        };
        let layout = match self.peermem {
            Peermem::OtherBuild | Peermem::OtherKernel => OTHER_LAYOUT,
            _ => LAYOUT,
        };
        let interface = match self.peermem {
            Peermem::OtherInterface => OTHER_INTERFACE,
            _ => INTERFACE,
        };
        let mut kmod = Kmod::new("nvidia-peermem", &magic);
        kmod.info("version", version)
            .info("license", "Dual BSD/GPL")
            .info("description", "NVIDIA GPU memory plug-in")
            .need("module_layout", layout)
            .need("_printk", 0x9299_7ed8);
        if self.peermem != Peermem::Stub {
            kmod.need(REGISTER, interface)
                .need(UNREGISTER, interface ^ 1)
                .need("nvidia_p2p_get_pages", 0x0de0_6c5b);
        }
        if self.peermem == Peermem::OtherOptions {
            kmod.versions.clear();
        }
        kmod.signer.clone_from(&self.signer);
        Some(kmod)
    }

    /// modprobe.d: the names that Debian's packages give the driver's modules are led back to those of
    /// upstream.
    pub(super) fn modprobe(&self) -> String {
        let options = "options nvidia NVreg_OpenRmEnableUnsupportedGpus=1\n";
        if !self.debian_names {
            return options.to_owned();
        }
        let (main, peermem) = self.names();
        format!(
            "{options}install nvidia modprobe -i {main} $CMDLINE_OPTS\n\
             install nvidia-peermem modprobe nvidia ; modprobe -i {peermem} $CMDLINE_OPTS\n"
        )
    }
}

fn vermagic(release: &str) -> String {
    format!("{release} {OPTIONS}")
}
