//! What a command that may or may not run can do to the variables.

use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::expand::assigned_in_word;
use super::state::State;
use super::syntax::{Command, Simple, Word};

/// How many commands are looked at; beyond it everything counts as touched.
const MOST: u32 = 100_000;

impl State {
    /// Makes everything unknown that the command can touch.
    pub(super) fn touch(&mut self, command: &Command) {
        let mut seen = BTreeSet::new();
        let mut left = MOST;
        touch(self, command, &mut seen, &mut left);
        if left == 0 {
            self.taint_all();
        }
    }
}

fn touch(state: &mut State, command: &Command, seen: &mut BTreeSet<Vec<u8>>, left: &mut u32) {
    *left = left.saturating_sub(1);
    if *left == 0 {
        return;
    }
    match command {
        Command::Simple(simple) => touch_simple(state, simple, seen, left),
        // These run in shells of their own.
        Command::Pipeline { .. } | Command::Subshell { .. } | Command::Background(_) => {}
        Command::Not(command) => touch(state, command, seen, left),
        Command::Redirected { command, redirects } => {
            touch_words(state, redirects);
            touch(state, command, seen, left);
        }
        Command::Chain { first, rest } => {
            touch(state, first, seen, left);
            for (_, command) in rest {
                touch(state, command, seen, left);
            }
        }
        Command::List(commands) => {
            for command in commands {
                touch(state, command, seen, left);
            }
        }
        Command::If {
            branches,
            otherwise,
        } => {
            for (condition, body) in branches {
                touch(state, condition, seen, left);
                touch(state, body, seen, left);
            }
            if let Some(otherwise) = otherwise {
                touch(state, otherwise, seen, left);
            }
        }
        Command::While {
            condition, body, ..
        } => {
            touch(state, condition, seen, left);
            touch(state, body, seen, left);
        }
        Command::For { name, words, body } => {
            state.taint(name, None);
            touch_words(state, words.as_deref().unwrap_or(&[]));
            touch(state, body, seen, left);
        }
        Command::Case { word, arms } => {
            touch_words(state, core::slice::from_ref(word));
            for (patterns, body) in arms {
                touch_words(state, patterns);
                touch(state, body, seen, left);
            }
        }
        Command::Function { name, body, .. } => {
            state.maybe_commands.insert(name.clone());
            // It may be called later: name what it would set.
            touch(state, body, seen, left);
        }
    }
}

fn touch_words(state: &mut State, words: &[Word]) {
    for word in words {
        for name in assigned_in_word(&word.parts) {
            state.taint(&name, None);
        }
    }
}

fn touch_simple(state: &mut State, simple: &Simple, seen: &mut BTreeSet<Vec<u8>>, left: &mut u32) {
    touch_words(state, &simple.words);
    touch_words(state, &simple.assignments);
    touch_words(state, &simple.redirects);
    for name in simple.assignments.iter().filter_map(Word::assigned_name) {
        state.taint(&name, Some(simple.line));
    }
    let Some(first) = simple.words.first() else {
        return;
    };
    let Some(name) = first.literal() else {
        state.taint_all();
        return;
    };
    if state.maybe_commands.contains(&name) {
        state.taint_all();
        return;
    }
    if let Some(body) = state.functions.get(&name).map(Arc::clone) {
        if seen.insert(name) {
            touch(state, &body, seen, left);
        }
        return;
    }
    let arguments = simple.words.get(1..).unwrap_or(&[]);
    let differs = state.is_bash()
        && (state.only_bash(&name, None)
            || first.names(b"[")
            || simple.words.iter().any(Word::braces)
            || name == b"readonly"
            || name == b"unset" && !state.functions.is_empty());
    if differs {
        state.taint_all();
        return;
    }
    match name.as_slice() {
        b"export" | b"readonly" | b"local" | b"unset" | b"read" | b"getopts" | b"alias" => {
            for word in arguments {
                let known = word.assigned_name().or_else(|| word.literal());
                match known {
                    Some(own) if name == b"alias" => {
                        state.maybe_commands.insert(own);
                    }
                    Some(own) if super::parse::is_name(&own) => {
                        state.taint(&own, Some(simple.line));
                    }
                    Some(_) => {}
                    None => state.taint_all(),
                }
            }
        }
        b"eval" if *left > 1 => {
            let words: Option<Vec<Vec<u8>>> = arguments.iter().map(Word::literal).collect();
            match words {
                Some(words) => {
                    let text = words.join(&b' ');
                    for unit in super::parse::Units::new(&text, simple.line, 1, state.shell) {
                        match unit {
                            Ok(unit) => touch(state, &unit.command, seen, left),
                            Err(_) if state.is_bash() => state.taint_all(),
                            Err(_) => {}
                        }
                    }
                }
                None => state.taint_all(),
            }
        }
        b"." | b"eval" | b"command" => state.taint_all(),
        b"set" if state.is_bash() => state.taint_all(),
        b"set" => {
            state.exit_on_error = None;
            state.unset_is_error = false;
        }
        _ => {}
    }
}
