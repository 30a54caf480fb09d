//! Servers as people buy them, to be bent by tests.

use std::collections::BTreeMap;

use gdr_agent::pci::{Bdf, Link, RawFunction};

use crate::support::layout::{GPU, NIC};
use crate::support::{Space, port, raw};

/// What a port's ACS is to be.
#[derive(Debug, Clone, Copy)]
pub enum Acs {
    None,
    Control(u16),
    /// Configuration space ends at 256 bytes.
    Hidden,
}

struct Part {
    path: String,
    kind: Kind,
    /// Primary, secondary and subordinate bus of a bridge.
    buses: (u8, u8, u8),
    acs: Acs,
    numa: i32,
    driver: Option<String>,
    link: Link,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Bridge(u16),
    Gpu,
    Nic,
}

pub struct Server(BTreeMap<Bdf, Part>);

impl Server {
    /// Two sockets, four switches, each with two GPUs and four NICs. All ports redirect.
    pub fn sixteen_nics() -> Self {
        let mut server = Self(BTreeMap::new());
        for (bus, numa) in [(0x15, 0), (0x37, 0), (0x97, 1), (0xc7, 1)] {
            let root = format!("devices/pci0000:{bus:02x}/0000:{bus:02x}:01.0");
            server.bridge(&root, port::ROOT, (bus, bus + 1, bus + 8), numa);
            let kinds = [
                Kind::Gpu,
                Kind::Nic,
                Kind::Nic,
                Kind::Gpu,
                Kind::Nic,
                Kind::Nic,
            ];
            server.switch(&root, bus + 1, &kinds, numa);
        }
        server
    }

    /// A switch below a switch: a GPU and a NIC each.
    pub fn cascaded() -> Self {
        let mut server = Self(BTreeMap::new());
        let root = "devices/pci0000:15/0000:15:01.0";
        server.bridge(root, port::ROOT, (0x15, 0x16, 0x1f), 0);
        let below = server.switch(root, 0x16, &[Kind::Gpu, Kind::Nic], 0);
        let inner = format!("{below}/0000:17:02.0");
        server.bridge(&inner, port::DOWNSTREAM, (0x17, 0x1b, 0x1f), 0);
        server.switch(&inner, 0x1b, &[Kind::Gpu, Kind::Nic], 0);
        server
    }

    /// A switch on this bus; answers the path of its upstream port.
    fn switch(&mut self, above: &str, bus: u8, kinds: &[Kind], numa: i32) -> String {
        let up = format!("{above}/0000:{bus:02x}:00.0");
        let inside = bus + 1;
        let count = u8::try_from(kinds.len()).unwrap();
        self.bridge(&up, port::UPSTREAM, (bus, inside, inside + count), numa);
        for (slot, kind) in (0..).zip(kinds) {
            let below = inside + 1 + slot;
            let down = format!("{up}/0000:{inside:02x}:{slot:02x}.0");
            self.bridge(&down, port::DOWNSTREAM, (inside, below, below), numa);
            self.put(
                &format!("{down}/0000:{below:02x}:00.0"),
                *kind,
                (0, 0, 0),
                numa,
            );
        }
        up
    }

    fn bridge(&mut self, path: &str, code: u16, buses: (u8, u8, u8), numa: i32) {
        self.put(path, Kind::Bridge(code), buses, numa);
    }

    fn put(&mut self, path: &str, kind: Kind, buses: (u8, u8, u8), numa: i32) {
        let bdf = path.rsplit('/').next().unwrap().parse().unwrap();
        let driver = match kind {
            Kind::Bridge(_) => "pcieport",
            Kind::Gpu => "nvidia",
            Kind::Nic => "mlx5_core",
        };
        let part = Part {
            path: path.to_owned(),
            kind,
            buses,
            acs: match kind {
                Kind::Bridge(port::ROOT | port::DOWNSTREAM) => Acs::Control(0x1d),
                _ => Acs::None,
            },
            numa,
            driver: Some(driver.to_owned()),
            link: Link {
                current_speed: Some("32.0 GT/s PCIe".to_owned()),
                current_width: Some(16),
                max_speed: Some("32.0 GT/s PCIe".to_owned()),
                max_width: Some(16),
            },
        };
        self.0.insert(bdf, part);
    }

    fn part(&mut self, bdf: &str) -> &mut Part {
        self.0.get_mut(&bdf.parse().unwrap()).unwrap()
    }

    pub fn driver(&mut self, bdf: &str, name: &str) {
        self.part(bdf).driver = Some(name.to_owned());
    }

    pub fn speed(&mut self, bdf: &str, speed: &str) {
        // The port above says the same.
        let path = self.part(bdf).path.clone();
        for at in path.rsplit('/').take(2) {
            self.part(at).link.current_speed = Some(speed.to_owned());
        }
    }

    pub fn narrow(&mut self, bdf: &str, width: u32) {
        self.part(bdf).link.current_width = Some(width);
    }

    pub fn acs(&mut self, bdf: &str, acs: Acs) {
        self.part(bdf).acs = acs;
    }

    pub fn acs_everywhere(&mut self, acs: Acs) {
        let ports = self
            .0
            .values_mut()
            .filter(|part| matches!(part.acs, Acs::Control(_)));
        ports.for_each(|part| part.acs = acs);
    }

    /// Leaves a function out of the list, and what leads to it out of the paths.
    pub fn forget(&mut self, bdf: &str) {
        self.0.remove(&bdf.parse().unwrap());
        self.0.values_mut().for_each(|part| part.path.clear());
    }

    pub fn forget_nics(&mut self) {
        self.0.retain(|_, part| part.kind != Kind::Nic);
    }

    pub fn numa_unknown(&mut self) {
        self.0.values_mut().for_each(|part| part.numa = -1);
    }

    /// As sysfs would show them.
    pub fn functions(&self) -> Vec<RawFunction> {
        self.0
            .iter()
            .map(|(bdf, part)| part.function(*bdf))
            .collect()
    }
}

impl Part {
    fn function(&self, bdf: Bdf) -> RawFunction {
        let space = match self.kind {
            Kind::Bridge(port::ROOT) => Space::new(0x8086, 0x352a, 0x06_0400, port::ROOT),
            Kind::Bridge(code) => Space::new(0x1000, 0xc030, 0x06_0400, code),
            Kind::Gpu => Space::new(GPU.0, GPU.1, 0x03_0200, port::ENDPOINT),
            Kind::Nic => Space::new(NIC.0, NIC.1, 0x02_0700, port::ENDPOINT),
        };
        let space = match self.kind {
            Kind::Bridge(_) => space.bridge(self.buses.0, self.buses.1, self.buses.2),
            _ => space,
        };
        let bytes = match self.acs {
            Acs::Control(ctl) => space.aer().acs(0x5f, ctl).bytes(),
            Acs::None => space.aer().bytes(),
            Acs::Hidden => space.aer().acs(0x5f, 0x1d).bytes()[..256].to_vec(),
        };
        let path = (!self.path.is_empty()).then(|| self.path.clone());
        let mut function = raw(bdf, path, &bytes);
        function.numa_node = Some(self.numa);
        function.driver.clone_from(&self.driver);
        function.link = self.link.clone();
        function
    }
}
