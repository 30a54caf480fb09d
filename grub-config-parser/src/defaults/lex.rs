//! Characters to tokens: dash's `readtoken` and `readtoken1` (`parser.c`), with the syntax stack that
//! decides what a quote or a brace means where.

use alloc::string::String;

use super::Shell;
use super::nested::Here;
use super::parse::Parser;
use super::syntax::{Part, Word};
use super::word_state::{Level, Parts, Syntax, mark};

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

/// What is said of what bash does and nobody here follows.
pub(super) const FOREIGN: &str = "something that bash reads in a way that is not followed";

/// A file that dash stops at.
#[derive(Debug, Clone)]
pub(super) struct ParseError {
    pub(super) line: usize,
    pub(super) message: String,
    /// bash stops there too.
    pub(super) certain: bool,
}

impl Parser<'_> {
    pub(super) fn get(&mut self) -> Option<u8> {
        let byte = self.text.get(self.at).copied()?;
        self.at += 1;
        Some(byte)
    }

    pub(super) fn unget(&mut self, byte: Option<u8>) {
        if byte.is_some() {
            self.at -= 1;
        }
    }

    /// Reads a character; a backslash and a newline are nothing.
    pub(super) fn get_joined(&mut self) -> Option<u8> {
        loop {
            let byte = self.get();
            if byte != Some(b'\\') || self.text.get(self.at) != Some(&b'\n') {
                return byte;
            }
            self.at += 1;
            self.joined += 1;
        }
    }

    pub(super) fn error(&self, message: impl Into<String>) -> ParseError {
        ParseError {
            line: self.line(),
            message: message.into(),
            certain: false,
        }
    }

    pub(super) fn is_bash(&self) -> bool {
        self.shell == Shell::Bash
    }

    /// An error where bash may read this otherwise than dash.
    pub(super) fn only_dash(&self, differs: bool) -> Result<(), ParseError> {
        if differs && self.is_bash() {
            return Err(self.error(FOREIGN));
        }
        Ok(())
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
                Some(b'&') => self.double(b'&', Tok::And, Tok::Background)?,
                Some(b'|') => self.double(b'|', Tok::Or, Tok::Pipe)?,
                Some(b';') => self.double(b';', Tok::EndCase, Tok::Semicolon)?,
                Some(b'(') => {
                    // `((`
                    self.only_dash(self.text.get(self.at) == Some(&b'('))?;
                    Tok::Open
                }
                Some(b')') => Tok::Close,
                Some(_) => {
                    // The word begins at its first character, behind joined lines.
                    self.token_start = self.at - 1;
                    let tok = self.word(byte, None)?;
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

    fn double(&mut self, second: u8, both: Tok, one: Tok) -> Result<Tok, ParseError> {
        let joined = self.joined;
        let byte = self.get_joined();
        let tok = if byte == Some(second) { both } else { one };
        if tok == one {
            self.unget(byte);
        }
        // `|&`, `&>`, `;&`, `;;&`
        let next = self.text.get(self.at);
        let more = match tok {
            Tok::Background => next == Some(&b'>'),
            Tok::Pipe | Tok::Semicolon | Tok::EndCase => next == Some(&b'&'),
            _ => false,
        };
        self.only_dash(more || self.joined != joined)?;
        Ok(tok)
    }

    /// Reads a word whose first character is `first`, or a here-document's text to its end.
    #[allow(
        clippy::too_many_lines,
        reason = "one state machine, as it stands in dash"
    )]
    pub(super) fn word(
        &mut self,
        first: Option<u8>,
        document: Option<&Here>,
    ) -> Result<Tok, ParseError> {
        let here = document.is_some();
        let mut levels = alloc::vec![Level::new(if here { Syntax::Double } else { Syntax::Base })];
        let mut parts = Parts::default();
        let mut quoted_any = false;
        let mut c = first;
        let mut length = 0usize;
        let mut only_digit = true;
        let mut line_starts = here;
        let end = loop {
            let Some(level) = levels.last_mut() else {
                break c;
            };
            let at = self.at.saturating_sub(1);
            let here_end = at + 1;
            let Some(byte) = c else { break c };
            if core::mem::take(&mut line_starts)
                && let Some(end) = document.and_then(|document| self.here_end(document, at))
            {
                self.at = end;
                break None;
            }
            let plain = at..here_end;
            // Which quotes count in a `${...}` between double quotes is each shell's own.
            self.only_dash(
                matches!(byte, b'\'' | b'"' | b'\\') && parts.in_double()
                    || (byte == b'{' || byte == b'\\' && level.double) && !parts.open.is_empty(),
            )?;
            let is_quoted = level.syntax != Syntax::Base || level.double;
            let mut pushed_text = false;
            match (level.syntax, byte) {
                (Syntax::Base, b'\n') if level.variables == 0 => break c,
                (_, b'\n') => {
                    line_starts = here;
                    parts.text(byte, plain, is_quoted);
                }
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
                        None => {
                            self.only_dash(true)?;
                            parts.text(b'\\', plain, true);
                        }
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
                (_, b'$') => quoted_any |= self.dollar(&mut levels, &mut parts, at)?,
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
            self.fits(parts.count())?;
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
                return Err(ParseError {
                    certain: self.nested == 0 && parts.open.is_empty(),
                    ..self.error("a quoted string does not end")
                });
            }
            Some(level) if level.variables > 0 => return Err(self.error("missing `}`")),
            _ => {}
        }
        if !here {
            if matches!(end, Some(b'<' | b'>')) && !quoted_any && length <= 1 && only_digit {
                self.redirect(end)?;
                return Ok(Tok::Redirect);
            }
            // `12>`
            self.only_dash(matches!(end, Some(b'<' | b'>')) && only_digit)?;
            self.unget(end);
        }
        self.count(1 + parts.done.len())?;
        parts.done.shrink_to_fit();
        self.word = Word {
            parts: parts.done,
            quoted: quoted_any,
            appends: false,
        };
        self.word.appends = self.is_bash() && self.word.names(b"+=");
        Ok(Tok::Word)
    }

    /// Behind the `<` or `>` of a redirection.
    fn redirect(&mut self, first: Option<u8>) -> Result<(), ParseError> {
        let joined = self.joined;
        let next = self.get_joined();
        self.redirect_here = None;
        match (first, next) {
            (Some(b'>'), Some(b'>' | b'|' | b'&')) | (_, Some(b'&' | b'>')) => {}
            (Some(b'<'), Some(b'<')) => {
                self.only_dash(true)?;
                let dash = self.get_joined();
                let strip = dash == Some(b'-');
                if !strip {
                    self.unget(dash);
                }
                self.redirect_here = Some(strip);
            }
            _ => self.unget(next),
        }
        self.only_dash(self.joined != joined)
    }
}
