//! Which processor a program is for: the packages' architecture follows from what is in them.

use std::fs;
use std::path::Path;

use crate::Failed;

/// An architecture by the names that dpkg and rpm have for it.
#[derive(Debug, Clone, Copy)]
pub struct Arch {
    pub deb: &'static str,
    pub rpm: &'static str,
}

/// The architecture of an ELF file (System V ABI: class at 4, byte order at 5, machine at 18).
///
/// # Errors
/// It cannot be read, or is for a processor that has no name here.
pub fn arch(program: &Path) -> Result<Arch, Failed> {
    let bytes = fs::read(program).map_err(|e| format!("{}: {e}", program.display()))?;
    let header = bytes.get(..20).unwrap_or_default();
    let (deb, rpm) = match header {
        [0x7f, b'E', b'L', b'F', 2, 1, .., low, high] => match u16::from_le_bytes([*low, *high]) {
            62 => ("amd64", "x86_64"),
            183 => ("arm64", "aarch64"),
            21 => ("ppc64el", "ppc64le"),
            243 => ("riscv64", "riscv64"),
            other => {
                return Err(
                    format!("{}: no name for ELF machine {other}", program.display()).into(),
                );
            }
        },
        _ => {
            return Err(
                format!("{}: not a 64-bit little-endian ELF file", program.display()).into(),
            );
        }
    };
    Ok(Arch { deb, rpm })
}
