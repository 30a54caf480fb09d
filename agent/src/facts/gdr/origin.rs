//! Who installed the driver, as far as files tell.

use schemars::JsonSchema;
use serde::Serialize;

use super::super::fact::Fact;
use super::Target;
use crate::kmod::stem;
use crate::sys::{EntryKind, Root, SysError};

/// Where the driver is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// A package of the distribution.
    Distribution,
    /// A package of NVIDIA's own repository.
    NvidiaRepository,
    /// NVIDIA's installer (`.run`).
    Runfile,
    /// A container that brings the driver along, as the GPU operator's does.
    Container,
}

/// What DKMS keeps of one version of the driver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DkmsBuild {
    /// Its name for DKMS, such as `nvidia-current-open`.
    pub name: String,
    /// The driver's version.
    pub version: String,
    /// The kernels that it was built for.
    pub kernels: Vec<String>,
}

pub(super) fn origin(root: &Root, targets: &[Target]) -> Fact<Origin> {
    match find(root, targets) {
        Ok(Some((origin, from))) => Fact::known(origin, from),
        Ok(None) => Fact::absent("/lib/modules, package sources, /usr/bin/nvidia-uninstall"),
        Err(e) => Fact::unknown("/usr/bin/nvidia-uninstall", e.to_string()),
    }
}

fn find(root: &Root, targets: &[Target]) -> Result<Option<(Origin, String)>, SysError> {
    // Only the installer leaves this program behind.
    let uninstall = "/usr/bin/nvidia-uninstall";
    if root.stat(uninstall)?.is_some() {
        return Ok(Some((Origin::Runfile, uninstall.to_owned())));
    }
    let files = targets.iter().filter_map(|target| target.driver.get());
    let paths: Vec<&str> = files.map(|file| file.path.as_str()).collect();
    // The mount point of the driver container's own root.
    let container = "/run/nvidia/driver";
    if paths.is_empty() {
        let there = !root.list(container)?.is_empty();
        return Ok(there.then(|| (Origin::Container, container.to_owned())));
    }
    if let Some(path) = paths.iter().find(|path| is_distribution(path)) {
        return Ok(Some((Origin::Distribution, (*path).to_owned())));
    }
    let source = nvidia_source(root)?;
    Ok(source.map(|path| (Origin::NvidiaRepository, path)))
}

/// Ubuntu's prebuilt modules have a directory of their own, Debian's have another name.
fn is_distribution(path: &str) -> bool {
    let debian = stem(path).is_some_and(|stem| {
        ["nvidia_current", "nvidia_tesla", "nvidia_legacy"]
            .iter()
            .any(|name| stem.starts_with(name))
    });
    debian || path.contains("/kernel/nvidia-")
}

/// The file that makes NVIDIA's repository one of the node's package sources.
fn nvidia_source(root: &Root) -> Result<Option<String>, SysError> {
    for dir in [
        "/etc/apt/sources.list.d",
        "/etc/yum.repos.d",
        "/etc/zypp/repos.d",
    ] {
        for entry in root.list(dir)? {
            let is_source = [".list", ".sources", ".repo"]
                .iter()
                .any(|end| entry.name.ends_with(end));
            if entry.kind == EntryKind::Dir || !is_source {
                continue;
            }
            let path = format!("{dir}/{}", entry.name);
            let text = root.text_if_there(&path)?.unwrap_or_default();
            if text.contains("developer.download.nvidia.com/compute/cuda") {
                return Ok(Some(path));
            }
        }
    }
    Ok(None)
}

/// `/var/lib/dkms/NAME/VERSION/KERNEL/ARCH`
pub(super) fn dkms(root: &Root) -> Fact<Vec<DkmsBuild>> {
    const DIR: &str = "/var/lib/dkms";
    match builds(root, DIR) {
        Ok(builds) if builds.is_empty() => Fact::absent(DIR),
        Ok(builds) => Fact::known(builds, DIR),
        Err(e) => Fact::unknown(DIR, e.to_string()),
    }
}

fn builds(root: &Root, dir: &str) -> Result<Vec<DkmsBuild>, SysError> {
    let dirs = |path: &str| {
        let entries = root.list(path)?;
        let dirs = entries.into_iter().filter(|e| e.kind == EntryKind::Dir);
        Ok::<_, SysError>(dirs.map(|entry| entry.name).collect::<Vec<_>>())
    };
    let mut builds = Vec::new();
    for name in dirs(dir)? {
        if !name.starts_with("nvidia") {
            continue;
        }
        for version in dirs(&format!("{dir}/{name}"))? {
            let kernels = dirs(&format!("{dir}/{name}/{version}"))?;
            // `build` and `source` are not kernels.
            let kernels = kernels
                .into_iter()
                .filter(|name| name.bytes().next().is_some_and(|b| b.is_ascii_digit()))
                .collect();
            builds.push(DkmsBuild {
                name: name.clone(),
                version,
                kernels,
            });
        }
    }
    Ok(builds)
}
