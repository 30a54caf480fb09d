//! The commands that matter for the menu. Everything else succeeds and does nothing.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::ast::{Ast, Block, Part};
use super::body::is_linux;
use super::env::{is_special, number};
use super::machine::{Code, Frame, Machine, Ran};
use super::names::is_grub_command;
use super::test_command::test;
use super::traced::Setter;

/// `GRUB_ERR_TEST_FAILURE`
const FALSE: i32 = 1;
/// `GRUB_ERR_FILE_NOT_FOUND`
const FILE_NOT_FOUND: i32 = 5;
/// `GRUB_ERR_INVALID_COMMAND`
const INVALID_COMMAND: i32 = 17;
/// `GRUB_ERR_BAD_ARGUMENT`
const BAD_ARGUMENT: i32 = 18;

/// What a variable that `save_env` has written takes besides its name and value.
const SAVED: usize = 120;

impl Machine<'_> {
    pub(super) fn command(&mut self, ast: &Arc<Ast>, at: u32, block: Option<Block>) {
        let own = self.own.as_ref().is_some_and(|own| Arc::ptr_eq(own, ast));
        self.at = own.then_some(Setter::Script(at));
        let traced = self.record && own && names_linux(ast, at);
        let expanded = self.expand(ast, at, traced);
        let (mut argv, origins, mut trace) = (expanded.args, expanded.origins, expanded.trace);
        if argv.is_empty() {
            // With nothing but a block GRUB would look for a command named by it.
            self.status = 0;
            return;
        }
        let invert = argv.first().is_some_and(|name| name == b"!");
        if invert {
            argv.remove(0);
            // A `linux` command never begins with it.
            trace = None;
            if argv.is_empty() {
                self.status = BAD_ARGUMENT;
                return;
            }
        }
        if self.record {
            let ran = Ran {
                argv: argv.clone(),
                at,
                ast: Arc::clone(ast),
                origins: if invert { Vec::new() } else { origins },
                trace,
            };
            if self.hold(ran.bytes()) {
                self.ran.push(ran);
            }
        }
        let name = argv.remove(0);
        self.dispatch(ast, &name, argv, block, invert);
    }

    fn dispatch(
        &mut self,
        ast: &Arc<Ast>,
        name: &[u8],
        argv: Vec<Vec<u8>>,
        block: Option<Block>,
        invert: bool,
    ) {
        let status = match name {
            b"set" => self.set(&argv),
            b"unset" => match argv.first() {
                Some(name) => {
                    self.env.unset(name);
                    0
                }
                None => BAD_ARGUMENT,
            },
            b"export" => {
                for name in &argv {
                    self.env.export(name);
                }
                if argv.is_empty() { BAD_ARGUMENT } else { 0 }
            }
            b"test" | b"[" => {
                let files = self.files;
                let exists = |path: &[u8]| files.exists(path);
                if test(&argv, &exists) { 0 } else { FALSE }
            }
            b"false" => FALSE,
            b"menuentry" | b"submenu" => self.menu_entry(ast, name == b"submenu", &argv, block),
            b"blscfg" => self.blscfg(),
            b"load_env" => self.load_env(&argv),
            b"save_env" => self.save_env(&argv),
            b"setparams" => match &mut self.scope {
                Some(scope) => {
                    *scope = argv;
                    0
                }
                None => INVALID_COMMAND,
            },
            b"shift" => self.shift(&argv),
            b"break" | b"continue" => self.leave_loops(&argv, name == b"continue"),
            b"return" => self.leave_function(&argv),
            b"eval" => {
                self.eval(&argv, invert);
                return;
            }
            _ if is_grub_command(name) => 0,
            _ => {
                if let Some(code) = self.functions.get(name) {
                    let code = code.clone();
                    self.call(code, argv, invert);
                    return;
                }
                // GRUB's last resort. The status of a command that is not there is 0.
                if let Some(equals) = name.iter().position(|byte| *byte == b'=') {
                    let (name, value) = name.split_at(equals);
                    if !is_special(name) {
                        self.env.set(name, value.get(1..).unwrap_or(&[]), self.at);
                    }
                }
                self.status = 0;
                return;
            }
        };
        self.finish(status, invert);
    }

    fn set(&mut self, argv: &[Vec<u8>]) -> i32 {
        let Some(first) = argv.first() else { return 0 };
        let Some(equals) = first.iter().position(|byte| *byte == b'=') else {
            return BAD_ARGUMENT;
        };
        let (name, value) = first.split_at(equals);
        self.env.set(name, value.get(1..).unwrap_or(&[]), self.at);
        0
    }

    /// The names behind the options, and false if the options name another file.
    fn env_args<'v>(&self, argv: &'v [Vec<u8>]) -> (Vec<&'v [u8]>, bool) {
        let mut names: Vec<&[u8]> = Vec::new();
        let mut ours = true;
        let mut args = argv.iter().map(Vec::as_slice);
        while let Some(arg) = args.next() {
            match arg {
                b"-f" | b"--file" => ours = args.next().is_some_and(is_env_path),
                b"-s" | b"--skip-sig" => {}
                _ => match arg.strip_prefix(b"--file=") {
                    Some(path) => ours = is_env_path(path),
                    None => names.push(arg),
                },
            }
        }
        (names, ours)
    }

    fn load_env(&mut self, argv: &[Vec<u8>]) -> i32 {
        let (names, ours) = self.env_args(argv);
        let Some(values) = self.files.env.filter(|_| ours) else {
            return FILE_NOT_FOUND;
        };
        for (name, value) in values {
            let saved = self.saved.get(name.as_bytes());
            let value = saved.map_or(Some(value.as_bytes()), |saved| saved.as_deref());
            if let Some(value) = value
                && (names.is_empty() || names.contains(&name.as_bytes()))
            {
                // What `save_env` has changed is no longer the block's own.
                let setter = saved.is_none().then_some(Setter::Env);
                self.env.set(name.as_bytes(), value, setter);
            }
        }
        let new = self.saved.iter().filter(|(name, _)| {
            !core::str::from_utf8(name).is_ok_and(|name| values.contains_key(name))
        });
        for (name, value) in new {
            if let Some(value) = value
                && (names.is_empty() || names.contains(&name.as_slice()))
            {
                self.env.set(name, value, None);
            }
        }
        0
    }

    fn save_env(&mut self, argv: &[Vec<u8>]) -> i32 {
        let (names, ours) = self.env_args(argv);
        if self.files.keep_saved && ours && self.files.env.is_some() {
            for name in names {
                let value = self.env.get(name).map(<[u8]>::to_vec);
                if self.hold(SAVED + name.len() + value.as_ref().map_or(0, Vec::len)) {
                    self.saved.insert(name.to_vec(), value);
                }
            }
        }
        0
    }

    fn shift(&mut self, argv: &[Vec<u8>]) -> i32 {
        let Some(scope) = &mut self.scope else {
            return 0;
        };
        let count = match argv {
            [] => Some(1),
            [count] if count.is_empty() => Some(0),
            [count] => whole_number(count),
            _ => None,
        };
        match count.and_then(|count| usize::try_from(count).ok()) {
            Some(count) if count <= scope.len() => {
                scope.drain(..count);
                0
            }
            _ => BAD_ARGUMENT,
        }
    }

    fn leave_loops(&mut self, argv: &[Vec<u8>], is_continue: bool) -> i32 {
        let count = match argv {
            [] => Some(1),
            [count] => whole_number(count).filter(|count| *count > 0),
            _ => None,
        };
        let Some(count) = count else {
            return BAD_ARGUMENT;
        };
        self.is_continue = is_continue;
        self.breaks = count.min(self.loops);
        0
    }

    fn leave_function(&mut self, argv: &[Vec<u8>]) -> i32 {
        if self.scope.is_none() {
            return BAD_ARGUMENT;
        }
        let status = match argv {
            [] => Some(self.status),
            [status] => whole_number(status).and_then(|status| i32::try_from(status).ok()),
            _ => None,
        };
        let Some(status) = status else {
            return BAD_ARGUMENT;
        };
        self.returning = true;
        status
    }

    fn eval(&mut self, argv: &[Vec<u8>], invert: bool) {
        let source = argv.join(&b' ');
        self.burn(source.len() * 16);
        match super::script::parse_text(source) {
            Some(ast) => {
                // An entry's body may keep it.
                self.hold(ast.bytes());
                self.frames.push(Frame::Eval { invert });
                let code = Code {
                    list: ast.root(),
                    ast,
                };
                self.frames.push(Frame::List {
                    next: code.list.start,
                    code,
                    script: true,
                });
            }
            None => self.finish(INVALID_COMMAND, invert),
        }
    }
}

/// True if the command at this place is called `linux`, in plain text.
fn names_linux(ast: &Ast, at: u32) -> bool {
    let name = ast.words(at).next().and_then(|word| ast.only_part(word));
    matches!(name, Some(Part::Text(name)) if is_linux(ast.text(name)))
}

fn whole_number(text: &[u8]) -> Option<u64> {
    match number(text, 10) {
        Some((Ok(value), b"")) => Some(value),
        _ => None,
    }
}

pub(super) fn is_env_path(path: &[u8]) -> bool {
    path.ends_with(b"/grubenv")
}

impl super::machine::Files<'_> {
    pub(super) fn exists(&self, path: &[u8]) -> bool {
        self.env.is_some() && is_env_path(path)
            || self
                .existing
                .iter()
                .any(|known| path.ends_with(known.as_bytes()))
    }
}
