//! What of each file goes into an archive: of most all, of some only the lines that anything is told from.

use super::redact::Redactor;
use super::tree::{Content, Tree, parts};
use crate::doctor::kernel_log;
use crate::sys::EntryKind;

/// Variables that decide about RDMA, by the beginnings of their names.
const VARIABLES: [&str; 12] = [
    "NCCL_", "RCCL_", "UCX_", "FI_", "OFI_", "MLX5_", "IBV_", "RDMAV_", "SHARP_", "CUDA_",
    "NVIDIA_", "HIP_",
];

/// Words in the names of packages that matter here.
const PACKAGES: [&str; 12] = [
    "nvidia",
    "cuda",
    "nccl",
    "ofed",
    "mlnx",
    "rdma",
    "ibverbs",
    "perftest",
    "ucx",
    "efa",
    "libfabric",
    "linux-image",
];

/// Takes out what must not leave the node and what nothing is told from.
pub fn clean(tree: &mut Tree, redactor: &Redactor) {
    for (path, node) in &mut tree.nodes {
        if let Some(target) = &mut node.target {
            inside(path, target);
        }
        if let Content::Whole(bytes) = &mut node.content {
            if node.kind == EntryKind::Other {
                node.kind = EntryKind::File;
            }
            *bytes = file(path, std::mem::take(bytes), redactor);
        }
    }
    forget_processes(tree);
}

fn file(path: &str, bytes: Vec<u8>, redactor: &Redactor) -> Vec<u8> {
    let name = path.rsplit('/').next().unwrap_or_default();
    // Only the header is told from: which machine it is for.
    if bytes.starts_with(b"\x7fELF") && !path.contains("/modules/") {
        return bytes.get(..64).unwrap_or(&bytes).to_vec();
    }
    let of_kernel = path.starts_with("/sys/") || path.contains("/lib/modules/");
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(e) if of_kernel => return e.into_bytes(),
        Err(e) => return other(path, e.into_bytes(), redactor),
    };
    let process = path.starts_with("/proc/");
    let kept = match name {
        "kallsyms" => symbols(&text),
        "Module.symvers" => lines(&text, |line| line.contains("ib_register_")),
        _ if path.starts_with(crate::sys::SAID) && path != crate::sys::PACKAGES => {
            lines(&text, |line| !names_somebody(line))
        }
        _ if of_kernel => return text.into_bytes(),
        "kmsg" => lines(&text, |line| {
            kernel_log::classify(line).is_some() || !crate::kmod::log_findings([line]).is_empty()
        }),
        "environ" if process => text.split_inclusive('\0').filter(|v| variable(v)).collect(),
        "maps" if process => lines(&text, |line| {
            ["/dev/nvidia", "/dev/infiniband/", "/libnccl.so"]
                .iter()
                .any(|part| line.contains(part))
        }),
        "mountinfo" | "mounts" => text.split_inclusive('\n').map(mount).collect(),
        "nccl.conf" | ".nccl.conf" => settings(&text),
        // A version may look like an address.
        "status" if path == "/var/lib/dpkg/status" => return packages(&text).into_bytes(),
        _ if path == crate::sys::PACKAGES => return rpms(&text).into_bytes(),
        _ => text,
    };
    let clean = redactor.text(&kept);
    if name == "grubenv" {
        return block(clean, kept.len());
    }
    clean.into_bytes()
}

/// What is no text: boot entries and menus in another encoding are cleaned line by line all the same.
fn other(path: &str, bytes: Vec<u8>, redactor: &Redactor) -> Vec<u8> {
    if !(path.starts_with("/boot/") || path.starts_with("/etc/") || path.starts_with("/proc/")) {
        return bytes;
    }
    let mut out = Vec::with_capacity(bytes.len());
    for line in bytes.split_inclusive(|b| *b == b'\n') {
        match std::str::from_utf8(line) {
            Ok(text) => out.extend_from_slice(redactor.text(text).as_bytes()),
            Err(_) => out.extend_from_slice(line),
        }
    }
    out
}

/// Values in nvidia-smi's output by which a board, a machine or a program could be known.
fn names_somebody(line: &str) -> bool {
    let element = line.trim_start();
    let Some((name, rest)) = element.strip_prefix('<').and_then(|e| e.split_once('>')) else {
        return false;
    };
    let Some((value, _)) = rest.split_once("</") else {
        return false;
    };
    // A GPU that is lost says so in the place of every value, and such words have no digits.
    name.contains("process_name")
        || value.bytes().any(|b| b.is_ascii_digit())
            && ["serial", "uuid", "guid", "host_id", "ipmi"]
                .iter()
                .any(|part| name.contains(part))
}

/// Processes without variables that matter: what is said of them is the same without them.
fn forget_processes(tree: &mut Tree) {
    let empty: Vec<String> = tree
        .nodes
        .iter()
        .filter(|(path, node)| {
            path.starts_with("/proc/")
                && path.ends_with("/environ")
                && matches!(&node.content, Content::Whole(bytes) if bytes.is_empty())
        })
        .map(|(path, _)| path.clone())
        .collect();
    for path in empty {
        tree.nodes.remove(&path);
        let dir = path.trim_end_matches("/environ");
        let below = format!("{dir}/");
        if !tree
            .nodes
            .range(below.clone()..)
            .next()
            .is_some_and(|(next, _)| next.starts_with(&below))
        {
            tree.nodes.remove(dir);
        }
    }
}

fn lines(text: &str, wanted: impl Fn(&str) -> bool) -> String {
    text.split_inclusive('\n')
        .filter(|line| wanted(line))
        .collect()
}

/// Without the addresses, which are worth hiding.
fn symbols(text: &str) -> String {
    let wanted = text.lines().filter(|line| line.contains(" ib_register_"));
    let line = |line: &str| {
        let (_, rest) = line.split_once(' ')?;
        Some(format!("0000000000000000 {rest}\n"))
    };
    wanted.filter_map(line).collect()
}

fn variable(text: &str) -> bool {
    VARIABLES.iter().any(|start| text.starts_with(start))
}

/// A file of settings keeps its lines' numbers.
fn settings(text: &str) -> String {
    let line = |line: &str| {
        let end = if line.ends_with('\n') { "\n" } else { "" };
        if variable(line.trim_start()) || !line.contains('=') {
            line.to_owned()
        } else {
            format!("#{end}")
        }
    };
    text.split_inclusive('\n').map(line).collect()
}

/// File systems of the network name servers.
fn mount(line: &str) -> String {
    let Some((left, right)) = line.split_once(" - ") else {
        return line.to_owned();
    };
    let mut words = right.splitn(3, ' ');
    match (words.next(), words.next(), words.next()) {
        (Some(kind), Some(_), Some(rest))
            if [
                "nfs", "cifs", "smb", "ceph", "lustre", "beegfs", "fuse.", "9p",
            ]
            .iter()
            .any(|k| kind.starts_with(k)) =>
        {
            let end = if rest.ends_with('\n') { "\n" } else { "" };
            format!("{left} - {kind} REDACTED REDACTED{end}")
        }
        _ => line.to_owned(),
    }
}

/// The stanzas of packages that matter, and of each what names it.
fn packages(text: &str) -> String {
    let mut out = String::new();
    for stanza in text.split("\n\n") {
        let name = stanza
            .lines()
            .find_map(|line| line.strip_prefix("Package: "))
            .unwrap_or_default();
        if !PACKAGES.iter().any(|word| name.contains(word)) {
            continue;
        }
        for line in stanza.lines() {
            if ["Package: ", "Status: ", "Architecture: ", "Version: "]
                .iter()
                .any(|key| line.starts_with(key))
            {
                out.push_str(line);
                out.push('\n');
            }
        }
        out.push('\n');
    }
    out
}

/// How the ending was, and the lines of packages that matter: kernels have the names of the family there.
fn rpms(text: &str) -> String {
    let matters = |line: &str| {
        let name = line.split('\t').next().unwrap_or_default();
        PACKAGES.iter().any(|word| name.contains(word))
            || ["kernel", "kmod-"]
                .iter()
                .any(|start| name.starts_with(start))
    };
    let lines = text.split_inclusive('\n').enumerate();
    let kept = lines.filter(|(at, line)| *at == 0 || matters(line));
    kept.map(|(_, line)| line).collect()
}

/// GRUB's environment block has a fixed length, filled up with `#`.
fn block(mut text: String, length: usize) -> Vec<u8> {
    while text.len() > length && text.ends_with('#') {
        text.pop();
    }
    while text.len() < length {
        text.push('#');
    }
    text.into_bytes()
}

/// A link with more `..` than there are directories stops at the root: said without them.
fn inside(path: &str, target: &mut String) {
    if target.starts_with('/') {
        return;
    }
    let mut at: Vec<&str> = parts(path).collect();
    at.pop();
    let mut beyond = false;
    for part in parts(target) {
        if part != ".." {
            at.push(part);
        } else if at.pop().is_none() {
            beyond = true;
        }
    }
    if beyond {
        let absolute = format!("/{}", at.join("/"));
        *target = absolute;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cleaned(path: &str, text: &str) -> String {
        String::from_utf8(file(path, text.into(), &Redactor::default())).unwrap()
    }

    #[test]
    fn only_what_is_told_from_stays() {
        assert_eq!(
            cleaned(
                "/proc/kallsyms",
                "ffffffffc0a T ib_register_client\t[ib_core]\nffffffffc0b T panic\n"
            ),
            "0000000000000000 T ib_register_client\t[ib_core]\n"
        );
        assert_eq!(
            cleaned(
                "/proc/9/environ",
                "HOME=/root\0NCCL_DEBUG=INFO\0AWS_SECRET=x\0"
            ),
            "NCCL_DEBUG=INFO\0"
        );
        assert_eq!(
            cleaned("/etc/nccl.conf", "# a note\nMY_PASS=1\nNCCL_IB_DISABLE=1\n"),
            "# a note\n#\nNCCL_IB_DISABLE=1\n"
        );
        assert_eq!(
            cleaned(
                "/var/lib/dpkg/status",
                "Package: vim\nVersion: 9\n\nPackage: nvidia-open\nStatus: install ok installed\nDescription: x\nVersion: 570\n\n"
            ),
            "Package: nvidia-open\nStatus: install ok installed\nVersion: 570\n\n"
        );
        assert_eq!(
            cleaned(
                "/proc/1/mountinfo",
                "30 1 0:5 / /data rw - nfs4 filer.example:/x rw,addr=10.0.0.9\n"
            ),
            "30 1 0:5 / /data rw - nfs4 REDACTED REDACTED\n"
        );
        assert_eq!(
            cleaned(
                "/dev/kmsg",
                "6,1,1,-;eth0: link up\n6,1,1,-;NVRM: Xid (PCI:0000:9b:00): 79\n"
            ),
            "6,1,1,-;NVRM: Xid (PCI:0000:9b:00): 79\n"
        );
    }

    #[test]
    fn the_environment_block_keeps_its_length() {
        let text = format!(
            "{:#<1024}",
            "# GRUB Environment Block\nkernelopts=ip=192.168.100.200 a.password=x\n"
        );
        let clean = cleaned("/boot/grub/grubenv", &text);
        assert_eq!(clean.len(), 1024);
        assert!(
            clean.contains("ip=x.x.x.x a.password=REDACTED\n###"),
            "{clean}"
        );
    }

    #[test]
    fn links_end_at_the_root() {
        let mut target = "../../../../run/x".to_owned();
        inside("/etc/x", &mut target);
        assert_eq!(target, "/run/x");
        let mut target = "../usr/lib/os-release".to_owned();
        inside("/etc/os-release", &mut target);
        assert_eq!(target, "../usr/lib/os-release");
    }
}
