//! What an entry's body does when it is chosen.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::Range;

use super::ast::offset;
use super::machine::Ran;
use super::menu::Entry;
use super::word::quote;

/// The `linux` command of an entry, where it stands in the entry's own body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinuxLine {
    /// The line of the command, from 1.
    pub line: usize,
    /// The bytes of the arguments behind the kernel's path, from the first to the last one; empty and
    /// behind the path if there is none.
    pub args_span: Range<usize>,
}

/// A command that an entry's body has run, its words expanded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// All words, one behind the other.
    text: Box<str>,
    /// Where each of them ends.
    ends: Box<[u32]>,
}

impl Command {
    pub(super) fn new(ran: &Ran) -> Self {
        let mut text = String::with_capacity(ran.argv.iter().map(Vec::len).sum());
        let ends = ran.argv.iter().map(|word| {
            text.push_str(&String::from_utf8_lossy(word));
            offset(text.len())
        });
        Self {
            ends: ends.collect(),
            text: text.into(),
        }
    }

    /// The command's name.
    pub fn name(&self) -> &str {
        self.words().next().unwrap_or_default()
    }

    /// Its arguments.
    pub fn args(&self) -> impl Iterator<Item = &str> + Clone {
        self.words().skip(1)
    }

    fn words(&self) -> impl Iterator<Item = &str> + Clone {
        let mut start = 0;
        self.ends.iter().map(move |end| {
            let word = self.text.get(start..*end as usize);
            start = *end as usize;
            word.unwrap_or_default()
        })
    }

    /// About how many bytes it takes.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(self) + self.text.len() + size_of_val(self.ends.as_ref())
    }

    /// The command as text that GRUB reads as the same words.
    pub fn to_script(&self) -> String {
        let words: Vec<String> = self.words().map(quote).collect();
        words.join(" ")
    }

    /// True for what finds the root device: `insmod`, `set root=`, `search...`.
    pub fn is_preamble(&self) -> bool {
        match self.name() {
            "insmod" | "search" | "search.fs_uuid" | "search.fs_label" | "search.file" => true,
            "set" => self
                .args()
                .next()
                .is_some_and(|arg| arg.starts_with("root=")),
            name => name.starts_with("root="),
        }
    }
}

/// How an entry finds its root device.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RootSearch {
    /// The device that `set root=` names, without parentheses.
    pub device: Option<String>,
    /// The file system that `search --fs-uuid --set=root` looks for.
    pub fs_uuid: Option<String>,
    /// The label that `search --label --set=root` looks for.
    pub label: Option<String>,
    /// The file that `search --file --set=root` looks for.
    pub file: Option<String>,
}

impl RootSearch {
    fn of(commands: &[Command]) -> Self {
        let mut root = Self::default();
        for command in commands {
            let assigned = match command.name() {
                "set" => command
                    .args()
                    .next()
                    .and_then(|arg| arg.strip_prefix("root=")),
                name => name.strip_prefix("root="),
            };
            if let Some(device) = assigned {
                let device = device.trim_start_matches('(').trim_end_matches(')');
                root.device = Some(device.to_string());
            }
            if command.name().starts_with("search") {
                root.read_search(command);
            }
        }
        root
    }

    fn read_search(&mut self, command: &Command) {
        let mut kind = command.name().strip_prefix("search.").unwrap_or("file");
        let mut variable = "root";
        let mut words = Vec::new();
        let mut args = command.args();
        while let Some(arg) = args.next() {
            match arg {
                "--fs-uuid" | "-u" => kind = "fs_uuid",
                "--label" | "-l" => kind = "fs_label",
                "--file" | "-f" => kind = "file",
                "--hint" => drop(args.next()),
                // As GRUB: what follows is the variable, unless it is an option.
                "--set" | "-s" => match args.clone().next() {
                    Some(next) if !next.starts_with('-') => {
                        variable = next;
                        args.next();
                    }
                    _ => {}
                },
                _ if arg.starts_with("--set=") => variable = arg.get(6..).unwrap_or(""),
                _ if arg.starts_with('-') => {}
                _ => words.push(arg),
            }
        }
        if command.name().starts_with("search.") {
            variable = words.get(1).copied().unwrap_or("root");
        }
        if let ("root", Some(word)) = (variable, words.first()) {
            let word = Some((*word).to_string());
            match kind {
                "fs_uuid" => self.fs_uuid = word,
                "fs_label" => self.label = word,
                _ => self.file = word,
            }
        }
    }
}

/// Joins arguments as GRUB's loader does (`lib/cmdline.c`): double quotes around one with a space, a
/// backslash before `\`, `'` and `"`.
pub fn loader_quote<'a>(args: impl IntoIterator<Item = &'a str>) -> String {
    let mut line = String::new();
    for (i, arg) in args.into_iter().enumerate() {
        if i > 0 {
            line.push(' ');
        }
        let quotes = if arg.contains(' ') { "\"" } else { "" };
        line.push_str(quotes);
        for c in arg.chars() {
            if matches!(c, '\\' | '\'' | '"') {
                line.push('\\');
            }
            line.push(c);
        }
        line.push_str(quotes);
    }
    line
}

pub(super) fn is_linux(name: &[u8]) -> bool {
    matches!(name, b"linux" | b"linux16" | b"linuxefi")
}

pub(super) fn is_initrd(name: &[u8]) -> bool {
    matches!(name, b"initrd" | b"initrd16" | b"initrdefi")
}

impl Entry {
    /// How the body finds the root device.
    pub fn root_search(&self) -> RootSearch {
        RootSearch::of(&self.commands)
    }

    /// The commands that find the root device, each as a line for another entry's body: `insmod`,
    /// `set root=` and `search`, in the order in which this entry runs them.
    pub fn preamble(&self) -> Vec<String> {
        self.commands
            .iter()
            .filter(|c| c.is_preamble())
            .map(Command::to_script)
            .collect()
    }
}
