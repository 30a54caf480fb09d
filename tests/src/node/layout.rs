//! Puts the parts together: which device sits behind which port, and what firmware gives each of them,
//! bus numbers and addresses, in the order in which firmware walks the buses.

use super::model::{
    AMD_HOST, AMD_ROOT_PORT, Bar, GPU, INTEL_HOST, INTEL_ROOT_PORT, MANAGEMENT_NIC, Model, NIC,
    NVME, NVSWITCH, SWITCH_DOWNSTREAM, SWITCH_UPSTREAM,
};
use super::spec::{Cpu, NodeSpec};

/// A device, or a bridge with what is below it.
#[derive(Debug, Clone)]
pub enum Branch {
    /// A device.
    Leaf(Model),
    /// A port and the devices on its secondary bus, device numbers counting from 0.
    Bridge(Model, Vec<Branch>),
}

/// A root bus: one host bridge, and the root ports on it from device number 1.
#[derive(Debug, Clone)]
pub struct RootBus {
    /// Bus number.
    pub bus: u8,
    /// NUMA node of everything below.
    pub numa: i32,
    /// The root ports.
    pub ports: Vec<Branch>,
}

/// An address range that firmware gave to a BAR.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    /// The register that it belongs to.
    pub bar: Bar,
    /// First address.
    pub start: u64,
}

/// First and last address of what lies below a bridge; `None` where nothing does.
pub type Window = Option<(u64, u64)>;

/// A function with its place and its addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// `0000:15:01.0`
    pub bdf: String,
    /// Directory from the root: `sys/devices/pci0000:15/0000:15:01.0`
    pub dir: String,
    /// What it is.
    pub model: Model,
    /// NUMA node.
    pub numa: i32,
    /// Primary, secondary and subordinate bus of a bridge.
    pub buses: Option<[u8; 3]>,
    /// Addresses of a device.
    pub regions: Vec<Region>,
    /// 32-bit window of a bridge.
    pub memory: Window,
    /// 64-bit prefetchable window of a bridge.
    pub prefetch: Window,
}

/// The root buses of the server that `spec` describes.
#[must_use]
pub fn root_buses(spec: &NodeSpec) -> Vec<RootBus> {
    let root_port = match spec.cpu {
        Cpu::Intel => INTEL_ROOT_PORT,
        Cpu::Amd => AMD_ROOT_PORT,
    };
    let switch = |models: &[Model]| {
        let used = models.iter().map(|model| vec![Branch::Leaf(*model)]);
        let spare = (0..spec.spare_ports).map(|_| Vec::new());
        let ports = used
            .chain(spare)
            .map(|below| Branch::Bridge(SWITCH_DOWNSTREAM, below));
        Branch::Bridge(
            root_port,
            vec![Branch::Bridge(SWITCH_UPSTREAM, ports.collect())],
        )
    };
    let direct = |model| Branch::Bridge(root_port, vec![Branch::Leaf(model)]);
    let quarter: &[Model] = if spec.nics {
        &[GPU, NIC, GPU, NIC]
    } else {
        &[GPU, GPU]
    };
    let root = |bus, numa, ports| RootBus { bus, numa, ports };
    vec![
        root(0x00, 0, vec![direct(NVME), direct(MANAGEMENT_NIC)]),
        root(0x15, 0, vec![switch(quarter)]),
        root(0x37, 0, vec![switch(quarter)]),
        root(0x59, 0, vec![switch(&[NVSWITCH; 4])]),
        root(0x97, 1, vec![switch(quarter)]),
        root(0xc7, 1, vec![switch(quarter)]),
    ]
}

/// Every function of the server, parents before children.
#[must_use]
pub fn functions(spec: &NodeSpec) -> Vec<Function> {
    if let Some(functions) = &spec.functions {
        return functions.clone();
    }
    let host = match spec.cpu {
        Cpu::Intel => INTEL_HOST,
        Cpu::Amd => AMD_HOST,
    };
    let mut all = Vec::new();
    for (index, root) in root_buses(spec).iter().enumerate() {
        let index = index as u64;
        let mut walk = Walk {
            bar1: spec.bar1,
            numa: root.numa,
            next_bus: root.bus,
            memory: 0x9000_0000 + index * 0x0800_0000,
            prefetch: (0x20 + 2 * index) << 40,
            all: &mut all,
        };
        let dir = format!("sys/devices/pci0000:{:02x}", root.bus);
        walk.place(&Branch::Leaf(host), root.bus, 0, &dir);
        for (port, device) in root.ports.iter().zip(1..) {
            walk.place(port, root.bus, device, &dir);
        }
    }
    all
}

/// Fills a machine up to `total` functions with devices of the kind that processors have inside them, on
/// buses of their own.
pub fn fill(functions: &mut Vec<Function>, total: usize) {
    let buses = (1_u32..).flat_map(|domain| [0x7e_u8, 0x7f, 0xfe, 0xff].map(|bus| (domain, bus)));
    let places = buses.flat_map(|bus| (0..=u8::MAX).map(move |at| (bus, at >> 3, at & 7)));
    let missing = total.saturating_sub(functions.len());
    functions.extend(
        places
            .take(missing)
            .map(|((domain, bus), device, function)| {
                let bdf = format!("{domain:04x}:{bus:02x}:{device:02x}.{function}");
                Function {
                    dir: format!("sys/devices/pci{domain:04x}:{bus:02x}/{bdf}"),
                    bdf,
                    model: INTEL_HOST,
                    numa: i32::from(bus > 0x7f),
                    buses: None,
                    regions: Vec::new(),
                    memory: None,
                    prefetch: None,
                }
            }),
    );
}

struct Walk<'a> {
    bar1: u64,
    numa: i32,
    /// The highest bus number given out so far below this root.
    next_bus: u8,
    /// The next free addresses.
    memory: u64,
    prefetch: u64,
    all: &'a mut Vec<Function>,
}

/// Bridge windows are made of whole MiB (PCI-to-PCI Bridge Architecture Specification, 3.2.5.8).
const WINDOW: u64 = 1 << 20;

impl Walk<'_> {
    fn place(&mut self, branch: &Branch, bus: u8, device: u8, above: &str) {
        let bdf = format!("0000:{bus:02x}:{device:02x}.0");
        let dir = format!("{above}/{bdf}");
        let (Branch::Leaf(model) | Branch::Bridge(model, _)) = branch;
        let mut function = Function {
            bdf,
            dir: dir.clone(),
            model: *model,
            numa: self.numa,
            buses: None,
            regions: Vec::new(),
            memory: None,
            prefetch: None,
        };
        match branch {
            Branch::Leaf(model) => {
                function.regions = model
                    .bars
                    .iter()
                    .map(|bar| self.region(model, *bar))
                    .collect();
                self.all.push(function);
            }
            Branch::Bridge(_, below) => {
                self.align();
                let (memory, prefetch) = (self.memory, self.prefetch);
                self.next_bus += 1;
                let secondary = self.next_bus;
                let at = self.all.len();
                self.all.push(function);
                for (child, device) in below.iter().zip(0..) {
                    self.place(child, secondary, device, &dir);
                }
                self.align();
                let subordinate = self.next_bus;
                if let Some(bridge) = self.all.get_mut(at) {
                    bridge.buses = Some([bus, secondary, subordinate]);
                    bridge.memory = window(memory, self.memory);
                    bridge.prefetch = window(prefetch, self.prefetch);
                }
            }
        }
    }

    fn region(&mut self, model: &Model, mut bar: Bar) -> Region {
        if model.id == GPU.id && bar.index == 2 {
            bar.size = self.bar1;
        }
        let next = if bar.prefetchable {
            &mut self.prefetch
        } else {
            &mut self.memory
        };
        let start = next.next_multiple_of(bar.size);
        *next = start + bar.size;
        Region { bar, start }
    }

    fn align(&mut self) {
        self.memory = self.memory.next_multiple_of(WINDOW);
        self.prefetch = self.prefetch.next_multiple_of(WINDOW);
    }
}

fn window(start: u64, end: u64) -> Window {
    (start < end).then(|| (start, end - 1))
}
