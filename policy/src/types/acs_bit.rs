//! The ACS control bits that a policy may clear.

use super::Invalid;
use super::choices::spelled;
use crate::escape::quote;

spelled! {
    /// A redirect bit of the ACS control word (PCIe base specification, ACS Control Register).
    AcsBit {
        /// P2P Request Redirect.
        Rr = "RR",
        /// P2P Completion Redirect.
        Cr = "CR",
        /// P2P Egress Control.
        Ec = "EC",
    }
}

impl AcsBit {
    /// The bit in the 16-bit ACS control word (`PCI_ACS_RR`, `_CR`, `_EC` in the kernel's
    /// `pci_regs.h`).
    pub const fn mask(self) -> u16 {
        match self {
            Self::Rr => 0x04,
            Self::Cr => 0x08,
            Self::Ec => 0x20,
        }
    }
}

/// The other bits of the word, which guard isolation and send no peer traffic to the root.
const OTHERS: [(&str, &str); 7] = [
    ("SV", "source validation"),
    ("TB", "translation blocking"),
    ("UF", "upstream forwarding"),
    ("DT", "direct translated P2P"),
    ("IB", "I/O request blocking"),
    ("DSP", "downstream port memory target access"),
    ("USP", "upstream port memory target access"),
];

impl std::str::FromStr for AcsBit {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        if let Some(bit) = Self::ALL.iter().copied().find(|bit| bit.as_str() == text) {
            return Ok(bit);
        }
        let upper = text.to_ascii_uppercase();
        if let Some(bit) = Self::ALL.iter().find(|bit| bit.as_str() == upper) {
            return Err(
                Invalid::new(format!("{} is not an ACS redirect bit", quote(text)))
                    .help(format!("did you mean `{bit}`?")),
            );
        }
        let what = OTHERS
            .iter()
            .find(|(name, _)| *name == upper)
            .map_or_else(String::new, |(_, meaning)| format!(" ({meaning})"));
        Err(Invalid::new(format!(
            "{}{what} may not be cleared, only the redirect bits RR, CR and EC",
            quote(text)
        ))
        .help(
            "RR, CR and EC are what sends GPU-NIC traffic through the root complex; \
             the other bits guard isolation and stay as they are",
        ))
    }
}
