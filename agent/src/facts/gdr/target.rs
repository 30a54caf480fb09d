//! One kernel that can boot: its configuration, and the modules that it would load.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::super::fact::Fact;
use super::PEERMEM;
use super::driver::{self, DriverFile};
use super::peermem::{self, PeermemFile};
use super::rdma::{self, RdmaCore};
use crate::kmod::{Config, Index, Lookup, Outcome, fold, stem, unpack};
use crate::sys::{EntryKind, Root, SysError};

/// A kernel, with what it would load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Target {
    /// `uname -r` of it.
    pub release: String,
    /// Whether its image is installed, rather than that it only runs.
    pub installed: bool,
    /// Options of its build that matter here, `y`, `m` or absent.
    pub config: Fact<BTreeMap<String, String>>,
    /// What `modprobe nvidia-peermem` comes to.
    pub lookup: Fact<Lookup>,
    /// The driver's main module.
    pub driver: Fact<DriverFile>,
    /// The module itself.
    pub peermem: Fact<PeermemFile>,
    /// The RDMA core.
    pub rdma: Fact<RdmaCore>,
}

const OPTIONS: [&str; 8] = [
    "CONFIG_DMA_SHARED_BUFFER",
    "CONFIG_DMABUF_MOVE_NOTIFY",
    "CONFIG_INFINIBAND_ON_DEMAND_PAGING",
    "CONFIG_INFINIBAND_USER_MEM",
    "CONFIG_IOMMU_DEFAULT_PASSTHROUGH",
    "CONFIG_MODULE_SIG_FORCE",
    "CONFIG_MODVERSIONS",
    "CONFIG_PCI_P2PDMA",
];

/// A configuration that is larger unpacked is none: those of distributions measure 300 KiB.
const CONFIG_LIMIT: u64 = 4 << 20;

/// Reads kernels of one root, with the configuration that is the same for all of them.
pub(super) struct Reader<'r> {
    root: &'r Root,
    running: Option<&'r String>,
    modprobe: Result<Config, SysError>,
}

impl<'r> Reader<'r> {
    pub(super) fn new(root: &'r Root, running: Option<&'r String>, cmdline: Option<&str>) -> Self {
        let mut modprobe = modprobe(root);
        if let (Ok(config), Some(line)) = (&mut modprobe, cmdline) {
            config.add_cmdline(line);
        }
        Self {
            root,
            running,
            modprobe,
        }
    }

    pub(super) fn target(&self, release: &str, installed: bool) -> Target {
        let runs = self.running.is_some_and(|running| running == release);
        let config = config(self.root, release, runs);
        let dir = format!("/lib/modules/{release}");
        let dep = format!("{dir}/modules.dep");
        let modprobe = self.modprobe.as_ref().map_err(ToString::to_string);
        let index = index(self.root, &dir).map_err(|e| e.to_string());
        let (modprobe, mut index) = match (modprobe, index) {
            (Ok(modprobe), Ok(Some(index))) => (modprobe, index),
            (Err(why), _) | (_, Err(why)) => {
                return Target {
                    release: release.to_owned(),
                    installed,
                    config,
                    lookup: Fact::unknown(&dep, &why),
                    driver: Fact::unknown(&dep, &why),
                    peermem: Fact::unknown(&dep, &why),
                    rdma: Fact::unknown(&dep, &why),
                };
            }
            (Ok(_), Ok(None)) => {
                return Target {
                    release: release.to_owned(),
                    installed,
                    config,
                    lookup: Fact::absent(&dep),
                    driver: Fact::absent(&dep),
                    peermem: Fact::absent(&dep),
                    rdma: Fact::absent(&dep),
                };
            }
        };
        let (rdma, core) = rdma::core(self.root, release, modprobe, &index, runs);
        let mut lookup = modprobe.lookup(PEERMEM, &index);
        if matches!(lookup.outcome, Outcome::Missing(_)) {
            // The largest of these files, and asked last: only read where it matters.
            let alias = text(self.root, &dir, "modules.alias");
            index.alias = alias.ok().flatten().unwrap_or_default();
            lookup = modprobe.lookup(PEERMEM, &index);
        }
        let peermem = match &lookup.outcome {
            Outcome::File(file) => peermem::file(self.root, &absolute(&dir, file), core.as_ref()),
            _ => Fact::absent(&dep),
        };
        let driver = match modprobe.lookup("nvidia", &index).outcome {
            Outcome::File(file) => driver::file(self.root, &absolute(&dir, &file)),
            Outcome::Opaque(how) => {
                Fact::unknown(&dep, format!("modprobe runs `{how}` for nvidia"))
            }
            _ => Fact::absent(&dep),
        };
        Target {
            release: release.to_owned(),
            installed,
            config,
            lookup: Fact::known(lookup, dep),
            driver,
            peermem,
            rdma,
        }
    }

    /// The module's file for a release of which there is no kernel.
    pub(super) fn stray(&self, release: &str) -> Option<String> {
        let dir = format!("/lib/modules/{release}");
        let index = index(self.root, &dir).ok()??;
        let file = index
            .files()
            .find(|file| stem(file).is_some_and(|stem| is_peermem(&stem)))?;
        Some(absolute(&dir, file))
    }
}

/// Debian renames the driver's modules: `nvidia-current-peermem.ko`.
fn is_peermem(stem: &str) -> bool {
    stem == fold(PEERMEM) || stem.starts_with("nvidia_") && stem.ends_with("_peermem")
}

/// `modules.dep` has paths from its own directory, and absolute ones for what is elsewhere.
pub(super) fn absolute(dir: &str, file: &str) -> String {
    if file.starts_with('/') {
        file.to_owned()
    } else {
        format!("{dir}/{file}")
    }
}

fn index(root: &Root, dir: &str) -> Result<Option<Index>, SysError> {
    let Some(dep) = text(root, dir, "modules.dep")? else {
        return Ok(None);
    };
    Ok(Some(Index {
        dep,
        alias: String::new(),
        builtin: text(root, dir, "modules.builtin")?.unwrap_or_default(),
    }))
}

fn text(root: &Root, dir: &str, name: &str) -> Result<Option<String>, SysError> {
    let bytes = root.read_if_there(&format!("{dir}/{name}"))?;
    // Without a copy: they measure megabytes.
    let lossy = |e: std::string::FromUtf8Error| String::from_utf8_lossy(e.as_bytes()).into_owned();
    Ok(bytes.map(|bytes| String::from_utf8(bytes).unwrap_or_else(lossy)))
}

/// modprobe.d(5): a file hides those of the same name in later directories, and all that are left are read
/// in the order of their names.
fn modprobe(root: &Root) -> Result<Config, SysError> {
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    for dir in [
        "/etc/modprobe.d",
        "/run/modprobe.d",
        "/usr/local/lib/modprobe.d",
        "/usr/lib/modprobe.d",
        "/lib/modprobe.d",
    ] {
        for entry in root.list(dir)? {
            if entry.kind != EntryKind::Dir && entry.name.ends_with(".conf") {
                let path = format!("{dir}/{}", entry.name);
                files.entry(entry.name).or_insert(path);
            }
        }
    }
    let mut config = Config::default();
    for path in files.values() {
        if let Some(text) = root.text_if_there(path)? {
            config.add(path, &text);
        }
    }
    Ok(config)
}

/// The build's configuration: where distributions put it, or in the running kernel itself.
fn config(root: &Root, release: &str, runs: bool) -> Fact<BTreeMap<String, String>> {
    let boot = format!("/boot/config-{release}");
    let mut paths = vec![boot.clone(), format!("/lib/modules/{release}/config")];
    if runs {
        paths.push("/proc/config.gz".to_owned());
    }
    for path in paths {
        let text = match root.read_if_there(&path) {
            Ok(None) => continue,
            Err(e) => return Fact::unknown(path, e.to_string()),
            Ok(Some(bytes)) => match unpack(bytes, CONFIG_LIMIT) {
                Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
                Err(e) => return Fact::unknown(path, e.to_string()),
            },
        };
        let values = text.lines().filter_map(|line| line.split_once('='));
        let values = values
            .filter(|(name, _)| OPTIONS.contains(name))
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        return Fact::known(values.collect(), path);
    }
    Fact::absent(boot)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peermem_under_each_name() {
        for name in ["nvidia_peermem", "nvidia_current_open_peermem"] {
            assert!(is_peermem(name), "{name}");
        }
        for name in ["nvidia", "nv_peer_mem", "peermem_nvidia"] {
            assert!(!is_peermem(name), "{name}");
        }
    }
}
