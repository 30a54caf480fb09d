//! Which PCI functions count as a GPU or a NIC.

use std::fmt;
use std::str::FromStr;

use super::{Invalid, string_form};
use crate::escape::quote;

/// `vendor:device/class`: each part four hex digits, or `*` for any. `10de:*/0302` is every NVIDIA
/// 3D controller. The class is base class and subclass, the upper 16 bits of sysfs' `class`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Selector {
    vendor: Option<u16>,
    device: Option<u16>,
    class: Option<u16>,
}

impl Selector {
    /// Whether a function with these ids is selected.
    pub fn matches(&self, vendor: u16, device: u16, class: u16) -> bool {
        let fits = |want: Option<u16>, is: u16| want.is_none_or(|want| want == is);
        fits(self.vendor, vendor) && fits(self.device, device) && fits(self.class, class)
    }
}

impl FromStr for Selector {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let malformed = || {
            Invalid::new(format!("{} is not a device selector", quote(text))).help(
                "write vendor:device/class, each four hex digits or `*`, as in \"10de:*/0302\"",
            )
        };
        let (ids, class) = text.split_once('/').ok_or_else(malformed)?;
        let (vendor, device) = ids.split_once(':').ok_or_else(malformed)?;
        let part = |part: &str| match part {
            "*" => Ok(None),
            _ if part.len() == 4 && part.bytes().all(|b| b.is_ascii_hexdigit()) => {
                u16::from_str_radix(part, 16)
                    .map(Some)
                    .map_err(|_| malformed())
            }
            _ => Err(malformed()),
        };
        let selector = Self {
            vendor: part(vendor)?,
            device: part(device)?,
            class: part(class)?,
        };
        if selector.vendor.is_none() && selector.class.is_none() {
            return Err(Invalid::new(format!(
                "{} matches devices of every vendor and class",
                quote(text)
            ))
            .help("name the vendor, the class, or both"));
        }
        Ok(selector)
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part =
            |part: Option<u16>| part.map_or_else(|| "*".to_owned(), |id| format!("{id:04x}"));
        write!(
            f,
            "{}:{}/{}",
            part(self.vendor),
            part(self.device),
            part(self.class)
        )
    }
}

string_form!(
    Selector,
    "PCI functions by vendor:device/class, each four hex digits or `*`; vendor or class is named.",
    r"^([0-9a-fA-F]{4}:([0-9a-fA-F]{4}|\*)/([0-9a-fA-F]{4}|\*)|\*:([0-9a-fA-F]{4}|\*)/[0-9a-fA-F]{4})$"
);
