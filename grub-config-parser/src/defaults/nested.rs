//! Commands inside words, and here-documents.

use alloc::vec::Vec;

use super::TokenKind;
use super::lex::{ParseError, Tok};
use super::parse::{DEPTH, KEYWORDS, Parser, parse};
use super::syntax::Word;

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
        match parse(&text, line, self.depth + 1).0.error {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Reads the here-documents that the line before has announced.
    pub(super) fn read_here_documents(&mut self) -> Result<(), ParseError> {
        for here in core::mem::take(&mut self.here_documents) {
            let start = self.at;
            let end = self.skip_here_document(&here);
            self.note(TokenKind::HereDocument, start);
            if here.quoted || self.depth >= DEPTH {
                continue;
            }
            // What is expanded in it must parse.
            let body = self.text.get(start..end).unwrap_or(&[]);
            let line = self.line_at(start);
            let mut inner = Parser {
                text: body,
                at: 0,
                first_line: line,
                newlines: Vec::new(),
                token_start: 0,
                word: Word::default(),
                redirect_here: None,
                here_mark: false,
                here_documents: Vec::new(),
                pushed_back: false,
                last: Tok::Newline,
                depth: self.depth + 1,
                tokens: Vec::new(),
                nested: 1,
            };
            let first = inner.get();
            inner.word(first, true)?;
        }
        Ok(())
    }

    /// Goes behind the line that ends a here-document; gives the end of its text.
    fn skip_here_document(&mut self, here: &Here) -> usize {
        let mut joined = false;
        loop {
            let start = self.at;
            let rest = self.text.get(start..).unwrap_or(&[]);
            if rest.is_empty() {
                return start;
            }
            let length = rest
                .iter()
                .position(|byte| *byte == b'\n')
                .unwrap_or(rest.len());
            let line = rest.get(..length).unwrap_or(rest);
            self.at = (start + length + 1).min(self.text.len());
            let tabs = line
                .iter()
                .take_while(|byte| here.strip && **byte == b'\t')
                .count();
            if !joined && line.get(tabs..) == Some(here.mark.as_slice()) {
                return start;
            }
            let backslashes = line.iter().rev().take_while(|byte| **byte == b'\\').count();
            joined = !here.quoted && backslashes % 2 == 1;
        }
    }
}
