//! The Resizable BAR extended capability: the sizes that a function's BARs have and could have (PCI Express Base
//! Specification 5.0, section 7.8.6).

use crate::pci::image::ReadConfig;
use crate::pci::walk::{self, Capability, Unknown};

const CAPABILITY: u16 = 0x15;
/// A header of type 0 has as many BARs.
const BARS: u16 = 6;

/// One BAR that can have another size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResizableBar {
    /// Which BAR, from 0.
    pub index: u8,
    /// The size that it is set to, in bytes.
    pub bytes: u64,
    /// The sizes that the device supports, in bytes, in order.
    pub supported: Vec<u64>,
}

/// Finds the capability and reads its registers: a pair for each BAR.
///
/// # Errors
/// [`Unknown`] when the chain could not be followed to it, its registers are out of reach, or say what cannot be.
pub fn resizable(config: &mut impl ReadConfig) -> Result<Option<Vec<ResizableBar>>, Unknown> {
    let found = walk::extended(config, Some(CAPABILITY)).find(CAPABILITY)?;
    found.map(|found| bars(config, found)).transpose()
}

pub(super) fn bars(
    config: &mut impl ReadConfig,
    found: Capability,
) -> Result<Vec<ResizableBar>, Unknown> {
    let at = |register: u16| found.offset.saturating_add(register);
    // the first control register says how many there are
    let count = u16::try_from(config.dword(at(8))? >> 5 & 7).unwrap_or(0);
    let broken = |what: String| Unknown::Broken(format!("Resizable BAR at {:#05x}: {what}", at(0)));
    if !(1..=BARS).contains(&count) {
        return Err(broken(format!("it says that it has {count} BARs")));
    }
    let one = |nth: u16| {
        let capability = config.dword(at(4 + 8 * nth))?;
        let control = config.dword(at(8 + 8 * nth))?;
        if (capability, control) == (u32::MAX, u32::MAX) {
            return Err(Unknown::Gone);
        }
        let index = control & 7;
        let exponent = control >> 8 & 0x3f;
        if index >= u32::from(BARS) || exponent > 43 {
            return Err(broken(format!("BAR {index} of 2^{exponent} MiB")));
        }
        // bits 31:4 are 1 MiB to 128 TiB, and the control register goes on from bit 16: 256 TiB to 8 EiB
        let sizes = u64::from(capability >> 4) | u64::from(control >> 16) << 28;
        let supported = (0..44).filter(|bit| sizes >> bit & 1 == 1);
        Ok(ResizableBar {
            index: u8::try_from(index).unwrap_or(0),
            bytes: 1 << (20 + exponent),
            supported: supported.map(|bit| 1 << (20 + bit)).collect(),
        })
    };
    (0..count).map(one).collect()
}
