//! The parts of a function's configuration space that were read.
//!
//! Every dword costs a transaction on the bus (and an exit in a virtual machine), so a live machine
//! is never read whole. The walks in [`super::walk`] ask for the dwords that they need; a
//! [`Recorder`] answers from the device and keeps what it saw, and the same walks run later over the
//! recording.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Size of a PCI Express function's configuration space, in bytes.
pub const SPACE: u16 = 4096;

/// Why a dword of configuration space is not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Gap {
    /// Opening or reading the file failed.
    #[error("configuration space could not be read: {0}")]
    Failed(String),
    /// The file ends before the dword: 64 bytes for an unprivileged reader, 256 where the kernel
    /// cannot reach extended space.
    #[error("configuration space ends at byte {0}, extended capabilities are out of reach")]
    Short(u16),
    /// Nobody read that place.
    #[error("configuration space at {0:#05x} was not read")]
    NotRead(u16),
}

/// Something that configuration space can be read from, by aligned little-endian dwords.
pub trait ReadConfig {
    /// The dword at `offset`, which is a multiple of 4 below 4096.
    ///
    /// # Errors
    /// [`Gap`] where the dword cannot be had.
    fn dword(&mut self, offset: u16) -> Result<u32, Gap>;
}

/// Configuration space as read: spans of bytes, where the file ended, and the error if there was one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfigBytes {
    /// Start offset and bytes; sorted, not overlapping.
    spans: Vec<(u16, Vec<u8>)>,
    /// First offset known to be past the end.
    limit: Option<u16>,
    error: Option<String>,
}

impl ConfigBytes {
    /// A whole file, read from its start to its end. Bytes above 4096 are dropped.
    #[must_use]
    pub fn whole(bytes: &[u8]) -> Self {
        let bytes = bytes.get(..usize::from(SPACE)).unwrap_or(bytes);
        let limit = u16::try_from(bytes.len()).ok();
        let spans = if bytes.is_empty() {
            Vec::new()
        } else {
            vec![(0, bytes.to_vec())]
        };
        Self {
            spans,
            limit,
            error: None,
        }
    }

    /// A file that could not be read, and why.
    #[must_use]
    pub fn failed(why: impl Into<String>) -> Self {
        Self {
            error: Some(why.into()),
            ..Self::default()
        }
    }

    /// True when nothing was read or tried.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty() && self.error.is_none()
    }

    /// Number of bytes held.
    #[must_use]
    pub fn len(&self) -> usize {
        self.spans.iter().map(|(_, bytes)| bytes.len()).sum()
    }

    fn get(&self, offset: u16) -> Option<u32> {
        let at = self
            .spans
            .partition_point(|(start, _)| *start <= offset)
            .checked_sub(1)?;
        let (start, bytes) = self.spans.get(at)?;
        let from = usize::from(offset.checked_sub(*start)?);
        let four = bytes.get(from..from.checked_add(4)?)?;
        Some(u32::from_le_bytes(four.try_into().ok()?))
    }

    fn put(&mut self, offset: u16, value: u32) {
        let bytes = value.to_le_bytes();
        let at = self.spans.partition_point(|(start, _)| *start <= offset);
        let before = at.checked_sub(1).and_then(|i| self.spans.get_mut(i));
        match before {
            Some((start, held)) if usize::from(*start) + held.len() == usize::from(offset) => {
                held.extend_from_slice(&bytes);
            }
            _ => self.spans.insert(at, (offset, bytes.to_vec())),
        }
    }
}

impl ReadConfig for &ConfigBytes {
    fn dword(&mut self, offset: u16) -> Result<u32, Gap> {
        if let Some(value) = self.get(offset) {
            return Ok(value);
        }
        match (self.limit, &self.error) {
            (Some(limit), _) if offset.saturating_add(4) > limit => Err(Gap::Short(limit)),
            (_, Some(error)) => Err(Gap::Failed(error.clone())),
            _ => Err(Gap::NotRead(offset)),
        }
    }
}

/// Reads dwords from a device once each and keeps them.
///
/// The closure gets an offset and answers with the dword, `None` at the end of the file, or an error
/// text. After an error nothing more is tried.
#[derive(Debug)]
pub struct Recorder<F> {
    fetch: F,
    seen: ConfigBytes,
}

impl<F: FnMut(u16) -> Result<Option<u32>, String>> Recorder<F> {
    /// A recorder that has seen nothing yet.
    pub fn new(fetch: F) -> Self {
        Self {
            fetch,
            seen: ConfigBytes::default(),
        }
    }

    /// What was read.
    pub fn finish(self) -> ConfigBytes {
        self.seen
    }
}

impl<F: FnMut(u16) -> Result<Option<u32>, String>> ReadConfig for Recorder<F> {
    fn dword(&mut self, offset: u16) -> Result<u32, Gap> {
        match (&self.seen).dword(offset) {
            Err(Gap::NotRead(_)) => {}
            answer => return answer,
        }
        match (self.fetch)(offset) {
            Ok(Some(value)) => {
                self.seen.put(offset, value);
                Ok(value)
            }
            Ok(None) => {
                self.seen.limit = Some(self.seen.limit.unwrap_or(SPACE).min(offset));
                Err(Gap::Short(offset))
            }
            Err(text) => {
                self.seen.error = Some(text.clone());
                Err(Gap::Failed(text))
            }
        }
    }
}

#[derive(Serialize, Deserialize, schemars::JsonSchema)]
struct Repr<'a> {
    /// First byte past the end of the file, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    limit: Option<u16>,
    /// Why reading failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<Cow<'a, str>>,
    /// What was read: offset in bytes, then the bytes in hexadecimal.
    spans: Vec<(u16, String)>,
}

impl Serialize for ConfigBytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let spans = self
            .spans
            .iter()
            .map(|(start, bytes)| (*start, to_hex(bytes)))
            .collect();
        let error = self.error.as_deref().map(Cow::Borrowed);
        Repr {
            limit: self.limit,
            error,
            spans,
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ConfigBytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let repr = Repr::deserialize(deserializer)?;
        let mut spans = Vec::with_capacity(repr.spans.len());
        let mut end = 0_usize;
        for (start, text) in repr.spans {
            let bytes = from_hex(&text).ok_or_else(|| {
                serde::de::Error::custom("configuration bytes are not hexadecimal")
            })?;
            let from = usize::from(start);
            if from < end || from + bytes.len() > usize::from(SPACE) {
                return Err(serde::de::Error::custom(
                    "configuration spans overlap or end above 4096",
                ));
            }
            end = from + bytes.len();
            spans.push((start, bytes));
        }
        Ok(Self {
            spans,
            limit: repr.limit,
            error: repr.error.map(Cow::into_owned),
        })
    }
}

impl schemars::JsonSchema for ConfigBytes {
    fn schema_name() -> Cow<'static, str> {
        "ConfigBytes".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Repr::json_schema(generator)
    }
}

fn to_hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let pair = |two: &[u8]| {
        let digit = |b: &u8| char::from(*b).to_digit(16);
        match two {
            [high, low] => u8::try_from(digit(high)? * 16 + digit(low)?).ok(),
            _ => None,
        }
    };
    text.as_bytes().chunks(2).map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_file_says_where_it_ends() {
        let config = ConfigBytes::whole(&[0x11; 64]);
        assert_eq!((&config).dword(60), Ok(0x1111_1111));
        assert_eq!((&config).dword(64), Err(Gap::Short(64)));
        // A file cut inside a dword.
        assert_eq!(
            (&ConfigBytes::whole(&[0; 62])).dword(60),
            Err(Gap::Short(62))
        );
        assert_eq!((&ConfigBytes::whole(&[])).dword(0), Err(Gap::Short(0)));
        assert_eq!(
            (&ConfigBytes::whole(&[7; 9000])).dword(4092),
            Ok(0x0707_0707)
        );
    }

    #[test]
    fn what_was_not_read_is_not_zero() {
        assert_eq!((&ConfigBytes::default()).dword(0), Err(Gap::NotRead(0)));
        let failed = ConfigBytes::failed("Permission denied");
        assert_eq!(
            (&failed).dword(0),
            Err(Gap::Failed("Permission denied".into()))
        );
    }

    #[test]
    fn a_recorder_reads_each_dword_once_and_stops_at_the_end() {
        let mut calls = Vec::new();
        let mut recorder = Recorder::new(|offset| {
            calls.push(offset);
            Ok((offset < 256).then_some(u32::from(offset)))
        });
        for offset in [4, 0, 8, 4, 256, 512, 0] {
            let _ = recorder.dword(offset);
        }
        let seen = recorder.finish();
        assert_eq!(calls, [4, 0, 8, 256]);
        assert_eq!((&seen).dword(8), Ok(8));
        assert_eq!((&seen).dword(0), Ok(0));
        assert_eq!((&seen).dword(300), Err(Gap::Short(256)));
        assert_eq!((&seen).dword(12), Err(Gap::NotRead(12)));
    }

    #[test]
    fn json_keeps_everything() {
        let mut recorder = Recorder::new(|offset| Ok((offset < 64).then_some(0xdead_beef)));
        for offset in [0, 8, 12, 100] {
            let _ = recorder.dword(offset);
        }
        for config in [
            recorder.finish(),
            ConfigBytes::failed("x"),
            ConfigBytes::whole(&[1, 2, 3]),
        ] {
            let json = serde_json::to_string(&config).unwrap();
            assert_eq!(
                serde_json::from_str::<ConfigBytes>(&json).unwrap(),
                config,
                "{json}"
            );
        }
        for bad in [
            r#"{"spans":[[0,"0g"]]}"#,
            r#"{"spans":[[0,"000"]]}"#,
            r#"{"spans":[[0,"00000000"],[2,"00"]]}"#,
            r#"{"spans":[[4095,"0000"]]}"#,
        ] {
            assert!(serde_json::from_str::<ConfigBytes>(bad).is_err(), "{bad}");
        }
    }
}
