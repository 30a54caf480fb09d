//! What the policy's `kernel.iommu` means on this CPU and kernel.

use gdr_policy::IommuMode;

use crate::facts::{Arch, Facts, version};

/// Arguments that have to be there, and why.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) set: Vec<(String, String)>,
    pub(super) notes: Vec<String>,
}

/// Sources: Linux Documentation/admin-guide/kernel-parameters.txt, drivers/iommu/{iommu,intel,amd}.
pub(super) fn wanted(mode: IommuMode, facts: &Facts) -> Wanted {
    let mut wanted = Wanted::default();
    let mut set = |arg: &str, why: &str| wanted.set.push((arg.to_owned(), why.to_owned()));
    match (mode, facts.arch.get()) {
        (IommuMode::Keep, _) => {}
        (_, None) => wanted.notes.push("the architecture is not known, so no IOMMU argument is set".to_owned()),
        (IommuMode::Passthrough, Some(Arch::X86)) => {
            // Harmless on AMD; needed where the kernel's build leaves VT-d off by default.
            if maybe_intel(facts) {
                set("intel_iommu=on", "turns VT-d on whatever the kernel's build says");
            }
            set("iommu=pt", "identity mapping for the kernel's own devices");
        }
        (IommuMode::Off, Some(Arch::X86)) => set("iommu=off", "turns every x86 IOMMU driver off"),
        (IommuMode::Passthrough, Some(Arch::Arm)) => match oldest(facts) {
            // Before 6.11, arm-smmu-v3 with an identity domain breaks CUDA on Grace.
            Some(v) if v < (6, 11) => wanted.notes.push(format!(
                "Linux {}.{} on this architecture must not use pass-through (SMMUv3 before 6.11): left as it is",
                v.0, v.1
            )),
            None if facts.bake => wanted.notes.push(
                "no kernel of this image is known, and one before 6.11 must not use pass-through (SMMUv3): left as it is".to_owned(),
            ),
            _ => set("iommu.passthrough=1", "identity mapping for the kernel's own devices"),
        },
        (IommuMode::Off, Some(Arch::Arm)) => {
            wanted.notes.push("an SMMU cannot be turned off by the command line: left as it is".to_owned());
        }
        (_, Some(Arch::Other)) => {
            wanted.notes.push("no IOMMU argument is known for this architecture: left as it is".to_owned());
        }
    }
    wanted
}

/// The kernel that runs; in an image the oldest that it has, since any of them may boot.
fn oldest(facts: &Facts) -> Option<(u32, u32)> {
    if !facts.bake {
        return facts.running.release.get().and_then(|r| version(r));
    }
    let kernels = facts.kernels.get()?.iter();
    kernels.filter_map(|kernel| version(&kernel.release)).min()
}

/// VT-d by its ACPI table; in an image, where no hardware of a node is seen, it may be. An image was given the argument before
/// its processor was known: it does nothing on AMD, and to take it out again is worth no reboot.
fn maybe_intel(facts: &Facts) -> bool {
    let there = || {
        let line = facts.running.cmdline.get();
        line.is_some_and(|line| line.split_whitespace().any(|arg| arg == "intel_iommu=on"))
    };
    match (facts.iommu.dmar_table.get(), facts.iommu.ivrs_table.get()) {
        (Some(true), _) => true,
        (_, Some(true)) => there(),
        _ => facts.bake || facts.running.cmdline.get().is_none() || there(),
    }
}
