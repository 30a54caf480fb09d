//! What is in a module: its description, what it needs and what it exports, each with its version.

use std::collections::{BTreeMap, BTreeSet};

use object::read::elf::{ElfFile64, ElfSymbol64};
use object::{
    Endianness, Object, ObjectSection, ObjectSymbol, ReadRef, SectionIndex, SymbolSection,
};

use super::signature::{Signature, signature};

/// Why bytes are no module.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModuleError {
    /// Not an ELF file, or a damaged one.
    #[error("it is no 64-bit ELF file: {0}")]
    Elf(String),
    /// ELF, and a part of it is not what it has to be.
    #[error("it is damaged: {0}")]
    Damaged(&'static str),
    /// ELF, and no `.modinfo` section.
    #[error("it has no .modinfo section, so it is no kernel module")]
    NoModinfo,
}

/// The description: section `.modinfo`, `key=value` strings that end in NUL (Linux scripts/mod/modpost.c).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Header {
    /// The module's name, as in `/sys/module`; in modules built since Linux 4.15.
    pub name: Option<String>,
    /// `MODULE_VERSION`.
    pub version: Option<String>,
    /// `MODULE_LICENSE`.
    pub license: Option<String>,
    /// The kernel that it was built for: release, then options that change the ABI.
    pub vermagic: Option<String>,
    /// A hash of the sources.
    pub srcversion: Option<String>,
}

/// A module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Module {
    /// Its description.
    pub header: Header,
    /// Symbols that somebody else has to define.
    pub needs: BTreeSet<String>,
    /// The version of each symbol that it was built against; empty without `CONFIG_MODVERSIONS`.
    pub versions: BTreeMap<String, u32>,
    /// What it exports.
    pub exports: BTreeMap<String, Export>,
    /// Its signature.
    pub signature: Option<Signature>,
}

/// An exported symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Export {
    /// Its version; none without `CONFIG_MODVERSIONS`, or where the file does not tell.
    pub crc: Option<u32>,
}

type Elf<'d, R> = ElfFile64<'d, Endianness, R>;

impl Header {
    /// Reads no more of `data` than it takes: the driver's main module measures tens of megabytes.
    ///
    /// # Errors
    /// See [`ModuleError`].
    pub fn read<'d, R: ReadRef<'d>>(data: R) -> Result<Self, ModuleError> {
        header(&parse(data)?)
    }
}

impl Module {
    /// Reads an unpacked module; `end` is the end of it, or all, where the signature is.
    ///
    /// # Errors
    /// See [`ModuleError`].
    pub fn read<'d, R: ReadRef<'d>>(data: R, end: &[u8]) -> Result<Self, ModuleError> {
        let elf = parse(data)?;
        let header = header(&elf)?;
        if elf.symbols().next().is_none() {
            return Err(ModuleError::Damaged("it has no symbols"));
        }
        // A name that is lost must not make the module look as if it needed less.
        let name = |symbol: ElfSymbol64<'d, '_, Endianness, R>| match symbol.name() {
            Ok(name) if !name.is_empty() => Ok(name.to_owned()),
            _ => Err(ModuleError::Damaged("a symbol has no name")),
        };
        let undefined = elf.symbols().filter(ObjectSymbol::is_undefined);
        let needs = undefined.map(name).collect::<Result<_, _>>()?;
        Ok(Self {
            header,
            needs,
            versions: versions(&elf)?,
            exports: exports(&elf)?,
            signature: signature(end),
        })
    }
}

fn parse<'d, R: ReadRef<'d>>(data: R) -> Result<Elf<'d, R>, ModuleError> {
    Elf::parse(data).map_err(|e| ModuleError::Elf(e.to_string()))
}

/// A section that is there and cannot be read is an error: nothing follows from it.
fn section<'d, R: ReadRef<'d>>(
    elf: &Elf<'d, R>,
    name: &str,
) -> Result<Option<&'d [u8]>, ModuleError> {
    let found = elf.section_by_name(name);
    let data = found.map(|section| section.data()).transpose();
    data.map_err(|e| ModuleError::Elf(e.to_string()))
}

fn header<'d, R: ReadRef<'d>>(elf: &Elf<'d, R>) -> Result<Header, ModuleError> {
    let info = section(elf, ".modinfo")?.ok_or(ModuleError::NoModinfo)?;
    let mut header = Header::default();
    for entry in info.split(|b| *b == 0) {
        let entry = String::from_utf8_lossy(entry);
        let Some((key, value)) = entry.split_once('=') else {
            continue;
        };
        let slot = match key {
            "name" => &mut header.name,
            "version" => &mut header.version,
            "license" => &mut header.license,
            "vermagic" => &mut header.vermagic,
            "srcversion" => &mut header.srcversion,
            _ => continue,
        };
        slot.get_or_insert_with(|| value.trim_end().to_owned());
    }
    Ok(header)
}

/// `__versions` holds `{ unsigned long crc; char name[56]; }` (Linux include/linux/module.h). Modules since
/// 6.14 may have names of any length instead, in two parallel sections.
fn versions<'d, R: ReadRef<'d>>(elf: &Elf<'d, R>) -> Result<BTreeMap<String, u32>, ModuleError> {
    let mut found = BTreeMap::new();
    let word = |bytes: &[u8]| match bytes {
        [a, b, c, d] if elf.is_little_endian() => Some(u32::from_le_bytes([*a, *b, *c, *d])),
        [a, b, c, d] => Some(u32::from_be_bytes([*a, *b, *c, *d])),
        _ => None,
    };
    let text = |bytes: &[u8]| {
        let name = bytes.split(|b| *b == 0).next().unwrap_or_default();
        String::from_utf8_lossy(name).into_owned()
    };
    let entries = section(elf, "__versions")?.unwrap_or_default();
    for entry in entries.chunks_exact(64) {
        let (crc, name) = entry.split_at(8);
        let low = if elf.is_little_endian() { 0..4 } else { 4..8 };
        if let Some(crc) = crc.get(low).and_then(word) {
            found.insert(text(name), crc);
        }
    }
    if let (Some(crcs), Some(names)) = (
        section(elf, "__version_ext_crcs")?,
        section(elf, "__version_ext_names")?,
    ) {
        for (crc, name) in crcs.chunks_exact(4).zip(names.split(|b| *b == 0)) {
            if let Some(crc) = word(crc) {
                found.insert(text(name), crc);
            }
        }
    }
    match found.remove("") {
        Some(_) => Err(ModuleError::Damaged("a symbol version has no name")),
        None => Ok(found),
    }
}

/// Each exported symbol has a `__ksymtab_NAME`; its version is `__crc_NAME`, an absolute value up to
/// Linux 5.18 and four bytes of a section since. Where the symbols were stripped, the names are left.
fn exports<'d, R: ReadRef<'d>>(elf: &Elf<'d, R>) -> Result<BTreeMap<String, Export>, ModuleError> {
    let mut found: BTreeMap<String, Export> = BTreeMap::new();
    let mut crcs = BTreeMap::new();
    for symbol in elf.symbols() {
        let Ok(name) = symbol.name() else {
            return Err(ModuleError::Damaged("a symbol has no name"));
        };
        if symbol.is_undefined() {
            continue;
        }
        if let Some(name) = name.strip_prefix("__ksymtab_") {
            found.insert(name.to_owned(), Export { crc: None });
        } else if let Some(name) = name.strip_prefix("__crc_")
            && let Some(crc) = crc(elf, &symbol)
        {
            crcs.insert(name.to_owned(), crc);
        }
    }
    if found.is_empty() {
        let names = section(elf, "__ksymtab_strings")?.unwrap_or_default();
        for name in names.split(|b| *b == 0).filter(|name| !name.is_empty()) {
            let name = String::from_utf8_lossy(name).into_owned();
            found.insert(name, Export { crc: None });
        }
    }
    for (name, export) in &mut found {
        export.crc = crcs.get(name).copied();
    }
    Ok(found)
}

fn crc<'d, R: ReadRef<'d>>(
    elf: &Elf<'d, R>,
    symbol: &ElfSymbol64<'d, '_, Endianness, R>,
) -> Option<u32> {
    match symbol.section() {
        SymbolSection::Absolute => u32::try_from(symbol.address() & 0xffff_ffff).ok(),
        SymbolSection::Section(index) => four_bytes(elf, index, symbol.address()),
        _ => None,
    }
}

fn four_bytes<'d, R: ReadRef<'d>>(elf: &Elf<'d, R>, at: SectionIndex, offset: u64) -> Option<u32> {
    let data = elf.section_by_index(at).ok()?.data().ok()?;
    let start = usize::try_from(offset).ok()?;
    let bytes: [u8; 4] = data.get(start..start.checked_add(4)?)?.try_into().ok()?;
    Some(if elf.is_little_endian() {
        u32::from_le_bytes(bytes)
    } else {
        u32::from_be_bytes(bytes)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_no_module_is_an_error() {
        assert!(matches!(
            Module::read(&b""[..], b""),
            Err(ModuleError::Elf(_))
        ));
        assert!(matches!(
            Module::read(&b"\x7fELF\x01"[..], b""),
            Err(ModuleError::Elf(_))
        ));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..512)) {
            let mut elf = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x01\0\x3e\0".to_vec();
            elf.extend(bytes);
            let _ = Module::read(elf.as_slice(), &elf);
        }
    }
}
