//! Kernel modules: loaded, and asked for at boot. What is there for each kernel is in `gdr`.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;

use super::fact::Fact;
use crate::kmod::fold;
use crate::sys::{EntryKind, Root, SysError};

/// Modules that carry GPUDirect RDMA.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Modules {
    /// Loaded now, names with underscores.
    pub loaded: Fact<BTreeSet<String>>,
    /// How often each of them is in use.
    pub refcounts: BTreeMap<String, u64>,
    /// Module names asked for at boot, with the file that asks (modules-load.d(5)).
    pub load_at_boot: Fact<BTreeMap<String, String>>,
}

pub(super) fn modules(root: &Root) -> Modules {
    let text = Fact::read("/proc/modules", root.text_if_there("/proc/modules"));
    let refcounts = text.get().map(|text| refcounts(text)).unwrap_or_default();
    Modules {
        loaded: text.and_then(|_| Some(refcounts.keys().cloned().collect())),
        refcounts,
        load_at_boot: Fact::read("/etc/modules-load.d", load_at_boot(root).map(Some)),
    }
}

/// `/proc/modules`, which `lsmod` prints with a headline: name, size, how often it is in use, by whom.
#[must_use]
pub fn refcounts(text: &str) -> BTreeMap<String, u64> {
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        let (name, size, count) = (words.next()?, words.next()?, words.next()?);
        size.parse::<u64>().ok()?;
        Some((name.to_owned(), count.parse().ok()?))
    };
    text.lines().filter_map(line).collect()
}

fn load_at_boot(root: &Root) -> Result<BTreeMap<String, String>, SysError> {
    let mut found = BTreeMap::new();
    let mut seen = BTreeSet::new();
    // A file in /etc hides one of the same name in the others (modules-load.d(5)).
    for dir in [
        "/etc/modules-load.d",
        "/run/modules-load.d",
        "/usr/local/lib/modules-load.d",
        "/usr/lib/modules-load.d",
    ] {
        for entry in root.list(dir)? {
            if entry.kind == EntryKind::Dir
                || !entry.name.ends_with(".conf")
                || !seen.insert(entry.name.clone())
            {
                continue;
            }
            let path = format!("{dir}/{}", entry.name);
            let text = root.text_if_there(&path)?.unwrap_or_default();
            let names = text
                .lines()
                .map(str::trim)
                .filter(|l| !l.is_empty() && !l.starts_with(['#', ';']));
            for name in names {
                found.entry(fold(name)).or_insert_with(|| path.clone());
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_as_the_kernel_and_as_lsmod_have_them() {
        let kernel = "nvidia_uvm 1761280 12 - Live 0xffffffffc0c2f000 (POE)\n\
                      nvidia 56721408 607 nvidia_uvm,nvidia_modeset, Live 0xffffffffc10a5000 (POE)\n";
        assert_eq!(refcounts(kernel)["nvidia"], 607);
        let lsmod = "Module                  Size  Used by\n\
                     nvidia_peermem         16384  0\n";
        assert_eq!(
            refcounts(lsmod).into_iter().collect::<Vec<_>>(),
            [("nvidia_peermem".into(), 0)]
        );
    }
}
