//! The NVIDIA driver: version and flavour, of what is loaded and of what lies on the disk.

use std::io::{Read, Seek, SeekFrom};

use schemars::JsonSchema;
use serde::Serialize;

use super::super::fact::{Fact, text};
use super::peermem::read_module;
use crate::kmod::{Header, ModuleError, Packing, stem};
use crate::sys::Root;

/// Which of NVIDIA's two sets of kernel modules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Flavour {
    /// The open kernel modules, which export GPU memory as DMA-BUF.
    Open,
    /// The proprietary ones.
    Proprietary,
}

/// The driver that is loaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Driver {
    /// Such as `570.148.08`.
    pub version: String,
    /// Open or proprietary.
    pub flavour: Flavour,
}

/// The driver's main module for one kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DriverFile {
    /// The file.
    pub path: String,
    /// `MODULE_VERSION`, the driver's.
    pub version: Option<String>,
    /// Open or proprietary, by its licence, or by its name where it is packed.
    pub flavour: Option<Flavour>,
}

/// First line of `/proc/driver/nvidia/version`: `NVRM version: NVIDIA UNIX Open Kernel Module for x86_64
/// 570.148.08  Release Build ...` or `NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue ...`.
pub(super) fn loaded(root: &Root) -> Fact<Driver> {
    text(root, "/proc/driver/nvidia/version").and_then(|text| {
        let line = text.lines().next()?.to_owned();
        let version = line
            .split_whitespace()
            .find(|word| is_version(word))?
            .to_owned();
        let flavour = if line.contains("Open Kernel Module") {
            Flavour::Open
        } else {
            Flavour::Proprietary
        };
        Some(Driver { version, flavour })
    })
}

fn is_version(word: &str) -> bool {
    word.contains('.')
        && word
            .split('.')
            .all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
}

/// A driver version as numbers: `515.43.04` is `[515, 43, 4]`.
pub(crate) fn numbers(version: &str) -> Vec<u32> {
    version
        .split('.')
        .map_while(|part| part.parse().ok())
        .collect()
}

/// The driver's main module. It measures tens of megabytes, so as little as possible is read of it.
pub(super) fn file(root: &Root, path: &str) -> Fact<DriverFile> {
    let named = flavour_by_name(path);
    let shown = |header: &Header| DriverFile {
        path: path.to_owned(),
        version: header.version.clone(),
        flavour: header.license.as_deref().map(flavour_by_license).or(named),
    };
    let mut reader = match root.reader(path) {
        Ok(reader) => reader,
        Err(e) => return Fact::unknown(path, e.to_string()),
    };
    let mut magic = [0; 6];
    let start = reader
        .read_exact(&mut magic)
        .and_then(|()| reader.seek(SeekFrom::Start(0)));
    if let Err(e) = start {
        return Fact::unknown(path, format!("cannot read {path}: {e}"));
    }
    let header: Result<Header, String> = match Packing::of(&magic) {
        Packing::None => {
            let cache = object::read::ReadCache::new(reader);
            Header::read(&cache).map_err(|e: ModuleError| e.to_string())
        }
        // Unpacking takes a second: only where the name leaves it open.
        _ if named.is_some() => {
            return Fact::known(
                DriverFile {
                    path: path.to_owned(),
                    version: None,
                    flavour: named,
                },
                path,
            );
        }
        _ => read_module(root, path).map(|(_, module)| module.header),
    };
    match header {
        Ok(header) => Fact::known(shown(&header), path),
        Err(why) => Fact::unknown(path, why),
    }
}

/// `MODULE_LICENSE` of nvidia.ko is `Dual MIT/GPL` in the open modules and `NVIDIA` in the others.
fn flavour_by_license(license: &str) -> Flavour {
    if license.contains("GPL") {
        Flavour::Open
    } else {
        Flavour::Proprietary
    }
}

/// Ubuntu: `kernel/nvidia-570srv-open/nvidia.ko`. Debian: `nvidia-current-open.ko`.
fn flavour_by_name(path: &str) -> Option<Flavour> {
    let parent = path.rsplit('/').nth(1).unwrap_or_default();
    let ubuntu = parent
        .strip_prefix("nvidia-")
        .is_some_and(|rest| rest.bytes().next().is_some_and(|b| b.is_ascii_digit()));
    let stem = stem(path)?;
    let debian = stem.starts_with("nvidia_current") || stem.starts_with("nvidia_tesla");
    if ubuntu && parent.ends_with("-open") || debian && stem.ends_with("_open") {
        Some(Flavour::Open)
    } else if ubuntu || debian {
        Some(Flavour::Proprietary)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flavours_by_name() {
        for (path, expected) in [
            (
                "/lib/modules/6.8.0-45-generic/kernel/nvidia-570srv-open/nvidia.ko.zst",
                Some(Flavour::Open),
            ),
            (
                "/lib/modules/6.8.0-45-generic/kernel/nvidia-570srv/nvidia.ko.zst",
                Some(Flavour::Proprietary),
            ),
            (
                "/lib/modules/6.12/updates/dkms/nvidia-current-open.ko.xz",
                Some(Flavour::Open),
            ),
            (
                "/lib/modules/6.12/updates/dkms/nvidia-current.ko.xz",
                Some(Flavour::Proprietary),
            ),
            ("/lib/modules/5.14.0-570.el9/extra/nvidia.ko.xz", None),
            (
                "/lib/modules/6.12/updates/dkms/nvidia-open/nvidia.ko.xz",
                None,
            ),
        ] {
            assert_eq!(flavour_by_name(path), expected, "{path}");
        }
    }

    #[test]
    fn versions_are_numbers_with_dots() {
        assert!(is_version("570.148.08") && is_version("580.95"));
        assert!(!is_version("x86_64") && !is_version("570.") && !is_version("."));
        assert_eq!(numbers("515.43.04"), [515, 43, 4]);
        assert_eq!(numbers("x"), [0_u32; 0]);
    }
}
