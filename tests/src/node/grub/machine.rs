//! GRUB's state, its menu, and how it gets from the menu to a kernel.

use std::collections::BTreeMap;

use super::super::family::Family;
use super::super::tree::{Tree, TreeError};
use super::syntax::{Block, Part, Statement, SyntaxError, Word, parse};

/// What the machine under GRUB can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Firmware {
    /// Can GRUB write the file system that grubenv is on? Not on btrfs, LVM, RAID, or a broken disk.
    pub writable: bool,
}

impl Default for Firmware {
    fn default() -> Self {
        Firmware { writable: true }
    }
}

/// What GRUB started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Booted {
    /// Title of the entry.
    pub title: String,
    /// Its `--id`, if it has one.
    pub id: Option<String>,
    /// Path of the kernel, from the root of the machine.
    pub kernel: String,
    /// The command line, `BOOT_IMAGE=` first.
    pub cmdline: String,
    /// Path of the initial RAM disk.
    pub initrd: Option<String>,
    /// What GRUB printed: errors that it went on after, and `echo`.
    pub messages: Vec<String>,
}

/// Why the machine hangs in GRUB.
#[derive(Debug, thiserror::Error)]
pub enum GrubError {
    /// A file of the made-up machine.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// GRUB stops at a prompt.
    #[error("{file}: {error}: GRUB is at its prompt and waits for somebody")]
    Syntax {
        /// The file.
        file: String,
        /// What is wrong with it.
        error: SyntaxError,
    },
    /// No menu, or no entry that can be started.
    #[error("{reason}: GRUB waits for somebody; it had said: {}", messages.join(" | "))]
    Hangs {
        /// What is on the screen.
        reason: &'static str,
        /// What was printed before.
        messages: Vec<String>,
    },
}

/// An entry of the menu.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) title: String,
    pub(super) id: Option<String>,
    pub(super) submenu: bool,
    pub(super) body: Block,
}

/// The kernel that a `linux` command has loaded.
#[derive(Debug, Clone, Default)]
pub(super) struct Loaded {
    pub(super) kernel: String,
    pub(super) cmdline: String,
    pub(super) initrd: Option<String>,
}

pub(super) struct Grub<'a> {
    pub(super) tree: &'a Tree,
    pub(super) firmware: Firmware,
    pub(super) vars: BTreeMap<String, String>,
    pub(super) functions: BTreeMap<String, Block>,
    pub(super) menu: Vec<Entry>,
    pub(super) loaded: Option<Loaded>,
    pub(super) messages: Vec<String>,
}

/// The device that the root partition is, in GRUB's words.
pub(super) const DEVICE: &str = "hd0,gpt2";

/// From power-on to a started kernel. Writes to grubenv what the configuration tells it to write.
pub fn boot(tree: &Tree, firmware: Firmware) -> Result<Booted, GrubError> {
    let mut grub = Grub {
        tree,
        firmware,
        vars: BTreeMap::new(),
        functions: BTreeMap::new(),
        menu: Vec::new(),
        loaded: None,
        messages: Vec::new(),
    };
    let dir = Family::of(tree).grub_dir();
    let prefix = format!("({DEVICE})/{dir}");
    for (name, value) in [
        ("root", DEVICE),
        ("prefix", &prefix),
        ("config_directory", &prefix),
        ("config_file", &format!("{prefix}/grub.cfg")),
        ("grub_platform", "efi"),
        ("grub_cpu", "x86_64"),
        ("feature_menuentry_id", "y"),
        ("feature_timeout_style", "y"),
        ("feature_all_video_module", "y"),
        ("feature_platform_search_hint", "y"),
        ("feature_default_font_path", "y"),
        ("feature_menuentry_options", "y"),
    ] {
        grub.vars.insert(name.into(), value.into());
    }
    grub.source(&format!("{dir}/grub.cfg"))?;
    grub.start()
}

impl Grub<'_> {
    pub(super) fn var(&self, name: &str) -> &str {
        self.vars.get(name).map_or("", String::as_str)
    }

    /// `(hd0,gpt2)/boot/x` and `/boot/x` are the same file.
    pub(super) fn path(name: &str) -> String {
        let name = match name.strip_prefix('(') {
            Some(rest) => rest.split_once(')').map_or("", |(_, path)| path),
            None => name,
        };
        name.trim_start_matches('/').to_owned()
    }

    /// Runs a file; `Ok` is its last command's status.
    pub(super) fn source(&mut self, path: &str) -> Result<bool, GrubError> {
        let text = self.tree.text(path)?;
        let block = parse(&text).map_err(|error| GrubError::Syntax {
            file: format!("/{path}"),
            error,
        })?;
        self.run(&block)
    }

    pub(super) fn run(&mut self, block: &Block) -> Result<bool, GrubError> {
        let mut status = true;
        for statement in block.iter() {
            status = match statement {
                Statement::Command { words, block } => {
                    let args = words
                        .iter()
                        .flat_map(|word| self.expand(word))
                        .collect::<Vec<_>>();
                    self.command(&args, block.as_ref())?
                }
                Statement::If(arms) => self.choose(arms)?,
                Statement::Function { name, body } => {
                    self.functions.insert(name.clone(), body.clone());
                    true
                }
            };
            self.vars
                .insert("?".into(), if status { "0" } else { "1" }.into());
        }
        Ok(status)
    }

    fn choose(&mut self, arms: &[(Option<Block>, Block)]) -> Result<bool, GrubError> {
        for (condition, body) in arms {
            let holds = match condition {
                Some(condition) => self.run(condition)?,
                None => true,
            };
            if holds {
                return self.run(body);
            }
        }
        Ok(true)
    }

    /// The arguments that a word becomes: none, one, or several where a bare variable has blanks.
    fn expand(&self, word: &Word) -> Vec<String> {
        let mut all = Vec::new();
        let mut current = String::new();
        let mut exists = word.quoted;
        for part in &word.parts {
            match part {
                Part::Text(text) => {
                    current += text;
                    exists |= !text.is_empty();
                }
                Part::Var { name, quoted: true } => current += self.var(name),
                Part::Var {
                    name,
                    quoted: false,
                } => {
                    let value = self.var(name).to_owned();
                    let mut pieces = value.split(' ').filter(|piece| !piece.is_empty());
                    if let Some(first) = pieces.next() {
                        current += first;
                        exists = true;
                    }
                    for piece in pieces {
                        all.push(std::mem::replace(&mut current, piece.to_owned()));
                    }
                }
            }
        }
        if exists {
            all.push(current);
        }
        all
    }

    /// The menu has been read: choose, load, start (grub-core/normal/menu.c).
    fn start(mut self) -> Result<Booted, GrubError> {
        if self.menu.is_empty() {
            return Err(self.hangs("there is no menu"));
        }
        let default = self.var("default").to_owned();
        let fallback = self.var("fallback").to_owned();
        let (wanted, below) = match default.split_once('>') {
            Some((wanted, below)) => (wanted.to_owned(), Some(below.to_owned())),
            None => (default, None),
        };
        // a default that names nothing is the first entry, not an error
        let first = self.find(&wanted).unwrap_or(0);
        let mut tries = vec![(first, below)];
        // numbers only: GRUB 2.06 does not find a fallback by its id
        tries.extend(
            fallback
                .split(' ')
                .filter_map(|number| Some((number.parse().ok()?, None))),
        );
        for (index, below) in tries {
            let Some(entry) = self.menu.get(index).cloned() else {
                continue;
            };
            if let Some(entry) = self.execute(&entry, below)?
                && let Some(loaded) = self.loaded.take()
            {
                return Ok(Booted {
                    title: entry.title,
                    id: entry.id,
                    kernel: loaded.kernel,
                    cmdline: loaded.cmdline,
                    initrd: loaded.initrd,
                    messages: self.messages,
                });
            }
        }
        Err(self.hangs("failed to boot both default and fallback entries"))
    }

    fn hangs(&mut self, reason: &'static str) -> GrubError {
        GrubError::Hangs {
            reason,
            messages: std::mem::take(&mut self.messages),
        }
    }

    /// The place in the menu of a number, an id or a title. Red Hat's looks for the number last.
    fn find(&self, wanted: &str) -> Option<usize> {
        let digits = wanted.bytes().take_while(u8::is_ascii_digit).count();
        if digits > 0 && !Family::of(self.tree).has_entries() {
            // what follows the digits is not looked at
            let index: usize = wanted.get(..digits)?.parse().ok()?;
            return (index < self.menu.len()).then_some(index);
        }
        let named = self
            .menu
            .iter()
            .position(|entry| entry.id.as_deref() == Some(wanted));
        if named.is_some() {
            return named;
        }
        if let Ok(index) = wanted.parse::<usize>() {
            return (index < self.menu.len()).then_some(index);
        }
        self.menu.iter().position(|entry| entry.title == wanted)
    }

    /// Runs an entry. What comes back is the entry that left a loaded kernel, if one did.
    fn execute(
        &mut self,
        entry: &Entry,
        below: Option<String>,
    ) -> Result<Option<Entry>, GrubError> {
        self.vars.insert(
            "chosen".into(),
            entry.id.clone().unwrap_or(entry.title.clone()),
        );
        if entry.submenu {
            let outer = std::mem::take(&mut self.menu);
            self.run(&entry.body)?;
            let (wanted, deeper) = match below.as_deref().and_then(|name| name.split_once('>')) {
                Some((wanted, deeper)) => (wanted.to_owned(), Some(deeper.to_owned())),
                None => (below.unwrap_or_default(), None),
            };
            let inner = self.menu.get(self.find(&wanted).unwrap_or(0)).cloned();
            let done = match inner {
                Some(inner) => self.execute(&inner, deeper)?,
                None => None,
            };
            self.menu = outer;
            return Ok(done);
        }
        self.loaded = None;
        let fine = self.run(&entry.body)?;
        // an entry that ends with an error is not started
        Ok((fine && self.loaded.is_some()).then(|| entry.clone()))
    }
}
