//! Commands inside words, and here-documents.

use alloc::vec::Vec;

use super::TokenKind;
use super::lex::{ParseError, Tok};
use super::parse::{DEPTH, KEYWORDS, Parser};

/// A here-document that a line has announced.
pub(super) struct Here {
    pub(super) mark: Vec<u8>,
    pub(super) quoted: bool,
    pub(super) strip: bool,
}

impl Parser<'_> {
    /// `$(`: reads the commands and the `)`.
    pub(super) fn new_command(&mut self) -> Result<(), ParseError> {
        self.nested += 1;
        let here_documents = core::mem::take(&mut self.here_documents);
        let (word, here_mark) = (core::mem::take(&mut self.word), self.here_mark);
        let token_start = self.token_start;
        self.here_mark = false;
        self.pushed_back = false;
        self.list(true)?;
        self.expect(Tok::Close, KEYWORDS)?;
        self.here_documents = here_documents;
        (self.word, self.here_mark) = (word, here_mark);
        self.token_start = token_start;
        self.nested -= 1;
        Ok(())
    }

    /// Behind a backquote: takes the text up to the next one and checks that it parses.
    pub(super) fn old_command(&mut self, double: bool) -> Result<(), ParseError> {
        let line = self.line();
        let mut text = Vec::new();
        loop {
            let Some(byte) = self.get() else {
                return Err(self.error("a backquote does not end"));
            };
            match byte {
                b'`' => break,
                b'\\' => {
                    let next = self.get();
                    match next {
                        Some(b'\n') => continue,
                        Some(b'\\' | b'`' | b'$') => {}
                        Some(b'"') if double => {}
                        _ => text.push(b'\\'),
                    }
                    text.extend(next);
                }
                _ => text.push(byte),
            }
        }
        if self.depth >= DEPTH {
            return Err(self.error("commands nest too deep"));
        }
        // What stands behind the list, like a `)` too many, is not looked at.
        let inner = Parser::new(&text, line, self.depth + 1, self.shell).list(true);
        inner.map_err(|error| ParseError {
            certain: false,
            ..error
        })?;
        Ok(())
    }

    /// Reads the here-documents that the line before has announced.
    pub(super) fn read_here_documents(&mut self) -> Result<(), ParseError> {
        for here in core::mem::take(&mut self.here_documents) {
            let start = self.at;
            if here.quoted {
                self.skip_here_document(&here);
            } else {
                // What is expanded in it must parse.
                let (word, token_start) = (core::mem::take(&mut self.word), self.token_start);
                self.nested += 1;
                let first = self.get_joined();
                self.word(first, Some(&here))?;
                self.nested -= 1;
                (self.word, self.token_start) = (word, token_start);
            }
            self.note(TokenKind::HereDocument, start);
        }
        Ok(())
    }

    /// Goes behind the line that ends a here-document without expansions.
    fn skip_here_document(&mut self, here: &Here) {
        while self.at < self.text.len() {
            if let Some(end) = self.here_end(here, self.at) {
                self.at = end;
                return;
            }
            let rest = self.text.get(self.at..).unwrap_or(&[]);
            let length = rest
                .iter()
                .position(|byte| *byte == b'\n')
                .unwrap_or(rest.len());
            self.at = (self.at + length + 1).min(self.text.len());
        }
    }

    /// If the line at `at` ends the here-document: the place behind it.
    pub(super) fn here_end(&self, here: &Here, at: usize) -> Option<usize> {
        let rest = self.text.get(at..)?;
        let length = rest
            .iter()
            .position(|byte| *byte == b'\n')
            .unwrap_or(rest.len());
        let line = rest.get(..length)?;
        let tabs = line
            .iter()
            .take_while(|byte| here.strip && **byte == b'\t')
            .count();
        let ends = line.get(tabs..) == Some(here.mark.as_slice());
        ends.then_some((at + length + 1).min(self.text.len()))
    }
}
