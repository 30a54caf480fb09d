//! Decoded configuration space: header, PCI Express, ACS and ATS.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Link;
use super::acs::{self, AcsRegisters};
use super::image::{ConfigBytes, ReadConfig};
use super::walk::{self, Unknown};

const CAP_EXPRESS: u16 = 0x10;
const EXT_ATS: u16 = 0x0f;
const EXT_ARI: u16 = 0x0e;

/// Something that a device may have. Not having it and not knowing are two answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found<T> {
    /// It is there.
    Present(T),
    /// The whole chain was read and it is not there.
    Absent,
    /// It could not be found out.
    Unknown(Unknown),
}

impl<T> Found<T> {
    /// The value, if it is there.
    pub const fn present(&self) -> Option<&T> {
        match self {
            Self::Present(value) => Some(value),
            Self::Absent | Self::Unknown(_) => None,
        }
    }

    fn of(result: Result<Option<T>, Unknown>) -> Self {
        match result {
            Ok(Some(value)) => Self::Present(value),
            Ok(None) => Self::Absent,
            Err(why) => Self::Unknown(why),
        }
    }
}

/// The header's fields that describe the function's place in the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// 0 endpoint, 1 bridge, 2 CardBus bridge.
    pub kind: u8,
    /// More functions share the device number.
    pub multi_function: bool,
    /// Bus numbers below a bridge; `None` for others and where bus numbers were not read.
    pub buses: Option<BridgeBuses>,
}

/// The bus numbers of a bridge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BridgeBuses {
    /// The bus right below.
    pub secondary: u8,
    /// The highest bus below.
    pub subordinate: u8,
}

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

/// Address Translation Services.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ats {
    /// Where the capability starts.
    pub offset: u16,
    /// Translation is switched on.
    pub enabled: bool,
    /// Smallest translation unit: 2 to this power times 4096 bytes.
    pub smallest_unit: u8,
}

/// What configuration space says about a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoded {
    /// The header, or why it is not known.
    pub header: Result<Header, Unknown>,
    /// PCI Express capability; absent on conventional devices.
    pub express: Found<Express>,
    /// Access Control Services.
    pub acs: Found<AcsRegisters>,
    /// Address Translation Services.
    pub ats: Found<Ats>,
    /// Alternative Routing-ID Interpretation, by the offset of its capability.
    pub ari: Found<u16>,
}

impl Decoded {
    /// Decodes a recording or a whole file.
    #[must_use]
    pub fn of(config: &ConfigBytes) -> Self {
        let mut config = config;
        let extended = walk::extended(&mut config, None);
        let place = |id| extended.find(id);
        Self {
            header: header(&mut config),
            express: Found::of(express(&mut config)),
            acs: Found::of(place(acs::CAPABILITY_ID).and_then(|at| acs_at(&mut config, at))),
            ats: Found::of(place(EXT_ATS).and_then(|at| ats_at(&mut config, at))),
            ari: Found::of(place(EXT_ARI).map(|at| at.map(|capability| capability.offset))),
        }
    }
}

/// Vendor, device, class and subsystem as configuration space has them, for trees that lack the
/// attribute files. `None` where not read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ids {
    /// Vendor and device.
    pub id: Option<(u16, u16)>,
    /// Class (24 bits) and revision.
    pub class: Option<(u32, u8)>,
    /// Subsystem vendor and device; endpoints only.
    pub subsystem: Option<(u16, u16)>,
}

/// Reads the identification words of the header.
pub fn ids(config: &mut impl ReadConfig) -> Ids {
    let halves = |word: u32| {
        let [a, b, c, d] = word.to_le_bytes();
        (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]))
    };
    if !matches!(walk::gone(config), Ok(false)) {
        return Ids::default();
    }
    let class = config
        .dword(8)
        .ok()
        .map(|word| (word >> 8, word.to_le_bytes()[0]));
    let endpoint = config
        .dword(0x0c)
        .is_ok_and(|word| word.to_le_bytes()[2] & 0x7f == 0);
    let subsystem = if endpoint {
        config.dword(0x2c).ok().map(halves)
    } else {
        None
    };
    Ids {
        id: config.dword(0).ok().map(halves),
        class,
        subsystem,
    }
}

/// Reads the header's type and, for bridges, bus numbers.
///
/// # Errors
/// [`Unknown`] when the device is gone or the header was not read.
pub fn header(config: &mut impl ReadConfig) -> Result<Header, Unknown> {
    if walk::gone(config)? {
        return Err(Unknown::Gone);
    }
    let [_, _, raw, _] = config.dword(0x0c)?.to_le_bytes();
    let kind = raw & 0x7f;
    let buses = match kind {
        1 | 2 => config.dword(0x18).ok().map(|word| {
            let [_, secondary, subordinate, _] = word.to_le_bytes();
            BridgeBuses {
                secondary,
                subordinate,
            }
        }),
        _ => None,
    };
    Ok(Header {
        kind,
        multi_function: raw & 0x80 != 0,
        buses,
    })
}

/// Reads the device/port type alone.
///
/// # Errors
/// [`Unknown`] when the chain could not be followed to the PCI Express capability.
pub fn port_type(config: &mut impl ReadConfig) -> Result<Option<PortType>, Unknown> {
    let found = walk::standard(config, Some(CAP_EXPRESS)).find(CAP_EXPRESS)?;
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
    let Some(found) = walk::standard(config, Some(CAP_EXPRESS)).find(CAP_EXPRESS)? else {
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

/// Finds the ACS capability and reads its registers.
///
/// # Errors
/// [`Unknown`] when the chain could not be followed to it or its registers are out of reach.
pub fn acs(config: &mut impl ReadConfig) -> Result<Option<AcsRegisters>, Unknown> {
    let found = walk::extended(config, Some(acs::CAPABILITY_ID)).find(acs::CAPABILITY_ID)?;
    acs_at(config, found)
}

/// Finds the ATS capability and reads its control word.
///
/// # Errors
/// [`Unknown`] when the chain could not be followed to it or its control word is out of reach.
pub fn ats(config: &mut impl ReadConfig) -> Result<Option<Ats>, Unknown> {
    let found = walk::extended(config, Some(EXT_ATS)).find(EXT_ATS)?;
    ats_at(config, found)
}

fn acs_at(
    config: &mut impl ReadConfig,
    at: Option<walk::Capability>,
) -> Result<Option<AcsRegisters>, Unknown> {
    let Some(found) = at else { return Ok(None) };
    let registers = config.dword(found.offset.saturating_add(4))?;
    if registers == u32::MAX {
        return Err(Unknown::Gone);
    }
    Ok(Some(AcsRegisters::decode(found.offset, registers)))
}

fn ats_at(
    config: &mut impl ReadConfig,
    at: Option<walk::Capability>,
) -> Result<Option<Ats>, Unknown> {
    let Some(found) = at else { return Ok(None) };
    let control = config.dword(found.offset.saturating_add(4))? >> 16;
    Ok(Some(Ats {
        offset: found.offset,
        enabled: control & 0x8000 != 0,
        smallest_unit: u8::try_from(control & 0x1f).unwrap_or(0),
    }))
}

#[cfg(test)]
mod tests;
