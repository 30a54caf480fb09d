//! What of `nvidia-smi -q` concerns GPUDirect RDMA, drivers 384 to 590.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::query::{self, Query};
use crate::pci::Bdf;
use crate::plain::{clean, shown};

/// The answer of `nvidia-smi -q`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Smi {
    /// The driver's version.
    pub driver: Option<String>,
    /// The CUDA version that the driver supports.
    pub cuda: Option<String>,
    /// GPUs that the driver counts.
    pub attached: Option<u64>,
    /// The GPUs, in its order.
    pub gpus: Vec<SmiGpu>,
}

/// One GPU. Values that it does not give (`N/A`) are null.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SmiGpu {
    /// Its address.
    pub bdf: Option<Bdf>,
    /// Such as `NVIDIA H100 80GB HBM3`.
    pub name: Option<String>,
    /// Persistence mode.
    pub persistence: Option<bool>,
    /// ECC.
    pub ecc: Option<bool>,
    /// ECC after the next reboot.
    pub ecc_pending: Option<bool>,
    /// Multi-instance mode.
    pub mig: Option<bool>,
    /// Memory, MiB.
    pub fb_mib: Option<u64>,
    /// The window into it, MiB.
    pub bar1_mib: Option<u64>,
    /// PCIe generation. It drops when the GPU is idle.
    pub generation: Link,
    /// PCIe lanes.
    pub width: Link,
    /// Where the GPU is on its way into the NVSwitch fabric; null on machines without.
    pub fabric_state: Option<String>,
    /// How that ended.
    pub fabric_status: Option<String>,
    /// Values in place of which stands that the GPU does not answer.
    pub sick: Vec<String>,
}

/// Of a link.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Link {
    /// The most that both ends can do.
    pub max: Option<u64>,
    /// Now.
    pub current: Option<u64>,
}

impl Smi {
    /// Reads the output, XML or text.
    ///
    /// # Errors
    /// It is neither; the message is the program's own, where it gave one instead.
    pub fn read(output: &[u8]) -> Result<Self, String> {
        let text = String::from_utf8_lossy(output);
        let start = text.trim_start_matches('\u{feff}').trim_start();
        let query = if start.starts_with("<?xml")
            || start.starts_with("<!DOCTYPE")
            || start.starts_with("<nvidia_smi_log")
        {
            query::xml(start)?
        } else {
            query::text(output)
        };
        let smi = Self::of(&query);
        if smi.gpus.is_empty() && smi.driver.is_none() {
            return Err(message(output));
        }
        Ok(smi)
    }

    fn of(query: &Query) -> Self {
        let machine = Values(&query.machine);
        Self {
            driver: machine.word(&["driver_version", "Driver Version"]),
            cuda: machine.word(&["cuda_version", "CUDA Version"]),
            attached: machine.number(&["attached_gpus", "Attached GPUs"]),
            gpus: query
                .gpus
                .iter()
                .map(|(id, values)| gpu(id, &Values(values)))
                .collect(),
        }
    }
}

fn gpu(id: &str, values: &Values<'_>) -> SmiGpu {
    SmiGpu {
        bdf: id.parse().ok(),
        name: values.word(&["product_name", "Product Name"]),
        persistence: values.on(&["persistence_mode", "Persistence Mode"]),
        ecc: values.on(&[
            "ecc_mode/current_ecc",
            "Ecc Mode/Current",
            "ECC Mode/Current",
        ]),
        ecc_pending: values.on(&[
            "ecc_mode/pending_ecc",
            "Ecc Mode/Pending",
            "ECC Mode/Pending",
        ]),
        mig: values.on(&["mig_mode/current_mig", "MIG Mode/Current"]),
        fb_mib: values.number(&["fb_memory_usage/total", "FB Memory Usage/Total"]),
        bar1_mib: values.number(&["bar1_memory_usage/total", "BAR1 Memory Usage/Total"]),
        generation: Link {
            max: values.number(&[
                "pci/pci_gpu_link_info/pcie_gen/max_link_gen",
                "PCI/GPU Link Info/PCIe Generation/Max",
            ]),
            current: values.number(&[
                "pci/pci_gpu_link_info/pcie_gen/current_link_gen",
                "PCI/GPU Link Info/PCIe Generation/Current",
            ]),
        },
        width: Link {
            max: values.number(&[
                "pci/pci_gpu_link_info/link_widths/max_link_width",
                "PCI/GPU Link Info/Link Width/Max",
            ]),
            current: values.number(&[
                "pci/pci_gpu_link_info/link_widths/current_link_width",
                "PCI/GPU Link Info/Link Width/Current",
            ]),
        },
        fabric_state: values.word(&["fabric/state", "Fabric/State"]),
        fabric_status: values.word(&["fabric/status", "Fabric/Status"]),
        sick: values.sick(),
    }
}

/// What NVML's errors look like in place of a value.
const SICK: [&str; 4] = ["GPU requires reset", "GPU is lost", "Unknown Error", "ERR!"];

struct Values<'v>(&'v HashMap<String, String>);

impl Values<'_> {
    fn raw(&self, paths: &[&str]) -> Option<&str> {
        paths
            .iter()
            .find_map(|path| self.0.get(*path))
            .map(String::as_str)
    }

    fn word(&self, paths: &[&str]) -> Option<String> {
        let word = self.raw(paths)?;
        let none =
            ["N/A", "[N/A]", "", "None"].contains(&word) || SICK.iter().any(|s| word.contains(s));
        (!none).then(|| word.to_owned())
    }

    /// `65536 MiB`, `16x`, `8`.
    fn number(&self, paths: &[&str]) -> Option<u64> {
        let word = self.raw(paths)?;
        let end = word
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(word.len());
        word.get(..end)?.parse().ok()
    }

    fn on(&self, paths: &[&str]) -> Option<bool> {
        match self.raw(paths)? {
            "Enabled" => Some(true),
            "Disabled" => Some(false),
            _ => None,
        }
    }

    fn sick(&self) -> Vec<String> {
        let mut sick: Vec<String> = self
            .0
            .iter()
            .filter(|(_, value)| SICK.iter().any(|s| value.contains(s)))
            .map(|(path, value)| format!("{path}: {value}"))
            .collect();
        sick.sort();
        sick.truncate(8);
        sick
    }
}

/// The first line that says something; shell prompts and paths before it do not.
fn message(output: &[u8]) -> String {
    let lines = output.split(|b| *b == b'\n').map(clean);
    let mut lines = lines.filter(|line| line.contains(' ') && !line.trim_start().starts_with('/'));
    match lines.next() {
        Some(line) => shown(&line),
        None => "it printed nothing".to_owned(),
    }
}
