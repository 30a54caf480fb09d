//! Characters to tokens: dash's `readtoken` and `readtoken1` (`parser.c`), with the syntax stack that
//! decides what a quote or a brace means where.

use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use super::parse::Parser;
use super::syntax::{Operator, Part, Word};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tok {
    Eof,
    Newline,
    Semicolon,
    Background,
    And,
    Or,
    Pipe,
    Open,
    Close,
    EndCase,
    Redirect,
    Word,
    Not,
    Case,
    Do,
    Done,
    Elif,
    Else,
    Esac,
    Fi,
    For,
    If,
    In,
    Then,
    Until,
    While,
    Begin,
    End,
}

/// A file that dash stops at.
#[derive(Debug, Clone)]
pub(super) struct ParseError {
    pub(super) line: usize,
    pub(super) message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Syntax {
    Base,
    Double,
    Single,
    Arithmetic,
}

/// One level of dash's syntax stack.
struct Level {
    syntax: Syntax,
    inner_double: bool,
    pushed: bool,
    double: bool,
    variables: u32,
    double_variables: u32,
    parens: u32,
}

impl Level {
    fn new(syntax: Syntax) -> Self {
        Self {
            syntax,
            inner_double: false,
            pushed: false,
            double: matches!(syntax, Syntax::Double | Syntax::Arithmetic),
            variables: 0,
            double_variables: 0,
            parens: 0,
        }
    }
}

enum Open {
    Parameter {
        name: Vec<u8>,
        operator: Operator,
        quoted: bool,
    },
    Arithmetic,
}

/// The parts of a word, and of the words inside it that are still open.
#[derive(Default)]
struct Parts {
    done: Vec<Part>,
    open: Vec<(Open, usize, Vec<Part>)>,
}

impl Parts {
    fn push(&mut self, part: Part) {
        self.done.push(part);
    }

    fn text(&mut self, byte: u8, span: Range<usize>, quoted: bool) {
        if let Some(Part::Text {
            text,
            span: last,
            quoted: q,
            exact: true,
        }) = self.done.last_mut()
            && *q == quoted
            && last.end == span.start
            && span.len() == 1
        {
            last.end = span.end;
            text.push(byte);
            return;
        }
        let exact = span.len() == 1;
        self.done.push(Part::Text {
            text: alloc::vec![byte],
            span,
            quoted,
            exact,
        });
    }

    fn start(&mut self, open: Open, at: usize) {
        self.open.push((open, at, core::mem::take(&mut self.done)));
    }

    fn close(&mut self, end: usize) {
        let Some((open, start, outer)) = self.open.pop() else {
            return;
        };
        let parts = core::mem::replace(&mut self.done, outer);
        let span = start..end;
        self.done.push(match open {
            Open::Parameter {
                name,
                operator,
                quoted,
            } => Part::Parameter {
                name,
                operator,
                word: parts,
                quoted,
                span,
            },
            Open::Arithmetic => Part::Arithmetic { parts },
        });
    }
}

fn is_name_start(byte: Option<u8>) -> bool {
    byte.is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
}

fn is_name(byte: Option<u8>) -> bool {
    byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn is_digit(byte: Option<u8>) -> bool {
    byte.is_some_and(|byte| byte.is_ascii_digit())
}

fn is_special(byte: Option<u8>) -> bool {
    byte.is_some_and(|byte| b"#?$!-*@0123456789".contains(&byte))
}

impl Parser<'_> {
    pub(super) fn get(&mut self) -> Option<u8> {
        let byte = self.text.get(self.at).copied()?;
        self.at += 1;
        Some(byte)
    }

    fn unget(&mut self, byte: Option<u8>) {
        if byte.is_some() {
            self.at -= 1;
        }
    }

    /// Reads a character; a backslash and a newline are nothing.
    fn get_joined(&mut self) -> Option<u8> {
        loop {
            let byte = self.get();
            if byte != Some(b'\\') || self.text.get(self.at) != Some(&b'\n') {
                return byte;
            }
            self.at += 1;
        }
    }

    pub(super) fn error(&self, message: impl Into<String>) -> ParseError {
        ParseError {
            line: self.line(),
            message: message.into(),
        }
    }

    /// The next token, without looking for keywords. For a word or redirection, `self.word` holds it.
    pub(super) fn raw_token(&mut self) -> Result<Tok, ParseError> {
        loop {
            let start = self.at;
            let byte = self.get_joined();
            let tok = match byte {
                None => Tok::Eof,
                Some(b' ' | b'\t') => continue,
                Some(b'#') => {
                    while self.text.get(self.at).is_some_and(|byte| *byte != b'\n') {
                        self.at += 1;
                    }
                    self.note(super::TokenKind::Comment, start);
                    continue;
                }
                Some(b'\n') => Tok::Newline,
                Some(b'&') => self.double(b'&', Tok::And, Tok::Background),
                Some(b'|') => self.double(b'|', Tok::Or, Tok::Pipe),
                Some(b';') => self.double(b';', Tok::EndCase, Tok::Semicolon),
                Some(b'(') => Tok::Open,
                Some(b')') => Tok::Close,
                Some(_) => {
                    // The word begins at its first character, behind joined lines.
                    self.token_start = self.at - 1;
                    let tok = self.word(byte, false)?;
                    let kind = if tok == Tok::Word {
                        super::TokenKind::Word
                    } else {
                        super::TokenKind::Operator
                    };
                    self.note(kind, self.token_start);
                    return Ok(tok);
                }
            };
            self.token_start = self.at.saturating_sub(1).max(start);
            match tok {
                Tok::Eof => {}
                Tok::Newline => {
                    self.note(super::TokenKind::Newline, start);
                    self.read_here_documents()?;
                }
                _ => self.note(super::TokenKind::Operator, start),
            }
            return Ok(tok);
        }
    }

    fn double(&mut self, second: u8, both: Tok, one: Tok) -> Tok {
        let byte = self.get_joined();
        if byte == Some(second) {
            return both;
        }
        self.unget(byte);
        one
    }

    /// Reads a word whose first character is `first`, or a here-document's text to its end.
    #[allow(
        clippy::too_many_lines,
        reason = "one state machine, as it stands in dash"
    )]
    pub(super) fn word(&mut self, first: Option<u8>, here: bool) -> Result<Tok, ParseError> {
        let mut levels = alloc::vec![Level::new(if here { Syntax::Double } else { Syntax::Base })];
        let mut parts = Parts::default();
        let mut quoted_any = false;
        let mut c = first;
        let mut length = 0usize;
        let mut only_digit = true;
        let end = loop {
            let Some(level) = levels.last_mut() else {
                break c;
            };
            let at = self.at.saturating_sub(1);
            let here_end = at + 1;
            let Some(byte) = c else { break c };
            let plain = at..here_end;
            let is_quoted = level.syntax != Syntax::Base || level.double;
            let mut pushed_text = false;
            match (level.syntax, byte) {
                (Syntax::Base, b'\n') if level.variables == 0 => break c,
                (_, b'\n') => parts.text(byte, plain, is_quoted),
                (Syntax::Single, b'\'') | (Syntax::Double, b'"') => {
                    if here && level.variables == 0 {
                        parts.text(byte, plain, true);
                    } else {
                        if level.double_variables == 0 {
                            level.syntax = Syntax::Base;
                            level.double = false;
                        }
                        quoted_any = true;
                        if byte == b'"' && level.variables > 0 {
                            level.inner_double = !level.inner_double;
                        }
                        mark(&mut parts, here_end);
                    }
                }
                (Syntax::Single, _) => parts.text(byte, plain, true),
                (_, b'\\') => {
                    let next = self.get();
                    quoted_any |= next.is_some();
                    match next {
                        None => parts.text(b'\\', plain, true),
                        Some(next) => {
                            let keeps = level.double
                                && !matches!(next, b'\\' | b'`' | b'$')
                                && (next != b'"' || here && level.variables == 0)
                                && (next != b'}' || level.variables == 0);
                            if keeps {
                                parts.text(b'\\', plain, true);
                                parts.text(next, here_end..here_end + 1, true);
                            } else {
                                parts.text(next, at..here_end + 1, true);
                            }
                        }
                    }
                }
                (Syntax::Base, b'\'') => {
                    level.syntax = Syntax::Single;
                    mark(&mut parts, here_end);
                }
                (Syntax::Base, b'"') => {
                    level.syntax = Syntax::Double;
                    level.double = true;
                    if level.variables > 0 {
                        level.inner_double = !level.inner_double;
                    }
                    mark(&mut parts, here_end);
                }
                (_, b'$') => self.dollar(&mut levels, &mut parts, at)?,
                (_, b'}') if !level.inner_double && level.variables > 0 => {
                    level.variables -= 1;
                    if level.variables == 0 && level.pushed {
                        levels.pop();
                    } else {
                        level.double_variables = level.double_variables.saturating_sub(1);
                    }
                    parts.close(here_end);
                }
                (_, b'`') if self.here_mark => parts.text(byte, plain, is_quoted),
                (_, b'`') => {
                    let quoted = level.double;
                    self.old_command(quoted)?;
                    parts.push(Part::Command { quoted });
                }
                (Syntax::Arithmetic, b'(') => {
                    level.parens += 1;
                    parts.text(byte, plain, true);
                }
                (Syntax::Arithmetic, b')') => {
                    if level.parens > 0 {
                        level.parens -= 1;
                        parts.text(byte, plain, true);
                    } else {
                        let next = self.get_joined();
                        if next == Some(b')') {
                            levels.pop();
                            parts.close(self.at);
                        } else {
                            self.unget(next);
                            parts.text(byte, plain, true);
                        }
                    }
                }
                (Syntax::Base, b'<' | b'>' | b'(' | b')' | b';' | b'&' | b'|' | b' ' | b'\t')
                    if level.variables == 0 =>
                {
                    break c;
                }
                _ => {
                    pushed_text = true;
                    parts.text(byte, plain, is_quoted);
                }
            }
            length += 1;
            only_digit &= pushed_text && byte.is_ascii_digit();
            let raw = levels
                .last()
                .is_some_and(|level| level.syntax == Syntax::Single);
            c = if raw { self.get() } else { self.get_joined() };
        };
        match levels.last() {
            Some(level) if level.syntax == Syntax::Arithmetic => {
                return Err(self.error("missing `))`"));
            }
            Some(level) if level.syntax != Syntax::Base && !here => {
                return Err(self.error("a quoted string does not end"));
            }
            Some(level) if level.variables > 0 => return Err(self.error("missing `}`")),
            _ => {}
        }
        if !here {
            if matches!(end, Some(b'<' | b'>')) && !quoted_any && length <= 1 && only_digit {
                self.redirect(end);
                return Ok(Tok::Redirect);
            }
            self.unget(end);
        }
        self.word = Word {
            parts: parts.done,
            quoted: quoted_any,
        };
        Ok(Tok::Word)
    }

    /// Behind a `$` at `start`.
    fn dollar(
        &mut self,
        levels: &mut Vec<Level>,
        parts: &mut Parts,
        start: usize,
    ) -> Result<(), ParseError> {
        let double = levels.last().is_some_and(|level| level.double);
        let mut c = self.get_joined();
        let starts = matches!(c, Some(b'(' | b'{')) || is_name_start(c) || is_special(c);
        if self.here_mark || !starts {
            let quoted = double
                || levels
                    .last()
                    .is_some_and(|level| level.syntax != Syntax::Base);
            self.unget(c);
            parts.text(b'$', start..start + 1, quoted);
            return Ok(());
        }
        if parts.open.len() >= super::parse::DEPTH {
            return Err(self.error("expansions nest too deep"));
        }
        if c == Some(b'(') {
            let next = self.get_joined();
            if next == Some(b'(') {
                levels.push(Level::new(Syntax::Arithmetic));
                parts.start(Open::Arithmetic, start);
            } else {
                self.unget(next);
                self.new_command()?;
                parts.push(Part::Command { quoted: double });
            }
            return Ok(());
        }
        let braced = c == Some(b'{');
        if braced {
            c = self.get_joined();
        }
        let (name, operator, base) = self.parameter(c, braced);
        let Some(level) = levels.last_mut() else {
            return Ok(());
        };
        let syntax = match level.syntax {
            _ if base => Syntax::Base,
            Syntax::Arithmetic => Syntax::Double,
            other => other,
        };
        let simple = operator == Some(Operator::Normal);
        let quoted = level.double;
        let operator = operator.unwrap_or(Operator::Bad);
        if simple {
            let span = start..self.at;
            parts.push(Part::Parameter {
                name,
                operator,
                word: Vec::new(),
                quoted,
                span,
            });
            return Ok(());
        }
        if syntax != level.syntax || level.inner_double {
            let mut level = Level::new(syntax);
            level.pushed = true;
            level.double = syntax != Syntax::Base;
            levels.push(level);
        }
        if let Some(level) = levels.last_mut() {
            level.variables += 1;
            level.double_variables += u32::from(level.double);
        }
        parts.start(
            Open::Parameter {
                name,
                operator,
                quoted,
            },
            start,
        );
        Ok(())
    }

    /// Reads a parameter's name and operator, `c` being its first character. The operator is `None`
    /// where dash finds none; the last value tells if a pattern follows.
    fn parameter(&mut self, first: Option<u8>, braced: bool) -> (Vec<u8>, Option<Operator>, bool) {
        let mut c = first;
        let mut name = Vec::new();
        let mut length = false;
        loop {
            if is_name_start(c) {
                while let Some(byte) = c.filter(|_| is_name(c)) {
                    name.push(byte);
                    c = self.get_joined();
                }
            } else if is_digit(c) {
                while let Some(byte) = c.filter(|_| is_digit(c)) {
                    name.push(byte);
                    c = self.get_joined();
                    if !braced {
                        break;
                    }
                }
            } else if c == Some(b'}') {
                self.unget(c);
                return (name, None, false);
            } else {
                let mut special = c;
                c = self.get_joined();
                if braced && !length && special == Some(b'#') {
                    length = true;
                    if is_name(c) {
                        continue;
                    }
                    special = c;
                    c = self.get_joined();
                    if special == Some(b'}') || c != Some(b'}') {
                        self.unget(c);
                        length = false;
                        c = special;
                        special = Some(b'#');
                    }
                }
                if !is_special(special) {
                    self.unget(c);
                    return (name, None, false);
                }
                name.extend(special);
            }
            break;
        }
        if !braced {
            self.unget(c);
            return (name, Some(Operator::Normal), false);
        }
        if length {
            self.unget(c);
            let operator = (c == Some(b'}')).then_some(Operator::Other);
            return (name, operator, false);
        }
        let colon = c == Some(b':');
        if colon {
            c = self.get_joined();
        }
        let operator = match c {
            Some(b'}') if !colon => Some(Operator::Normal),
            Some(b'}') => Some(Operator::Other),
            Some(b'-') => Some(Operator::Minus { colon }),
            Some(b'+') => Some(Operator::Plus { colon }),
            Some(b'=') => Some(Operator::Assign { colon }),
            Some(b'?') => Some(Operator::Question { colon }),
            Some(b'%' | b'#') if !colon => {
                let next = self.get_joined();
                if next != c {
                    self.unget(next);
                }
                return (name, Some(Operator::Other), true);
            }
            _ => None,
        };
        (name, operator, false)
    }

    /// Behind the `<` or `>` of a redirection.
    fn redirect(&mut self, first: Option<u8>) {
        let next = self.get_joined();
        self.redirect_here = None;
        match (first, next) {
            (Some(b'>'), Some(b'>' | b'|' | b'&')) | (_, Some(b'&' | b'>')) => {}
            (Some(b'<'), Some(b'<')) => {
                let dash = self.get_joined();
                let strip = dash == Some(b'-');
                if !strip {
                    self.unget(dash);
                }
                self.redirect_here = Some(strip);
            }
            _ => self.unget(next),
        }
    }
}

/// Notes that quotes opened or closed here, so that `""` is an empty word and not none.
fn mark(parts: &mut Parts, at: usize) {
    parts.push(Part::Text {
        text: Vec::new(),
        span: at..at,
        quoted: true,
        exact: true,
    });
}
