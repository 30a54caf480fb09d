//! Who a function is, from its header.

use crate::pci::image::ReadConfig;
use crate::pci::walk;

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
