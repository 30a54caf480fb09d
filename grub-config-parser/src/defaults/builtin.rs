//! The shell's builtin commands, and the names of what a system has.

use alloc::vec::Vec;

use super::exec::Ran;
use super::expand::{Expanded, Fields, abort};
use super::state::{State, Status, Stop, Tracked, Value};
use super::syntax::{Simple, Word};
use super::{names, parse};

/// The message of an abort that is an `exit`.
pub(super) const EXIT: &str = "the file ends the shell here";

pub(super) fn is_special_builtin(name: &[u8]) -> bool {
    matches!(
        name,
        b"." | b":"
            | b"break"
            | b"continue"
            | b"eval"
            | b"exec"
            | b"exit"
            | b"export"
            | b"local"
            | b"readonly"
            | b"return"
            | b"set"
            | b"shift"
            | b"times"
            | b"trap"
            | b"unset"
    )
}

/// True if the command takes assignments as arguments.
pub(super) fn assigns(words: &[Word]) -> bool {
    let name = words
        .iter()
        .filter_map(Word::literal)
        .find(|name| name != b"command");
    name.is_some_and(|name| {
        matches!(
            name.as_slice(),
            b"export" | b"readonly" | b"local" | b"alias"
        )
    })
}

impl State {
    /// True for a command of bash that is not followed; without the command itself, for a name that may be
    /// one.
    pub(super) fn only_bash(&self, name: &[u8], simple: Option<&Simple>) -> bool {
        let function = self.functions.contains_key(name) && !is_special_builtin(name);
        if names::is_command_of_bash(name) {
            return !function || name == b"time" || name == b"select";
        }
        let Some(simple) = simple else {
            return false;
        };
        let prefix = &simple.assignments;
        let keeps = prefix.len() > 1 || prefix.iter().any(|word| word.appends);
        let mut names = prefix.iter().filter_map(Word::assigned_name);
        let readonly = names.any(|own| self.is_readonly(&own));
        simple.words.first().is_some_and(|word| word.names(b"["))
            || is_special_builtin(name) && keeps
            || !is_special_builtin(name) && readonly
    }

    /// Runs a builtin, or a program of that name.
    pub(super) fn builtin(&mut self, name: &[u8], simple: &Simple, fields: &Fields) -> Ran {
        let line = simple.line;
        let args = fields
            .words
            .as_ref()
            .map(|words| words.get(1..).unwrap_or(&[]).to_vec());
        self.lost |= self.is_bash() && self.differs(name, args.as_deref());
        match name {
            b":" | b"true" | b"times" | b"echo" => Ok(Status::Ok),
            b"false" => Ok(Status::Fail),
            b"export" | b"readonly" | b"local" => {
                self.declare(name, line, fields.each.get(1..).unwrap_or(&[]))
            }
            b"unset" => self.unset(args, line),
            b"set" => self.set_options(args, line),
            b"eval" => self.eval(args, line),
            b"." => match &args {
                Some(args) if args.is_empty() => Ok(Status::Ok),
                _ => {
                    self.taint_all();
                    Ok(Status::Unknown)
                }
            },
            b"exit" => Err(abort(line, EXIT)),
            b"exec" => match &args {
                Some(args) if args.is_empty() => Ok(Status::Ok),
                _ => Err(abort(line, EXIT)),
            },
            b"return" => Err(Stop::Return(status_argument(args.as_deref()))),
            b"break" | b"continue" => Ok(self.leave_loops(name, args.as_deref())?),
            b"test" | b"[" => {
                Ok(args.map_or(Status::Unknown, |args| super::test::test(&args, name)))
            }
            b"shift" => match (&args, self.calls) {
                (Some(args), 0) if args.is_empty() => Err(abort(line, "nothing to shift")),
                _ => Ok(Status::Unknown),
            },
            b"read" | b"getopts" => {
                match args {
                    Some(args) => {
                        for name in args.iter().filter(|name| parse::is_name(name)) {
                            self.taint(name, Some(line));
                        }
                    }
                    None => self.taint_all(),
                }
                self.taint(b"OPTIND", None);
                self.taint(b"OPTARG", None);
                Ok(Status::Unknown)
            }
            b"command" => self.command_builtin(simple, fields, args),
            b"alias" => {
                for arg in args.unwrap_or_default() {
                    let end = arg
                        .iter()
                        .position(|byte| *byte == b'=')
                        .unwrap_or(arg.len());
                    self.maybe_commands
                        .insert(arg.get(..end).unwrap_or(&arg).to_vec());
                }
                Ok(Status::Unknown)
            }
            b"trap" => Ok(Status::Unknown),
            _ if names::may_exist(name) => Ok(Status::Unknown),
            _ => Ok(Status::Fail),
        }
    }

    /// True if what a builtin does with these arguments is not the same in bash, or not known to be.
    fn differs(&self, name: &[u8], args: Option<&[Vec<u8>]>) -> bool {
        let Some(args) = args else {
            // Values alone may be unknown.
            return !matches!(
                name,
                b"export" | b"readonly" | b":" | b"true" | b"echo" | b"false"
            ) && (is_special_builtin(name) || matches!(name, b"printf" | b"command"));
        };
        let first = args.first().map_or(b"".as_slice(), Vec::as_slice);
        match name {
            b"printf" | b"eval" => first.starts_with(b"-"),
            b"command" => !matches!(first, b"-v" | b"-V"),
            b"set" => {
                let known = |arg: &Vec<u8>| {
                    matches!(arg.as_slice(), [b'-' | b'+', letters @ ..]
                        if !letters.is_empty() && letters.iter().all(|l| b"euxv".contains(l)))
                };
                !args.iter().all(known)
            }
            b"[" => args.last().is_none_or(|last| last != b"]"),
            b"break" | b"continue" => {
                let plain = match args {
                    [] => true,
                    [count] => number(count).is_some_and(|count| count > 0),
                    _ => false,
                };
                self.loops == 0 || !plain
            }
            b"return" => match args {
                [] => false,
                [status] => number(status).is_none_or(|status| status > 255),
                _ => true,
            },
            b"unset" => {
                let known = |arg: &Vec<u8>| {
                    parse::is_name(arg) && !self.functions.contains_key(arg.as_slice())
                };
                let names = if matches!(first, b"-v" | b"-f" | b"--") {
                    args.get(1..).unwrap_or(&[])
                } else {
                    args
                };
                !names.iter().all(known) && first != b"-f"
                    || first == b"-f" && !names.iter().all(|arg| parse::is_name(arg))
                    || names.len() > 1 && names.iter().any(|arg| self.is_readonly(arg))
            }
            _ => false,
        }
    }

    fn is_readonly(&self, name: &[u8]) -> bool {
        self.variables
            .get(name)
            .is_some_and(|variable| variable.readonly)
    }

    /// `export`, `readonly` and `local`: all values are known before the first name is set.
    fn declare(&mut self, name: &[u8], line: usize, each: &[Expanded]) -> Ran {
        if name == b"local" && self.locals.is_empty() {
            return Err(abort(line, "local outside a function"));
        }
        let mut options = name != b"local";
        let mut named = Vec::new();
        for item in each {
            let words = match item {
                Expanded::Assignment(own, value) => {
                    options = false;
                    named.push((own.clone(), Some(value.clone())));
                    continue;
                }
                Expanded::Words(words) => words,
                Expanded::Unknown => {
                    self.taint_all();
                    return Ok(Status::Unknown);
                }
            };
            for word in words {
                match word.as_slice() {
                    b"--" if options => options = false,
                    [b'-', _, ..] if options && self.is_bash() => {
                        self.lost = true;
                        return Ok(Status::Unknown);
                    }
                    b"-p" if options => return Ok(Status::Ok),
                    [b'-', _, ..] if options => return Err(abort(line, "an unknown option")),
                    _ => {
                        options = false;
                        let (own, value) = split_assignment(word);
                        let value = value.map(|value| {
                            Value::Known(Tracked::nowhere(value), super::Kind::Derived)
                        });
                        named.push((own, value));
                    }
                }
            }
        }
        // bash goes on with the names behind the one that fails.
        self.lost |= self.is_bash()
            && (named.iter().any(|(own, _)| !parse::is_name(own))
                || named.len() > 1 && named.iter().any(|(own, _)| self.is_readonly(own)));
        for (own, value) in named {
            if !parse::is_name(&own) {
                return Err(abort(line, "a bad variable name"));
            }
            if name == b"local" {
                let before = self.variables.get(&own).cloned();
                if let Some(locals) = self.locals.last_mut() {
                    locals.push((own.clone(), before));
                }
            }
            if let Some(value) = value
                && !self.set(&own, value, line)
            {
                return Err(abort(line, "a read-only variable is assigned"));
            }
            if name == b"readonly" {
                self.variables.entry(own).or_default().readonly = true;
            }
        }
        Ok(Status::Ok)
    }

    fn unset(&mut self, args: Option<Vec<Vec<u8>>>, line: usize) -> Ran {
        let Some(args) = args else {
            self.taint_all();
            return Ok(Status::Unknown);
        };
        let mut functions = false;
        let mut options = true;
        for arg in &args {
            match arg.as_slice() {
                b"--" if options => options = false,
                b"-f" | b"-v" if options => functions = arg == b"-f",
                [b'-', _, ..] if options => return Err(abort(line, "an unknown option")),
                name => {
                    options = false;
                    let (own, _) = split_assignment(name);
                    if functions {
                        self.functions.remove(name);
                        self.maybe_commands.remove(name);
                    } else if !parse::is_name(&own) {
                        return Err(abort(line, "a bad variable name"));
                    } else if !self.set(&own, Value::Unset, line) {
                        return Err(abort(line, "a read-only variable is unset"));
                    }
                }
            }
        }
        Ok(Status::Ok)
    }

    fn set_options(&mut self, args: Option<Vec<Vec<u8>>>, line: usize) -> Ran {
        let Some(args) = args else {
            self.exit_on_error = None;
            return Ok(Status::Unknown);
        };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let (on, letters) = match arg.as_slice() {
                b"--" | b"-" => break,
                [b'-', letters @ ..] => (true, letters),
                [b'+', letters @ ..] => (false, letters),
                _ => break,
            };
            for letter in letters {
                let letter = match letter {
                    b'o' => match args.next().map(Vec::as_slice) {
                        None => continue,
                        Some(b"errexit") => b'e',
                        Some(b"nounset") => b'u',
                        Some(b"noexec") => b'n',
                        Some(
                            b"noglob" | b"ignoreeof" | b"interactive" | b"monitor" | b"stdin"
                            | b"xtrace" | b"verbose" | b"vi" | b"emacs" | b"noclobber"
                            | b"allexport" | b"notify" | b"privileged" | b"nolog" | b"debug",
                        ) => b'x',
                        Some(_) => return Err(abort(line, "an unknown option of set")),
                    },
                    letter => *letter,
                };
                match letter {
                    b'e' => self.exit_on_error = Some(on),
                    b'u' => self.unset_is_error = on,
                    b'n' => self.no_exec = on,
                    b'f' | b'I' | b'i' | b'm' | b's' | b'x' | b'v' | b'V' | b'E' | b'C' | b'a'
                    | b'b' | b'p' => {}
                    _ => return Err(abort(line, "an unknown option of set")),
                }
            }
        }
        Ok(Status::Ok)
    }

    fn eval(&mut self, args: Option<Vec<Vec<u8>>>, line: usize) -> Ran {
        let Some(args) = args else {
            self.taint_all();
            return Ok(Status::Unknown);
        };
        let text = args.join(&b' ');
        if self.calls >= 40 {
            self.taint_all();
            return Ok(Status::Unknown);
        }
        self.calls += 1;
        // The words may have come from elsewhere, and what they make stands nowhere as it is.
        let made_up = core::mem::replace(&mut self.made_up, true);
        let mut status = Ok(Status::Ok);
        for unit in parse::Units::new(&text, line, 0, self.shell) {
            status = match unit {
                Ok(unit) => self.run(&unit.command, false),
                Err(_) if self.is_bash() => Err(Stop::Lost),
                Err(_) => Err(abort(line, "a syntax error in what eval runs")),
            };
            if status.is_err() {
                break;
            }
        }
        self.made_up = made_up;
        let status = status?;
        self.calls -= 1;
        Ok(status)
    }

    fn leave_loops(&mut self, name: &[u8], args: Option<&[Vec<u8>]>) -> Ran {
        let levels = match args {
            Some([]) => Some(1),
            Some([count, ..]) => number(count),
            None => None,
        };
        let Some(levels) = levels.filter(|_| self.loops > 0) else {
            return Ok(Status::Ok);
        };
        let levels = levels.min(self.loops);
        Err(if name == b"break" {
            Stop::Break(levels)
        } else {
            Stop::Continue(levels)
        })
    }

    fn command_builtin(
        &mut self,
        simple: &Simple,
        fields: &Fields,
        args: Option<Vec<Vec<u8>>>,
    ) -> Ran {
        let Some(args) = args else {
            self.taint_all();
            return Ok(Status::Unknown);
        };
        let mut skip = 0;
        for arg in &args {
            match arg.as_slice() {
                b"-p" => skip += 1,
                b"--" => {
                    skip += 1;
                    break;
                }
                b"-v" | b"-V" => return Ok(Status::Unknown),
                _ => break,
            }
        }
        let words: Vec<Vec<u8>> = args.get(skip..).unwrap_or(&[]).to_vec();
        let Some(name) = words.first().cloned() else {
            return Ok(Status::Ok);
        };
        // As many words as written as there are arguments to skip, or none is trusted.
        let each = match fields.each.get(skip + 1..) {
            Some(each) if plain(fields.each.get(..=skip + 1)) => each.to_vec(),
            _ => alloc::vec![Expanded::Unknown],
        };
        let fields = Fields {
            first: Some(name.clone()),
            words: Some(words),
            substituted: false,
            each,
        };
        self.builtin(&name, simple, &fields)
    }
}

/// True if each of these words as written is one word.
fn plain(each: Option<&[Expanded]>) -> bool {
    each.is_some_and(|each| {
        each.iter()
            .all(|item| matches!(item, Expanded::Words(words) if words.len() == 1))
    })
}

/// Splits `NAME=value`.
fn split_assignment(text: &[u8]) -> (Vec<u8>, Option<Vec<u8>>) {
    match text.iter().position(|byte| *byte == b'=') {
        Some(equals) => {
            let (name, value) = text.split_at(equals);
            (name.to_vec(), value.get(1..).map(<[u8]>::to_vec))
        }
        None => (text.to_vec(), None),
    }
}

fn number(text: &[u8]) -> Option<u32> {
    core::str::from_utf8(text).ok()?.parse().ok()
}

fn status_argument(args: Option<&[Vec<u8>]>) -> Status {
    match args {
        Some([status, ..]) => match number(status) {
            Some(0) => Status::Ok,
            Some(_) => Status::Fail,
            None => Status::Unknown,
        },
        _ => Status::Unknown,
    }
}
