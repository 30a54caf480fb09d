//! The parts that a made-up server is put together from.

/// What a function is in the PCIe hierarchy; the numbers are the device/port type of the PCIe
/// capability (PCI Express Base Specification, 7.5.3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Port {
    /// An endpoint below a port.
    Endpoint = 0,
    /// A root port of the CPU.
    Root = 4,
    /// The upstream port of a switch.
    Upstream = 5,
    /// A downstream port of a switch.
    Downstream = 6,
    /// A device inside the CPU, with no link.
    Integrated = 9,
}

impl Port {
    /// Has it a bus below it?
    #[must_use]
    pub fn is_bridge(self) -> bool {
        matches!(self, Port::Root | Port::Upstream | Port::Downstream)
    }

    /// Do ports of this kind have an ACS capability on the machines that this one is made after?
    #[must_use]
    pub fn has_acs(self) -> bool {
        matches!(self, Port::Root | Port::Downstream)
    }
}

/// A memory region that a device asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bar {
    /// Index of the first of its registers, 0 to 5.
    pub index: usize,
    /// Bytes, a power of two.
    pub size: u64,
    /// Prefetchable, and then also 64 bits wide: two registers.
    pub prefetchable: bool,
}

/// One kind of device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Model {
    /// Vendor and device id.
    pub id: (u16, u16),
    /// Subsystem vendor and device id.
    pub subsystem: (u16, u16),
    /// Class, subclass and programming interface: `0x030200`.
    pub class: u32,
    /// Revision.
    pub revision: u8,
    /// The driver that binds to it.
    pub driver: Option<&'static str>,
    /// Its memory.
    pub bars: &'static [Bar],
    /// Link speed as the generation (5 is 32 GT/s) and link width in lanes.
    pub link: (u8, u8),
    /// Its place in the hierarchy.
    pub port: Port,
    /// Has it Address Translation Services? NICs show them where their firmware is set up for guests.
    pub ats: bool,
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

const NONE: Model = Model {
    id: (0, 0),
    subsystem: (0, 0),
    class: 0,
    revision: 0,
    driver: None,
    bars: &[],
    link: (5, 16),
    port: Port::Endpoint,
    ats: false,
};

/// An H100: BAR0 and BAR1 are 64 bits wide, so BAR1 is region 2; it is larger than the memory.
pub const GPU: Model = Model {
    id: (0x10de, 0x2330),
    subsystem: (0x10de, 0x16c1),
    class: 0x03_0200,
    revision: 0xa1,
    driver: Some("nvidia"),
    bars: &[
        Bar {
            index: 0,
            size: 16 * MIB,
            prefetchable: true,
        },
        Bar {
            index: 2,
            size: 128 * GIB,
            prefetchable: true,
        },
        Bar {
            index: 4,
            size: 32 * MIB,
            prefetchable: true,
        },
    ],
    ..NONE
};

/// A ConnectX-7 with InfiniBand links.
pub const NIC: Model = Model {
    id: (0x15b3, 0x1021),
    subsystem: (0x15b3, 0x0040),
    class: 0x02_0700,
    driver: Some("mlx5_core"),
    bars: &[Bar {
        index: 0,
        size: 32 * MIB,
        prefetchable: true,
    }],
    ..NONE
};

/// A third-generation NVSwitch: NVIDIA's vendor id, but a bridge to something else than PCI, no GPU.
pub const NVSWITCH: Model = Model {
    id: (0x10de, 0x22a3),
    subsystem: (0x10de, 0x1796),
    class: 0x06_8000,
    revision: 0xa1,
    driver: Some("nvidia-nvswitch"),
    bars: &[Bar {
        index: 0,
        size: 32 * MIB,
        prefetchable: false,
    }],
    link: (1, 2),
    ..NONE
};

/// The disk that the machine boots from.
pub const NVME: Model = Model {
    id: (0x144d, 0xa80a),
    subsystem: (0x144d, 0xa801),
    class: 0x01_0802,
    driver: Some("nvme"),
    bars: &[Bar {
        index: 0,
        size: 16 * KIB,
        prefetchable: false,
    }],
    link: (4, 4),
    ..NONE
};

/// An Ethernet card for management: a NIC, but not one that the policy means.
pub const MANAGEMENT_NIC: Model = Model {
    id: (0x8086, 0x1563),
    subsystem: (0x8086, 0x0001),
    class: 0x02_0000,
    revision: 0x01,
    driver: Some("ixgbe"),
    bars: &[Bar {
        index: 0,
        size: 4 * MIB,
        prefetchable: true,
    }],
    link: (3, 4),
    ..NONE
};

/// The upstream port of a PEX89000 switch.
pub const SWITCH_UPSTREAM: Model = Model {
    id: (0x1000, 0xc030),
    subsystem: (0x1000, 0x100b),
    class: 0x06_0400,
    revision: 0xb0,
    driver: Some("pcieport"),
    port: Port::Upstream,
    ..NONE
};

/// A downstream port of the same switch.
pub const SWITCH_DOWNSTREAM: Model = Model {
    port: Port::Downstream,
    ..SWITCH_UPSTREAM
};

/// A root port of an Intel CPU.
pub const INTEL_ROOT_PORT: Model = Model {
    id: (0x8086, 0x352a),
    subsystem: (0x8086, 0x0000),
    class: 0x06_0400,
    revision: 0x04,
    driver: Some("pcieport"),
    port: Port::Root,
    ..NONE
};

/// A root port of an AMD CPU.
pub const AMD_ROOT_PORT: Model = Model {
    id: (0x1022, 0x14ab),
    subsystem: (0x1022, 0x1453),
    revision: 0x01,
    ..INTEL_ROOT_PORT
};

/// The first function on an Intel root bus.
pub const INTEL_HOST: Model = Model {
    id: (0x8086, 0x09a2),
    subsystem: (0x8086, 0x0000),
    class: 0x08_8000,
    revision: 0x04,
    port: Port::Integrated,
    ..NONE
};

/// The first function on an AMD root bus.
pub const AMD_HOST: Model = Model {
    id: (0x1022, 0x14a4),
    subsystem: (0x1022, 0x14a4),
    class: 0x06_0000,
    revision: 0x01,
    ..INTEL_HOST
};
