//! The boot loader's files: read whole, parsed where they are used.

use std::collections::BTreeMap;

use grub_config_parser::{bls, cfg, defaults, grubenv};
use schemars::JsonSchema;
use serde::Serialize;

use super::fact::Fact;
use super::loader::{Loader, grub_dir, loader, other_menus};
use super::mounts::{Mount, mount_of};
use super::os::Os;
use super::shell::{Sh, sh};
use crate::sys::{EntryKind, Root, SysError};

/// The boot loader and its files.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Boot {
    /// Who boots.
    pub loader: Fact<Loader>,
    /// GRUB's directory, `/boot/grub` or `/boot/grub2`.
    pub grub_dir: Option<String>,
    /// The mount that holds it.
    pub mount: Fact<Mount>,
    /// The mount that holds the boot entries in files.
    pub entries_mount: Fact<Mount>,
    /// Other `grub.cfg` files on the EFI system partition that have a menu of their own: the firmware's
    /// GRUB may read one of them instead.
    pub other_menus: Vec<String>,
    /// `grubenv`'s variables.
    pub grubenv: Fact<BTreeMap<String, String>>,
    /// How GRUB orders Boot Loader Specification entries; none where there are none.
    pub entry_order: Fact<EntryOrder>,
    /// `GRUB_*` variables as grub-mkconfig will see them; computed ones have no value.
    pub defaults: Fact<BTreeMap<String, Option<String>>>,
    /// Whether grub-mkconfig reads `/etc/default/grub.d/*.cfg` here.
    pub reads_drop_ins: bool,
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
    /// The shell that reads them there.
    pub sh: Sh,
    /// Boot Loader Specification entries, by name.
    pub entries: Vec<(String, Vec<u8>)>,
    /// The file that new kernels take their command line from (kernel-install(8)), where there is one.
    pub kernel_cmdline: Option<(String, Vec<u8>)>,
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
    /// grub.cfg is not a GRUB script, or one that does not come to an end.
    pub fn menu(&self) -> Option<Result<cfg::Menu, String>> {
        self.files
            .grub_cfg
            .as_ref()
            .map(|bytes| menu_of(bytes, self))
    }

    /// What GRUB finds beside its grub.cfg, its entries in the order that is known or else GRUB's own.
    #[must_use]
    pub fn context(&self) -> cfg::Context {
        let order = self.entry_order.get().copied();
        context(self, order.unwrap_or(EntryOrder::FileVersion))
    }

    /// Whether the default entry is the same in whatever order the installed GRUB has.
    #[must_use]
    pub fn default_is_certain(&self) -> bool {
        if self.files.entries.is_empty() || self.entry_order.get().is_some() {
            return true;
        }
        let id = |order| {
            let menu = menu_in(self.files.grub_cfg.as_ref()?, self, order).ok()?;
            let entry = menu.entries.into_iter().nth(menu.default?)?;
            Some(entry.id)
        };
        let own = id(EntryOrder::FileVersion);
        own == id(EntryOrder::Rpm) && own == id(EntryOrder::RpmVersion)
    }
}

/// How a GRUB orders Boot Loader Specification entries, which decides on the default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EntryOrder {
    /// GRUB's own: file names by version.
    FileVersion,
    /// Red Hat's: name, version and release.
    Rpm,
    /// EL 8's: the `version` keys first.
    RpmVersion,
}

impl EntryOrder {
    /// In the parser's words.
    #[must_use]
    pub fn order(self) -> bls::Order {
        match self {
            Self::FileVersion => bls::Order::FileVerCmp,
            Self::Rpm => bls::Order::Rpm,
            Self::RpmVersion => bls::Order::RpmVersion,
        }
    }
}

/// The menu that GRUB would show if `bytes` were its grub.cfg. Where the order of its entries is not
/// known, it is GRUB's own: see [`Boot::default_is_certain`].
///
/// # Errors
/// They are not a GRUB script, or one that does not come to an end: what it would boot is not known.
pub fn menu_of(bytes: &[u8], boot: &Boot) -> Result<cfg::Menu, String> {
    whole_menu(bytes, &boot.context())
}

fn menu_in(bytes: &[u8], boot: &Boot, order: EntryOrder) -> Result<cfg::Menu, String> {
    whole_menu(bytes, &context(boot, order))
}

/// The whole menu of a script: never a part of it.
///
/// # Errors
/// Why there is none, with the line where it is known.
pub fn whole_menu(bytes: &[u8], context: &cfg::Context) -> Result<cfg::Menu, String> {
    let script = cfg::Script::parse(bytes).map_err(|e| e.to_string())?;
    let menu = script.menu(context).complete();
    menu.map_err(|e| e.to_string())
}

/// What GRUB would find beside its grub.cfg.
fn context(boot: &Boot, order: EntryOrder) -> cfg::Context {
    let files = boot
        .files
        .entries
        .iter()
        .map(|(path, bytes)| bls::Snippet::parse(file_name(path), bytes));
    cfg::Context {
        env: boot.grubenv.get().cloned().unwrap_or_default(),
        env_present: boot.files.grubenv.is_some(),
        ids_first: order != EntryOrder::FileVersion,
        bls: Some(cfg::Bls {
            files: files.collect(),
            order: order.order(),
        }),
        ..cfg::Context::default()
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Where Boot Loader Specification entries are, seen from the running system.
pub const ENTRIES: &str = "/boot/loader/entries";

/// Where kernel-install looks for the command line of a new kernel, first found first.
pub const KERNEL_CMDLINE: [&str; 2] = ["/etc/kernel/cmdline", "/usr/lib/kernel/cmdline"];

/// Where grub-mkconfig's drop-ins are, and which distributions' grub-mkconfig reads them.
pub const DROP_INS: &str = "/etc/default/grub.d";

pub(super) fn boot(root: &Root, os: &Fact<Os>) -> Boot {
    let mut files = BootFiles {
        sh: sh(root),
        ..BootFiles::default()
    };
    let dir = grub_dir(root).unwrap_or_else(|e| {
        files.unreadable.push(e.to_string());
        None
    });
    if let Some(dir) = &dir {
        files.grub_cfg = take(root, &format!("{dir}/grub.cfg"), &mut files.unreadable);
        files.custom_cfg = take(root, &format!("{dir}/custom.cfg"), &mut files.unreadable);
        files.grubenv = take(root, &format!("{dir}/grubenv"), &mut files.unreadable);
    }
    match read_entries(root) {
        Ok(entries) => files.entries = entries,
        Err(e) => files.unreadable.push(e.to_string()),
    }
    files.kernel_cmdline = KERNEL_CMDLINE.iter().find_map(|path| {
        let bytes = take(root, path, &mut files.unreadable)?;
        Some(((*path).to_owned(), bytes))
    });
    let mkconfig = program(
        root,
        &["/usr/sbin/grub-mkconfig", "/usr/sbin/grub2-mkconfig"],
    );
    if let (None, Some(why)) = (&mkconfig.value, &mkconfig.unknown) {
        files.unreadable.push(why.clone());
    }
    let reads_drop_ins = reads_drop_ins(root, &mkconfig, os).unwrap_or_else(|e| {
        // Which files count is not known: nothing may be planned on either answer.
        files.unreadable.push(e);
        false
    });
    let sources = if reads_drop_ins {
        read_defaults(root)
    } else {
        read_main(root)
    };
    let defaults = match sources {
        Ok(read) => {
            files.defaults = read;
            Fact::known(
                grub_variables(files.sh.evaluate(&files.defaults)),
                "/etc/default/grub",
            )
        }
        Err(e) => {
            files.unreadable.push(e.to_string());
            Fact::unknown("/etc/default/grub", e.to_string())
        }
    };
    let env_path = dir
        .as_ref()
        .map_or("/boot/grub/grubenv".to_owned(), |d| format!("{d}/grubenv"));
    let grubenv = match files.grubenv.as_deref().map(grubenv::EnvBlock::parse) {
        Some(Ok(block)) => Fact::known(
            block.iter().map(|(k, v)| (k.clone(), v.clone())).collect(),
            env_path,
        ),
        Some(Err(e)) => Fact::unknown(env_path, e.to_string()),
        None => Fact::absent(env_path),
    };
    let mount = mount_of(root, dir.as_deref().unwrap_or("/boot"));
    // Whether GRUB can write there hangs on it.
    if let Some(why) = &mount.unknown {
        files.unreadable.push(if why.contains(&mount.from) {
            why.clone()
        } else {
            format!("{}: {why}", mount.from)
        });
    }
    Boot {
        loader: loader(root, dir.as_deref()),
        mount,
        entries_mount: mount_of(root, ENTRIES),
        other_menus: other_menus(root, dir.as_deref()).unwrap_or_else(|e| {
            files.unreadable.push(e.to_string());
            Vec::new()
        }),
        entry_order: entry_order(root, dir.as_deref(), &files),
        grub_dir: dir,
        reads_drop_ins,
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

fn read_entries(root: &Root) -> Result<Vec<(String, Vec<u8>)>, SysError> {
    let mut entries = Vec::new();
    for entry in root.list(ENTRIES)? {
        if entry.kind != EntryKind::Dir && entry.name.ends_with(".conf") {
            let path = format!("{ENTRIES}/{}", entry.name);
            if let Some(bytes) = root.read_if_there(&path)? {
                entries.push((path, bytes));
            }
        }
    }
    Ok(entries)
}

/// Debian's grub-mkconfig sources drop-ins, Red Hat's and SUSE's do not. The script itself tells;
/// where it is none, the distribution does.
fn reads_drop_ins(root: &Root, mkconfig: &Fact<String>, os: &Fact<Os>) -> Result<bool, String> {
    let script = match mkconfig.get() {
        Some(path) => root.read_if_there(path).map_err(|e| e.to_string())?,
        None => None,
    };
    Ok(match script.filter(|bytes| bytes.starts_with(b"#!")) {
        Some(bytes) => String::from_utf8_lossy(&bytes).contains("default/grub.d"),
        None => match (os.get(), &os.unknown) {
            (Some(os), _) => os.is_like("debian"),
            (None, Some(why)) => return Err(why.clone()),
            (None, None) => false,
        },
    })
}

fn entry_order(root: &Root, dir: Option<&str>, files: &BootFiles) -> Fact<EntryOrder> {
    if files.entries.is_empty() {
        return Fact::absent(ENTRIES);
    }
    let from = "/etc/os-release";
    let read = || -> Result<Option<bls::Order>, SysError> {
        let os_release = match root.read_if_there(from)? {
            Some(bytes) => bytes,
            None => root
                .read_if_there("/usr/lib/os-release")?
                .unwrap_or_default(),
        };
        let mut modules = Vec::new();
        for platform in ["x86_64-efi", "i386-pc", "arm64-efi"] {
            let dir = format!("{}/{platform}", dir.unwrap_or("/boot/grub"));
            modules.extend(root.list(&dir)?.into_iter().map(|entry| entry.name));
        }
        let names: Vec<&str> = modules.iter().map(String::as_str).collect();
        let evidence = bls::Evidence {
            os_release: &os_release,
            modules: &names,
            ..bls::Evidence::default()
        };
        Ok(evidence.order())
    };
    match read() {
        Ok(Some(bls::Order::FileVerCmp)) => Fact::known(EntryOrder::FileVersion, from),
        Ok(Some(bls::Order::Rpm)) => Fact::known(EntryOrder::Rpm, from),
        Ok(Some(bls::Order::RpmVersion)) => Fact::known(EntryOrder::RpmVersion, from),
        Ok(None) => Fact::unknown(
            from,
            "it is not known how the installed GRUB orders its entries",
        ),
        Err(e) => Fact::unknown(from, e.to_string()),
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

fn grub_variables(evaluation: defaults::Evaluation) -> BTreeMap<String, Option<String>> {
    let grub = evaluation
        .vars
        .into_iter()
        .filter(|(name, _)| name.starts_with("GRUB_"));
    grub.map(|(name, variable)| (name, variable.value))
        .collect()
}
