//! Access Control Services: the bits of the capability and control words, and what they do to
//! peer-to-peer traffic (PCI Express Base Specification, sections 6.12 and 7.7.11).

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Extended capability id.
pub const CAPABILITY_ID: u16 = 0x000d;
/// Where the control word lies, from the capability's start.
pub const CONTROL_OFFSET: u16 = 6;

/// Source Validation: checks the requester's bus number, redirects nothing.
pub const SV: u16 = 0x01;
/// Translation Blocking: rejects requests that carry translated addresses.
pub const TB: u16 = 0x02;
/// P2P Request Redirect: peer requests go up to the root complex.
pub const RR: u16 = 0x04;
/// P2P Completion Redirect: their completions do.
pub const CR: u16 = 0x08;
/// Upstream Forwarding: only matters for traffic back to the port that it came from.
pub const UF: u16 = 0x10;
/// P2P Egress Control: the egress vector blocks or redirects per port pair.
pub const EC: u16 = 0x20;
/// Direct Translated P2P: translated requests go direct in spite of `RR`.
pub const DT: u16 = 0x40;

/// The bits that keep peer traffic from going straight through a switch; the kernel's
/// `pci_bridge_has_acs_redir()` asks for the same three.
pub const REDIRECT: u16 = RR | CR | EC;

/// Mask, the two letters that policies and the specification use, and the name that lspci prints.
const BITS: [(u16, &str, &str); 7] = [
    (SV, "SV", "SrcValid"),
    (TB, "TB", "TransBlk"),
    (RR, "RR", "ReqRedir"),
    (CR, "CR", "CmpltRedir"),
    (UF, "UF", "UpstreamFwd"),
    (EC, "EC", "EgressCtrl"),
    (DT, "DT", "DirectTrans"),
];

/// ACS Enhanced bits of the control word (since PCI Express 5.0), which lspci does not print.
const ENHANCED: [(u16, &str); 4] = [
    (0x0080, "IoReqBlk"),
    (0x0300, "DspMemTarget"),
    (0x0c00, "UspMemTarget"),
    (0x1000, "UnclaimedRedir"),
];

/// The ACS registers of one port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AcsRegisters {
    /// Where the capability starts in configuration space.
    pub offset: u16,
    /// Capability word, at `offset + 4`.
    pub cap: u16,
    /// Control word, at `offset + 6`.
    pub ctl: u16,
}

impl AcsRegisters {
    /// The registers at `offset`, from the dword at `offset + 4`.
    #[must_use]
    pub const fn decode(offset: u16, word: u32) -> Self {
        let [cap_low, cap_high, ctl_low, ctl_high] = word.to_le_bytes();
        Self {
            offset,
            cap: u16::from_le_bytes([cap_low, cap_high]),
            ctl: u16::from_le_bytes([ctl_low, ctl_high]),
        }
    }

    /// Bits in the egress control vector, 0 without the capability.
    #[must_use]
    pub const fn egress_vector_bits(self) -> u16 {
        match (self.cap & EC, self.cap >> 8) {
            (0, _) => 0,
            (_, 0) => 256,
            (_, bits) => bits,
        }
    }

    /// True if this port redirects peer traffic.
    #[must_use]
    pub const fn redirects(self) -> bool {
        redirects(self.ctl)
    }
}

/// True if a control word redirects peer traffic.
#[must_use]
pub const fn redirects(ctl: u16) -> bool {
    ctl & REDIRECT != 0
}

/// All seven bits as lspci prints them: `SrcValid+ TransBlk- ReqRedir+ ...`.
#[must_use]
pub fn long_names(word: u16) -> String {
    let mut text = String::with_capacity(96);
    for (mask, _, name) in BITS {
        let sign = if word & mask == 0 { '-' } else { '+' };
        let _ = write!(
            text,
            "{}{name}{sign}",
            if text.is_empty() { "" } else { " " }
        );
    }
    text
}

/// The bits that are set, by their short names: `SV RR CR UF`; `-` when none is. Enhanced bits of a
/// control word follow by name.
#[must_use]
pub fn short_names(ctl: u16) -> String {
    let plain = BITS
        .iter()
        .filter(|(mask, ..)| ctl & mask != 0)
        .map(|(_, short, _)| *short);
    let enhanced = ENHANCED
        .iter()
        .filter(|(mask, _)| ctl & mask != 0)
        .map(|(_, name)| *name);
    let names: Vec<&str> = plain.chain(enhanced).collect();
    if names.is_empty() {
        "-".to_owned()
    } else {
        names.join(" ")
    }
}

/// The mask of a bit by its short name, such as `RR`.
#[must_use]
pub fn mask_of(short: &str) -> Option<u16> {
    BITS.iter()
        .find(|(_, name, _)| *name == short)
        .map(|(mask, ..)| *mask)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_redirect_mask_is_0x2c() {
        assert_eq!(REDIRECT, 0x2c);
        assert!(!redirects(SV | TB | UF | DT));
        for bit in [RR, CR, EC] {
            assert!(redirects(bit));
        }
    }

    #[test]
    fn decodes_the_dword_after_the_header() {
        let acs = AcsRegisters::decode(0x148, 0x001d_085f);
        assert_eq!(
            acs,
            AcsRegisters {
                offset: 0x148,
                cap: 0x085f,
                ctl: 0x001d
            }
        );
        assert_eq!(acs.egress_vector_bits(), 0);
        assert_eq!(AcsRegisters::decode(0x148, 0x087f).egress_vector_bits(), 8);
        assert_eq!(
            AcsRegisters::decode(0x148, 0x007f).egress_vector_bits(),
            256
        );
    }

    #[test]
    fn names_as_lspci_prints_them() {
        assert_eq!(
            long_names(0x1d),
            "SrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-"
        );
        assert_eq!(short_names(0x1d), "SV RR CR UF");
        assert_eq!(short_names(0x1001), "SV UnclaimedRedir");
        assert_eq!(short_names(0), "-");
        assert_eq!((mask_of("EC"), mask_of("ec")), (Some(0x20), None));
    }
}
