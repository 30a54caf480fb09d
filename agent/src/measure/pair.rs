//! The GPU and the NIC of a test: their addresses, the RDMA device, its port, and what its link can carry; and which
//! pairs of a node are worth a test.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::facts::{RdmaDevice, RdmaPort};
use crate::pci::topology::{Device, Topology};
use crate::pci::{Bdf, Link};

/// What is tested.
#[derive(Debug, Clone)]
pub struct Pair {
    /// The GPU.
    pub gpu: Bdf,
    /// The GPU's place in the order of addresses of the GPUs that the NVIDIA driver has.
    pub number: usize,
    /// The NIC.
    pub nic: Side,
    /// The other side's NIC within the node; none if it is the same.
    pub peer: Option<Side>,
    /// What the link can carry, where that is known.
    pub link: Option<Ceiling>,
}

/// An RDMA device and its port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Side {
    /// Such as `mlx5_0`.
    pub device: String,
    /// From 1.
    pub port: u32,
}

/// What a link can carry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ceiling {
    /// 10^9 bits per second.
    pub gbps: f64,
    /// Where that was read.
    pub from: String,
}

/// Why a pair cannot be tested.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct NoDevice {
    /// What is not there.
    pub message: String,
    /// What to do.
    pub help: &'static str,
}

/// The pair of these two; without an address the first GPU, and the NIC nearest to it.
///
/// # Errors
/// There is no such GPU or NIC, or the NIC has no RDMA device or port.
pub fn pair(
    topology: &Topology,
    devices: &[RdmaDevice],
    gpu: Option<Bdf>,
    nic: Option<Bdf>,
    peer_nic: Option<Bdf>,
) -> Result<Pair, NoDevice> {
    let found = match gpu {
        Some(bdf) => topology.gpus.iter().find(|gpu| gpu.bdf == bdf),
        None => topology.gpus.first(),
    };
    let gpu = found.ok_or_else(|| missing("GPU", gpu))?;
    let nic_bdf = nic.or_else(|| gpu.nearest.first().copied());
    let nic_bdf = nic_bdf.ok_or_else(|| missing("NIC", None))?;
    let found = topology.nics.iter().find(|nic| nic.bdf == nic_bdf);
    let (nic, port) = side(devices, nic_bdf)?;
    let peer = peer_nic.map(|bdf| side(devices, bdf)).transpose()?;
    let driven = |g: &&Device| g.driver.as_deref() == Some("nvidia");
    let driven = topology.gpus.iter().filter(driven);
    Ok(Pair {
        gpu: gpu.bdf,
        number: driven.take_while(|g| g.bdf != gpu.bdf).count(),
        link: ceiling(&nic, port, found.map(|nic| &nic.link)),
        nic,
        peer: peer.map(|(side, _)| side),
    })
}

fn missing(what: &str, bdf: Option<Bdf>) -> NoDevice {
    NoDevice {
        message: match bdf {
            Some(bdf) => format!("{bdf} is no {what} here"),
            None => format!("there is no {what} here"),
        },
        help: "`gdr-agent topology` lists GPUs and NICs; `[devices]` of the policy says what is one",
    }
}

fn side(devices: &[RdmaDevice], bdf: Bdf) -> Result<(Side, &RdmaPort), NoDevice> {
    let help = "load the NIC's RDMA driver, such as mlx5_ib";
    let device = devices.iter().find(|device| device.bdf == Some(bdf));
    let device = device.ok_or_else(|| NoDevice {
        message: format!("{bdf} has no RDMA device in /sys/class/infiniband"),
        help,
    })?;
    let ports = &device.ports;
    let port = ports
        .iter()
        .find(|port| port.active == Some(true))
        .or(ports.first());
    let port = port.ok_or_else(|| NoDevice {
        message: format!("{} has no port", device.name),
        help,
    })?;
    let side = Side {
        device: device.name.clone(),
        port: port.number,
    };
    Ok((side, port))
}

/// The smaller of the port's rate and of what the NIC's PCIe link has: an adapter of 400 Gb/s in a narrow slot is not at fault.
fn ceiling(side: &Side, port: &RdmaPort, link: Option<&Link>) -> Option<Ceiling> {
    let rate = port.gbps.map(|gbps| Ceiling {
        gbps,
        from: format!("the rate of {} port {}", side.device, side.port),
    });
    let pcie = link.and_then(pcie).map(|gbps| Ceiling {
        gbps,
        from: format!("the PCIe link of {}", side.device),
    });
    match (rate, pcie) {
        (Some(rate), Some(pcie)) if pcie.gbps < rate.gbps => Some(pcie),
        (Some(rate), _) => Some(rate),
        (None, _) => None,
    }
}

/// 10^9 bits per second after the line code: 8b/10b up to 5 GT/s, 128b/130b above, and about a tenth of that for the headers.
fn pcie(link: &Link) -> Option<f64> {
    let (speed, _) = link.current_speed.as_deref()?.split_once(' ')?;
    let speed: f64 = speed.parse().ok()?;
    let code = if speed <= 5.0 { 0.8 } else { 128.0 / 130.0 };
    Some(speed * f64::from(link.current_width?) * code * 0.9)
}

/// The pairs that together have every GPU, and every NIC that is up and as near to a GPU as any: each GPU with the NIC among
/// its nearest that has been taken least, then what is left of the NICs with the GPU that has been taken least.
#[must_use]
pub fn pairs(topology: &Topology, devices: &[RdmaDevice]) -> Vec<(Bdf, Bdf)> {
    let up = |bdf: Bdf| {
        let device = devices.iter().find(|device| device.bdf == Some(bdf));
        device.is_some_and(|device| device.ports.iter().any(|p| p.active == Some(true)))
    };
    let mut pairs: Vec<(Bdf, Bdf)> = Vec::new();
    for gpu in &topology.gpus {
        let taken = |nic: Bdf| pairs.iter().filter(|(_, n)| *n == nic).count();
        let nearest = gpu.nearest.iter().copied();
        let nic = nearest.min_by_key(|nic| (!up(*nic), taken(*nic)));
        pairs.extend(nic.map(|nic| (gpu.bdf, nic)));
    }
    for nic in topology.nics.iter().map(|nic| nic.bdf) {
        if !up(nic) || pairs.iter().any(|(_, n)| *n == nic) {
            continue;
        }
        let taken = |gpu: Bdf| pairs.iter().filter(|(g, _)| *g == gpu).count();
        let near = topology.gpus.iter().filter(|g| g.nearest.contains(&nic));
        let gpu = near.map(|g| g.bdf).min_by_key(|gpu| taken(*gpu));
        pairs.extend(gpu.map(|gpu| (gpu, nic)));
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bdf(text: &str) -> Bdf {
        text.parse().unwrap()
    }

    fn device(at: &str, nearest: &[&str]) -> Device {
        Device {
            bdf: bdf(at),
            id: String::new(),
            class: String::new(),
            numa_node: None,
            driver: None,
            iommu_group: None,
            link: Link::default(),
            parent: None,
            host: String::new(),
            nearest: nearest.iter().map(|n| bdf(n)).collect(),
            virtual_functions: Vec::new(),
            gap: None,
        }
    }

    fn rdma(at: &str, active: bool) -> RdmaDevice {
        RdmaDevice {
            name: at.to_owned(),
            bdf: Some(bdf(at)),
            ports: vec![RdmaPort {
                number: 1,
                active: Some(active),
                gbps: None,
                link_layer: None,
            }],
        }
    }

    fn found(gpus: &[(&str, &[&str])], nics: &[(&str, bool)]) -> Vec<String> {
        let topology = Topology {
            gpus: gpus.iter().map(|(at, near)| device(at, near)).collect(),
            nics: nics.iter().map(|(at, _)| device(at, &[])).collect(),
            ..Topology::default()
        };
        let devices: Vec<RdmaDevice> = nics.iter().map(|(at, up)| rdma(at, *up)).collect();
        let pairs = pairs(&topology, &devices);
        pairs.iter().map(|(g, n)| format!("{g}-{n}")).collect()
    }

    const A: &str = "0000:01:00.0";
    const B: &str = "0000:02:00.0";
    const X: &str = "0000:81:00.0";
    const Y: &str = "0000:82:00.0";

    #[test]
    fn every_gpu_and_every_near_nic_once() {
        let both: &[&str] = &[X, Y];
        assert_eq!(
            found(&[(A, both), (B, both)], &[(X, true), (Y, true)]),
            [format!("{A}-{X}"), format!("{B}-{Y}")]
        );
        // one GPU and two NICs beside it; the second NIC is tested as well
        assert_eq!(
            found(&[(A, both)], &[(X, true), (Y, true)]),
            [format!("{A}-{X}"), format!("{A}-{Y}")]
        );
    }

    #[test]
    fn a_nic_without_a_cable_is_tested_only_where_there_is_no_other() {
        let both: &[&str] = &[X, Y];
        assert_eq!(
            found(&[(A, both), (B, both)], &[(X, false), (Y, true)]),
            [format!("{A}-{Y}"), format!("{B}-{Y}")]
        );
        assert_eq!(found(&[(A, &[X])], &[(X, false)]), [format!("{A}-{X}")]);
        // far from every GPU: a NIC for storage
        assert_eq!(
            found(&[(A, &[X])], &[(X, true), (Y, true)]),
            [format!("{A}-{X}")]
        );
        assert!(found(&[(A, &[])], &[]).is_empty());
    }
}
