//! Kernel modules: loaded, available for each kernel, and asked for at boot.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;

use super::fact::Fact;
use super::kernel::InstalledKernel;
use crate::sys::{EntryKind, Root, SysError};

/// Modules that carry GPUDirect RDMA.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Modules {
    /// Loaded now, names with underscores.
    pub loaded: Fact<BTreeSet<String>>,
    /// For each kernel release, the file that provides `nvidia-peermem`, as `modules.dep` has it.
    pub peermem: BTreeMap<String, Fact<String>>,
    /// Module names asked for at boot, with the file that asks (modules-load.d(5)).
    pub load_at_boot: Fact<BTreeMap<String, String>>,
    /// First line of `/proc/driver/nvidia/version`: says version and flavour (open or not).
    pub nvidia_driver: Fact<String>,
    /// Options of the running kernel's build that DMA-BUF depends on, `y`, `m` or absent.
    pub config: Fact<BTreeMap<String, String>>,
}

/// Module names are the same with `-` and `_`.
#[must_use]
pub fn fold(name: &str) -> String {
    name.replace('-', "_")
}

const OPTIONS: [&str; 6] = [
    "CONFIG_DMA_SHARED_BUFFER",
    "CONFIG_INFINIBAND_USER_MEM",
    "CONFIG_INFINIBAND_ON_DEMAND_PAGING",
    "CONFIG_PCI_P2PDMA",
    "CONFIG_DMABUF_MOVE_NOTIFY",
    "CONFIG_IOMMU_DEFAULT_PASSTHROUGH",
];

pub(super) fn modules(
    root: &Root,
    kernels: &[InstalledKernel],
    running: Option<&String>,
) -> Modules {
    let loaded = root.text_if_there("/proc/modules").map(|text| {
        text.map(|t| {
            t.lines()
                .filter_map(|l| l.split_whitespace().next())
                .map(str::to_owned)
                .collect()
        })
    });
    let driver = Fact::read(
        "/proc/driver/nvidia/version",
        root.text_if_there("/proc/driver/nvidia/version"),
    );
    Modules {
        loaded: Fact::read("/proc/modules", loaded),
        peermem: kernels
            .iter()
            .filter(|k| k.modules)
            .map(|k| (k.release.clone(), peermem(root, &k.release)))
            .collect(),
        load_at_boot: Fact::read("/etc/modules-load.d", load_at_boot(root).map(Some)),
        nvidia_driver: driver.and_then(|t| t.lines().next().map(str::to_owned)),
        config: config(root, running),
    }
}

fn peermem(root: &Root, release: &str) -> Fact<String> {
    let path = format!("/lib/modules/{release}/modules.dep");
    let found = root.text_if_there(&path).map(|text| {
        let text = text?;
        let mut files = text.lines().filter_map(|l| l.split(':').next());
        files
            .find(|f| f.rsplit('/').next().is_some_and(provides_peermem))
            .map(str::to_owned)
    });
    Fact::read(&path, found)
}

/// Debian renames the driver's modules: `nvidia-current-peermem.ko`.
fn provides_peermem(file: &str) -> bool {
    let name = file.split(".ko").next().unwrap_or(file);
    name.starts_with("nvidia") && name.ends_with("-peermem") || name == "nvidia_peermem"
}

fn load_at_boot(root: &Root) -> Result<BTreeMap<String, String>, SysError> {
    let mut found = BTreeMap::new();
    let mut seen = BTreeSet::new();
    // A file in /etc hides one of the same name in the others (modules-load.d(5)).
    for dir in [
        "/etc/modules-load.d",
        "/run/modules-load.d",
        "/usr/local/lib/modules-load.d",
        "/usr/lib/modules-load.d",
    ] {
        for entry in root.list(dir)? {
            if entry.kind == EntryKind::Dir
                || !entry.name.ends_with(".conf")
                || !seen.insert(entry.name.clone())
            {
                continue;
            }
            let path = format!("{dir}/{}", entry.name);
            let text = root.text_if_there(&path)?.unwrap_or_default();
            let names = text
                .lines()
                .map(str::trim)
                .filter(|l| !l.is_empty() && !l.starts_with(['#', ';']));
            for name in names {
                found.entry(fold(name)).or_insert_with(|| path.clone());
            }
        }
    }
    Ok(found)
}

fn config(root: &Root, running: Option<&String>) -> Fact<BTreeMap<String, String>> {
    let Some(release) = running else {
        return Fact::absent("/boot/config-*");
    };
    let path = format!("/boot/config-{release}");
    Fact::read(&path, root.text_if_there(&path)).and_then(|text| {
        let values = text.lines().filter_map(|l| l.split_once('='));
        Some(
            values
                .filter(|(k, _)| OPTIONS.contains(k))
                .map(|(k, v)| (k.to_owned(), v.to_owned()))
                .collect(),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peermem_under_each_name() {
        for name in [
            "nvidia-peermem.ko",
            "nvidia-peermem.ko.zst",
            "nvidia-current-open-peermem.ko.xz",
        ] {
            assert!(provides_peermem(name), "{name}");
        }
        for name in ["nvidia.ko", "nv_peer_mem.ko", "peermem-nvidia.ko"] {
            assert!(!provides_peermem(name), "{name}");
        }
    }
}
