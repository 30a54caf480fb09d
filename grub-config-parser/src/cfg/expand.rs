//! Words to arguments: `grub_script_arglist_to_argv`.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::ast::{Ast, Part};
use super::env::{is_special, number};
use super::lex::{is_name_char, is_name_start};
use super::machine::Machine;
use super::room::Incomplete;
use super::test_command::fields;
use super::traced::{Mark, Trace};
use super::word::{decode_double, decode_text};
use crate::trace::Runs;

/// How many bytes one command's arguments may have; GRUB would be out of memory.
const MOST_BYTES: usize = 4 << 20;

/// What an argument takes besides its text: it is kept up to twice, and where it comes from.
const ARGUMENT: usize = 96;

/// The arguments so far. The last one may not have begun yet.
#[derive(Default)]
struct Argv {
    args: Vec<Option<Vec<u8>>>,
    /// For each argument that has begun: the word it began in.
    origins: Vec<usize>,
    word: usize,
    bytes: usize,
    /// How many there may be.
    most: usize,
    trace: Option<Trace>,
    mark: u32,
}

/// What words have come to.
pub(super) struct Expanded {
    pub(super) args: Vec<Vec<u8>>,
    /// For each argument the number of the word that it began in.
    pub(super) origins: Vec<usize>,
    /// Where the arguments come from, if that was asked for.
    pub(super) trace: Option<Trace>,
}

impl Argv {
    /// Begins the next argument, unless the last one is still empty-handed.
    fn next(&mut self) {
        if !matches!(self.args.last(), Some(None)) {
            self.bytes += ARGUMENT;
            if self.bytes > self.most {
                return;
            }
            self.args.push(None);
            if let Some(trace) = &mut self.trace {
                trace.args.push(Runs::default());
            }
        }
    }

    /// What is appended from here on comes from there.
    fn from(&mut self, mark: Mark) {
        if let Some(trace) = &mut self.trace {
            self.mark = u32::try_from(trace.marks.len()).unwrap_or(u32::MAX - 1);
            trace.marks.push(mark);
        }
    }

    fn append(&mut self, text: &[u8]) {
        self.bytes += text.len();
        if self.bytes > self.most {
            return;
        }
        if let Some(last) = self.args.last_mut() {
            if last.is_none() {
                self.origins.push(self.word);
            }
            last.get_or_insert_default().extend_from_slice(text);
            if let Some(runs) = self.trace.as_mut().and_then(|trace| trace.args.last_mut()) {
                runs.push(text.len(), self.mark);
            }
        }
    }

    fn append_fields(&mut self, value: &[u8]) {
        for (i, field) in fields(value).enumerate() {
            if i > 0 {
                self.next();
            }
            self.append(field);
        }
    }
}

impl Machine<'_> {
    /// Expands the words from a place on; with `traced` it also says where each argument's bytes come from.
    pub(super) fn expand(&mut self, ast: &Arc<Ast>, at: u32, traced: bool) -> Expanded {
        // The text is copied for the menu, and each byte of a traced one is looked at with its mark.
        let copies = if traced { 8 } else { 3 };
        let mut argv = Argv {
            trace: traced.then(Trace::default),
            most: MOST_BYTES.min(self.room.left() / copies),
            ..Argv::default()
        };
        for (index, word) in ast.words(at).enumerate() {
            argv.word = index;
            argv.next();
            ast.parts(word, |part| self.expand_part(ast, part, &mut argv));
        }
        // GRUB stops at the first one that never began; only the last one can be so.
        let args: Vec<Vec<u8>> = core::mem::take(&mut argv.args)
            .into_iter()
            .map_while(|a| a)
            .collect();
        let starts = core::mem::take(&mut argv.origins);
        if argv.bytes > argv.most {
            self.stop(Incomplete::TooLarge);
        }
        self.burn(argv.bytes - argv.bytes.min(ARGUMENT * args.len()));
        Expanded {
            args,
            origins: starts,
            trace: argv.trace,
        }
    }

    fn expand_part(&self, ast: &Ast, part: Part, argv: &mut Argv) {
        argv.from(self.mark(ast, part));
        match part {
            Part::Text(slice) => {
                let mut text = Vec::new();
                decode_text(ast.text(slice), &mut text);
                if !text.is_empty() {
                    argv.append(&text);
                }
            }
            Part::Single(slice) => argv.append(ast.text(slice)),
            Part::Double(slice) => {
                let mut text = Vec::new();
                decode_double(ast.text(slice), &mut text);
                argv.append(&text);
            }
            Part::Translated(slice) => argv.append(&self.translate(ast.text(slice))),
            Part::Variable(slice) => self.expand_variable(ast.text(slice), false, argv),
            Part::QuotedVariable(slice) => self.expand_variable(ast.text(slice), true, argv),
        }
    }

    fn mark(&self, ast: &Ast, part: Part) -> Mark {
        match part {
            Part::Text(slice) | Part::Single(slice) | Part::Double(slice) => Mark::Text(slice),
            Part::Variable(name) | Part::QuotedVariable(name) => match ast.text(name) {
                b"?" => Mark::Unknown,
                own if is_special(own) => Mark::Unknown,
                own => Mark::Variable(name, self.env.setter(own)),
            },
            Part::Translated(_) => Mark::Unknown,
        }
    }

    pub(super) fn lookup(&self, name: &[u8]) -> Option<Vec<u8>> {
        if name == b"?" {
            return self
                .has_status
                .then(|| alloc::format!("{}", self.status).into_bytes());
        }
        self.env.get(name).map(<[u8]>::to_vec)
    }

    fn expand_variable(&self, name: &[u8], quoted: bool, argv: &mut Argv) {
        let put = |argv: &mut Argv, value: &[u8]| {
            if quoted {
                argv.append(value);
            } else {
                argv.append_fields(value);
            }
        };
        if !is_special(name) {
            if let Some(value) = self.lookup(name).filter(|value| !value.is_empty()) {
                put(argv, &value);
            }
            return;
        }
        let Some(scope) = &self.scope else { return };
        match name {
            b"#" => argv.append(alloc::format!("{}", scope.len()).as_bytes()),
            b"*" | b"@" => {
                for (i, value) in scope.iter().enumerate() {
                    if i > 0 && name == b"*" && quoted {
                        argv.append(b" ");
                    } else if i > 0 {
                        argv.next();
                    }
                    put(argv, value);
                }
            }
            _ => {
                let index = number(name, 10).and_then(|(value, _)| value.ok());
                let value = index.and_then(|index| usize::try_from(index).ok()?.checked_sub(1));
                if let Some(value) = value.and_then(|index| scope.get(index)) {
                    put(argv, value);
                }
            }
        }
    }

    /// `$"..."` without a translation: variables are put in, `\` escapes `$` and `\`.
    fn translate(&self, raw: &[u8]) -> Vec<u8> {
        let mut text = Vec::new();
        let mut bytes = raw.iter().peekable();
        while let Some(byte) = bytes.next() {
            match (byte, bytes.peek()) {
                (b'\\', Some(b'\n')) => drop(bytes.next()),
                (b'\\', Some(b'"')) => {}
                (b'\\', Some(b'\\')) => {
                    text.extend_from_slice(b"\\\\");
                    bytes.next();
                }
                _ => text.push(*byte),
            }
        }
        self.substitute(&text)
    }

    fn substitute(&self, text: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let mut rest = text;
        let mut escaped = false;
        while let Some((first, tail)) = rest.split_first() {
            rest = tail;
            match first {
                b'\\' => {
                    if escaped {
                        out.push(b'\\');
                    }
                    escaped = !escaped;
                }
                b'$' if !escaped => match reference(rest) {
                    Reference::Name(name, behind) => {
                        match (&self.scope, name) {
                            // The only positional one that is looked at here.
                            (Some(scope), b"#") => {
                                out.extend(alloc::format!("{}", scope.len()).into_bytes());
                            }
                            _ => out.extend(self.lookup(name).unwrap_or_default()),
                        }
                        rest = behind;
                    }
                    Reference::Open => break,
                    Reference::None => out.push(b'$'),
                },
                _ => {
                    if escaped && *first != b'$' {
                        out.push(b'\\');
                    }
                    escaped = false;
                    out.push(*first);
                }
            }
        }
        out
    }
}

enum Reference<'a> {
    Name(&'a [u8], &'a [u8]),
    /// `${` without its `}`.
    Open,
    None,
}

fn reference(text: &[u8]) -> Reference<'_> {
    let (start, length, skip) = match text.first() {
        Some(b'{') => match text.iter().position(|byte| *byte == b'}') {
            Some(close) => (1, close.saturating_sub(1), 1),
            None => return Reference::Open,
        },
        Some(byte) if byte.is_ascii_digit() => (
            0,
            text.iter().take_while(|byte| byte.is_ascii_digit()).count(),
            0,
        ),
        Some(byte) if is_name_start(*byte) => (
            0,
            text.iter().take_while(|byte| is_name_char(**byte)).count(),
            0,
        ),
        Some(b'?' | b'#') => (0, 1, 0),
        _ => return Reference::None,
    };
    let name = text.get(start..start + length).unwrap_or(&[]);
    Reference::Name(name, text.get(start + length + skip..).unwrap_or(&[]))
}
