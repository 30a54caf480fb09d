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
        (IommuMode::Passthrough, Some(Arch::Arm)) => match facts.running.release.get().and_then(|r| version(r)) {
            // Before 6.11, arm-smmu-v3 with an identity domain breaks CUDA on Grace.
            Some(v) if v < (6, 11) => wanted.notes.push(format!(
                "Linux {}.{} on this architecture must not use pass-through (SMMUv3 before 6.11): left as it is",
                v.0, v.1
            )),
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

/// VT-d by its ACPI table; in an image, where no hardware is seen, it may be.
fn maybe_intel(facts: &Facts) -> bool {
    match (facts.iommu.dmar_table.get(), facts.iommu.ivrs_table.get()) {
        (Some(true), _) => true,
        (_, Some(true)) => false,
        _ => facts.running.cmdline.get().is_none(),
    }
}
