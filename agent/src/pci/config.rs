//! Decoded configuration space: header, PCI Express, ACS, ATS and Resizable BAR.

mod express;
mod ids;
mod rebar;

pub use express::{DeviceControl, Express, ExpressLink, PortType, express, port_type};
pub use ids::{Ids, ids};
pub use rebar::{ResizableBar, resizable};

use super::acs::{self, AcsRegisters};
use super::image::{ConfigBytes, ReadConfig};
use super::walk::{self, Unknown};

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
