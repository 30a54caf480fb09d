//! The boot loader's files: read whole, parsed where they are used.

use std::collections::BTreeMap;

use grub_config_parser::{cfg, defaults, grubenv};
use schemars::JsonSchema;
use serde::Serialize;

use super::fact::Fact;
use super::mounts::{Mount, mount_of};
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
    /// zipl (s390).
    Zipl,
    /// None that is known.
    Unknown,
}

/// The boot loader and its files.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Boot {
    /// Who boots.
    pub loader: Fact<Loader>,
    /// GRUB's directory, `/boot/grub` or `/boot/grub2`.
    pub grub_dir: Option<String>,
    /// The mount that holds it.
    pub mount: Fact<Mount>,
    /// `grubenv`'s variables.
    pub grubenv: Fact<BTreeMap<String, String>>,
    /// `GRUB_*` variables as grub-mkconfig will see them; computed ones have no value.
    pub defaults: Fact<BTreeMap<String, Option<String>>>,
    /// The program that regenerates `grub.cfg`.
    pub mkconfig: Fact<String>,
    /// Whether `grub-script-check` is there to judge a script before it is installed.
    pub script_check: Fact<String>,
    /// The files' bytes.
    #[serde(skip)]
    pub files: BootFiles,
}

/// The bytes that plans are made from.
#[derive(Debug, Clone, Default)]
pub struct BootFiles {
    /// `grub.cfg`
    pub grub_cfg: Option<Vec<u8>>,
    /// `custom.cfg`
    pub custom_cfg: Option<Vec<u8>>,
    /// `grubenv`
    pub grubenv: Option<Vec<u8>>,
    /// `/etc/default/grub` and the drop-ins that grub-mkconfig reads, in its order.
    pub defaults: Vec<(String, Vec<u8>)>,
    /// What could not be read, and why: nothing may be planned around it.
    pub unreadable: Vec<String>,
}

impl Boot {
    /// A file in GRUB's directory.
    #[must_use]
    pub fn in_grub_dir(&self, name: &str) -> Option<String> {
        self.grub_dir.as_ref().map(|dir| format!("{dir}/{name}"))
    }

    /// The menu that GRUB would show, with its default; none when grub.cfg is not there.
    ///
    /// # Errors
    /// grub.cfg is not a GRUB script.
    pub fn menu(&self) -> Option<Result<cfg::Menu, cfg::SyntaxError>> {
        self.files
            .grub_cfg
            .as_ref()
            .map(|bytes| menu_of(bytes, self))
    }
}

/// The menu that GRUB would show if `bytes` were its grub.cfg.
///
/// # Errors
/// They are not a GRUB script.
pub fn menu_of(bytes: &[u8], boot: &Boot) -> Result<cfg::Menu, cfg::SyntaxError> {
    let env = boot.grubenv.get().cloned().unwrap_or_default();
    Ok(cfg::Script::parse(bytes)?.menu(&cfg::Context {
        env,
        ..cfg::Context::default()
    }))
}

/// Where grub-mkconfig's drop-ins are, and which distributions' grub-mkconfig reads them.
pub const DROP_INS: &str = "/etc/default/grub.d";

pub(super) fn boot(root: &Root, reads_drop_ins: bool) -> Boot {
    let mut files = BootFiles::default();
    let dir = ["/boot/grub", "/boot/grub2"].into_iter().find(|dir| {
        let there = |name: &str| matches!(root.stat(&format!("{dir}/{name}")), Ok(Some(_)));
        there("grub.cfg") || there("grubenv")
    });
    if let Some(dir) = dir {
        files.grub_cfg = take(root, &format!("{dir}/grub.cfg"), &mut files.unreadable);
        files.custom_cfg = take(root, &format!("{dir}/custom.cfg"), &mut files.unreadable);
        files.grubenv = take(root, &format!("{dir}/grubenv"), &mut files.unreadable);
    }
    let sources = if reads_drop_ins {
        read_defaults(root)
    } else {
        read_main(root)
    };
    let defaults = match sources {
        Ok(read) => {
            files.defaults = read;
            Fact::known(evaluate(&files.defaults), "/etc/default/grub")
        }
        Err(e) => {
            files.unreadable.push(e.to_string());
            Fact::unknown("/etc/default/grub", e.to_string())
        }
    };
    let env_path = dir.map_or("/boot/grub/grubenv".to_owned(), |d| format!("{d}/grubenv"));
    let grubenv = match files.grubenv.as_deref().map(grubenv::EnvBlock::parse) {
        Some(Ok(block)) => Fact::known(
            block.iter().map(|(k, v)| (k.clone(), v.clone())).collect(),
            env_path,
        ),
        Some(Err(e)) => Fact::unknown(env_path, e.to_string()),
        None => Fact::absent(env_path),
    };
    let mkconfig = program(
        root,
        &["/usr/sbin/grub-mkconfig", "/usr/sbin/grub2-mkconfig"],
    );
    Boot {
        loader: loader(root, dir),
        grub_dir: dir.map(str::to_owned),
        mount: mount_of(root, dir.unwrap_or("/boot")),
        grubenv,
        defaults,
        mkconfig,
        script_check: program(
            root,
            &["/usr/bin/grub-script-check", "/usr/bin/grub2-script-check"],
        ),
        files,
    }
}

fn take(root: &Root, path: &str, unreadable: &mut Vec<String>) -> Option<Vec<u8>> {
    match root.read_if_there(path) {
        Ok(bytes) => bytes,
        Err(e) => {
            unreadable.push(e.to_string());
            None
        }
    }
}

fn loader(root: &Root, grub_dir: Option<&str>) -> Fact<Loader> {
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
        if let Some(dir) = grub_dir {
            return Ok(Fact::known(Loader::Grub, dir));
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

fn program(root: &Root, paths: &[&str]) -> Fact<String> {
    for path in paths {
        match root.stat(path) {
            Ok(Some(stat)) if stat.mode & 0o111 != 0 => {
                return Fact::known((*path).to_owned(), *path);
            }
            Ok(_) => {}
            Err(e) => return Fact::unknown(*path, e.to_string()),
        }
    }
    Fact::absent(paths.first().copied().unwrap_or_default())
}

fn read_main(root: &Root) -> Result<Vec<(String, Vec<u8>)>, SysError> {
    let path = "/etc/default/grub";
    Ok(root
        .read_if_there(path)?
        .map(|bytes| (path.to_owned(), bytes))
        .into_iter()
        .collect())
}

/// Debian's grub-mkconfig sources `/etc/default/grub.d/*.cfg` in the shell's glob order after the main file.
fn read_defaults(root: &Root) -> Result<Vec<(String, Vec<u8>)>, SysError> {
    let mut files = read_main(root)?;
    for entry in root.list(DROP_INS)? {
        // A glob does not match a leading dot.
        if entry.kind != EntryKind::Dir
            && entry.name.ends_with(".cfg")
            && !entry.name.starts_with('.')
        {
            let path = format!("{DROP_INS}/{}", entry.name);
            if let Some(bytes) = root.read_if_there(&path)? {
                files.push((path, bytes));
            }
        }
    }
    Ok(files)
}

fn evaluate(files: &[(String, Vec<u8>)]) -> BTreeMap<String, Option<String>> {
    let docs: Vec<defaults::Document> = files
        .iter()
        .map(|(_, bytes)| defaults::Document::parse(bytes))
        .collect();
    let named = files
        .iter()
        .zip(&docs)
        .map(|((name, _), doc)| defaults::File { name, doc });
    let evaluation = defaults::evaluate(&named.collect::<Vec<_>>());
    let grub = evaluation
        .vars
        .into_iter()
        .filter(|(name, _)| name.starts_with("GRUB_"));
    grub.map(|(name, variable)| (name, variable.value))
        .collect()
}
