//! Who boots the machine, and where GRUB's files are.

use grub_config_parser::defaults;
use schemars::JsonSchema;
use serde::Serialize;

use super::fact::Fact;
use crate::sys::{EntryKind, Root, SysError};

/// Who boots this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Loader {
    /// GRUB 2 with a generated `grub.cfg`.
    Grub,
    /// OSTree or bootc: the command line belongs to the deployment.
    Ostree,
    /// systemd-boot.
    SystemdBoot,
    /// SUSE's GRUB that reads Boot Loader Specification entries from the EFI system partition and has
    /// no `grub.cfg`.
    GrubBls,
    /// A unified kernel image, whose command line is part of the signed program.
    Uki,
    /// zipl (s390).
    Zipl,
    /// None that is known.
    Unknown,
}

pub(super) fn loader(root: &Root, grub_dir: Option<&str>) -> Fact<Loader> {
    let there = |path: &str| root.stat(path).map(|s| s.is_some());
    let found = || -> Result<Fact<Loader>, SysError> {
        for (path, loader) in [
            ("/run/ostree-booted", Loader::Ostree),
            ("/sysroot/ostree", Loader::Ostree),
            ("/ostree/repo", Loader::Ostree),
        ] {
            if there(path)? {
                return Ok(Fact::known(loader, path));
            }
        }
        if let Some(bytes) = root.read_if_there(SUSE_LOADER)? {
            match suse_loader_type(&bytes) {
                Ok(Some(kind)) if kind == "grub2-bls" => {
                    return Ok(Fact::known(Loader::GrubBls, SUSE_LOADER));
                }
                Ok(_) => {}
                Err(why) => return Ok(Fact::unknown(SUSE_LOADER, why)),
            }
        }
        if let Some(dir) = grub_dir {
            return Ok(Fact::known(Loader::Grub, dir));
        }
        for dir in ["/boot/efi/EFI/Linux", "/efi/EFI/Linux", "/boot/EFI/Linux"] {
            if root
                .list(dir)?
                .iter()
                .any(|e| e.name.to_ascii_lowercase().ends_with(".efi"))
            {
                return Ok(Fact::known(Loader::Uki, dir));
            }
        }
        for (path, loader) in [
            ("/boot/loader/loader.conf", Loader::SystemdBoot),
            ("/boot/efi/loader/loader.conf", Loader::SystemdBoot),
            ("/efi/loader/loader.conf", Loader::SystemdBoot),
            ("/etc/zipl.conf", Loader::Zipl),
        ] {
            if there(path)? {
                return Ok(Fact::known(loader, path));
            }
        }
        Ok(Fact::known(Loader::Unknown, "/boot"))
    };
    found().unwrap_or_else(|e| Fact::unknown("/boot", e.to_string()))
}

/// Where SUSE says which boot loader there is.
const SUSE_LOADER: &str = "/etc/sysconfig/bootloader";

/// What the file names, or why that is not known.
fn suse_loader_type(bytes: &[u8]) -> Result<Option<String>, String> {
    let doc = defaults::Document::parse(bytes);
    let name = SUSE_LOADER;
    let mut read = defaults::evaluate(&[defaults::File { name, doc: &doc }]);
    if let Some(abort) = read.aborts {
        return Err(format!("{name}:{}: {}", abort.line, abort.message));
    }
    match read.vars.remove("LOADER_TYPE") {
        Some(kind) if kind.value.is_none() => Err(format!("{name} computes LOADER_TYPE")),
        kind => Ok(kind.and_then(|kind| kind.value)),
    }
}

/// GRUB's directory as it is seen from the running system: the one that its `$prefix` is.
///
/// On EL 8 with EFI that is the vendor's directory on the EFI system partition; grubenv's link says so.
///
/// # Errors
/// What is there cannot be looked at.
pub fn grub_dir(root: &Root) -> Result<Option<String>, SysError> {
    for dir in ["/boot/grub", "/boot/grub2"] {
        let there = |name: &str| root.stat(&format!("{dir}/{name}")).map(|s| s.is_some());
        let (menu, env) = (there("grub.cfg")?, there("grubenv")?);
        if env
            && !menu
            && let Some(target) = root.link(&format!("{dir}/grubenv"))?
            && let Some(vendor) = vendor_dir(&target)
            && root.stat(&format!("{vendor}/grub.cfg"))?.is_some()
        {
            return Ok(Some(vendor));
        }
        if menu || env {
            return Ok(Some(dir.to_owned()));
        }
    }
    Ok(None)
}

/// `../efi/EFI/redhat/grubenv` in `/boot/grub2` is in `/boot/efi/EFI/redhat`.
fn vendor_dir(target: &str) -> Option<String> {
    let below = target
        .strip_prefix("../efi/EFI/")
        .or_else(|| target.strip_prefix("/boot/efi/EFI/"))?;
    let vendor = below.strip_suffix("/grubenv")?;
    (!vendor.is_empty() && !vendor.contains('/') && vendor != "..")
        .then(|| format!("/boot/efi/EFI/{vendor}"))
}

/// Menus on the EFI system partition beside the one in `dir`. Distributions put a stub there that reads
/// the real one; where both are real, files do not tell which GRUB starts from.
pub(super) fn other_menus(root: &Root, dir: Option<&str>) -> Result<Vec<String>, SysError> {
    let mut found = Vec::new();
    if root.is_of_running() && root.stat("/sys/firmware/efi")?.is_none() {
        return Ok(found);
    }
    let vendors = "/boot/efi/EFI";
    for entry in root.list(vendors)? {
        let own = format!("{vendors}/{}", entry.name);
        if entry.kind != EntryKind::Dir || dir == Some(own.as_str()) {
            continue;
        }
        let path = format!("{own}/grub.cfg");
        let text = root.read_if_there(&path)?.unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        if text.contains("menuentry ") || text.contains("blscfg") {
            found.push(path);
        }
    }
    Ok(found)
}
