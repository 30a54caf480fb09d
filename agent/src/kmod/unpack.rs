//! Modules as distributions pack them: plain, or with gzip, xz or Zstandard.

use std::io::Read;

use schemars::JsonSchema;
use serde::Serialize;

/// What a module may measure unpacked. The largest in a distribution's kernel is a tenth of it; the NVIDIA
/// driver's own, with its firmware interface linked in, comes near it.
pub const LIMIT: u64 = 192 << 20;

/// Windows and dictionaries larger than this are in no module: the kernel's own build uses 2 MiB at most
/// for xz, and Zstandard's levels end at 128 MiB.
const WINDOW: u64 = 128 << 20;

/// How a file is packed, by its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Packing {
    /// Not at all.
    None,
    /// RFC 1952.
    Gzip,
    /// The .xz file format.
    Xz,
    /// RFC 8878.
    Zstd,
}

/// Why a file could not be unpacked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnpackError {
    /// The packed data is damaged or cut short.
    #[error("its {kind} data cannot be unpacked: {why}")]
    Damaged {
        /// The packing.
        kind: &'static str,
        /// What the decoder said.
        why: String,
    },
    /// It would be larger than any module is.
    #[error("unpacked it is larger than {0} MiB, which no module is")]
    TooLarge(u64),
}

impl Packing {
    /// By the magic number.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        match bytes {
            [0x1f, 0x8b, ..] => Self::Gzip,
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Self::Xz,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Self::Zstd,
            _ => Self::None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::None => "plain",
            Self::Gzip => "gzip",
            Self::Xz => "xz",
            Self::Zstd => "zstd",
        }
    }
}

/// The bytes of the module itself, at most `limit` of them. What is not packed comes back as it is.
///
/// # Errors
/// The packed data is damaged, cut short, or would be larger than `limit` bytes.
pub fn unpack(bytes: Vec<u8>, limit: u64) -> Result<Vec<u8>, UnpackError> {
    let packing = Packing::of(&bytes);
    let damaged = |why: String| UnpackError::Damaged {
        kind: packing.name(),
        why,
    };
    let input = bytes.as_slice();
    let unpacked = match packing {
        Packing::None => return Ok(bytes),
        Packing::Gzip => take(flate2::read::MultiGzDecoder::new(input), limit),
        Packing::Xz => {
            let memory = u32::try_from(WINDOW >> 10).unwrap_or(u32::MAX);
            take(
                lzma_rust2::XzReader::new_mem_limit(input, true, memory),
                limit,
            )
        }
        Packing::Zstd => {
            let decoder =
                ruzstd::decoding::StreamingDecoder::new_with_max_window_size(input, WINDOW)
                    .map_err(|e| damaged(e.to_string()))?;
            take(decoder, limit)
        }
    };
    let unpacked = unpacked.map_err(|e| damaged(e.to_string()))?;
    if unpacked.len() as u64 > limit {
        return Err(UnpackError::TooLarge(limit >> 20));
    }
    Ok(unpacked)
}

/// One byte more than the limit shows that there is more.
fn take(reader: impl Read, limit: u64) -> std::io::Result<Vec<u8>> {
    let mut unpacked = Vec::new();
    reader.take(limit + 1).read_to_end(&mut unpacked)?;
    Ok(unpacked)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn a_plain_file_stays_as_it_is() {
        assert_eq!(unpack(b"\x7fELF".to_vec(), 1).unwrap(), b"\x7fELF");
    }

    #[test]
    fn the_limit_holds_to_the_byte() {
        let packed = gzip(&[7; 4096]);
        assert_eq!(unpack(packed.clone(), 4096).unwrap().len(), 4096);
        assert_eq!(unpack(packed, 4095), Err(UnpackError::TooLarge(0)));
    }

    #[test]
    fn what_is_cut_short_is_an_error_in_every_packing() {
        let packed = gzip(&[7; 4096]);
        let cut = packed[..packed.len() / 2].to_vec();
        assert!(matches!(
            unpack(cut, LIMIT),
            Err(UnpackError::Damaged { kind: "gzip", .. })
        ));
        for (magic, name) in [
            (&b"\xfd7zXZ\0"[..], "xz"),
            (&b"\x28\xb5\x2f\xfd"[..], "zstd"),
        ] {
            match unpack(magic.to_vec(), LIMIT) {
                Err(UnpackError::Damaged { kind, .. }) => assert_eq!(kind, name),
                other => panic!("{name}: {other:?}"),
            }
        }
    }
}
