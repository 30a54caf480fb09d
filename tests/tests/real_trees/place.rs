//! Addresses and functions for what a file leaves out: NCCL names switches by their upstream port
//! only, so the ports above switches and devices are put in here.

use std::collections::BTreeSet;

use gdr_tests::node::layout::Function;
use gdr_tests::node::model::{Model, Port};

/// `DDDD:BB:DD.F`
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Address(pub u32, pub u8, pub u8, pub u8);

impl Address {
    pub fn parse(text: &str) -> Self {
        let parts: Vec<&str> = text.split([':', '.']).collect();
        let hex = |text| u32::from_str_radix(text, 16).unwrap();
        let byte = |text| u8::try_from(hex(text)).unwrap();
        Self(
            hex(parts[0]),
            byte(parts[1]),
            byte(parts[2]),
            byte(parts[3]),
        )
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self(domain, bus, device, function) = self;
        write!(f, "{domain:04x}:{bus:02x}:{device:02x}.{function:x}")
    }
}

/// Addresses that are given out.
#[derive(Debug, Default)]
pub struct Addresses(pub BTreeSet<Address>);

impl Addresses {
    /// A free device number on this bus, or on one after it.
    pub fn free(&mut self, domain: u32, bus: u8) -> Address {
        let buses = (0..=u8::MAX).map(|add| bus.wrapping_add(add));
        let all = buses.flat_map(|bus| (0..32).map(move |device| Address(domain, bus, device, 0)));
        let same_device = |a: &Address, b: &Address| (a.0, a.1, a.2) == (b.0, b.1, b.2);
        let address = all
            .into_iter()
            .find(|address| !self.0.iter().any(|taken| same_device(taken, address)))
            .unwrap();
        self.0.insert(address);
        address
    }
}

/// A function at this place; `dir` is the directory of what it hangs from.
pub fn function(
    address: Address,
    dir: &str,
    model: Model,
    numa: i32,
    below: Option<Address>,
) -> Function {
    let buses = model.port.is_bridge().then(|| {
        let below = below.map_or(address.1, |below| below.1);
        [address.1, below, below]
    });
    Function {
        bdf: address.to_string(),
        dir: format!("{dir}/{address}"),
        model,
        numa,
        buses,
        regions: Vec::new(),
        memory: None,
        prefetch: None,
    }
}

/// A model with the ids that a file gives.
pub fn model(
    id: (u16, u16),
    subsystem: (u16, u16),
    class: u32,
    link: (u8, u8),
    port: Port,
) -> Model {
    let driver = match (class >> 8, id.0) {
        (0x0300..=0x03ff, 0x10de) => Some("nvidia"),
        (0x0200..=0x02ff, 0x15b3) => Some("mlx5_core"),
        (0x0604, _) => Some("pcieport"),
        _ => None,
    };
    Model {
        id,
        subsystem,
        class,
        revision: 0,
        driver,
        bars: &[],
        link,
        port,
        ats: false,
    }
}

/// The generation of a link speed in GT/s, such as `16` or `8.0`.
pub fn generation(speed: &str) -> Option<u8> {
    let number: f64 = speed.split(' ').next()?.parse().ok()?;
    let known = [2.5, 5.0, 8.0, 16.0, 32.0, 64.0];
    let at = known
        .iter()
        .position(|known: &f64| (known - number).abs() < 0.01)?;
    u8::try_from(at + 1).ok()
}
