//! NVIDIA GPUs' generation, by their device id.
//!
//! Ranges rather than ids: NVIDIA gives each chip a block of ids, so that a new board of a known chip is
//! known too. After the PCI ID Repository (pci.ids) up to Ada, and for the newer ones NVIDIA's list of GPUs
//! that the open kernel modules support; GB10's block is that of NVIDIA's own kernel patch
//! (linux-nvidia "iommu/arm-smmu-v3: Use device ID range for DGX Spark iGPU iommu quirk").

use schemars::JsonSchema;
use serde::Serialize;

/// PCI vendor id of NVIDIA.
pub const NVIDIA: u16 = 0x10de;

/// Generations, oldest first. The open kernel modules know Turing and later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Generation {
    /// Before Maxwell.
    Kepler,
    /// 2014
    Maxwell,
    /// P100, 2016
    Pascal,
    /// V100, 2017
    Volta,
    /// T4, 2018
    Turing,
    /// A100, 2020
    Ampere,
    /// H100, 2022
    Hopper,
    /// L40, 2022
    Ada,
    /// B200, 2024
    Blackwell,
}

use Generation::{Ada, Ampere, Blackwell, Hopper, Kepler, Maxwell, Pascal, Turing, Volta};

/// First id, last id.
const RANGES: [(u16, u16, Generation); 22] = [
    (0x0fc0, 0x103f, Kepler),
    (0x1180, 0x11ff, Kepler),
    (0x1280, 0x12bf, Kepler),
    (0x1340, 0x143f, Maxwell),
    (0x15f0, 0x15ff, Pascal),
    (0x1610, 0x167f, Maxwell),
    (0x1720, 0x172f, Pascal),
    (0x1740, 0x17ff, Maxwell),
    (0x1b00, 0x1d7f, Pascal),
    (0x1d80, 0x1dff, Volta),
    (0x1e00, 0x1fff, Turing),
    (0x2080, 0x20ff, Ampere),
    (0x2180, 0x21ff, Turing),
    (0x2200, 0x22af, Ampere),
    (0x22b0, 0x22bf, Ada),
    (0x2300, 0x23ff, Hopper),
    (0x2400, 0x25ff, Ampere),
    (0x2680, 0x28ff, Ada),
    (0x2900, 0x29ff, Blackwell),
    (0x2b80, 0x2dff, Blackwell),
    (0x2e00, 0x2fff, Blackwell),
    (0x3180, 0x31ff, Blackwell),
];

/// GPUs that have no memory of their own which a NIC could reach.
const NO_GDR: [(u16, u16, &str); 1] = [(0x2e00, 0x2e3f, "GB10")];

impl Generation {
    /// The generation of an NVIDIA device; none where this table does not know it.
    #[must_use]
    pub fn of(device: u16) -> Option<Self> {
        RANGES
            .iter()
            .find(|(first, last, _)| (*first..=*last).contains(&device))
            .map(|(.., generation)| *generation)
    }
}

/// The name of a chip that has no GPUDirect RDMA at all.
#[must_use]
pub fn without_gdr(device: u16) -> Option<&'static str> {
    NO_GDR
        .iter()
        .find(|(first, last, _)| (*first..=*last).contains(&device))
        .map(|(.., name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boards_that_are_in_clusters() {
        for (device, expected) in [
            (0x102d, Kepler),    // K80
            (0x13f2, Maxwell),   // M60
            (0x15f8, Pascal),    // P100 PCIe
            (0x1b38, Pascal),    // P40
            (0x1db1, Volta),     // V100 SXM2
            (0x1df6, Volta),     // V100S
            (0x1eb8, Turing),    // T4
            (0x20b0, Ampere),    // A100 SXM4 40 GB
            (0x20b5, Ampere),    // A100 PCIe 80 GB
            (0x2236, Ampere),    // A10
            (0x2330, Hopper),    // H100 SXM5
            (0x2335, Hopper),    // H200
            (0x2342, Hopper),    // GH200
            (0x26b9, Ada),       // L40S
            (0x27b8, Ada),       // L4
            (0x2901, Blackwell), // B200
            (0x2941, Blackwell), // GB200
            (0x2bb5, Blackwell), // RTX PRO 6000
            (0x3182, Blackwell), // B300
            (0x31c2, Blackwell), // GB300
        ] {
            assert_eq!(Generation::of(device), Some(expected), "{device:04x}");
            assert_eq!(without_gdr(device), None, "{device:04x}");
        }
        assert_eq!(Generation::of(0xffff), None);
        assert_eq!(without_gdr(0x2e12), Some("GB10"));
        assert_eq!(Generation::of(0x2e12), Some(Blackwell));
    }

    #[test]
    fn ranges_are_in_order_and_apart() {
        for pair in RANGES.windows(2) {
            assert!(pair[0].0 <= pair[0].1 && pair[0].1 < pair[1].0, "{pair:x?}");
        }
    }

    /// What the PCI ID Repository says of each chip, by the code name that its entry begins with.
    #[test]
    #[allow(
        clippy::disallowed_methods,
        reason = "the test reads this machine's own list"
    )]
    fn the_pci_id_repository_agrees() {
        let paths = ["/usr/share/misc/pci.ids", "/usr/share/hwdata/pci.ids"];
        let Some(text) = paths.iter().find_map(|path| std::fs::read(path).ok()) else {
            assert!(std::env::var_os("CI").is_none(), "no pci.ids here");
            println!("skipped: no pci.ids here");
            return;
        };
        let text = String::from_utf8_lossy(&text);
        let ours = text.lines().skip_while(|line| !line.starts_with("10de "));
        let devices = ours
            .skip(1)
            .take_while(|line| line.starts_with(['\t', '#']))
            .filter(|line| !line.starts_with("\t\t"));
        let mut seen = 0;
        for line in devices {
            let Some((id, name)) = line.trim().split_once("  ") else {
                continue;
            };
            let prefix: String = name.chars().take(3).collect();
            let expected = match prefix.as_str() {
                "GK1" | "GK2" => Kepler,
                "GM1" | "GM2" => Maxwell,
                "GP1" => Pascal,
                "GV1" => Volta,
                "TU1" => Turing,
                "GA1" => Ampere,
                "GH1" => Hopper,
                "AD1" => Ada,
                "GB1" | "GB2" => Blackwell,
                _ => continue,
            };
            // Audio, USB and other functions of the same boards have ids of their own.
            let other = [
                "Audio", "USB", "UCSI", "I2C", "Serial", "Bridge", "NVSwitch",
            ];
            if other.iter().any(|word| name.contains(word)) {
                continue;
            }
            let device = u16::from_str_radix(id, 16).unwrap();
            seen += 1;
            assert_eq!(Generation::of(device), Some(expected), "{id} {name}");
        }
        assert!(seen > 300, "{seen}");
    }
}
