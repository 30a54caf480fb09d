//! The GPU and the NIC of a test: their addresses, the RDMA device, its port, and what its link can carry.

use gdr_policy::Policy;

use super::{Args, Ceiling};
use crate::acs::with_selectors;
use crate::cli::{CliError, Context, Exit};
use crate::facts::pci::{Depth, functions};
use crate::facts::{RdmaDevice, RdmaPort, rdma_devices};
use crate::pci::topology::Topology;
use crate::pci::tree::Tree;
use crate::pci::{Bdf, Link};

/// What is tested.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) gpu: Bdf,
    /// The GPU's place in the order of addresses of the GPUs that the NVIDIA driver has.
    pub(super) number: usize,
    pub(super) nic: Side,
    pub(super) peer: Option<Side>,
    pub(super) link: Option<Ceiling>,
}

/// An RDMA device and its port.
#[derive(Debug, Clone)]
pub(super) struct Side {
    pub(super) device: String,
    pub(super) port: u32,
}

pub(super) fn pair(context: &Context, args: &Args, policy: &Policy) -> Result<Pair, CliError> {
    let topology = with_selectors(&policy.devices, |selectors| {
        let functions = functions(&context.root, &Depth::Topology(selectors))?;
        Ok::<_, CliError>(Topology::of(&Tree::build(&functions), selectors))
    })?;
    let gpu = match args.gpu {
        Some(bdf) => topology.gpus.iter().find(|gpu| gpu.bdf == bdf),
        None => topology.gpus.first(),
    };
    let gpu = gpu.ok_or_else(|| missing("GPU", args.gpu))?;
    let nic = args.nic.or_else(|| gpu.nearest.first().copied());
    let found = nic.and_then(|bdf| topology.nics.iter().find(|nic| nic.bdf == bdf));
    let nic_bdf = nic.ok_or_else(|| missing("NIC", None))?;
    let devices = rdma_devices(&context.root);
    let devices = devices.get().map(Vec::as_slice).unwrap_or_default();
    let (nic, port) = side(devices, nic_bdf)?;
    let peer = args.peer_nic.map(|bdf| side(devices, bdf)).transpose()?;
    let driven = topology
        .gpus
        .iter()
        .filter(|g| g.driver.as_deref() == Some("nvidia"));
    Ok(Pair {
        gpu: gpu.bdf,
        number: driven.take_while(|g| g.bdf != gpu.bdf).count(),
        link: ceiling(&nic, port, found.map(|nic| &nic.link)),
        nic,
        peer: peer.map(|(side, _)| side),
    })
}

fn missing(what: &str, bdf: Option<Bdf>) -> CliError {
    let message = match bdf {
        Some(bdf) => format!("{bdf} is no {what} here"),
        None => format!("there is no {what} here"),
    };
    CliError::new(Exit::Usage, "no-device", message).help(
        "`gdr-agent topology` lists GPUs and NICs; `[devices]` of the policy says what is one",
    )
}

fn side(devices: &[RdmaDevice], bdf: Bdf) -> Result<(Side, &RdmaPort), CliError> {
    let device = devices.iter().find(|device| device.bdf == Some(bdf));
    let device = device.ok_or_else(|| {
        CliError::new(
            Exit::Usage,
            "no-device",
            format!("{bdf} has no RDMA device in /sys/class/infiniband"),
        )
        .help("load the NIC's RDMA driver, such as mlx5_ib")
    })?;
    let ports = &device.ports;
    let port = ports
        .iter()
        .find(|port| port.active == Some(true))
        .or(ports.first());
    let port = port.ok_or_else(|| {
        CliError::new(
            Exit::Usage,
            "no-device",
            format!("{} has no port", device.name),
        )
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
