//! The `nvidia-peermem` of one kernel, as a file.

use std::io::{Read, Seek, SeekFrom};

use schemars::JsonSchema;
use serde::Serialize;

use super::super::fact::Fact;
use super::{REGISTER, rdma::Core};
use crate::kmod::{LIMIT, Module, Packing, Signature, unpack};
use crate::sys::Root;

/// More than the largest packed module: the driver's main one, by far.
const MOST: u64 = 64 << 20;

/// A signature is a few hundred bytes, with certificates in it some thousand.
const SIGNATURE: u64 = 64 << 10;

/// What the file says about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PeermemFile {
    /// The file.
    pub path: String,
    /// How it is packed.
    pub packing: Packing,
    /// The driver's version.
    pub version: Option<String>,
    /// The kernel that it was built for, with its options.
    pub vermagic: Option<String>,
    /// Whether it registers with the RDMA core at all: a stub does not, and cannot be loaded.
    pub registers: bool,
    /// The version of the registering function that it was built against.
    pub register_crc: Option<u32>,
    /// Whether it has versions of the symbols that it needs.
    pub versioned: bool,
    /// Who signed it.
    pub signature: Option<Signature>,
    /// Symbols of the kernel that it was built against in another version than this kernel's RDMA core.
    pub differs: Vec<Difference>,
}

/// A symbol in two versions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Difference {
    /// Its name.
    pub symbol: String,
    /// The version that nvidia-peermem was built against.
    pub built: u32,
    /// The version that the RDMA core of this kernel was built against.
    pub kernel: u32,
}

/// Reads a module: whole if it is packed, else only the parts that tell something.
pub(super) fn read_module(root: &Root, path: &str) -> Result<(Packing, Module), String> {
    let no = |e: &dyn std::fmt::Display| format!("cannot read {path}: {e}");
    let mut file = root.reader(path).map_err(|e| e.to_string())?;
    let mut start = Vec::new();
    (&mut file)
        .take(8)
        .read_to_end(&mut start)
        .map_err(|e| no(&e))?;
    let packing = Packing::of(&start);
    if packing == Packing::None {
        let length = file.seek(SeekFrom::End(0)).map_err(|e| no(&e))?;
        let tail = length.saturating_sub(SIGNATURE);
        file.seek(SeekFrom::Start(tail)).map_err(|e| no(&e))?;
        let mut end = Vec::new();
        (&mut file)
            .take(SIGNATURE)
            .read_to_end(&mut end)
            .map_err(|e| no(&e))?;
        let module = Module::read(&object::read::ReadCache::new(file), &end);
        return Ok((packing, module.map_err(|e| no(&e))?));
    }
    let mut packed = start;
    file.take(MOST + 1)
        .read_to_end(&mut packed)
        .map_err(|e| no(&e))?;
    if packed.len() as u64 > MOST {
        return Err(format!("{path} is larger than {} MiB", MOST >> 20));
    }
    let plain = unpack(packed, LIMIT).map_err(|e| format!("cannot unpack {path}: {e}"))?;
    let module = Module::read(plain.as_slice(), &plain).map_err(|e| no(&e))?;
    Ok((packing, module))
}

pub(super) fn file(root: &Root, path: &str, core: Option<&Core>) -> Fact<PeermemFile> {
    let (packing, module) = match read_module(root, path) {
        Ok(read) => read,
        Err(why) => return Fact::unknown(path, why),
    };
    if module.versions.contains_key(REGISTER) && !module.needs.contains(REGISTER) {
        let why = format!("{path} is damaged: it has a version of {REGISTER} and does not use it");
        return Fact::unknown(path, why);
    }
    let kernel = core.map(|core| &core.versions);
    let differs = module.versions.iter().filter_map(|(symbol, built)| {
        let kernel = *kernel?.get(symbol)?;
        (kernel != *built).then(|| Difference {
            symbol: symbol.clone(),
            built: *built,
            kernel,
        })
    });
    let file = PeermemFile {
        path: path.to_owned(),
        packing,
        version: module.header.version.clone(),
        vermagic: module.header.vermagic.clone(),
        registers: module.needs.contains(REGISTER),
        register_crc: module.versions.get(REGISTER).copied(),
        versioned: !module.versions.is_empty(),
        differs: differs.collect(),
        signature: module.signature,
    };
    Fact::known(file, path)
}
