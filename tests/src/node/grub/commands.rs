//! GRUB's commands. One that is not here fails as an unknown command does in GRUB: a message, and on.

use super::super::mkconfig::version_key;
use super::super::spec::{ESP_UUID, ROOT_UUID};
use super::env;
use super::machine::{Entry, Grub, GrubError, Loaded};
use super::syntax::{Block, parse};

impl Grub<'_> {
    /// Runs one command; `Ok(false)` is a command that failed.
    pub(super) fn command(
        &mut self,
        words: &[String],
        block: Option<&Block>,
    ) -> Result<bool, GrubError> {
        let Some((name, args)) = words.split_first() else {
            return Ok(true);
        };
        if let Some(body) = self.functions.get(name.as_str()).cloned() {
            return self.call(&body, args);
        }
        match name.as_str() {
            "menuentry" | "submenu" => self.entry(name == "submenu", args, block),
            "blscfg" => return self.blscfg(),
            "source" | "." => {
                let path = Self::path(args.first().map_or("", String::as_str));
                if !self.tree.exists(&path) {
                    return Ok(self.fails(&format!("file `/{path}' not found")));
                }
                return self.source(&path);
            }
            "set" => self.set(args),
            "unset" => args.iter().for_each(|name| drop(self.vars.remove(name))),
            "load_env" => return Ok(self.load_env(args)),
            "save_env" => return Ok(self.save_env(args)),
            "linux" | "linuxefi" => return Ok(self.linux(args)),
            "initrd" | "initrdefi" => return Ok(self.initrd(args)),
            "search" => return Ok(self.search(args)),
            "[" | "test" => {
                let args = match (name.as_str(), args.split_last()) {
                    ("[", Some((last, args))) if last == "]" => args,
                    ("[", _) => return Ok(self.fails("[: missing ]")),
                    _ => args,
                };
                return Ok(self.test(args));
            }
            "echo" => self.messages.push(args.join(" ")),
            "false" => return Ok(false),
            "fwsetup" | "chainloader" | "background_image" => {
                return Ok(self.fails(&format!("{name}: not on this machine")));
            }
            // what they do leaves no trace in a boot
            "true" | ":" | "export" | "insmod" | "loadfont" | "terminal_output"
            | "terminal_input" | "terminal" | "serial" | "play" => {}
            _ => match name.split_once('=') {
                Some((name, value)) if !name.is_empty() => {
                    self.vars.insert(name.to_owned(), value.to_owned());
                }
                _ => return Ok(self.fails(&format!("can't find command `{name}'"))),
            },
        }
        Ok(true)
    }

    fn fails(&mut self, message: &str) -> bool {
        self.messages.push(format!("error: {message}."));
        false
    }

    fn call(&mut self, body: &Block, args: &[String]) -> Result<bool, GrubError> {
        let saved: Vec<_> = (1..=9).map(|n| self.vars.remove(&n.to_string())).collect();
        for (n, arg) in (1..=9).zip(args) {
            self.vars.insert(n.to_string(), arg.clone());
        }
        let status = self.run(body);
        for (n, value) in (1..=9).zip(saved) {
            match value {
                Some(value) => drop(self.vars.insert(n.to_string(), value)),
                None => drop(self.vars.remove(&n.to_string())),
            }
        }
        status
    }

    fn entry(&mut self, submenu: bool, args: &[String], block: Option<&Block>) {
        let mut entry = Entry {
            title: String::new(),
            id: None,
            submenu,
            body: block.cloned().unwrap_or_else(|| Vec::new().into()),
        };
        let mut rest = args.iter();
        let mut titled = false;
        while let Some(arg) = rest.next() {
            match arg.as_str() {
                "--id" => entry.id = rest.next().cloned(),
                "--class" | "--users" | "--hotkey" => drop(rest.next()),
                "--unrestricted" => {}
                _ => match arg.strip_prefix("--id=") {
                    Some(id) => entry.id = Some(id.to_owned()),
                    None if !titled => {
                        entry.title.clone_from(arg);
                        titled = true;
                    }
                    None => {}
                },
            }
        }
        self.menu.push(entry);
    }

    /// Red Hat's: the files of `loader/entries`, the newest version first; each becomes an entry whose
    /// body is a script made of it (grub-core/commands/blscfg.c).
    fn blscfg(&mut self) -> Result<bool, GrubError> {
        let dir = "boot/loader/entries";
        let mut names = self.tree.names(dir)?;
        names.retain(|name| name.ends_with(".conf") && !name.starts_with('.'));
        names.sort_by_key(|name| std::cmp::Reverse(version_key(name)));
        for name in names {
            let text = self.tree.text(&format!("{dir}/{name}"))?;
            let value = |key: &str| {
                text.lines().find_map(|line| {
                    let (own, value) = line.split_once(' ')?;
                    (own == key).then(|| value.trim().to_owned())
                })
            };
            let Some(linux) = value("linux") else {
                continue;
            };
            let mut script = format!("linux {linux} {}\n", value("options").unwrap_or_default());
            if let Some(initrd) = value("initrd") {
                script += &format!("initrd {initrd}\n");
            }
            let body = parse(&script).map_err(|error| GrubError::Syntax {
                file: format!("/{dir}/{name}"),
                error,
            })?;
            self.menu.push(Entry {
                title: value("title").unwrap_or(linux),
                id: Some(name.trim_end_matches(".conf").to_owned()),
                submenu: false,
                body,
            });
        }
        Ok(true)
    }

    fn set(&mut self, args: &[String]) {
        for arg in args {
            if let Some((name, value)) = arg.split_once('=') {
                self.vars.insert(name.to_owned(), value.to_owned());
            }
        }
    }

    fn env_file(&self, args: &[String]) -> (String, Vec<String>) {
        match args {
            [option, file, names @ ..] if option == "-f" || option == "--file" => {
                (Self::path(file), names.to_vec())
            }
            _ => (
                format!("{}/grubenv", Self::path(self.var("prefix"))),
                args.to_vec(),
            ),
        }
    }

    fn load_env(&mut self, args: &[String]) -> bool {
        let (path, names) = self.env_file(args);
        let names: Vec<String> = names
            .into_iter()
            .filter(|name| !name.starts_with("--"))
            .collect();
        let Ok(block) = self.tree.read(&path) else {
            return self.fails(&format!("file `/{path}' not found"));
        };
        match env::load(&block) {
            Ok(all) => {
                let wanted = all
                    .into_iter()
                    .filter(|(name, _)| names.is_empty() || names.contains(name));
                self.vars.extend(wanted);
                true
            }
            Err(error) => self.fails(&error.to_string()),
        }
    }

    /// Writes over the bytes of the file, as GRUB does: the file keeps its size and its blocks.
    fn save_env(&mut self, args: &[String]) -> bool {
        use std::os::unix::fs::FileExt;
        let (path, names) = self.env_file(args);
        let Ok(mut block) = self.tree.read(&path) else {
            return self.fails(&format!("file `/{path}' not found"));
        };
        for name in &names {
            match env::save(&block, name, self.vars.get(name).map(String::as_str)) {
                Ok(new) => block = new,
                Err(error) => return self.fails(&error.to_string()),
            }
        }
        if !self.firmware.writable {
            return self.fails("sparse file not allowed");
        }
        let file = std::fs::OpenOptions::new()
            .write(true)
            .open(self.tree.at(&path));
        match file.and_then(|file| file.write_all_at(&block, 0)) {
            Ok(()) => true,
            Err(error) => self.fails(&format!("failure writing `/{path}': {error}")),
        }
    }

    fn linux(&mut self, args: &[String]) -> bool {
        let Some((file, args)) = args.split_first() else {
            return self.fails("filename expected");
        };
        let kernel = Self::path(file);
        if !self.tree.exists(&kernel) {
            return self.fails(&format!("file `/{kernel}' not found"));
        }
        let mut cmdline = format!("BOOT_IMAGE={}", quoted(file));
        for arg in args {
            cmdline.push(' ');
            cmdline += &quoted(arg);
        }
        self.loaded = Some(Loaded {
            kernel,
            cmdline,
            initrd: None,
        });
        true
    }

    fn initrd(&mut self, args: &[String]) -> bool {
        for file in args.iter().map(|file| Self::path(file)) {
            if !self.tree.exists(&file) {
                return self.fails(&format!("file `/{file}' not found"));
            }
            match &mut self.loaded {
                Some(loaded) => loaded.initrd = Some(file),
                None => return self.fails("you need to load the kernel first"),
            }
        }
        true
    }

    fn search(&mut self, args: &[String]) -> bool {
        let variable = args
            .iter()
            .find_map(|arg| arg.strip_prefix("--set="))
            .unwrap_or("root");
        let wanted = args.iter().find(|arg| !arg.starts_with('-'));
        let device = match wanted.map(String::as_str) {
            Some(ROOT_UUID) => super::machine::DEVICE,
            Some(ESP_UUID) => "hd0,gpt1",
            other => {
                let message = format!("no such device: {}", other.unwrap_or(""));
                return self.fails(&message);
            }
        };
        self.vars.insert(variable.to_owned(), device.to_owned());
        true
    }

    /// `-a` binds closer than `-o`, as in grub-core/commands/test.c.
    fn test(&mut self, args: &[String]) -> bool {
        let words: Vec<&str> = args.iter().map(String::as_str).collect();
        words
            .split(|word| *word == "-o")
            .any(|all| all.split(|word| *word == "-a").all(|one| self.term(one)))
    }

    fn term(&self, words: &[&str]) -> bool {
        let number = |text: &str| text.parse::<i64>().unwrap_or(0);
        let meta = |path: &str| std::fs::metadata(self.tree.at(&Self::path(path)));
        match words {
            ["!", rest @ ..] => !self.term(rest),
            ["-z", text] => text.is_empty(),
            ["-n", text] => !text.is_empty(),
            ["-f", path] => meta(path).is_ok_and(|meta| meta.is_file()),
            ["-d", path] => meta(path).is_ok_and(|meta| meta.is_dir()),
            ["-e", path] => meta(path).is_ok(),
            ["-s", path] => meta(path).is_ok_and(|meta| meta.len() > 0),
            [left, "=" | "==", right] => left == right,
            [left, "!=", right] => left != right,
            [left, "-eq", right] => number(left) == number(right),
            [left, "-ne", right] => number(left) != number(right),
            [left, "-lt", right] => number(left) < number(right),
            [left, "-le", right] => number(left) <= number(right),
            [left, "-gt", right] => number(left) > number(right),
            [left, "-ge", right] => number(left) >= number(right),
            [text] => !text.is_empty(),
            _ => false,
        }
    }
}

/// An argument as GRUB puts it on the command line (grub-core/lib/cmdline.c).
fn quoted(arg: &str) -> String {
    let mut out = String::new();
    for c in arg.chars() {
        if matches!(c, '\\' | '\'' | '"') {
            out.push('\\');
        }
        out.push(c);
    }
    if arg.contains(' ') {
        format!("\"{out}\"")
    } else {
        out
    }
}
