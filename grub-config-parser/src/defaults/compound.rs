//! `if`, `for` and `case`.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::lex::{ParseError, Tok};
use super::parse::{KEYWORDS, NEWLINES, Parser, is_name};
use super::syntax::Command;

impl Parser<'_> {
    pub(super) fn if_command(&mut self) -> Result<Command, ParseError> {
        let mut branches = Vec::new();
        loop {
            let condition = self.list(false)?;
            self.expect(Tok::Then, KEYWORDS)?;
            branches.push((condition, self.list(false)?));
            match self.token(KEYWORDS)? {
                Tok::Elif => {}
                Tok::Else => {
                    let otherwise = Some(Arc::new(self.list(false)?));
                    self.expect(Tok::Fi, KEYWORDS)?;
                    return Ok(Command::If {
                        branches,
                        otherwise,
                    });
                }
                Tok::Fi => {
                    return Ok(Command::If {
                        branches,
                        otherwise: None,
                    });
                }
                _ => return self.unexpected(),
            }
        }
    }

    pub(super) fn for_command(&mut self) -> Result<Command, ParseError> {
        let name = match self.plain()? {
            Tok::Word if !self.word.quoted => self.word.literal().filter(|name| is_name(name)),
            _ => None,
        };
        let Some(name) = name else {
            return self.unexpected();
        };
        let mut words = None;
        if self.token(NEWLINES)? == Tok::In {
            let mut list = Vec::new();
            while self.plain()? == Tok::Word {
                list.push(core::mem::take(&mut self.word));
            }
            if !matches!(self.last, Tok::Newline | Tok::Semicolon) {
                return self.unexpected();
            }
            words = Some(list);
        } else if self.last != Tok::Semicolon {
            self.push_back();
        }
        self.expect(Tok::Do, NEWLINES)?;
        let body = Arc::new(self.list(false)?);
        self.expect(Tok::Done, KEYWORDS)?;
        Ok(Command::For { name, words, body })
    }

    pub(super) fn case_command(&mut self) -> Result<Command, ParseError> {
        if self.plain()? != Tok::Word {
            return self.unexpected();
        }
        let word = core::mem::take(&mut self.word);
        self.expect(Tok::In, NEWLINES)?;
        let mut arms = Vec::new();
        loop {
            let mut tok = self.token(NEWLINES)?;
            if tok == Tok::Esac {
                break;
            }
            if tok == Tok::Open {
                tok = self.plain()?;
            }
            let mut patterns = Vec::new();
            loop {
                if tok == Tok::Eof || tok == Tok::Newline {
                    return self.unexpected();
                }
                self.only_dash(tok != Tok::Word)?;
                patterns.push(core::mem::take(&mut self.word));
                if self.plain()? != Tok::Pipe {
                    break;
                }
                tok = self.plain()?;
            }
            if self.last != Tok::Close {
                return self.unexpected();
            }
            arms.push((patterns, self.list(true)?));
            match self.token(NEWLINES)? {
                Tok::Esac => break,
                Tok::EndCase => {}
                _ => return self.unexpected(),
            }
        }
        Ok(Command::Case { word, arms })
    }
}
