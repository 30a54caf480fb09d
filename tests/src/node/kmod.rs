//! Kernel modules: real ELF files, with as much in them as tells what a module is, needs, exports and was
//! built for. There is no code in them.
//!
//! After Linux scripts/mod/modpost.c (`.modinfo`, `__versions`), include/linux/export-internal.h
//! (`__ksymtab_*`, `__crc_*`), include/linux/module_signature.h, and RFC 5652 for what a signature is.

use std::io::Write as _;

use object::write::{Object, Symbol, SymbolSection};
use object::{
    Architecture, BinaryFormat, Endianness, SectionKind, SymbolFlags, SymbolKind, SymbolScope,
};

/// What `CONFIG_MODVERSIONS`, SMP and the rest add to a release in a vermagic.
pub const OPTIONS: &str = "SMP preempt mod_unload modversions ";

/// The function that a client of the peer-memory interface registers with.
pub const REGISTER: &str = "ib_register_peer_memory_client";

/// The same for taking leave.
pub const UNREGISTER: &str = "ib_unregister_peer_memory_client";

/// A module.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Kmod {
    /// `.modinfo`, in order.
    pub info: Vec<(String, String)>,
    /// Undefined symbols.
    pub needs: Vec<String>,
    /// `__versions`.
    pub versions: Vec<(String, u32)>,
    /// Exported symbols and their versions.
    pub exports: Vec<(String, u32)>,
    /// Who signed it.
    pub signer: Option<String>,
}

/// How a file is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// `.ko`
    None,
    /// `.ko.gz`
    Gzip,
    /// `.ko.xz`
    Xz,
    /// `.ko.zst`
    Zstd,
}

impl Packing {
    /// What the name ends in.
    #[must_use]
    pub fn suffix(self) -> &'static str {
        match self {
            Packing::None => "",
            Packing::Gzip => ".gz",
            Packing::Xz => ".xz",
            Packing::Zstd => ".zst",
        }
    }

    /// Packs, at the fastest level.
    ///
    /// # Errors
    /// The encoder's.
    pub fn pack(self, bytes: &[u8]) -> std::io::Result<Vec<u8>> {
        match self {
            Packing::None => Ok(bytes.to_vec()),
            Packing::Gzip => {
                let level = flate2::Compression::fast();
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
                encoder.write_all(bytes)?;
                encoder.finish()
            }
            Packing::Xz => {
                let options = lzma_rust2::XzOptions::with_preset(0);
                let mut encoder = lzma_rust2::XzWriter::new(Vec::new(), options)?;
                encoder.write_all(bytes)?;
                encoder.finish()
            }
            Packing::Zstd => {
                let level = ruzstd::encoding::CompressionLevel::Fastest;
                Ok(ruzstd::encoding::compress_to_vec(bytes, level))
            }
        }
    }
}

impl Kmod {
    /// A module of that name for a kernel.
    #[must_use]
    pub fn new(name: &str, vermagic: &str) -> Self {
        let mut kmod = Kmod::default();
        kmod.info("name", &name.replace('-', "_"));
        kmod.info("vermagic", vermagic);
        kmod
    }

    /// Adds a line of `.modinfo`.
    pub fn info(&mut self, key: &str, value: &str) -> &mut Self {
        self.info.push((key.to_owned(), value.to_owned()));
        self
    }

    /// Adds a symbol that somebody else exports, and its version.
    pub fn need(&mut self, symbol: &str, crc: u32) -> &mut Self {
        self.needs.push(symbol.to_owned());
        self.versions.push((symbol.to_owned(), crc));
        self
    }

    /// Adds a symbol for others.
    pub fn export(&mut self, symbol: &str, crc: u32) -> &mut Self {
        self.exports.push((symbol.to_owned(), crc));
        self
    }

    /// The bytes of the file.
    ///
    /// # Errors
    /// The ELF writer's.
    pub fn bytes(&self) -> Result<Vec<u8>, object::write::Error> {
        let mut elf = Object::new(BinaryFormat::Elf, Architecture::X86_64, Endianness::Little);
        let mut section = |name: &str, bytes: Vec<u8>| {
            let id = elf.add_section(Vec::new(), name.into(), SectionKind::ReadOnlyData);
            elf.append_section_data(id, &bytes, 8);
            id
        };
        let info = self.info.iter();
        let info = info.flat_map(|(key, value)| format!("{key}={value}\0").into_bytes());
        section(".modinfo", info.collect());
        if !self.versions.is_empty() {
            section(
                "__versions",
                self.versions.iter().flat_map(version).collect(),
            );
        }
        let table = section("__ksymtab", vec![0; 12 * self.exports.len()]);
        let crcs = self.exports.iter().flat_map(|(_, crc)| crc.to_le_bytes());
        let crcs = section("__kcrctab", crcs.collect());
        let names = self.exports.iter();
        let names = names.flat_map(|(name, _)| format!("{name}\0").into_bytes());
        section("__ksymtab_strings", names.collect());
        let mut symbol = |name: String, value: u64, place: SymbolSection| {
            let scope = match place {
                SymbolSection::Undefined => SymbolScope::Unknown,
                _ => SymbolScope::Compilation,
            };
            elf.add_symbol(Symbol {
                name: name.into_bytes(),
                value,
                size: 0,
                kind: SymbolKind::Data,
                scope,
                weak: false,
                section: place,
                flags: SymbolFlags::None,
            });
        };
        for (index, (name, _)) in (0_u64..).zip(&self.exports) {
            symbol(
                format!("__ksymtab_{name}"),
                index * 12,
                SymbolSection::Section(table),
            );
            symbol(
                format!("__crc_{name}"),
                index * 4,
                SymbolSection::Section(crcs),
            );
        }
        for name in &self.needs {
            symbol(name.clone(), 0, SymbolSection::Undefined);
        }
        let mut bytes = elf.write()?;
        if let Some(signer) = &self.signer {
            bytes.extend(signature(signer));
        }
        Ok(bytes)
    }
}

/// `struct modversion_info { unsigned long crc; char name[56]; }`
fn version((name, crc): &(String, u32)) -> Vec<u8> {
    let mut entry = u64::from(*crc).to_le_bytes().to_vec();
    entry.extend(name.bytes().take(55));
    entry.resize(64, 0);
    entry
}

/// A PKCS #7 message of the right shape by somebody, then the kernel's trailer. What it signs is not looked at.
fn signature(signer: &str) -> Vec<u8> {
    const SIGNED_DATA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07, 0x02];
    const DATA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07, 0x01];
    const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
    const SHA256: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01];
    const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
    let sequence = |parts: &[Vec<u8>]| der(0x30, &parts.concat());
    let set = |parts: &[Vec<u8>]| der(0x31, &parts.concat());
    let oid = |bytes: &[u8]| der(0x06, bytes);
    let integer = |bytes: &[u8]| der(0x02, bytes);
    let name = sequence(&[oid(COMMON_NAME), der(0x0c, signer.as_bytes())]);
    let issuer = sequence(&[set(&[name])]);
    let info = sequence(&[
        integer(&[1]),
        sequence(&[issuer, integer(&[0x51, 0xf8, 0x2e])]),
        sequence(&[oid(SHA256)]),
        sequence(&[oid(RSA), der(0x05, &[])]),
        der(0x04, &[0xa5; 256]),
    ]);
    let signed = sequence(&[
        integer(&[1]),
        set(&[sequence(&[oid(SHA256)])]),
        sequence(&[oid(DATA)]),
        set(&[info]),
    ]);
    let mut bytes = sequence(&[oid(SIGNED_DATA), der(0xa0, &signed)]);
    let length = u32::try_from(bytes.len()).unwrap_or(0);
    // PKEY_ID_PKCS7 is 2.
    bytes.extend([0, 0, 2, 0, 0, 0, 0, 0]);
    bytes.extend(length.to_be_bytes());
    bytes.extend(b"~Module signature appended~\n");
    bytes
}

fn der(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![tag];
    let length = content.len().to_be_bytes();
    let length = length.iter().skip_while(|b| **b == 0);
    let length: Vec<u8> = length.copied().collect();
    match length.as_slice() {
        [] => bytes.push(0),
        [short] if *short < 0x80 => bytes.push(*short),
        long => {
            bytes.push(0x80 | u8::try_from(long.len()).unwrap_or(0));
            bytes.extend(long);
        }
    }
    bytes.extend(content);
    bytes
}
