//! Running commands as far as what they do is known; the rest is followed by what it may touch.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::Kind;
use super::builtin;
use super::expand::abort;
use super::state::{Saved, State, Status, Stop, Tracked, Value, Variable};
use super::syntax::{Command, Redirects, Simple, Word};

/// What a piece of a function's body takes at most.
const NODE: usize = 256;

pub(super) type Ran = Result<Status, Stop>;

impl State {
    /// Runs a command. `tested`: its failure is somebody's condition and ends nothing.
    pub(super) fn run(&mut self, command: &Command, tested: bool) -> Ran {
        if self.no_exec {
            return Ok(Status::Ok);
        }
        // Nothing more is followed, and no loop goes on.
        if self.is_full() {
            return Err(abort(0, super::TOO_MUCH));
        }
        if self.fuel == 0 {
            self.touch(command);
            return Ok(Status::Unknown);
        }
        self.fuel -= 1;
        let tested = tested || self.condition;
        let ran = self.follow(command, tested);
        if self.lost {
            return Err(Stop::Lost);
        }
        ran
    }

    fn follow(&mut self, command: &Command, tested: bool) -> Ran {
        match command {
            Command::Simple(simple) => {
                let before = core::mem::replace(&mut self.condition, tested);
                let ran = self.simple(simple);
                self.condition = before;
                // What ends dash may be a mere failure in bash.
                let failed = |stop: &Stop| matches!(stop, Stop::Abort { message, .. } if *message != builtin::EXIT);
                self.lost |= self.is_bash() && tested && ran.as_ref().is_err_and(failed);
                self.check(ran?, tested, simple.line)
            }
            Command::Pipeline { commands, line } => {
                let mut status = Status::Ok;
                for command in commands {
                    status = self.apart(command, tested);
                }
                self.check(status, tested, *line)
            }
            Command::Not(command) => Ok(self.run(command, true)?.not()),
            Command::Chain { first, rest } => self.chain(first, rest, tested),
            Command::List(commands) => {
                let mut status = Status::Ok;
                for command in commands {
                    status = self.run(command, tested)?;
                }
                Ok(status)
            }
            Command::Subshell {
                body,
                redirects,
                line,
            } => {
                self.redirect(redirects, *line)?;
                let status = self.apart(body, tested);
                let status = if redirects.is_empty() {
                    status
                } else {
                    Status::Unknown
                };
                self.check(status, tested, *line)
            }
            Command::Background(_) => Ok(Status::Ok),
            Command::If {
                branches,
                otherwise,
            } => self.if_command(branches, otherwise, tested),
            Command::While {
                condition,
                body,
                until,
            } => self.while_command(condition, body, *until, tested),
            Command::For { name, words, body } => self.for_command(name, words, body, tested),
            Command::Case { word, arms } => self.case_command(word, arms, tested),
            Command::Function { name, body, nodes } => {
                self.maybe_commands.remove(name);
                self.hold(NODE * (1 + nodes) + 2 * name.len());
                self.functions.insert(name.clone(), Arc::clone(body));
                Ok(Status::Ok)
            }
            Command::Redirected { command, redirects } => {
                self.redirect(redirects, 0)?;
                if self.is_bash() {
                    self.touch(command);
                } else {
                    self.run(command, tested)?;
                }
                Ok(Status::Unknown)
            }
        }
    }

    /// Ends the shell where `set -e` would.
    fn check(&self, status: Status, tested: bool, line: usize) -> Ran {
        if status == Status::Fail && !tested && self.exit_on_error == Some(true) {
            return Err(abort(line, "a command fails, and set -e is on"));
        }
        Ok(status)
    }

    /// Runs a command in a shell of its own: only its status comes back.
    fn apart(&mut self, command: &Command, tested: bool) -> Status {
        self.burn(self.variables.len() / 8);
        let Some(mut inner) = self.copy() else {
            return Status::Unknown;
        };
        // Nothing of what it sets comes back.
        inner.made_up = true;
        inner.condition = tested;
        let ran = inner.run(command, false);
        // Whether it fails is not known then, and with that whether anything comes after it.
        self.lost |= self.is_bash() && (inner.lost || matches!(ran, Err(Stop::Lost)));
        let status = match ran {
            Ok(status) | Err(Stop::Return(status)) => status,
            Err(
                Stop::Abort {
                    message: builtin::EXIT,
                    ..
                }
                | Stop::Lost,
            ) => Status::Unknown,
            Err(Stop::Abort { .. }) => Status::Fail,
            Err(_) => Status::Ok,
        };
        self.back_from(&inner);
        status
    }

    fn redirect(&mut self, redirects: &Redirects, line: usize) -> Result<(), Stop> {
        for word in redirects {
            self.expand(&word.parts, line)?;
        }
        Ok(())
    }

    fn chain(&mut self, first: &Command, rest: &[(bool, Command)], tested: bool) -> Ran {
        let mut status = self.run(first, true)?;
        for (i, (and, command)) in rest.iter().enumerate() {
            match (status, *and) {
                (Status::Ok, true) | (Status::Fail, false) => {
                    let last = i + 1 == rest.len();
                    status = self.run(command, tested || !last)?;
                }
                (Status::Unknown, _) => {
                    self.touch(command);
                    // `x || true` is true whatever x is, `x && false` false.
                    let other = self.status_of(command);
                    let settled = if *and { Status::Fail } else { Status::Ok };
                    if other != settled {
                        status = Status::Unknown;
                    } else if *and {
                        // It may fail by the one or by the other; only the latter ends the shell.
                        status = Status::Unknown;
                    } else {
                        status = Status::Ok;
                    }
                }
                _ => {}
            }
        }
        Ok(status)
    }

    /// The status of a command that does nothing else, where that is plain.
    fn status_of(&self, command: &Command) -> Status {
        let Command::Simple(simple) = command else {
            return Status::Unknown;
        };
        let name = simple.words.first().and_then(Word::literal);
        match name.as_deref() {
            Some(b"true" | b":") => Status::Ok,
            Some(b"false") => Status::Fail,
            None if simple.words.is_empty() => Status::Ok,
            _ => Status::Unknown,
        }
    }

    fn if_command(
        &mut self,
        branches: &[(Command, Command)],
        otherwise: &Option<Arc<Command>>,
        tested: bool,
    ) -> Ran {
        for (i, (condition, body)) in branches.iter().enumerate() {
            match self.run(condition, true)? {
                Status::Ok => return self.run(body, tested),
                Status::Fail => {}
                Status::Unknown => {
                    self.touch(body);
                    for (condition, body) in branches.iter().skip(i + 1) {
                        self.touch(condition);
                        self.touch(body);
                    }
                    if let Some(otherwise) = otherwise {
                        self.touch(otherwise);
                    }
                    return Ok(Status::Unknown);
                }
            }
        }
        match otherwise {
            Some(otherwise) => self.run(otherwise, tested),
            None => Ok(Status::Ok),
        }
    }

    fn while_command(
        &mut self,
        condition: &Command,
        body: &Command,
        until: bool,
        tested: bool,
    ) -> Ran {
        self.loops += 1;
        let mut status = Status::Ok;
        let result = loop {
            let on = match self.run(condition, true) {
                Ok(Status::Unknown) => {
                    self.touch(body);
                    self.touch(condition);
                    break Ok(Status::Unknown);
                }
                Ok(on) => (on == Status::Ok) != until,
                Err(stop) => match leave_loop(stop) {
                    Ok(true) => break Ok(Status::Ok),
                    Ok(false) => continue,
                    Err(stop) => break Err(stop),
                },
            };
            if !on {
                break Ok(status);
            }
            match self.run(body, tested) {
                Ok(own) => status = own,
                Err(stop) => match leave_loop(stop) {
                    Ok(true) => break Ok(Status::Ok),
                    Ok(false) => {}
                    Err(stop) => break Err(stop),
                },
            }
        };
        self.loops -= 1;
        result
    }

    fn for_command(
        &mut self,
        name: &[u8],
        words: &Option<Vec<Word>>,
        body: &Command,
        tested: bool,
    ) -> Ran {
        let values = match words {
            Some(words) => self.fields(words, false, 0)?.words,
            None => None,
        };
        let Some(values) = values else {
            self.taint(name, None);
            self.touch(body);
            return Ok(Status::Unknown);
        };
        self.loops += 1;
        let mut status = Status::Ok;
        let mut result = Ok(());
        for value in values {
            if !self.set(
                name,
                Value::Known(Tracked::nowhere(value), Kind::Derived),
                0,
            ) {
                self.lost |= self.is_bash();
                result = Err(abort(0, "a read-only variable is assigned"));
                break;
            }
            match self.run(body, tested) {
                Ok(own) => status = own,
                Err(stop) => match leave_loop(stop) {
                    Ok(true) => break,
                    Ok(false) => {}
                    Err(stop) => {
                        result = Err(stop);
                        break;
                    }
                },
            }
        }
        self.loops -= 1;
        result.map(|()| status)
    }

    fn case_command(&mut self, word: &Word, arms: &[(Vec<Word>, Command)], tested: bool) -> Ran {
        let value = self.expand(&word.parts, 0)?.known.map(|text| text.bytes);
        for (i, (patterns, body)) in arms.iter().enumerate() {
            let mut hit = Some(false);
            for pattern in patterns {
                let pattern = self.pattern(pattern)?;
                match (&value, pattern) {
                    (Some(value), Some(pattern)) => {
                        if super::glob::matches(&pattern, value) {
                            hit = Some(true);
                            break;
                        }
                    }
                    _ => {
                        hit = None;
                        break;
                    }
                }
            }
            match hit {
                Some(true) => return self.run(body, tested),
                Some(false) => {}
                None => {
                    for (_, body) in arms.iter().skip(i) {
                        self.touch(body);
                    }
                    return Ok(Status::Unknown);
                }
            }
        }
        Ok(Status::Ok)
    }

    /// Assigns words of the form `NAME=value`; true if a command substitution has run. `saved`: where
    /// to put what was before, for assignments that one command is to see.
    pub(super) fn assign(
        &mut self,
        words: &[Word],
        line: usize,
        mut saved: Option<&mut Saved>,
    ) -> Result<bool, Stop> {
        let mut substituted = false;
        for word in words {
            let Some(name) = word.assigned_name() else {
                continue;
            };
            let text = self.expand(&word.assigned_value(), line)?;
            substituted |= text.substituted;
            let value = if word.appends {
                text.behind(self.get(&name))
            } else {
                text.value()
            };
            if let Some(saved) = &mut saved {
                saved.push((name.clone(), self.variables.get(&name).cloned()));
            }
            if !self.set(&name, value, line) {
                return Err(abort(line, "a read-only variable is assigned"));
            }
        }
        Ok(substituted)
    }

    fn simple(&mut self, simple: &Simple) -> Ran {
        let line = simple.line;
        let assigning = builtin::assigns(&simple.words);
        let fields = self.fields(&simple.words, assigning, line)?;
        self.redirect(&simple.redirects, line)?;
        let open = !simple.redirects.is_empty();
        let none = fields.words.as_ref().is_some_and(Vec::is_empty);
        if none {
            let substituted = self.assign(&simple.assignments, line, None)? || fields.substituted;
            if open && self.is_bash() {
                self.taint_assigned(simple);
            }
            return Ok(if substituted || open {
                Status::Unknown
            } else {
                Status::Ok
            });
        }
        let Some(name) = fields.first.clone() else {
            // Whatever it is, it may set what it likes.
            self.assign(&simple.assignments, line, None)?;
            self.taint_all();
            return Ok(Status::Unknown);
        };
        let special = builtin::is_special_builtin(&name);
        self.lost |= self.is_bash() && self.only_bash(&name, Some(simple));
        if special {
            self.assign(&simple.assignments, line, None)?;
            let status = self.builtin(&name, simple, &fields)?;
            return Ok(if open { Status::Unknown } else { status });
        }
        let mut saved = Saved::new();
        self.assign(&simple.assignments, line, Some(&mut saved))?;
        let status = self.regular(&name, simple, &fields);
        for (name, variable) in saved.into_iter().rev() {
            self.restore(name, variable);
        }
        // Old ones keep what was assigned for a function.
        if self.is_bash() && self.functions.contains_key(&name) {
            self.taint_assigned(simple);
        }
        let status = status?;
        Ok(if open && status == Status::Ok {
            Status::Unknown
        } else {
            status
        })
    }

    /// Makes unknown what a command's own assignments set.
    fn taint_assigned(&mut self, simple: &Simple) {
        for name in simple.assignments.iter().filter_map(Word::assigned_name) {
            self.taint(&name, Some(simple.line));
        }
    }

    pub(super) fn restore(&mut self, name: Vec<u8>, variable: Option<Variable>) {
        match variable {
            Some(variable) => self.variables.insert(name, variable),
            None => self.variables.remove(&name),
        };
    }

    fn regular(&mut self, name: &[u8], simple: &Simple, fields: &super::expand::Fields) -> Ran {
        if self.maybe_commands.contains(name) {
            self.taint_all();
            return Ok(Status::Unknown);
        }
        if let Some(body) = self.functions.get(name).map(Arc::clone) {
            return self.call(&body, simple.line);
        }
        self.builtin(name, simple, fields)
    }

    fn call(&mut self, body: &Command, line: usize) -> Ran {
        if self.calls >= 40 {
            self.taint_all();
            return Err(abort(line, "functions call each other too deep"));
        }
        self.calls += 1;
        let loops = core::mem::take(&mut self.loops);
        self.locals.push(Vec::new());
        let result = self.run(body, false);
        for (name, variable) in self.locals.pop().unwrap_or_default().into_iter().rev() {
            self.restore(name, variable);
        }
        self.loops = loops;
        self.calls -= 1;
        match result {
            Err(Stop::Return(status)) => Ok(status),
            Err(Stop::Break(_) | Stop::Continue(_)) => Ok(Status::Ok),
            other => other,
        }
    }
}

/// What a stop means to the loop around it: true to leave it, false to go on, or a stop for others.
fn leave_loop(stop: Stop) -> Result<bool, Stop> {
    match stop {
        Stop::Break(0 | 1) => Ok(true),
        Stop::Break(levels) => Err(Stop::Break(levels - 1)),
        Stop::Continue(0 | 1) => Ok(false),
        Stop::Continue(levels) => Err(Stop::Continue(levels - 1)),
        other => Err(other),
    }
}
