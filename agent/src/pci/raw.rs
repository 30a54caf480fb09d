//! One PCI function as sysfs shows it, before any interpretation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Bdf, ConfigBytes};

/// What was read about one function. A `None` was not there or was not asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RawFunction {
    /// The name of its directory in `/sys/bus/pci/devices`.
    pub bdf: Bdf,
    /// Where that directory leads, relative to `/sys`:
    /// `devices/pci0000:00/0000:00:01.0/0000:01:00.0`. `None` when it is a plain directory.
    pub sysfs_path: Option<String>,
    /// Vendor id.
    pub vendor: Option<u16>,
    /// Device id.
    pub device: Option<u16>,
    /// 24 bits: base class, subclass, programming interface.
    pub class: Option<u32>,
    /// Revision id.
    pub revision: Option<u8>,
    /// Subsystem vendor and device.
    pub subsystem: Option<(u16, u16)>,
    /// Those parts of configuration space that were read.
    pub config: ConfigBytes,
    /// NUMA node as sysfs says it; -1 is "the firmware did not say".
    pub numa_node: Option<i32>,
    /// Name of the bound driver.
    pub driver: Option<String>,
    /// IOMMU group number.
    pub iommu_group: Option<u32>,
    /// The physical function of an SR-IOV virtual function.
    pub physfn: Option<Bdf>,
    /// The lines of `resource`, unassigned ones left out.
    pub bars: Vec<Bar>,
    /// Link speed and width as the kernel reports them.
    pub link: Link,
}

/// One line of `/sys/bus/pci/devices/BDF/resource`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Bar {
    /// Which line, from 0: 0 to 5 are BARs, 6 is the expansion ROM.
    pub index: u8,
    /// First address.
    pub start: u64,
    /// Last address.
    pub end: u64,
    /// `IORESOURCE_*` flags (0x200 memory, 0x2000 prefetchable, 0x100000 64 bit).
    pub flags: u64,
}

impl Bar {
    /// Bytes that the BAR spans.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.end.saturating_sub(self.start).saturating_add(1)
    }
}

/// `current_link_*` and `max_link_*`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Link {
    /// Such as `32.0 GT/s PCIe`, or `Unknown`.
    pub current_speed: Option<String>,
    /// Lanes in use.
    pub current_width: Option<u32>,
    /// The best speed of the device.
    pub max_speed: Option<String>,
    /// The lanes of the device.
    pub max_width: Option<u32>,
}

impl RawFunction {
    /// A function of which nothing but the address is known.
    #[must_use]
    pub fn bare(bdf: Bdf) -> Self {
        Self {
            bdf,
            sysfs_path: None,
            vendor: None,
            device: None,
            class: None,
            revision: None,
            subsystem: None,
            config: ConfigBytes::default(),
            numa_node: None,
            driver: None,
            iommu_group: None,
            physfn: None,
            bars: Vec::new(),
            link: Link::default(),
        }
    }

    /// Base class and subclass, the 16 bits that policy selectors name.
    #[must_use]
    pub fn class16(&self) -> Option<u16> {
        self.class
            .and_then(|class| u16::try_from((class >> 8) & 0xffff).ok())
    }
}
