//! Distribution and architecture.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::fact::{Fact, text};
use crate::sys::Root;

/// Which distribution this is (os-release(5)).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Os {
    /// `ID`, such as `debian`.
    pub id: String,
    /// `ID_LIKE`, split.
    pub id_like: Vec<String>,
    /// `VERSION_ID`.
    pub version: Option<String>,
    /// `PRETTY_NAME`.
    pub name: Option<String>,
}

impl Os {
    /// Whether this is `family` or says that it is like it.
    #[must_use]
    pub fn is_like(&self, family: &str) -> bool {
        self.id == family || self.id_like.iter().any(|l| l == family)
    }
}

/// The machine's architecture, in the kernel's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Arch {
    /// `x86_64`
    #[serde(rename = "x86_64")]
    X86,
    /// `aarch64`
    #[serde(rename = "aarch64")]
    Arm,
    /// Any other.
    Other,
}

pub(super) fn os(root: &Root) -> Fact<Os> {
    let found = text(root, "/etc/os-release");
    let found = if found.value.is_none() && !found.is_unknown() {
        text(root, "/usr/lib/os-release")
    } else {
        found
    };
    found.and_then(|t| parse(&t))
}

fn parse(text: &str) -> Option<Os> {
    let vars: BTreeMap<&str, String> = text
        .lines()
        .filter_map(|l| l.trim().split_once('='))
        .map(|(k, v)| (k, unquote(v)))
        .collect();
    Some(Os {
        id: vars.get("ID")?.clone(),
        id_like: vars
            .get("ID_LIKE")
            .map(|l| l.split_whitespace().map(str::to_owned).collect())
            .unwrap_or_default(),
        version: vars.get("VERSION_ID").cloned(),
        name: vars.get("PRETTY_NAME").cloned(),
    })
}

fn unquote(value: &str) -> String {
    let value = value.trim();
    for quote in ['"', '\''] {
        if let Some(inner) = value
            .strip_prefix(quote)
            .and_then(|v| v.strip_suffix(quote))
        {
            return inner
                .replace("\\\"", "\"")
                .replace("\\$", "$")
                .replace("\\`", "`")
                .replace("\\\\", "\\");
        }
    }
    value.to_owned()
}

pub(super) fn arch(root: &Root) -> Fact<Arch> {
    if root.is_live() {
        let machine = rustix::system::uname()
            .machine()
            .to_string_lossy()
            .into_owned();
        return Fact::known(from_name(&machine), "uname");
    }
    let named = text(root, "/proc/sys/kernel/arch");
    if let Some(name) = named.get() {
        return Fact::known(from_name(name), named.from);
    }
    // An image has no /proc: its own programs tell.
    for path in ["/usr/bin/sh", "/bin/sh", "/usr/lib/systemd/systemd"] {
        match root.read_if_there(path) {
            Ok(bytes) => {
                if let Some(arch) = bytes.as_deref().and_then(elf_machine) {
                    return Fact::known(arch, path);
                }
            }
            Err(e) => return Fact::unknown(path, e.to_string()),
        }
    }
    // A capture has neither; its kernel command line or processor list still tells.
    match root.text_if_there("/proc/cpuinfo") {
        Ok(Some(t)) if t.contains("vendor_id") => Fact::known(Arch::X86, "/proc/cpuinfo"),
        Ok(Some(t)) if t.contains("CPU implementer") => Fact::known(Arch::Arm, "/proc/cpuinfo"),
        Err(e) => Fact::unknown("/proc/cpuinfo", e.to_string()),
        Ok(_) => Fact::unknown(
            "/usr/bin/sh",
            "no program and no /proc/cpuinfo to tell the architecture by",
        ),
    }
}

fn from_name(name: &str) -> Arch {
    match name {
        "x86_64" => Arch::X86,
        "aarch64" => Arch::Arm,
        _ => Arch::Other,
    }
}

/// `e_machine` of an ELF header (elf.h): 62 is x86-64, 183 is AArch64.
fn elf_machine(bytes: &[u8]) -> Option<Arch> {
    if bytes.get(..4)? != b"\x7fELF" {
        return None;
    }
    match u16::from_le_bytes([*bytes.get(18)?, *bytes.get(19)?]) {
        62 => Some(Arch::X86),
        183 => Some(Arch::Arm),
        _ => Some(Arch::Other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn os_release_with_quotes_and_kin() {
        let os = parse("PRETTY_NAME=\"Ubuntu \\\"22\\\"\"\nID=ubuntu\nID_LIKE='debian foo'\nVERSION_ID=\"22.04\"\n").unwrap();
        assert_eq!(
            (os.id.as_str(), os.version.as_deref()),
            ("ubuntu", Some("22.04"))
        );
        assert_eq!(os.name.as_deref(), Some("Ubuntu \"22\""));
        assert!(os.is_like("debian") && os.is_like("ubuntu") && !os.is_like("rhel"));
        assert_eq!(parse("NAME=x\n"), None);
    }

    #[test]
    fn elf_header_tells_the_machine() {
        let mut elf = vec![0_u8; 20];
        elf[..4].copy_from_slice(b"\x7fELF");
        elf[18] = 183;
        assert_eq!(elf_machine(&elf), Some(Arch::Arm));
        elf[18] = 62;
        assert_eq!(elf_machine(&elf), Some(Arch::X86));
        assert_eq!(elf_machine(b"#!/bin/sh"), None);
        assert_eq!(elf_machine(b"\x7fELF"), None);
    }
}
