//! The PCI Express capability: what kind of port, its link, its settings.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::pci::Link;
use crate::pci::image::ReadConfig;
use crate::pci::walk::{self, Unknown};

const CAPABILITY: u16 = 0x10;

/// Device/port type of the PCI Express capabilities register (section 7.5.3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PortType {
    /// Endpoint.
    Endpoint,
    /// Legacy endpoint.
    LegacyEndpoint,
    /// Root port.
    RootPort,
    /// Upstream port of a switch.
    UpstreamPort,
    /// Downstream port of a switch.
    DownstreamPort,
    /// PCI Express to PCI bridge.
    PciBridge,
    /// PCI to PCI Express bridge.
    ReverseBridge,
    /// Endpoint integrated in the root complex.
    IntegratedEndpoint,
    /// Root complex event collector.
    EventCollector,
    /// A reserved code.
    Reserved,
}

impl PortType {
    const fn from_code(code: u16) -> Self {
        match code {
            0 => Self::Endpoint,
            1 => Self::LegacyEndpoint,
            4 => Self::RootPort,
            5 => Self::UpstreamPort,
            6 => Self::DownstreamPort,
            7 => Self::PciBridge,
            8 => Self::ReverseBridge,
            9 => Self::IntegratedEndpoint,
            10 => Self::EventCollector,
            _ => Self::Reserved,
        }
    }
}

/// The PCI Express capability.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Express {
    /// Where it starts.
    pub offset: u16,
    /// What kind of device or port this is.
    pub port: PortType,
    /// Device Capabilities and Device Control, where read.
    pub control: Option<DeviceControl>,
    /// Link Capabilities and Link Status, where read and where the port has a link.
    pub link: Option<ExpressLink>,
}

/// Settings that matter for throughput (Device Capabilities, Device Control).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceControl {
    /// Largest payload that the device supports, in bytes.
    pub payload_supported: u16,
    /// Largest payload that it is set to, in bytes.
    pub payload: u16,
    /// Largest read request that it may send, in bytes.
    pub read_request: u16,
    /// It may set the relaxed ordering attribute.
    pub relaxed_ordering: bool,
}

/// Link speed codes (1 = 2.5 GT/s, 2 = 5, 3 = 8, 4 = 16, 5 = 32, 6 = 64) and widths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpressLink {
    /// Best speed code.
    pub max_speed: u8,
    /// Best width in lanes.
    pub max_width: u8,
    /// Speed code now.
    pub speed: u8,
    /// Width now.
    pub width: u8,
}

impl ExpressLink {
    /// In the words of sysfs.
    #[must_use]
    pub fn describe(self) -> Link {
        Link {
            current_speed: speed_text(self.speed).map(str::to_owned),
            current_width: Some(u32::from(self.width)),
            max_speed: speed_text(self.max_speed).map(str::to_owned),
            max_width: Some(u32::from(self.max_width)),
        }
    }
}

/// A link speed code as the kernel prints it (`pci_speed_string()` in drivers/pci/probe.c).
const fn speed_text(code: u8) -> Option<&'static str> {
    Some(match code {
        1 => "2.5 GT/s PCIe",
        2 => "5.0 GT/s PCIe",
        3 => "8.0 GT/s PCIe",
        4 => "16.0 GT/s PCIe",
        5 => "32.0 GT/s PCIe",
        6 => "64.0 GT/s PCIe",
        _ => return None,
    })
}

/// Reads the device/port type alone.
///
/// # Errors
/// [`Unknown`] when the chain could not be followed to the PCI Express capability.
pub fn port_type(config: &mut impl ReadConfig) -> Result<Option<PortType>, Unknown> {
    let found = walk::standard(config, Some(CAPABILITY)).find(CAPABILITY)?;
    found.map(|at| port_type_at(config, at.offset)).transpose()
}

fn port_type_at(config: &mut impl ReadConfig, offset: u16) -> Result<PortType, Unknown> {
    let flags = config.dword(offset)? >> 16;
    Ok(PortType::from_code(
        u16::try_from((flags >> 4) & 0xf).unwrap_or(0xf),
    ))
}

/// Reads the PCI Express capability.
///
/// # Errors
/// [`Unknown`] when the chain could not be followed to it.
pub fn express(config: &mut impl ReadConfig) -> Result<Option<Express>, Unknown> {
    let Some(found) = walk::standard(config, Some(CAPABILITY)).find(CAPABILITY)? else {
        return Ok(None);
    };
    let offset = found.offset;
    let port = port_type_at(config, offset)?;
    let pair = |config: &mut _, first: u16, second: u16| -> Option<(u32, u32)> {
        Some((word(config, offset, first)?, word(config, offset, second)?))
    };
    let control = pair(config, 4, 8).map(|(cap, ctl)| device_control(cap, ctl));
    let has_link = !matches!(
        port,
        PortType::IntegratedEndpoint | PortType::EventCollector
    );
    let link = if has_link {
        pair(config, 0x0c, 0x10)
    } else {
        None
    };
    Ok(Some(Express {
        offset,
        port,
        control,
        link: link.map(|(cap, now)| express_link(cap, now)),
    }))
}

fn word(config: &mut impl ReadConfig, offset: u16, add: u16) -> Option<u32> {
    config.dword(offset.checked_add(add)?).ok()
}

const fn device_control(cap: u32, ctl: u32) -> DeviceControl {
    // Codes 6 and 7 are reserved; they are shown as the size that they would mean.
    DeviceControl {
        payload_supported: 128 << (cap & 7),
        payload: 128 << ((ctl >> 5) & 7),
        read_request: 128 << ((ctl >> 12) & 7),
        relaxed_ordering: ctl & 0x10 != 0,
    }
}

fn express_link(cap: u32, status_and_control: u32) -> ExpressLink {
    let speed = |word: u32| u8::try_from(word & 0xf).unwrap_or(0);
    let width = |word: u32| u8::try_from((word >> 4) & 0x3f).unwrap_or(0);
    let status = status_and_control >> 16;
    ExpressLink {
        max_speed: speed(cap),
        max_width: width(cap),
        speed: speed(status),
        width: width(status),
    }
}
