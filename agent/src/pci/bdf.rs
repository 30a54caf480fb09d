//! The address of a PCI function.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Domain, bus, device and function, written `0000:3b:00.0` as the kernel and `lspci -D` do.
///
/// Domains are 32 bits wide (Intel VMD and Hyper-V make domains above `ffff`), printed with at
/// least four hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bdf {
    /// PCI domain (segment group).
    pub domain: u32,
    /// Bus number.
    pub bus: u8,
    /// Device number, 0 to 31.
    pub device: u8,
    /// Function number, 0 to 7. An ARI function above 7 is written with its upper five bits as device.
    pub function: u8,
}

/// Text that is no PCI address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not a PCI address: expected [domain:]bus:device.function in hexadecimal, such as 0000:3b:00.0"
)]
pub struct BdfError {
    /// What was given.
    pub text: String,
}

impl Bdf {
    /// The address of `function` on `device` of `bus` in `domain`.
    #[must_use]
    pub const fn new(domain: u32, bus: u8, device: u8, function: u8) -> Self {
        Self {
            domain,
            bus,
            device,
            function,
        }
    }

    /// True for functions of one multi-function device (same domain, bus and device number).
    #[must_use]
    pub const fn same_device(self, other: Self) -> bool {
        self.domain == other.domain && self.bus == other.bus && self.device == other.device
    }
}

impl fmt::Display for Bdf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Padding is honoured so that tables can align addresses of different widths.
        f.pad(&format!(
            "{:04x}:{:02x}:{:02x}.{:x}",
            self.domain, self.bus, self.device, self.function
        ))
    }
}

fn hex(text: &str, width: std::ops::RangeInclusive<usize>) -> Option<u32> {
    let digits = width.contains(&text.len()) && text.bytes().all(|b| b.is_ascii_hexdigit());
    digits.then(|| u32::from_str_radix(text, 16).ok()).flatten()
}

impl FromStr for Bdf {
    type Err = BdfError;

    fn from_str(text: &str) -> Result<Self, BdfError> {
        parse(text).ok_or_else(|| BdfError {
            text: text.to_owned(),
        })
    }
}

fn parse(text: &str) -> Option<Bdf> {
    let (head, function) = text.split_once('.')?;
    let (head, device) = head.rsplit_once(':')?;
    let (domain, bus) = match head.split_once(':') {
        Some((domain, bus)) => (hex(domain, 4..=8)?, bus),
        None => (0, head),
    };
    let bus = u8::try_from(hex(bus, 2..=2)?).ok()?;
    let device = u8::try_from(hex(device, 2..=2)?).ok()?;
    let function = u8::try_from(hex(function, 1..=1)?).ok()?;
    (device < 32 && function < 8).then_some(Bdf {
        domain,
        bus,
        device,
        function,
    })
}

impl Serialize for Bdf {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Bdf {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl schemars::JsonSchema for Bdf {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Bdf".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "description": "PCI address, domain:bus:device.function in hexadecimal",
            "pattern": "^[0-9a-f]{4,8}:[0-9a-f]{2}:[01][0-9a-f]\\.[0-7]$"
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_as_the_kernel_does() {
        assert_eq!(Bdf::new(0, 0x3b, 0, 0).to_string(), "0000:3b:00.0");
        assert_eq!(
            Bdf::new(0x10000, 0xe0, 0x1f, 7).to_string(),
            "10000:e0:1f.7"
        );
        assert_eq!(format!("{:<14}|", Bdf::new(0, 1, 2, 3)), "0000:01:02.3  |");
    }

    #[test]
    fn reads_with_and_without_domain() {
        assert_eq!("3b:00.1".parse(), Ok(Bdf::new(0, 0x3b, 0, 1)));
        assert_eq!(
            "FFFF0001:3B:1f.7".parse(),
            Ok(Bdf::new(0xffff_0001, 0x3b, 0x1f, 7))
        );
    }

    #[test]
    fn rejects_everything_else() {
        for bad in [
            "",
            ":",
            ".",
            "0:0:0.0",
            "0000:3b:00",
            "0000:3b:00.8",
            "0000:3b:20.0",
            "3b:0.0",
            "+000:3b:00.0",
            "0000:3b:00.0 ",
            "000000000:3b:00.0",
            "pci0000:00",
            "0000:00:00:00.0",
            "g000:00:00.0",
            "00é0:3b:00.0",
        ] {
            assert!(bad.parse::<Bdf>().is_err(), "{bad:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn print_then_parse_is_identity(domain: u32, bus: u8, device in 0u8..32, function in 0u8..8) {
            let bdf = Bdf::new(domain, bus, device, function);
            proptest::prop_assert_eq!(bdf.to_string().parse::<Bdf>(), Ok(bdf));
            let json = serde_json::to_string(&bdf).unwrap();
            proptest::prop_assert_eq!(serde_json::from_str::<Bdf>(&json).unwrap(), bdf);
        }

        #[test]
        fn any_text_is_handled(text in "\\PC{0,20}") {
            let _ = text.parse::<Bdf>();
        }
    }
}
