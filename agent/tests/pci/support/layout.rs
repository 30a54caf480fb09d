//! Random machines, with the truth about them kept apart from the code under test.

use std::collections::{BTreeMap, BTreeSet};

use gdr_agent::pci::clear::{Conditions, Lockdown};
use gdr_agent::pci::select::Selectors;
use gdr_agent::pci::{Bdf, RawFunction};

use super::{Space, port, raw};

pub const GPU: (u16, u16) = (0x10de, 0x2330);
pub const NIC: (u16, u16) = (0x15b3, 0x1021);
pub const OTHER: (u16, u16) = (0x144d, 0xa80a);
/// A machine that is no guest, with an IOMMU, on which registers may be written.
pub const METAL: Conditions = Conditions {
    in_vm: Some(false),
    lockdown: Lockdown::None,
    iommu: Some(true),
    live: true,
};

/// Selects [`GPU`] and [`NIC`].
pub fn selectors() -> Selectors<'static> {
    Selectors {
        gpu: &|vendor, device, _| (vendor, device) == GPU,
        nic: &|vendor, device, _| (vendor, device) == NIC,
    }
}

const GPU_AUDIO: (u16, u16) = (0x10de, 0x22ba);

/// What a function is, by construction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Root,
    Upstream,
    Downstream,
    Gpu,
    Nic,
    Other,
}

/// What is known about a port's ACS, by construction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acs {
    Absent,
    Control(u16),
    /// Configuration space ends at 256 bytes.
    Hidden,
    /// The port is not in the list of functions.
    Missing,
}

#[derive(Debug, Clone)]
pub struct Truth {
    pub bdf: Bdf,
    pub parent: Option<Bdf>,
    pub host: String,
    pub node: i32,
    pub kind: Kind,
    pub acs: Acs,
    pub config: Vec<u8>,
}

/// A machine: every function that exists, and the list that is shown to the code under test.
#[derive(Debug)]
pub struct Machine {
    pub all: BTreeMap<Bdf, Truth>,
    pub paths: bool,
}

/// Choices, one byte after the other; zeros when they run out, which makes everything small.
struct Choices<'a>(std::slice::Iter<'a, u8>);

impl Choices<'_> {
    fn below(&mut self, limit: u8) -> u8 {
        self.0.next().copied().unwrap_or(0) % limit
    }

    fn once_in(&mut self, times: u8) -> bool {
        self.below(times) == times - 1
    }
}

impl Machine {
    /// Builds a machine from choices. `missing` lets ports be absent from the list.
    pub fn random(choices: &[u8], missing: bool) -> Self {
        let mut choices = Choices(choices.iter());
        let paths = choices.below(2) == 0;
        let mut machine = Self {
            all: BTreeMap::new(),
            paths,
        };
        for index in 0..=choices.below(4) {
            let domain = [0, 0, 0x10000, 0x2_0001][usize::from(index)];
            let mut builder = Builder {
                machine: &mut machine,
                choices: &mut choices,
                domain,
                next_bus: if index == 1 { 0x80 } else { 0 },
                last_bus: if index == 0 { 0x7f } else { 0xff },
                node: 0,
                missing,
            };
            builder.node = [0, 0, 1, 1][usize::from(builder.choices.below(4))];
            builder.host();
        }
        machine
    }

    /// What is shown: missing ports left out, hidden ones cut to 256 bytes.
    pub fn functions(&self) -> Vec<RawFunction> {
        let shown = self.all.values().filter(|f| f.acs != Acs::Missing);
        shown
            .map(|truth| {
                let path = self.paths.then(|| self.sysfs_path(truth.bdf));
                let mut function = raw(truth.bdf, path, self.shown_config(truth));
                function.numa_node = Some(truth.node);
                function
            })
            .collect()
    }

    pub fn shown_config<'a>(&self, truth: &'a Truth) -> &'a [u8] {
        match truth.acs {
            Acs::Hidden => &truth.config[..256],
            _ => &truth.config,
        }
    }

    pub fn sysfs_path(&self, bdf: Bdf) -> String {
        let truth = &self.all[&bdf];
        match truth.parent {
            Some(parent) => format!("{}/{bdf}", self.sysfs_path(parent)),
            None => format!("devices/{}/{bdf}", truth.host),
        }
    }

    pub fn of_kind(&self, kind: Kind) -> Vec<Bdf> {
        let matching = self.all.values().filter(|truth| truth.kind == kind);
        matching.map(|truth| truth.bdf).collect()
    }

    /// A function's bridges, bottom up, by walking its parents one at a time.
    fn bridges_above(&self, bdf: Bdf) -> Vec<Bdf> {
        let mut bridges = Vec::new();
        let mut at = self.all[&bdf].parent;
        while let Some(bridge) = at {
            bridges.push(bridge);
            at = self.all[&bridge].parent;
        }
        bridges
    }

    /// The brute-force answer about a pair: kind, and the deciding ports as a set.
    pub fn judge(&self, gpu: Bdf, nic: Bdf) -> (&'static str, BTreeSet<Bdf>) {
        let from_gpu = self.bridges_above(gpu);
        let from_nic = self.bridges_above(nic);
        let common = from_gpu
            .iter()
            .find(|bridge| from_nic.contains(bridge))
            .copied();
        let until = |bridges: &[Bdf]| -> Vec<Bdf> {
            bridges
                .iter()
                .copied()
                .take_while(|b| Some(*b) != common)
                .collect()
        };
        let passed: Vec<Bdf> = until(&from_gpu)
            .into_iter()
            .chain(until(&from_nic))
            .collect();
        let mut ports: BTreeSet<Bdf> = passed
            .iter()
            .copied()
            .filter(|bdf| matches!(self.all[bdf].kind, Kind::Root | Kind::Downstream))
            .collect();
        // Inside a device of several functions there is no port, and their own ACS decides.
        if (gpu.domain, gpu.bus, gpu.device) == (nic.domain, nic.bus, nic.device) {
            ports.extend([gpu, nic]);
        }
        let is_switch = |bdf: &Bdf| self.all[bdf].kind == Kind::Upstream;
        let switches = passed
            .iter()
            .chain(common.iter())
            .filter(|b| is_switch(b))
            .count();
        let (gpu, nic) = (&self.all[&gpu], &self.all[&nic]);
        let kind = match common {
            Some(_) if switches <= 1 => "PIX",
            Some(_) => "PXB",
            None if gpu.host == nic.host => "PHB",
            None if gpu.node == nic.node => "NODE",
            None => "SYS",
        };
        (kind, ports)
    }
}

struct Builder<'m, 'c, 'd> {
    machine: &'m mut Machine,
    choices: &'c mut Choices<'d>,
    domain: u32,
    next_bus: u8,
    last_bus: u8,
    node: i32,
    missing: bool,
}

impl Builder<'_, '_, '_> {
    fn host(&mut self) {
        let bus = self.next_bus;
        let host = format!("pci{:04x}:{bus:02x}", self.domain);
        for device in 1..=self.choices.below(5) + 1 {
            if self.choices.once_in(6) {
                self.endpoint(bus, device, None, &host, 9);
            } else {
                self.port(Kind::Root, bus, device, None, &host, 0);
            }
        }
    }

    fn acs(&mut self) -> Acs {
        match self.choices.below(8) {
            0 => Acs::Absent,
            1 => Acs::Hidden,
            2 if self.missing => Acs::Missing,
            3 => Acs::Control(0x11),
            other => Acs::Control(u16::from(other) << 2 & 0x7f),
        }
    }

    fn port(
        &mut self,
        kind: Kind,
        bus: u8,
        device: u8,
        parent: Option<Bdf>,
        host: &str,
        depth: u8,
    ) {
        if self.next_bus >= self.last_bus {
            return;
        }
        let bdf = Bdf::new(self.domain, bus, device, 0);
        self.next_bus += 1;
        let secondary = self.next_bus;
        let acs = self.acs();
        self.insert(bdf, parent, host, kind, acs, Vec::new());
        match kind {
            Kind::Upstream => {
                for device in 0..=self.choices.below(4) {
                    self.port(Kind::Downstream, secondary, device, Some(bdf), host, depth);
                }
            }
            _ => match self.choices.below(5) {
                0 => {}
                1 | 2 if depth < 3 => {
                    self.port(Kind::Upstream, secondary, 0, Some(bdf), host, depth + 1);
                }
                _ => self.endpoint(secondary, 0, Some(bdf), host, port::ENDPOINT),
            },
        }
        let (code, id) = match kind {
            Kind::Root => (port::ROOT, (0x8086, 0x352a)),
            Kind::Upstream => (port::UPSTREAM, (0x1000, 0xc030)),
            _ => (port::DOWNSTREAM, (0x1000, 0xc030)),
        };
        let mut space = Space::new(id.0, id.1, 0x06_0400, code).bridge(
            bus,
            secondary,
            self.next_bus.max(secondary),
        );
        if depth.is_multiple_of(2) {
            space = space.aer();
        }
        if let Acs::Control(ctl) = acs {
            space = space.acs(0x007f, ctl);
        } else if acs != Acs::Absent {
            space = space.acs(0x007f, 0x001d);
        }
        if let Some(truth) = self.machine.all.get_mut(&bdf) {
            truth.config = space.bytes();
        }
    }

    /// A device of one to three functions, of any kinds; those of several may have ACS of their own.
    fn endpoint(&mut self, bus: u8, device: u8, parent: Option<Bdf>, host: &str, code: u16) {
        let functions = if self.choices.once_in(3) {
            1 + self.choices.below(3)
        } else {
            1
        };
        for function in 0..functions {
            let bdf = Bdf::new(self.domain, bus, device, function);
            let (kind, id, class) = match self.choices.below(3) {
                0 => (Kind::Gpu, GPU, 0x03_0200),
                1 => (Kind::Nic, NIC, 0x02_0700),
                _ if function > 0 => (Kind::Other, GPU_AUDIO, 0x04_0300),
                _ => (Kind::Other, OTHER, 0x01_0802),
            };
            let mut space = Space::new(id.0, id.1, class, code).aer();
            if functions > 1 {
                space = space.multi_function();
            }
            let acs = match self.choices.below(3) {
                0 if functions > 1 => Acs::Control(0x0c),
                1 if functions > 1 => Acs::Control(0x00),
                _ => Acs::Absent,
            };
            if let Acs::Control(ctl) = acs {
                space = space.acs(0x002c, ctl);
            }
            // On a NIC it would say that the machine is a host of guests.
            if kind != Kind::Nic {
                space = space.ats(false);
            }
            self.insert(bdf, parent, host, kind, acs, space.bytes());
        }
    }

    fn insert(
        &mut self,
        bdf: Bdf,
        parent: Option<Bdf>,
        host: &str,
        kind: Kind,
        acs: Acs,
        config: Vec<u8>,
    ) {
        let truth = Truth {
            bdf,
            parent,
            host: host.to_owned(),
            node: self.node,
            kind,
            acs,
            config,
        };
        self.machine.all.insert(bdf, truth);
    }
}
