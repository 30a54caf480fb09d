//! The RDMA core of one kernel: whose it is, and whether it has the peer-memory interface.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::super::fact::Fact;
use super::REGISTER;
use super::peermem::read_module;
use crate::kmod::{Config, Exported, Index, Outcome, find_export};
use crate::sys::{EntryKind, Root};

/// Whose RDMA core it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Stack {
    /// The kernel's own.
    Inbox,
    /// One that was installed over it: DOCA-OFED, MLNX_OFED.
    Ofed,
}

/// The RDMA core of one kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RdmaCore {
    /// `ib_core`'s file, or where else its interface was read.
    pub path: String,
    /// Whose it is.
    pub stack: Stack,
    /// Whether it exports the function that nvidia-peermem registers with; none where the core is part of the
    /// kernel, and neither symbols nor build of that can be read.
    pub peer_memory: Option<bool>,
    /// That function's version.
    pub register_crc: Option<u32>,
    /// The kernel that it was built for, with its options.
    pub vermagic: Option<String>,
    /// A hash of its sources, as in `/sys/module/ib_core/srcversion` if it is the one that is loaded.
    pub srcversion: Option<String>,
    /// The signer of it: the kernel trusts whoever signed its own modules.
    pub signer: Option<String>,
    /// Whether it can register DMA-BUF memory (`ib_umem_dmabuf_get`); only looked at where the kernel's
    /// configuration does not tell, since another stack was installed.
    pub dma_buf: Option<bool>,
}

/// What else the file of the core tells, for the comparison with nvidia-peermem.
#[derive(Debug, Clone, Default)]
pub(super) struct Core {
    pub(super) versions: BTreeMap<String, u32>,
}

/// The core of a kernel, and its versions. `running`: this kernel runs, and has its symbols in `/proc`.
pub(super) fn core(
    root: &Root,
    release: &str,
    config: &Config,
    index: &Index,
    running: bool,
) -> (Fact<RdmaCore>, Option<Core>) {
    let dir = format!("/lib/modules/{release}");
    let file = match config.lookup("ib_core", index).outcome {
        Outcome::File(file) => super::target::absolute(&dir, &file),
        Outcome::Builtin => {
            return (elsewhere(root, release, Stack::Inbox, running), None);
        }
        Outcome::Missing(_) => return (Fact::absent(format!("{dir}/modules.dep")), None),
        Outcome::Disabled(how) | Outcome::Opaque(how) => {
            let why = format!("modprobe runs `{how}` for ib_core");
            return (Fact::unknown(format!("{dir}/modules.dep"), why), None);
        }
    };
    let (_, module) = match read_module(root, &file) {
        Ok(read) => read,
        Err(why) => {
            let found = elsewhere(root, release, stack(&dir, &file), running);
            let found = if found.get().is_some_and(|core| core.peer_memory.is_some()) {
                found
            } else {
                Fact::unknown(file, why)
            };
            return (found, None);
        }
    };
    let stack = stack(&dir, &file);
    let export = module.exports.get(REGISTER);
    let fact = RdmaCore {
        stack,
        peer_memory: Some(export.is_some()),
        register_crc: export.and_then(|export| export.crc),
        vermagic: module.header.vermagic.clone(),
        srcversion: module.header.srcversion.clone(),
        signer: module.signature.and_then(|s| s.signer),
        dma_buf: match stack {
            Stack::Ofed => dma_buf(root, &dir, config, index),
            Stack::Inbox => None,
        },
        path: file.clone(),
    };
    let core = Core {
        versions: module.versions,
    };
    (Fact::known(fact, file), Some(core))
}

/// The kernel's own modules are below `kernel/`. depmod prefers `updates/` to that; RPMs use `extra/` and
/// `weak-updates/`.
fn stack(dir: &str, file: &str) -> Stack {
    match file
        .strip_prefix(dir)
        .map(|rest| rest.trim_start_matches('/'))
    {
        Some(rest) if rest.starts_with("kernel/") => Stack::Inbox,
        _ => Stack::Ofed,
    }
}

/// Where the file cannot tell: the symbols of the running kernel, or for its own core those of its build.
fn elsewhere(root: &Root, release: &str, stack: Stack, running: bool) -> Fact<RdmaCore> {
    let told = |path: &str, peer_memory: Option<bool>, crc: Option<u32>| {
        Fact::known(
            RdmaCore {
                path: path.to_owned(),
                stack,
                peer_memory,
                register_crc: crc,
                vermagic: None,
                srcversion: None,
                signer: None,
                dma_buf: None,
            },
            path,
        )
    };
    if running && let Ok(Some(text)) = root.read_if_there("/proc/kallsyms") {
        // The symbols of a module are there while it is loaded.
        if has_symbol(&text, "ib_register_client") {
            return told("/proc/kallsyms", Some(has_symbol(&text, REGISTER)), None);
        }
    }
    let symvers = format!("/lib/modules/{release}/build/Module.symvers");
    if stack == Stack::Inbox
        && let Ok(Some(text)) = root.read_if_there(&symvers)
    {
        let found: Option<Exported> = find_export(&text, REGISTER);
        return told(
            &symvers,
            Some(found.is_some()),
            found.map(|found| found.crc),
        );
    }
    told(&symvers, None, None)
}

/// A line is `ADDRESS TYPE NAME`, and for a module `TAB [MODULE]`.
fn has_symbol(kallsyms: &[u8], name: &str) -> bool {
    let needle = format!(" {name}");
    memchr::memmem::find_iter(kallsyms, needle.as_bytes())
        .any(|at| matches!(kallsyms.get(at + needle.len()), None | Some(b'\t' | b'\n')))
}

/// `ib_uverbs` has the function since Linux 5.12 (drivers/infiniband/core/umem_dmabuf.c).
fn dma_buf(root: &Root, dir: &str, config: &Config, index: &Index) -> Option<bool> {
    let Outcome::File(file) = config.lookup("ib_uverbs", index).outcome else {
        return None;
    };
    let (_, module) = read_module(root, &super::target::absolute(dir, &file)).ok()?;
    Some(module.exports.contains_key("ib_umem_dmabuf_get"))
}

/// `libibverbs.so.1` is a link to a file with the version in its name.
pub(super) fn libibverbs(root: &Root) -> Fact<String> {
    let dirs = [
        "/usr/lib/x86_64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu",
        "/usr/lib64",
    ];
    for dir in dirs {
        let entries = match root.list(dir) {
            Ok(entries) => entries,
            Err(e) => return Fact::unknown(dir, e.to_string()),
        };
        let link = entries
            .iter()
            .find(|entry| entry.name == "libibverbs.so.1" && entry.kind == EntryKind::Link);
        if link.is_none() {
            continue;
        }
        let path = format!("{dir}/libibverbs.so.1");
        return Fact::read(&path, root.link(&path)).and_then(|target| {
            let (_, version) = target.rsplit_once("libibverbs.so.")?;
            Some(version.to_owned())
        });
    }
    Fact::absent("/usr/lib*/libibverbs.so.1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whose_stack() {
        let dir = "/lib/modules/6.8.0-45-generic";
        for (file, expected) in [
            (
                "kernel/drivers/infiniband/core/ib_core.ko.zst",
                Stack::Inbox,
            ),
            ("updates/dkms/ib_core.ko.zst", Stack::Ofed),
            (
                "extra/mlnx-ofa_kernel/drivers/infiniband/core/ib_core.ko.xz",
                Stack::Ofed,
            ),
            (
                "weak-updates/mlnx-ofa_kernel/drivers/infiniband/core/ib_core.ko",
                Stack::Ofed,
            ),
        ] {
            assert_eq!(stack(dir, &format!("{dir}/{file}")), expected, "{file}");
        }
    }
}
