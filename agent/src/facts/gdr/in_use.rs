//! What is in use now: the only signs of GPUDirect RDMA that the kernel itself shows.
//!
//! Counters are of the whole node, and no sign tells which NIC: a count above zero shows that GPU memory is
//! registered, none shows nothing.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::super::fact::{Fact, text};
use super::super::modules::Modules;
use super::PEERMEM;
use crate::kmod::fold;
use crate::sys::{EntryKind, Root, SysError};

/// What is in use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct InUse {
    /// Version of the `nvidia_peermem` that is loaded.
    pub version: Fact<String>,
    /// Memory regions that are registered through it now.
    pub refcount: Fact<u64>,
    /// Clients of the RDMA core's peer-memory interface.
    pub clients: Fact<Vec<PeerClient>>,
    /// Files that guides tell of and that no driver read here has: content by path, where one is there.
    pub client_files: BTreeMap<String, String>,
    /// GPU memory exported as DMA-BUF, with the devices that are attached to it.
    pub dma_buf: Fact<Vec<Attachment>>,
    /// Hash of the sources of the `ib_core` that is loaded.
    pub ib_core: Fact<String>,
    /// Lines of the kernel log about modules that were refused; read only if this boot was asked to load
    /// `nvidia_peermem` and it is not there.
    pub refused: Fact<Vec<String>>,
}

/// A client of the peer-memory interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PeerClient {
    /// Its name: `nv_mem` and `nv_mem_nc` are NVIDIA's.
    pub name: String,
    /// Its directory.
    pub path: String,
    /// What it says its version is.
    pub version: Option<String>,
    /// Memory regions that are registered now: allocated less given back.
    pub registered: Option<i64>,
}

/// An exported buffer of the NVIDIA driver that devices are attached to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Attachment {
    /// The exporter: `nv_dmabuf` from driver 580 on, `nvidia` before.
    pub exporter: String,
    /// Size in bytes.
    pub bytes: u64,
    /// The devices, NICs by their BDF.
    pub devices: Vec<String>,
}

/// Where the directory is depends on what the kernel that it was built for exports.
const PEERS: [&str; 3] = [
    "/sys/kernel/mm/memory_peers",
    "/sys/kernel/memory_peers",
    "/sys/memory_peers",
];

const CLIENT_FILES: [&str; 3] = [
    "/proc/driver/nvidia-peermem/clients",
    "/sys/kernel/debug/nvidia-peermem/clients",
    "/proc/driver/nv_peer_mem/clients",
];

/// Whether this boot was asked to load nvidia-peermem: by a file, or a trial by its command line.
pub(super) fn asked(modules: &Modules, cmdline: Option<&str>) -> bool {
    let name = fold(PEERMEM);
    let by_file = modules.load_at_boot.get();
    let by_file = by_file.is_some_and(|files| files.contains_key(&name));
    let words = cmdline.unwrap_or_default().split_whitespace();
    let lists = words.filter_map(|word| word.strip_prefix("modules_load="));
    by_file
        || lists
            .flat_map(|list| list.split(','))
            .any(|n| fold(n) == name)
}

pub(super) fn in_use(root: &Root, asked: bool) -> InUse {
    let bufinfo = "/sys/kernel/debug/dma_buf/bufinfo";
    let version = text(root, "/sys/module/nvidia_peermem/version");
    let refcount = text(root, "/sys/module/nvidia_peermem/refcnt").and_then(|t| t.parse().ok());
    let client_files = CLIENT_FILES.iter().filter_map(|path| {
        let text = root.text_if_there(path).ok()??;
        Some(((*path).to_owned(), text))
    });
    InUse {
        clients: clients(root),
        client_files: client_files.collect(),
        dma_buf: text(root, bufinfo).and_then(|text| Some(attachments(&text))),
        ib_core: text(root, "/sys/module/ib_core/srcversion"),
        refused: refused(root, asked),
        version,
        refcount,
    }
}

fn clients(root: &Root) -> Fact<Vec<PeerClient>> {
    for dir in PEERS {
        match read_clients(root, dir) {
            Ok(None) => {}
            Ok(Some(clients)) => return Fact::known(clients, dir),
            Err(e) => return Fact::unknown(dir, e.to_string()),
        }
    }
    Fact::absent(PEERS.join(", "))
}

fn read_clients(root: &Root, dir: &str) -> Result<Option<Vec<PeerClient>>, SysError> {
    if root.stat(dir)?.is_none() {
        return Ok(None);
    }
    let mut clients = Vec::new();
    for entry in root.list(dir)? {
        if entry.kind != EntryKind::Dir {
            continue;
        }
        let path = format!("{dir}/{}", entry.name);
        let number = |name: &str| {
            let text = root.text_if_there(&format!("{path}/{name}"))?;
            Ok::<_, SysError>(text.and_then(|text| text.parse::<i64>().ok()))
        };
        let (taken, given) = (number("num_alloc_mrs")?, number("num_dealloc_mrs")?);
        clients.push(PeerClient {
            version: root.text_if_there(&format!("{path}/version"))?,
            registered: taken.zip(given).map(|(taken, given)| taken - given),
            name: entry.name,
            path,
        });
    }
    Ok(Some(clients))
}

/// `SIZE FLAGS MODE COUNT EXPORTER INODE NAME`, separated by tabs, then `\tAttached Devices:` and a line
/// for each (Linux drivers/dma-buf/dma-buf.c `dma_buf_debug_show`).
fn attachments(text: &str) -> Vec<Attachment> {
    let mut found: Vec<Attachment> = Vec::new();
    let mut ours = false;
    let mut devices = false;
    for line in text.lines() {
        if !line.starts_with('\t') {
            let fields: Vec<&str> = line.split('\t').collect();
            if let [size, _, _, _, exporter, ..] = fields.as_slice()
                && let Ok(bytes) = size.parse()
            {
                ours = matches!(*exporter, "nv_dmabuf" | "nvidia");
                if ours {
                    found.push(Attachment {
                        exporter: (*exporter).to_owned(),
                        bytes,
                        devices: Vec::new(),
                    });
                }
            }
            devices = false;
        } else if line.trim() == "Attached Devices:" {
            devices = true;
        } else if devices && ours {
            let attached = found.last_mut().map(|last| &mut last.devices);
            attached
                .into_iter()
                .for_each(|list| list.push(line.trim().to_owned()));
        }
    }
    found.retain(|buffer| !buffer.devices.is_empty());
    found
}

fn refused(root: &Root, asked: bool) -> Fact<Vec<String>> {
    let path = "/dev/kmsg";
    let loaded = root.stat("/sys/module/nvidia_peermem");
    if !asked || !matches!(loaded, Ok(None)) {
        return Fact::absent(path);
    }
    let lines = crate::sys::kernel_log::whole(root).map(|lines| {
        let lines = lines?.into_iter();
        let about = |line: &String| !crate::kmod::log_findings([line.as_str()]).is_empty();
        Some(lines.filter(about).collect())
    });
    Fact::read(path, lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_of_the_driver_with_their_devices() {
        let text = "\nDma-buf Objects:\nsize    \tflags   \tmode    \tcount   \texp_name\tino     \tname\n\
            04194304\t00000000\t00080007\t00000002\tdrm\t00000011\t<none>\n\tAttached Devices:\n\t0000:03:00.0\nTotal 1 devices attached\n\n\
            2147483648\t00000002\t00080005\t00000003\tnv_dmabuf\t00000123\t\n\tkernel fence: nvidia x seq 1 signalled\n\tAttached Devices:\n\t0000:18:00.0\n\t0000:29:00.0\nTotal 2 devices attached\n\n\
            00065536\t00000002\t00080005\t00000003\tnvidia\t00000124\t\n\tAttached Devices:\nTotal 0 devices attached\n\n\
            \nTotal 3 objects, 2151743488 bytes\n";
        assert_eq!(
            attachments(text),
            [Attachment {
                exporter: "nv_dmabuf".into(),
                bytes: 2 << 30,
                devices: vec!["0000:18:00.0".into(), "0000:29:00.0".into()],
            }]
        );
        assert_eq!(attachments(""), []);
    }
}
