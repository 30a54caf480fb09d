//! The two capability chains of a function: the standard one (PCI Local Bus Specification 3.0,
//! section 6.7) and the extended one (PCI Express Base Specification, section 7.6.3).
//!
//! Devices lie: chains loop, point into nowhere, or read as all ones because the device is gone.
//! A walk always ends, after at most one visit to each place, and says whether it saw the true end
//! of the chain. Only then may a capability that was not met be called absent.

use super::image::{Gap, ReadConfig, SPACE};

/// First byte of extended configuration space.
pub const EXTENDED_START: u16 = 0x100;
const STANDARD_START: u16 = 0x40;

/// Why something about a function is not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unknown {
    /// The bytes were not to be had.
    #[error(transparent)]
    Gap(#[from] Gap),
    /// All ones: the device does not answer.
    #[error("the device does not answer (configuration space reads all ones)")]
    Gone,
    /// The chain is malformed.
    #[error("capability chain is broken: {0}")]
    Broken(String),
}

/// One capability met on a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capability {
    /// Capability id (8 bits in the standard chain, 16 in the extended one).
    pub id: u16,
    /// Version, 4 bits; 0 in the standard chain.
    pub version: u8,
    /// Where its header lies.
    pub offset: u16,
}

/// What a walk met, and how it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    /// In chain order.
    pub capabilities: Vec<Capability>,
    /// `Ok` when the chain was followed to its end, or to the capability that was wanted.
    pub end: Result<(), Unknown>,
}

impl Chain {
    /// The first capability with this id; `Ok(None)` only when the whole chain was seen.
    ///
    /// # Errors
    /// [`Unknown`] when the walk ended early without meeting it.
    pub fn find(&self, id: u16) -> Result<Option<Capability>, Unknown> {
        match self
            .capabilities
            .iter()
            .find(|capability| capability.id == id)
        {
            Some(found) => Ok(Some(*found)),
            None => self.end.clone().map(|()| None),
        }
    }
}

/// True when the function does not answer. The vendor word alone does not tell: virtual functions
/// read all ones there too (Single Root I/O Virtualization 1.1, section 3.4.1.1).
///
/// # Errors
/// [`Gap`] when the header cannot be read.
pub fn gone(config: &mut impl ReadConfig) -> Result<bool, Gap> {
    Ok(config.dword(0)? == u32::MAX && config.dword(8)? == u32::MAX)
}

/// Walks the standard chain. With `wanted`, stops at the first capability that has this id.
pub fn standard(config: &mut impl ReadConfig, wanted: Option<u16>) -> Chain {
    let mut capabilities = Vec::new();
    let end = standard_into(config, wanted, &mut capabilities);
    Chain { capabilities, end }
}

fn standard_into(
    config: &mut impl ReadConfig,
    wanted: Option<u16>,
    capabilities: &mut Vec<Capability>,
) -> Result<(), Unknown> {
    if gone(config)? {
        return Err(Unknown::Gone);
    }
    let has_list = config.dword(0x04)? & 0x0010_0000 != 0;
    if !has_list {
        return Ok(());
    }
    let header = config.dword(0x0c)?.to_le_bytes()[2] & 0x7f;
    let pointer = match header {
        0 | 1 => config.dword(0x34)?,
        2 => config.dword(0x14)?,
        other => {
            return Err(Unknown::Broken(format!(
                "header type {other:#04x} is not known"
            )));
        }
    };
    let mut at = u16::from(pointer.to_le_bytes()[0]) & 0xfc;
    let mut visited = Visited::default();
    while at != 0 {
        if at < STANDARD_START {
            return Err(Unknown::Broken(format!(
                "a pointer leads to {at:#04x}, into the header"
            )));
        }
        visited.enter(at)?;
        let [id, next, ..] = config.dword(at)?.to_le_bytes();
        if id == 0xff {
            return Err(Unknown::Broken(format!("capability id 0xff at {at:#04x}")));
        }
        capabilities.push(Capability {
            id: u16::from(id),
            version: 0,
            offset: at,
        });
        if wanted == Some(u16::from(id)) {
            return Ok(());
        }
        at = u16::from(next) & 0xfc;
    }
    Ok(())
}

/// Walks the extended chain. With `wanted`, stops at the first capability that has this id.
///
/// A space that ends at byte 64 or 256 gives an unknown end, never an empty chain.
pub fn extended(config: &mut impl ReadConfig, wanted: Option<u16>) -> Chain {
    let mut capabilities = Vec::new();
    let end = extended_into(config, wanted, &mut capabilities);
    Chain { capabilities, end }
}

fn extended_into(
    config: &mut impl ReadConfig,
    wanted: Option<u16>,
    capabilities: &mut Vec<Capability>,
) -> Result<(), Unknown> {
    if gone(config)? {
        return Err(Unknown::Gone);
    }
    // Some conventional devices repeat their first 256 bytes all the way up; the kernel
    // (pci_ext_cfg_is_aliased) takes that for "no extended space".
    let first = config.dword(EXTENDED_START)?;
    if first != 0 && first == config.dword(0)? {
        return Ok(());
    }
    let mut at = EXTENDED_START;
    let mut visited = Visited::default();
    while at != 0 {
        if at < EXTENDED_START {
            return Err(Unknown::Broken(format!(
                "a pointer leads to {at:#05x}, below 0x100"
            )));
        }
        visited.enter(at)?;
        let header = config.dword(at)?;
        if header == 0 {
            return Ok(());
        }
        if header == u32::MAX {
            return Err(Unknown::Broken(format!("all ones at {at:#05x}")));
        }
        let [id_low, id_high, version, _] = header.to_le_bytes();
        let id = u16::from_le_bytes([id_low, id_high]);
        capabilities.push(Capability {
            id,
            version: version & 0xf,
            offset: at,
        });
        if wanted == Some(id) {
            return Ok(());
        }
        at = u16::try_from(header >> 20).unwrap_or(0) & 0xffc;
    }
    Ok(())
}

/// One bit per dword of configuration space.
#[derive(Default)]
struct Visited([u64; SPACE as usize / 4 / 64]);

impl Visited {
    fn enter(&mut self, offset: u16) -> Result<(), Unknown> {
        let dword = usize::from(offset / 4);
        let bit = 1_u64 << (dword % 64);
        match self.0.get_mut(dword / 64) {
            Some(word) if *word & bit == 0 => {
                *word |= bit;
                Ok(())
            }
            Some(_) => Err(Unknown::Broken(format!("it loops back to {offset:#05x}"))),
            None => Err(Unknown::Broken(format!(
                "a pointer leads to {offset:#06x}, past the end"
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::ConfigBytes;
    use super::*;

    fn put(bytes: &mut [u8], offset: usize, value: u32) {
        bytes[offset..offset + 4].copy_from_slice(&value.to_le_bytes());
    }

    fn device() -> Vec<u8> {
        let mut bytes = vec![0; 4096];
        put(&mut bytes, 0, 0x2330_10de);
        put(&mut bytes, 4, 0x0010_0000);
        put(&mut bytes, 0x34, 0x60);
        put(&mut bytes, 0x60, 0x0000_6801);
        put(&mut bytes, 0x68, 0x0002_0010);
        put(&mut bytes, 0x100, 0x1481_0001);
        put(&mut bytes, 0x148, 0x0001_000d);
        bytes
    }

    fn ids(chain: &Chain) -> Vec<(u16, u16)> {
        chain
            .capabilities
            .iter()
            .map(|c| (c.id, c.offset))
            .collect()
    }

    #[test]
    fn follows_both_chains() {
        let config = ConfigBytes::whole(&device());
        let chain = standard(&mut &config, None);
        assert_eq!(
            (ids(&chain), chain.end),
            (vec![(1, 0x60), (0x10, 0x68)], Ok(()))
        );
        let chain = extended(&mut &config, None);
        assert_eq!(
            (ids(&chain), chain.end.clone()),
            (vec![(1, 0x100), (0xd, 0x148)], Ok(()))
        );
        assert_eq!(chain.find(0x0f), Ok(None));
        assert_eq!(chain.find(0x0d).unwrap().unwrap().version, 1);
        let stopped = extended(&mut &config, Some(1));
        assert_eq!(ids(&stopped), [(1, 0x100)]);
    }

    #[test]
    fn a_loop_is_an_unknown_end_but_what_was_met_counts() {
        let mut bytes = device();
        put(&mut bytes, 0x148, 0x1001_000d);
        put(&mut bytes, 0x68, 0x0002_6010);
        let config = ConfigBytes::whole(&bytes);
        let chain = extended(&mut &config, None);
        assert!(chain.find(0x0d).unwrap().is_some());
        assert!(
            chain
                .find(0x0f)
                .unwrap_err()
                .to_string()
                .contains("loops back to 0x100")
        );
        assert!(matches!(
            standard(&mut &config, None).end,
            Err(Unknown::Broken(_))
        ));
    }

    #[test]
    fn too_short_is_not_absent() {
        for length in [64, 256] {
            let config = ConfigBytes::whole(&device()[..length]);
            let end = extended(&mut &config, None).find(0x0d);
            assert_eq!(
                end,
                Err(Unknown::Gap(Gap::Short(u16::try_from(length).unwrap())))
            );
        }
    }

    #[test]
    fn all_ones_is_gone_except_in_the_ids_of_a_virtual_function() {
        let config = ConfigBytes::whole(&[0xff; 4096]);
        assert_eq!(extended(&mut &config, None).end, Err(Unknown::Gone));
        assert_eq!(standard(&mut &config, None).end, Err(Unknown::Gone));
        let mut bytes = device();
        put(&mut bytes, 0, u32::MAX);
        assert_eq!(extended(&mut &ConfigBytes::whole(&bytes), None).end, Ok(()));
    }

    #[test]
    fn pointers_into_the_header_break_the_chain() {
        let mut bytes = device();
        put(&mut bytes, 0x100, 0x0401_0001);
        put(&mut bytes, 0x34, 0x10);
        let config = ConfigBytes::whole(&bytes);
        assert!(matches!(
            extended(&mut &config, None).end,
            Err(Unknown::Broken(_))
        ));
        assert!(matches!(
            standard(&mut &config, None).end,
            Err(Unknown::Broken(_))
        ));
    }

    #[test]
    fn aliased_space_holds_no_extended_capabilities() {
        let bytes: Vec<u8> = device()[..256].repeat(16);
        let chain = extended(&mut &ConfigBytes::whole(&bytes), None);
        assert_eq!((ids(&chain), chain.end), (vec![], Ok(())));
    }

    #[test]
    fn the_longest_chain_is_followed_to_its_end() {
        let mut bytes = device();
        for at in (0x100..0xffc).step_by(4) {
            put(
                &mut bytes,
                at,
                u32::try_from((at + 4) << 20 | 0x0001_0002).unwrap(),
            );
        }
        put(&mut bytes, 0xffc, 0x0001_000d);
        let chain = extended(&mut &ConfigBytes::whole(&bytes), None);
        assert_eq!(chain.find(0x0d).unwrap().unwrap().offset, 0xffc);
        assert_eq!(chain.capabilities.len(), 960);
    }

    proptest::proptest! {
        /// Headers all over the space, each with a pointer that is often good: chains cross, loop
        /// and leave. The answer must be that of a plain walk with a list of places seen.
        #[test]
        fn tangled_chains_end_as_a_plain_walk_does(
            links in proptest::collection::vec((0_u16..40, 0_u32..6, 0_u16..44), 0..60),
        ) {
            let mut bytes = device();
            bytes[0x100..].fill(0);
            let place = |index: u16| usize::from(0xfc + index * 4);
            for (at, id, next) in links {
                let pointer = if next == 0 { 0 } else { place(next) };
                put(&mut bytes, place(at + 1), u32::try_from(pointer << 20).unwrap() | 0x0001_000a | id);
            }
            let mut seen = Vec::new();
            let mut at = 0x100;
            let clean = loop {
                if at == 0 { break true }
                if seen.iter().any(|(_, place)| *place == at) { break false }
                let header = u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
                if header == 0 { break true }
                seen.push((header & 0xffff, at));
                at = (header >> 20) as usize & 0xffc;
            };
            let chain = extended(&mut &ConfigBytes::whole(&bytes), None);
            let got: Vec<(u32, usize)> =
                chain.capabilities.iter().map(|c| (u32::from(c.id), usize::from(c.offset))).collect();
            proptest::prop_assert_eq!(got, seen);
            proptest::prop_assert_eq!(chain.end.is_ok(), clean);
        }
    }
}
