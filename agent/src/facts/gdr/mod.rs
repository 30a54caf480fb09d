//! What decides how NIC drivers reach GPU memory, read from files: the driver, the RDMA stack, and for each
//! kernel that can boot the module that would be loaded.

mod driver;
mod in_use;
mod origin;
mod peermem;
mod rdma;
mod target;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::fact::Fact;
use super::kernel::{InstalledKernel, RunningKernel};
use super::modules::Modules;
use crate::sys::Root;

pub(crate) use driver::numbers;
pub use driver::{Driver, DriverFile, Flavour};
pub use in_use::{Attachment, InUse, PeerClient};
pub use origin::{DkmsBuild, Origin};
pub use peermem::{Difference, PeermemFile};
pub use rdma::{RdmaCore, Stack};
pub use target::Target;

/// The module that carries peer memory, as modprobe knows it.
pub const PEERMEM: &str = "nvidia-peermem";

/// The function that the RDMA core has if it has the peer-memory interface.
pub const REGISTER: &str = "ib_register_peer_memory_client";

/// Everything about GPU memory and NICs, but for the PCI functions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Gdr {
    /// The NVIDIA driver that is loaded.
    pub driver: Fact<Driver>,
    /// Who installed the driver.
    pub origin: Fact<Origin>,
    /// What DKMS has built of it.
    pub dkms: Fact<Vec<DkmsBuild>>,
    /// The kernels that can boot, or all that have modules where no kernel image is found.
    pub targets: Vec<Target>,
    /// Modules for releases of which there is no kernel: release and file.
    pub strays: BTreeMap<String, String>,
    /// The version in the name of the host's libibverbs, such as `1.14.39.0`: the third number is
    /// rdma-core's.
    pub libibverbs: Fact<String>,
    /// Whether the running kernel takes signed modules only, whatever lockdown says.
    pub signatures_enforced: Fact<bool>,
    /// What is in use now.
    pub in_use: InUse,
}

pub(super) fn gdr(
    root: &Root,
    kernels: &[InstalledKernel],
    running: &RunningKernel,
    modules: &Modules,
) -> Gdr {
    let cmdline = running.cmdline.get().map(String::as_str);
    let reader = target::Reader::new(root, running.release.get(), cmdline);
    let has_modules = || kernels.iter().filter(|kernel| kernel.modules);
    let bootable: Vec<&InstalledKernel> = has_modules()
        .filter(|kernel| has_image(root, kernel))
        .collect();
    let (targets, strays): (Vec<&InstalledKernel>, Vec<&InstalledKernel>) = if bootable.is_empty() {
        (has_modules().collect(), Vec::new())
    } else {
        has_modules().partition(|kernel| bootable.contains(kernel))
    };
    let mut targets: Vec<Target> = targets
        .iter()
        .map(|kernel| reader.target(&kernel.release, true))
        .collect();
    // The kernel that runs may have been removed from the disk. In an image it is that of the machine
    // that builds it.
    if let Some(release) = running.release.get()
        && (root.is_of_running() || targets.is_empty())
        && !targets.iter().any(|target| target.release == *release)
    {
        targets.push(reader.target(release, false));
    }
    let origin = origin::origin(root, &targets);
    Gdr {
        driver: driver::loaded(root),
        origin,
        dkms: origin::dkms(root),
        strays: strays
            .iter()
            .filter_map(|kernel| Some((kernel.release.clone(), reader.stray(&kernel.release)?)))
            .collect(),
        targets,
        libibverbs: rdma::libibverbs(root),
        signatures_enforced: signatures_enforced(root),
        in_use: in_use::in_use(root, in_use::asked(modules, cmdline)),
    }
}

/// Fedora keeps the kernel beside its modules, and copies it to /boot when it is installed.
fn has_image(root: &Root, kernel: &InstalledKernel) -> bool {
    kernel.image.is_some()
        || matches!(
            root.stat(&format!("/lib/modules/{}/vmlinuz", kernel.release)),
            Ok(Some(_))
        )
}

fn signatures_enforced(root: &Root) -> Fact<bool> {
    let path = "/sys/module/module/parameters/sig_enforce";
    super::fact::text(root, path).and_then(|text| match text.as_str() {
        "Y" => Some(true),
        "N" => Some(false),
        _ => None,
    })
}
