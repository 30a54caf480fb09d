//! IOMMU: which one there is and what each group's domain type is.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::fact::Fact;
use crate::sys::{Root, SysError};

/// What there is to translate DMA.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Iommu {
    /// ACPI DMAR table: Intel VT-d.
    pub dmar_table: Fact<bool>,
    /// ACPI IVRS table: AMD-Vi.
    pub ivrs_table: Fact<bool>,
    /// Instances that the kernel uses (`dmar0`, `ivhd0`, `smmu3.0x...`).
    pub instances: Fact<Vec<String>>,
    /// Group number to domain type: `identity`, `DMA`, `DMA-FQ`, `blocked`, `unmanaged`
    /// (drivers/iommu/iommu.c `iommu_group_show_type`). `None` where one could not be read.
    pub groups: Fact<BTreeMap<u32, Option<String>>>,
}

pub(super) fn iommu(root: &Root) -> Iommu {
    let table = |name: &str| {
        let path = format!("/sys/firmware/acpi/tables/{name}");
        match root.stat(&path) {
            Ok(found) => Fact::known(found.is_some(), path),
            Err(e) => Fact::unknown(path, e.to_string()),
        }
    };
    let instances = root
        .list("/sys/class/iommu")
        .map(|l| l.into_iter().map(|e| e.name).collect::<Vec<_>>());
    Iommu {
        dmar_table: table("DMAR"),
        ivrs_table: table("IVRS"),
        instances: Fact::read("/sys/class/iommu", instances.map(Some)),
        groups: Fact::read("/sys/kernel/iommu_groups", groups(root)),
    }
}

fn groups(root: &Root) -> Result<Option<BTreeMap<u32, Option<String>>>, SysError> {
    let base = "/sys/kernel/iommu_groups";
    // The directory is there on every kernel with IOMMU support, empty when none is in use.
    if root.stat(base)?.is_none() {
        return Ok(None);
    }
    let entries = root.list(base)?;
    let ids = entries.iter().filter_map(|e| e.name.parse::<u32>().ok());
    let groups = ids.map(|id| Ok((id, root.text_if_there(&format!("{base}/{id}/type"))?)));
    groups.collect::<Result<_, SysError>>().map(Some)
}
