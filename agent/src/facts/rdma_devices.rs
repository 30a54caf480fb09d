//! RDMA devices: which PCI function each is, and what its ports are.

use schemars::JsonSchema;
use serde::Serialize;

use super::fact::Fact;
use crate::pci::Bdf;
use crate::sys::Root;

const CLASS: &str = "/sys/class/infiniband";

/// An RDMA device.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RdmaDevice {
    /// Such as `mlx5_0`.
    pub name: String,
    /// Its PCI function; null for devices without one (rxe, siw).
    pub bdf: Option<Bdf>,
    /// Its ports, in order.
    pub ports: Vec<RdmaPort>,
}

/// A port of an RDMA device.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RdmaPort {
    /// From 1.
    pub number: u32,
    /// Whether it is active; null where that was not read.
    pub active: Option<bool>,
    /// 10^9 bits per second, of the link as it is now; null where that was not read.
    pub gbps: Option<f64>,
    /// `Ethernet` or `InfiniBand`.
    pub link_layer: Option<String>,
}

/// The RDMA devices of a node, by name.
#[must_use]
pub fn rdma_devices(root: &Root) -> Fact<Vec<RdmaDevice>> {
    let entries = match root.list(CLASS) {
        Ok(entries) => entries,
        Err(e) => return Fact::unknown(CLASS, e.to_string()),
    };
    let devices = entries.into_iter().map(|entry| {
        let dir = format!("{CLASS}/{}", entry.name);
        RdmaDevice {
            bdf: function(root, &dir),
            ports: ports(root, &dir),
            name: entry.name,
        }
    });
    Fact::known(devices.collect(), CLASS)
}

/// `device` leads to the PCI function; in a capture it may be a directory with `uevent` in it.
fn function(root: &Root, dir: &str) -> Option<Bdf> {
    let link = root.link(&format!("{dir}/device")).ok().flatten();
    let name = link.as_deref().and_then(|target| target.rsplit('/').next());
    if let Some(bdf) = name.and_then(|name| name.parse().ok()) {
        return Some(bdf);
    }
    let uevent = root
        .text_if_there(&format!("{dir}/device/uevent"))
        .ok()
        .flatten()?;
    let slot = uevent
        .lines()
        .find_map(|line| line.strip_prefix("PCI_SLOT_NAME="))?;
    slot.parse().ok()
}

fn ports(root: &Root, dir: &str) -> Vec<RdmaPort> {
    let mut ports: Vec<RdmaPort> = root
        .list(&format!("{dir}/ports"))
        .unwrap_or_default()
        .into_iter()
        .filter_map(|entry| {
            let number = entry.name.parse().ok()?;
            let text = |name: &str| {
                let path = format!("{dir}/ports/{number}/{name}");
                root.text_if_there(&path).ok().flatten()
            };
            Some(RdmaPort {
                number,
                // `4: ACTIVE` (drivers/infiniband/core/sysfs.c)
                active: text("state").map(|state| state.starts_with("4:")),
                gbps: text("rate").and_then(|rate| gbps(&rate)),
                link_layer: text("link_layer"),
            })
        })
        .collect();
    ports.sort_by_key(|port| port.number);
    ports
}

/// `400 Gb/sec (4X NDR)`, `2.5 Gb/sec (1X SDR)`.
fn gbps(rate: &str) -> Option<f64> {
    let (number, rest) = rate.split_once(' ')?;
    let number: f64 = number.parse().ok()?;
    (rest.starts_with("Gb/sec") && number.is_finite() && number > 0.0).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::gbps;

    #[test]
    fn rates() {
        assert_eq!(gbps("400 Gb/sec (4X NDR)"), Some(400.0));
        assert_eq!(gbps("2.5 Gb/sec (1X SDR)"), Some(2.5));
        assert_eq!(gbps("400"), None);
        assert_eq!(gbps("inf Gb/sec"), None);
    }
}
