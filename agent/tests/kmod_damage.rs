//! A damaged module is never taken for a stub, nor for one that fits: files that a power cut leaves behind are
//! too short, or have zeros where blocks were not written.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test looks at the machine from outside"
)]

use gdr_agent::facts::Facts;
use gdr_agent::facts::gdr::REGISTER;
use gdr_agent::kmod::Module;
use gdr_agent::sys::Root;
use gdr_tests::node::drivers::{Drivers, Flavour, Peermem, Rdma};
use gdr_tests::node::kmod::{Kmod, OPTIONS};
use gdr_tests::node::{NodeSpec, create};

fn whole() -> Vec<u8> {
    let mut kmod = Kmod::new("nvidia-peermem", &format!("6.1.0-37-amd64 {OPTIONS}"));
    kmod.need("module_layout", 1)
        .need("_printk", 2)
        .need(REGISTER, 3);
    kmod.bytes().unwrap()
}

#[test]
fn a_file_that_is_too_short_is_an_error() {
    let bytes = whole();
    assert!(
        Module::read(bytes.as_slice(), &bytes)
            .unwrap()
            .needs
            .contains(REGISTER)
    );
    for length in 0..bytes.len() {
        let cut = &bytes[..length];
        if let Ok(module) = Module::read(cut, cut) {
            assert!(
                module.needs.contains(REGISTER),
                "{length} of {}",
                bytes.len()
            );
        }
    }
}

#[test]
fn zeros_in_the_file_do_not_make_a_stub() {
    let dir = tempfile::tempdir().unwrap();
    let spec = NodeSpec {
        drivers: Drivers {
            flavour: Flavour::Proprietary,
            rdma: Rdma::Ofed,
            peermem: Peermem::Good,
            ..Drivers::default()
        },
        ..NodeSpec::default()
    };
    create(dir.path(), &spec).unwrap();
    let root = Root::open(dir.path()).unwrap();
    let file = dir
        .path()
        .join("usr/lib/modules/6.1.0-37-amd64/updates/dkms/nvidia-current-peermem.ko");
    let bytes = std::fs::read(&file).unwrap();
    let mut errors = 0;
    for start in (0..bytes.len()).step_by(64) {
        let end = (start + 512).min(bytes.len());
        let mut damaged = bytes.clone();
        damaged[start..end].fill(0);
        std::fs::write(&file, &damaged).unwrap();
        let facts = Facts::read(&root);
        let target = facts
            .gdr
            .targets
            .iter()
            .find(|t| t.release == "6.1.0-37-amd64")
            .unwrap();
        match target.peermem.get() {
            Some(module) => assert!(module.registers, "zeros from {start} to {end}"),
            None => errors += 1,
        }
    }
    assert!(errors > 10, "{errors}");
}
