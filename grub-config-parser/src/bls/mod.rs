//! Boot Loader Specification entries (`loader/entries/*.conf`), as GRUB's `blscfg` reads them.
//!
//! ```
//! use grub_config_parser::bls::{Order, Snippet, menu};
//! let files = [
//!     Snippet::parse("a-5.9.conf", b"linux /vmlinuz-5.9\noptions $kernelopts quiet\n"),
//!     Snippet::parse("a-5.10.conf", b"title New\nlinux /vmlinuz-5.10\noptions ro\n"),
//! ];
//! let env = [("kernelopts".to_string(), "root=/dev/sda1 ro".to_string())].into();
//! let entries = menu(&files, Order::FileVerCmp, &env);
//! assert_eq!(entries[0].title, "New");
//! assert_eq!(entries[1].raw, "root=/dev/sda1 ro quiet");
//! ```

mod compare;
mod expand;
mod installed;
mod options;
mod snippet;

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::ops::Range;

pub use compare::{file_version_order, rpm_order, rpm_version_order};
pub use expand::expand;
pub use installed::Evidence;
pub use options::OptionsError;
pub use snippet::Snippet;

use crate::cfg::{self, LineTrace};
use crate::cmdline::CommandLine;

/// How a GRUB orders entries; the first one is the default. They disagree on everyday nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// GRUB 2.14's own `blscfg`: file names, by gnulib's `filevercmp`.
    FileVerCmp,
    /// Red Hat's and Fedora's `blscfg`: name, version and release, as rpm compares them.
    Rpm,
    /// EL8's `blscfg`: the `version` keys first, if every file has one, then as [`Order::Rpm`].
    RpmVersion,
}

/// One entry of the menu.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// The file's name without `.conf`.
    pub id: String,
    /// The `title`, or else the `linux` path.
    pub title: String,
    /// The `linux` path as written.
    pub linux: String,
    /// What the loader gives the kernel, without `BOOT_IMAGE=`.
    pub raw: String,
    /// `raw`, split as the kernel does.
    pub cmdline: CommandLine,
    /// The place of its file among those given.
    pub file: usize,
    /// Where the words of its script come from, and what variables have made of its options.
    pub(crate) trace: LineTrace,
    parts: Vec<expand::Part>,
    options_at: usize,
    default_options: bool,
}

/// What a piece of an entry's options comes from.
pub(crate) enum Piece {
    /// Text of the `options` key.
    Text,
    /// A variable; with `default` one in `default_kernelopts`, which stands for absent options.
    Variable { name: String, default: bool },
}

impl Entry {
    /// What this range of the entry's script comes from; `None` if it is not in the options.
    pub(crate) fn options(&self, range: &Range<usize>) -> Option<Vec<Piece>> {
        let start = range.start.checked_sub(self.options_at)?;
        let end = range.end.checked_sub(self.options_at)?;
        let mut at = 0;
        let mut pieces = Vec::new();
        for part in &self.parts {
            let next = at + part.bytes;
            if at < end && start < next {
                let default = self.default_options;
                pieces.push(match &part.variable {
                    Some(name) => Piece::Variable {
                        name: name.clone(),
                        default,
                    },
                    None if default => Piece::Variable {
                        name: String::from(DEFAULT_OPTIONS),
                        default,
                    },
                    None => Piece::Text,
                });
            }
            at = next;
        }
        Some(pieces)
    }
}

/// The variable whose value Red Hat's GRUB takes for an entry without options.
const DEFAULT_OPTIONS: &str = "default_kernelopts";

/// The menu that these files make, in order. `env` are the variables that are set when `blscfg`
/// runs. A file without `linux` makes no entry, and of two that compare the same only the first counts
/// (not with [`Order::RpmVersion`]).
pub fn menu(files: &[Snippet], order: Order, env: &BTreeMap<String, String>) -> Vec<Entry> {
    drafts(files, order, env)
        .map(|draft| entry(draft, env))
        .collect()
}

/// The places of the files that count, the first entry's first.
fn sorted(files: &[Snippet], order: Order) -> Vec<usize> {
    let mut indices: Vec<usize> = (0..files.len()).collect();
    indices.retain(|index| {
        files
            .get(*index)
            .is_some_and(|file| accepted(file.name(), order))
    });
    let versioned = order == Order::RpmVersion
        && indices.iter().all(|index| {
            let file = files.get(*index);
            file.is_some_and(|file| file.value("version").is_some())
        });
    let versions = |a: &Snippet, b: &Snippet| match (a.value("version"), b.value("version")) {
        (Some(a), Some(b)) if versioned => rpm_version_order(a.as_bytes(), b.as_bytes()),
        _ => Ordering::Equal,
    };
    let compare = |a: &usize, b: &usize| match (files.get(*a), files.get(*b)) {
        (Some(a), Some(b)) => versions(a, b).then_with(|| compare(a.name(), b.name(), order)),
        _ => Ordering::Equal,
    };
    indices.sort_by(|a, b| compare(b, a));
    // EL8 sorts an array, the others leave out what compares the same.
    if order != Order::RpmVersion {
        indices.dedup_by(|b, a| compare(a, b) == Ordering::Equal);
    }
    indices
}

/// True if a GRUB with this order reads a file of this name.
pub fn accepted(name: &str, order: Order) -> bool {
    name.ends_with(".conf") && (order == Order::FileVerCmp || !name.starts_with('.'))
}

/// Compares two file names; the greater one comes first in the menu. For [`Order::RpmVersion`] this is
/// what decides between files of the same version.
pub fn compare(a: &str, b: &str, order: Order) -> Ordering {
    match order {
        Order::FileVerCmp => file_version_order(a.as_bytes(), b.as_bytes()),
        Order::Rpm | Order::RpmVersion => {
            let id = |name: &str| name.strip_suffix(".conf").unwrap_or(name).to_string();
            rpm_order(id(a).as_bytes(), id(b).as_bytes())
        }
    }
}

/// What `blscfg` hands to the menu for one file: the arguments and the script of a `menuentry`.
pub(crate) struct Draft {
    pub(crate) id: String,
    /// The title and each `grub_arg`: the body's positional parameters.
    pub(crate) args: Vec<String>,
    pub(crate) classes: Vec<String>,
    pub(crate) users: Option<String>,
    pub(crate) script: String,
    pub(crate) file: usize,
    linux: String,
    parts: Vec<expand::Part>,
    options_at: usize,
    default_options: bool,
}

/// The drafts of all files, in the order of the menu.
pub(crate) fn drafts(
    files: &[Snippet],
    order: Order,
    env: &BTreeMap<String, String>,
) -> impl Iterator<Item = Draft> {
    let draft = move |index: usize| {
        let file = files.get(index)?;
        draft(file, index, order, env)
    };
    sorted(files, order).into_iter().filter_map(draft)
}

fn draft(
    file: &Snippet,
    index: usize,
    order: Order,
    env: &BTreeMap<String, String>,
) -> Option<Draft> {
    let linux = file.value("linux")?.to_string();
    let variable = |name: &str| env.get(name).map(String::as_str);
    let mut options = file
        .value("options")
        .and_then(|options| expand::expand_parts(options, variable));
    let default_options = options.is_none() && order != Order::FileVerCmp;
    if default_options {
        options =
            variable(DEFAULT_OPTIONS).and_then(|options| expand::expand_parts(options, variable));
    }
    let (options, parts) = options.unzip();
    let title = file.value("title").unwrap_or(&linux).to_string();
    let mut args = alloc::vec![title];
    args.extend(file.values("grub_arg").map(str::to_string));
    // GRUB makes a script of it and runs that when the entry is chosen.
    let mut script = String::from("load_video\nset gfxpayload=keep\ninsmod gzio\nlinux ");
    script.push_str(&linux);
    let options_at = script.len() + 1;
    if let Some(options) = options {
        script.push(' ');
        script.push_str(&options);
    }
    let initrds: Vec<&str> = file.values("initrd").collect();
    if !initrds.is_empty() {
        script.push_str("\ninitrd ");
        script.push_str(&initrds.join(" "));
    }
    script.push('\n');
    let id = file.name().strip_suffix(".conf").unwrap_or(file.name());
    Some(Draft {
        id: id.to_string(),
        args,
        classes: file.values("grub_class").map(str::to_string).collect(),
        users: file.value("grub_users").map(str::to_string),
        script,
        file: index,
        linux,
        parts: parts.unwrap_or_default(),
        options_at,
        default_options,
    })
}

fn entry(draft: Draft, env: &BTreeMap<String, String>) -> Entry {
    let (args, trace) = cfg::linux_args(&draft.script, &draft.args, env);
    let raw = cfg::loader_quote(args.iter().map(String::as_str));
    Entry {
        id: draft.id,
        title: draft.args.into_iter().next().unwrap_or_default(),
        linux: draft.linux,
        cmdline: CommandLine::parse(&raw),
        raw,
        file: draft.file,
        trace,
        parts: draft.parts,
        options_at: draft.options_at,
        default_options: draft.default_options,
    }
}
