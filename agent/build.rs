//! Packs the JSON schemas of `schemas/` into the program: as text they would be a fifth of a megabyte, and made
//! at run time their code would be twice that.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    reason = "a build script reads the source tree, and ends the build when it cannot"
)]

use std::io::Write as _;
use std::path::Path;

fn main() {
    without_unwind_tables();
    let dir = Path::new("schemas");
    println!("cargo::rerun-if-changed={}", dir.display());
    let mut files: Vec<_> = std::fs::read_dir(dir)
        .expect("schemas/ is there")
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == "json"))
        .collect();
    files.sort();
    let mut all = serde_json::Map::new();
    for file in files {
        let name = file.file_stem().expect("a name").to_string_lossy();
        let text = std::fs::read_to_string(&file).expect("readable");
        let value = serde_json::from_str(&text).expect("JSON");
        all.insert(name.into_owned(), value);
    }
    let text = serde_json::to_vec(&all).expect("JSON");
    let mut packed = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
    packed.write_all(&text).expect("memory");
    let packed = packed.finish().expect("memory");
    let out = std::env::var_os("OUT_DIR").expect("cargo sets it");
    std::fs::write(Path::new(&out).join("schemas.deflate"), packed).expect("writable");
}

/// Only where panics abort, and for GNU's linkers, whose script this is.
fn without_unwind_tables() {
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|v| v == value);
    println!("cargo::rerun-if-changed=link/no-unwind.ld");
    if is("PROFILE", "release") && is("CARGO_CFG_TARGET_ENV", "gnu") {
        let dir = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
        println!("cargo::rustc-link-arg-bins=-Wl,-T,{dir}/link/no-unwind.ld");
        println!("cargo::rustc-link-arg-bins=-Wl,--no-eh-frame-hdr");
    }
}
