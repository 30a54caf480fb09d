//! What `modprobe NAME` would do for a kernel: modprobe.d(5) and depmod's files, read and not run.
//!
//! The order is libkmod's `kmod_module_new_from_lookup`: aliases of the configuration, modules, commands
//! of the configuration, aliases of the modules, what is built in.

use schemars::JsonSchema;
use serde::Serialize;

use super::fold;
use super::index::{Index, matches};

/// A command that calls modprobe that calls the command: modprobe itself would go on for ever.
const DEEPEST: u8 = 8;

/// What the configuration says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Config {
    install: Vec<Line>,
    alias: Vec<Line>,
    blacklist: Vec<Line>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Line {
    /// The module name or pattern, folded.
    what: String,
    /// The command, or the alias's module.
    value: String,
    /// The file.
    from: String,
}

/// What loading a name comes to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// This file is inserted: as `modules.dep` names it.
    File(String),
    /// The kernel has it inside.
    Builtin,
    /// There is no module of this name.
    Missing(String),
    /// The configuration runs a command that does nothing, such as `/bin/false`.
    Disabled(String),
    /// The configuration runs a command of which only running tells what it does.
    Opaque(String),
}

/// The answer, with the way to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Lookup {
    /// What it comes to.
    pub outcome: Outcome,
    /// The lines of the configuration that led there, with their files.
    pub chain: Vec<String>,
    /// The file that blacklists it: it is then not loaded at boot, nor by an alias.
    pub blacklisted: Option<String>,
}

impl Config {
    /// Adds a configuration file. A line that ends in a backslash goes on in the next; unknown directives
    /// are left out, as modprobe does.
    pub fn add(&mut self, from: &str, text: &str) {
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            let mut line = line.to_owned();
            while line.ends_with('\\') {
                line.pop();
                line.push_str(lines.next().unwrap_or_default());
            }
            self.line(from, line.trim());
        }
    }

    fn line(&mut self, from: &str, line: &str) {
        let mut words = line.split([' ', '\t']).filter(|word| !word.is_empty());
        let (Some(directive), Some(name)) = (words.next(), words.next()) else {
            return;
        };
        let list = match directive {
            "install" => &mut self.install,
            "alias" => &mut self.alias,
            "blacklist" => &mut self.blacklist,
            _ => return,
        };
        list.push(Line {
            what: fold(name),
            value: words.collect::<Vec<_>>().join(" "),
            from: from.to_owned(),
        });
    }

    /// Adds what a kernel command line says: `modprobe.blacklist=NAME,NAME`.
    pub fn add_cmdline(&mut self, line: &str) {
        for word in line.split_whitespace() {
            let Some(names) = word.strip_prefix("modprobe.blacklist=") else {
                continue;
            };
            self.blacklist.extend(names.split(',').map(|name| Line {
                what: fold(name),
                value: String::new(),
                from: "/proc/cmdline".to_owned(),
            }));
        }
    }

    /// What `modprobe -n -v NAME` would say for the kernel of that index.
    #[must_use]
    pub fn lookup(&self, name: &str, index: &Index) -> Lookup {
        let mut chain = Vec::new();
        let outcome = self.find(name, index, false, 0, &mut chain);
        let name = fold(name);
        let file = match &outcome {
            Outcome::File(file) => super::index::stem(file),
            _ => None,
        };
        let blacklisted = self
            .blacklist
            .iter()
            .find(|line| line.what == name || Some(&line.what) == file.as_ref())
            .map(|line| line.from.clone());
        Lookup {
            outcome,
            chain,
            blacklisted,
        }
    }

    fn find(
        &self,
        name: &str,
        index: &Index,
        ignore_install: bool,
        depth: u8,
        chain: &mut Vec<String>,
    ) -> Outcome {
        let name = fold(name);
        if let Some(line) = self.alias.iter().find(|line| matches(&line.what, &name)) {
            chain.push(format!(
                "alias {} {} ({})",
                line.what, line.value, line.from
            ));
            let module = line.value.split(' ').next().unwrap_or_default();
            return self.module(module, index, ignore_install, depth, chain);
        }
        if index.file(&name).is_some() || self.command(&name).is_some() {
            return self.module(&name, index, ignore_install, depth, chain);
        }
        if let Some(module) = index.aliases(&name).next() {
            chain.push(format!("alias {name} {module} (modules.alias)"));
            return self.module(module, index, ignore_install, depth, chain);
        }
        self.module(&name, index, ignore_install, depth, chain)
    }

    /// A module by its own name, which no alias changes any more.
    fn module(
        &self,
        name: &str,
        index: &Index,
        ignore_install: bool,
        depth: u8,
        chain: &mut Vec<String>,
    ) -> Outcome {
        let name = fold(name);
        let command = self.command(&name).filter(|_| !ignore_install);
        if let Some(line) = command {
            chain.push(format!(
                "install {} {} ({})",
                line.what, line.value, line.from
            ));
            if depth >= DEEPEST {
                return Outcome::Opaque(line.value.clone());
            }
            return self.run(&line.value, index, depth, chain);
        }
        if let Some(file) = index.file(&name) {
            return Outcome::File(file.to_owned());
        }
        if index.is_builtin(&name) {
            return Outcome::Builtin;
        }
        Outcome::Missing(name)
    }

    /// The first one counts (libkmod `kmod_module_get_install_commands`).
    fn command(&self, name: &str) -> Option<&Line> {
        self.install.iter().find(|line| matches(&line.what, name))
    }

    /// What a command line inserts last: Debian's loads the driver first and then the module itself.
    fn run(&self, command: &str, index: &Index, depth: u8, chain: &mut Vec<String>) -> Outcome {
        let mut last = None;
        let mut nothing = true;
        for part in command.split([';', '&', '|', '\n']) {
            let words: Vec<&str> = part.split_whitespace().collect();
            let Some((program, arguments)) = words.split_first() else {
                continue;
            };
            match program.rsplit('/').next() {
                Some("modprobe") => {
                    nothing = false;
                    last = modprobe(arguments).map(|(name, ignore_install)| {
                        self.find(name, index, ignore_install, depth + 1, chain)
                    });
                    if last.is_none() {
                        return Outcome::Opaque(command.to_owned());
                    }
                }
                Some("true" | "false" | ":" | "exit") => {}
                _ => nothing = false,
            }
        }
        match last {
            Some(outcome) => outcome,
            None if nothing => Outcome::Disabled(command.to_owned()),
            None => Outcome::Opaque(command.to_owned()),
        }
    }
}

/// The module that modprobe's arguments name, and whether commands are left out for it. None if that is
/// not what they ask for.
fn modprobe<'a>(arguments: &[&'a str]) -> Option<(&'a str, bool)> {
    let mut ignore_install = false;
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match *argument {
            "--" => {
                let name = arguments.next()?;
                return Some((name, ignore_install));
            }
            "--ignore-install" => ignore_install = true,
            "--remove" | "--show-depends" | "--dry-run" | "--show" => return None,
            "-S" | "-C" | "-d" => {
                arguments.next()?;
            }
            long if long.starts_with("--") => {}
            short if short.starts_with('-') => {
                if short.contains(['r', 'n', 'D', 'R', 'c']) {
                    return None;
                }
                ignore_install |= short.contains('i');
            }
            name if name.contains('$') => return None,
            name => return Some((name, ignore_install)),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEBIAN: &str = "\
install nvidia modprobe -i nvidia-current $CMDLINE_OPTS
install nvidia-peermem modprobe nvidia ; modprobe -i nvidia-current-peermem $CMDLINE_OPTS
remove nvidia-peermem modprobe -r -i nvidia-peermem
";

    fn index(files: &[&str]) -> Index {
        Index {
            dep: files.iter().map(|f| format!("{f}: x.ko\n")).collect(),
            alias: "alias nv_mem nvidia_peermem\n".into(),
            builtin: "kernel/ib_core.ko\n".into(),
        }
    }

    fn look(text: &str, name: &str, files: &[&str]) -> Lookup {
        let mut config = Config::default();
        config.add("/etc/modprobe.d/a.conf", text);
        config.lookup(name, &index(files))
    }

    #[test]
    fn a_module_by_its_name_and_by_its_alias() {
        let file = "updates/dkms/nvidia-peermem.ko";
        let found = look("", "nvidia-peermem", &[file]);
        assert_eq!(found.outcome, Outcome::File(file.into()));
        assert!(found.chain.is_empty());
        let found = look("", "nv_mem", &[file]);
        assert_eq!(found.outcome, Outcome::File(file.into()));
        assert_eq!(look("", "ib_core", &[]).outcome, Outcome::Builtin);
        assert_eq!(
            look("", "nvidia-peermem", &[]).outcome,
            Outcome::Missing("nvidia_peermem".into())
        );
    }

    #[test]
    fn debian_renames_it() {
        let file = "updates/dkms/nvidia-current-peermem.ko";
        let found = look(
            DEBIAN,
            "nvidia-peermem",
            &["updates/dkms/nvidia-current.ko", file],
        );
        assert_eq!(found.outcome, Outcome::File(file.into()));
        assert_eq!(found.chain.len(), 2, "{:?}", found.chain);
        // The commands are there, and what they name is not.
        assert_eq!(
            look(DEBIAN, "nvidia-peermem", &[]).outcome,
            Outcome::Missing("nvidia_current_peermem".into())
        );
        assert_eq!(
            look(DEBIAN, "nvidia", &["a/nvidia-current.ko"]).outcome,
            Outcome::File("a/nvidia-current.ko".into())
        );
    }

    #[test]
    fn a_file_of_that_name_does_not_keep_the_command_from_running() {
        let found = look(
            DEBIAN,
            "nvidia-peermem",
            &["nvidia-peermem.ko", "nvidia-current-peermem.ko"],
        );
        assert_eq!(
            found.outcome,
            Outcome::File("nvidia-current-peermem.ko".into())
        );
    }

    #[test]
    fn switched_off_and_not_to_be_known() {
        let file = &["nvidia-peermem.ko"][..];
        for (command, expected) in [
            ("/bin/false", Outcome::Disabled("/bin/false".into())),
            ("/bin/true", Outcome::Disabled("/bin/true".into())),
            (
                "/usr/local/sbin/x y",
                Outcome::Opaque("/usr/local/sbin/x y".into()),
            ),
            (
                "modprobe -r nvidia-peermem",
                Outcome::Opaque("modprobe -r nvidia-peermem".into()),
            ),
            ("modprobe $X", Outcome::Opaque("modprobe $X".into())),
            (
                "/sbin/modprobe --ignore-install nvidia-peermem && logger done",
                Outcome::File("nvidia-peermem.ko".into()),
            ),
            (
                "/sbin/modprobe -qi -- nvidia-peermem || true",
                Outcome::File("nvidia-peermem.ko".into()),
            ),
        ] {
            let text = format!("install nvidia-peermem {command}\n");
            assert_eq!(look(&text, "nvidia_peermem", file).outcome, expected);
        }
        // The first of several counts.
        let text = "install nvidia_peermem /bin/false\ninstall nvidia-peermem modprobe -i nvidia-peermem\n";
        assert!(matches!(
            look(text, "nvidia-peermem", file).outcome,
            Outcome::Disabled(_)
        ));
    }

    #[test]
    fn a_command_that_calls_itself_ends() {
        let text = "install nvidia-peermem modprobe nvidia-peermem\n";
        assert!(matches!(
            look(text, "nvidia-peermem", &["nvidia-peermem.ko"]).outcome,
            Outcome::Opaque(_)
        ));
    }

    #[test]
    fn lines_go_on_and_comments_do_not_count() {
        let text = "# install nvidia-peermem /bin/false\n  install \\\n nvidia-peermem \\\n/bin/false\nblacklist nvidia_peermem\n";
        let found = look(text, "nvidia-peermem", &["nvidia-peermem.ko"]);
        assert_eq!(found.outcome, Outcome::Disabled("/bin/false".into()));
        assert_eq!(found.blacklisted.as_deref(), Some("/etc/modprobe.d/a.conf"));
        let mut config = Config::default();
        config.add_cmdline("quiet modprobe.blacklist=nouveau,nvidia-peermem");
        let found = config.lookup("nvidia-peermem", &index(&["nvidia-peermem.ko"]));
        assert_eq!(found.blacklisted.as_deref(), Some("/proc/cmdline"));
        assert!(matches!(found.outcome, Outcome::File(_)));
    }
}
