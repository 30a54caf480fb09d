//! `nvidia-smi topo -m` (and `-mp`): the matrix, and how it differs from what PCI itself shows.
//!
//! All versions print a head of names up to `CPU Affinity`, a row for each name, and since 525 a legend that says which NIC is which RDMA
//! device; before that, columns have the devices' names. Nodes before 2018 say SOC for SYS.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::facts::RdmaDevice;
use crate::finding::Finding;
use crate::pci::Bdf;
use crate::pci::path::PathKind;
use crate::pci::topology::Topology;
use crate::plain::{clean, shown};

/// GPUs and NICs of a node that are kept.
const NAMES: usize = 256;

/// How two devices are connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Cell {
    /// The device itself.
    Same,
    /// Over PCIe.
    Pci(PathKind),
    /// Over so many NVLinks.
    NvLink(u32),
    /// Something that this version does not know.
    Other,
}

impl Cell {
    fn of(word: &str) -> Option<Self> {
        Some(match word {
            "X" => Self::Same,
            "PIX" => Self::Pci(PathKind::Pix),
            "PXB" => Self::Pci(PathKind::Pxb),
            "PHB" => Self::Pci(PathKind::Phb),
            "NODE" => Self::Pci(PathKind::Node),
            "SYS" | "SOC" => Self::Pci(PathKind::Sys),
            "PSB" | "C2C" | "NVL" | "DIS" | "N/A" => Self::Other,
            _ => Self::NvLink(word.strip_prefix("NV")?.parse().ok()?),
        })
    }
}

/// The matrix.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Matrix {
    /// `GPU0`, `NIC0` or `mlx5_0`, in the order of the columns.
    pub names: Vec<String>,
    /// A row for each name, a cell for each column; empty where the output holds no such row.
    pub rows: Vec<Vec<Cell>>,
    /// NUMA node of each name, where it is given.
    pub numa: Vec<Option<u32>>,
    /// CPUs near each name, as printed.
    pub cpus: Vec<Option<String>>,
    /// Which RDMA device a `NIC0` is.
    pub nics: Vec<(String, String)>,
}

impl Matrix {
    /// Reads the output; none if there is no matrix in it.
    #[must_use]
    pub fn read(output: &[u8]) -> Option<Self> {
        let mut matrix = Self::default();
        let mut at: HashMap<String, usize> = HashMap::new();
        for line in output.split(|b| *b == b'\n') {
            let line = clean(line);
            // in a comment of a script
            let line = line.trim_start().trim_start_matches('#');
            let words: Vec<&str> = line.split_whitespace().take(NAMES + 16).collect();
            if matrix.names.is_empty() {
                matrix.names = head(&words).unwrap_or_default();
                let named = matrix.names.iter().cloned().zip(0..);
                at = named.collect();
                matrix.rows = vec![Vec::new(); matrix.names.len()];
                matrix.numa = vec![None; matrix.names.len()];
                matrix.cpus = vec![None; matrix.names.len()];
            } else if let Some(row) = words.first().and_then(|word| at.get(*word)) {
                matrix.row(*row, &words);
            } else if let [name, device] = words.as_slice()
                && let Some(name) = name.strip_suffix(':')
                && matrix.nics.len() < NAMES
                && at.contains_key(name)
            {
                matrix.nics.push((name.to_owned(), shown(device)));
            }
        }
        matrix
            .rows
            .iter()
            .any(|row| !row.is_empty())
            .then_some(matrix)
    }

    fn row(&mut self, at: usize, words: &[&str]) {
        let columns = self.names.len();
        let cells: Vec<Cell> = words
            .iter()
            .skip(1)
            .take(columns)
            .map_while(|word| Cell::of(word))
            .collect();
        let Some(row) = self.rows.get_mut(at).filter(|row| row.is_empty()) else {
            return;
        };
        // a row that was cut off, or another table with the same names
        if cells.len() < columns || cells.get(at) != Some(&Cell::Same) {
            return;
        }
        *row = cells;
        let mut rest = words.iter().skip(1 + columns);
        if let (Some(slot), Some(cpus)) = (self.cpus.get_mut(at), rest.next()) {
            *slot = Some(shown(cpus)).filter(|cpus| cpus != "N/A");
        }
        if let (Some(slot), Some(node)) = (self.numa.get_mut(at), rest.next()) {
            *slot = node.parse().ok();
        }
    }

    /// How two devices are connected.
    #[must_use]
    pub fn cell(&self, a: &str, b: &str) -> Option<Cell> {
        let at = |wanted: &str| self.names.iter().position(|name| name == wanted);
        self.rows.get(at(a)?)?.get(at(b)?).copied()
    }

    /// The names of the GPUs.
    pub fn gpus(&self) -> impl Iterator<Item = &str> {
        self.names
            .iter()
            .map(String::as_str)
            .filter(|name| is_gpu(name))
    }

    /// Each NIC's name and the RDMA device that it is.
    pub fn nic_devices(&self) -> impl Iterator<Item = (&str, &str)> {
        let nics = self
            .names
            .iter()
            .map(String::as_str)
            .filter(|name| !is_gpu(name));
        nics.map(|name| {
            let legend = self.nics.iter().find(|(nic, _)| nic == name);
            (name, legend.map_or(name, |(_, device)| device.as_str()))
        })
    }
}

fn is_gpu(name: &str) -> bool {
    name.strip_prefix("GPU")
        .is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

/// The names in the head of the matrix, which ends with `CPU Affinity`.
fn head(words: &[&str]) -> Option<Vec<String>> {
    if !is_gpu(words.first()?) {
        return None;
    }
    let end = words
        .iter()
        .position(|word| ["CPU", "NUMA", "GPU"].contains(word))
        .unwrap_or(words.len());
    let names = words.get(..end)?;
    let cell = |word: &&str| Cell::of(word).is_some();
    let fits = names.len() <= NAMES && !names.iter().any(cell);
    fits.then(|| names.iter().map(|name| shown(name)).collect())
}

/// A pair on which the two do not agree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Difference {
    /// The GPU's name in the matrix, and its address.
    pub gpu: (String, Bdf),
    /// The NIC's.
    pub nic: (String, Bdf),
    /// What nvidia-smi says.
    pub smi: PathKind,
    /// What PCI shows.
    pub pci: PathKind,
}

/// The matrix beside what PCI shows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Comparison {
    /// Pairs of a GPU and a NIC that were compared.
    pub compared: u64,
    /// Those that differ.
    pub differences: Vec<Difference>,
    /// Names in the matrix whose address is not known, so that nothing was compared.
    pub unmatched: Vec<String>,
}

/// Compares. `gpus` are the addresses in nvidia-smi's order; without them the order of addresses is taken, which is its own.
#[must_use]
pub fn compare(
    matrix: &Matrix,
    topology: &Topology,
    gpus: &[Bdf],
    devices: &[RdmaDevice],
) -> Comparison {
    let mut comparison = Comparison::default();
    let own: Vec<Bdf> = topology
        .gpus
        .iter()
        .filter(|gpu| gpu.driver.as_deref() == Some("nvidia"))
        .map(|gpu| gpu.bdf)
        .collect();
    let gpus = if gpus.is_empty() { &own } else { gpus };
    let mut nics: Vec<(&str, Bdf)> = Vec::new();
    for (name, device) in matrix.nic_devices() {
        let found = devices
            .iter()
            .find(|d| d.name == device)
            .and_then(|d| d.bdf);
        match found {
            Some(bdf) => nics.push((name, bdf)),
            None => comparison.unmatched.push(name.to_owned()),
        }
    }
    let paths: HashMap<(Bdf, Bdf), PathKind> = topology
        .paths
        .iter()
        .map(|p| ((p.gpu, p.nic), p.kind))
        .collect();
    for name in matrix.gpus() {
        let number = name.trim_start_matches("GPU").parse::<usize>().ok();
        let Some(gpu) = number.and_then(|number| gpus.get(number)) else {
            comparison.unmatched.push(name.to_owned());
            continue;
        };
        for (nic, bdf) in &nics {
            let (Some(Cell::Pci(smi)), Some(pci)) =
                (matrix.cell(name, nic), paths.get(&(*gpu, *bdf)))
            else {
                continue;
            };
            comparison.compared += 1;
            if smi != *pci {
                comparison.differences.push(Difference {
                    gpu: (name.to_owned(), *gpu),
                    nic: ((*nic).to_owned(), *bdf),
                    smi,
                    pci: *pci,
                });
            }
        }
    }
    comparison
}

impl Comparison {
    /// What to say of it: a difference means that one of the two has a wrong picture, so neither is taken for the truth.
    #[must_use]
    pub fn finding(&self) -> Option<Finding> {
        let shown = self.differences.iter().take(16).map(|d| {
            let (gpu, bdf) = &d.gpu;
            let (nic, other) = &d.nic;
            format!(
                "{gpu} ({bdf}) - {nic} ({other}): nvidia-smi says {}, PCI shows {}",
                d.smi, d.pci
            )
        });
        let evidence: Vec<String> = shown.collect();
        (!evidence.is_empty()).then(|| {
            Finding::unknown(
                "gpu.topo-differs",
                "GPU-NIC distances",
                evidence,
                "a virtual machine or a firmware without NUMA information shows another tree than the hardware has: measure the pair with `gdr-agent bandwidth`",
            )
        })
    }
}
