//! The parser: GRUB's `script/parser.y`, without recursion.
//!
//! GRUB's own parser has a stack of 10000 places and refuses what needs more; the places that each
//! construct takes are counted here, so that both refuse the same scripts.

use alloc::string::String;
use alloc::vec::Vec;

use super::ast::{Ast, Kind, Node, offset};
use super::error::SyntaxError;
use super::frames::{Frame, Open};
use super::lex::{Lexer, Token, TokenKind};
use super::word::split_word;

/// Places on bison's stack (`YYMAXDEPTH` less the one that stays free).
const STACK: usize = 9999;

pub(super) struct Parser<'a> {
    source: &'a [u8],
    lexer: Lexer<'a>,
    pub(super) peeked: Option<Token>,
    pub(super) ast: Ast,
    frames: Vec<Frame>,
    /// The frame on top.
    pub(super) frame: Frame,
}

/// What one parse gives: the tree (its `source` still empty) and whether a line that GRUB's reader
/// would drop stood inside a word.
pub(super) struct Parsed {
    pub(super) ast: Ast,
    pub(super) comment_in_word: bool,
}

pub(super) fn parse(source: &[u8]) -> Result<Parsed, SyntaxError> {
    if u32::try_from(source.len()).is_err() {
        return Err(SyntaxError::at(
            source,
            0,
            "the script is larger than 4 GiB",
        ));
    }
    let mut parser = Parser {
        source,
        lexer: Lexer::new(source),
        peeked: None,
        ast: Ast::default(),
        frames: Vec::new(),
        frame: Frame::new(Open::Top, 3),
    };
    parser.run()?;
    let comment_in_word = parser.lexer.comment_in_word;
    Ok(Parsed {
        ast: parser.ast,
        comment_in_word,
    })
}

impl<'a> Parser<'a> {
    fn peek(&mut self) -> Option<&Token> {
        if self.peeked.is_none() {
            self.peeked = self.lexer.next_solid();
        }
        self.peeked.as_ref()
    }

    fn peek_kind(&mut self) -> Option<TokenKind> {
        self.peek().map(|token| token.kind)
    }

    pub(super) fn next(&mut self) -> Option<Token> {
        self.peek();
        self.peeked.take()
    }

    pub(super) fn text(&self, token: &Token) -> &'a [u8] {
        self.source.get(token.span.clone()).unwrap_or(&[])
    }

    fn error(&self, token: Option<&Token>, message: impl Into<String>) -> SyntaxError {
        let at = token.map_or(self.source.len(), |token| token.span.start);
        SyntaxError::at(self.source, at, message)
    }

    pub(super) fn unexpected<T>(&mut self, wanted: &str) -> Result<T, SyntaxError> {
        let token = self.next();
        let found = match &token {
            None => String::from("the end of the file"),
            Some(token) => shown(token.kind, self.text(token)),
        };
        Err(self.error(
            token.as_ref(),
            alloc::format!("expected {wanted}, found {found}"),
        ))
    }

    fn places(&self, places: usize) -> Result<(), SyntaxError> {
        if places > STACK {
            let message = "nested too deep or too many words: GRUB's parser has no room for it";
            return Err(SyntaxError::at(self.source, self.lexer_at(), message));
        }
        Ok(())
    }

    fn lexer_at(&self) -> usize {
        self.peeked
            .as_ref()
            .map_or_else(|| self.lexer.position(), |token| token.span.start)
    }

    fn run(&mut self) -> Result<(), SyntaxError> {
        loop {
            if self.frame.complete {
                if self.after_command()? {
                    return Ok(());
                }
            } else {
                self.skip_newlines();
                if matches!(self.frame.open, Open::Top) && self.peek().is_none() {
                    return Ok(());
                }
                self.command()?;
            }
        }
    }

    fn skip_newlines(&mut self) {
        while self.peek_kind() == Some(TokenKind::Newline) {
            self.next();
            self.frame.new_line = true;
        }
    }

    /// Handles what follows a complete command. True at the end of the script.
    fn after_command(&mut self) -> Result<bool, SyntaxError> {
        match self.peek_kind() {
            Some(TokenKind::Semicolon) if !self.frame.delimited => {
                self.next();
                self.frame.delimited = true;
            }
            Some(TokenKind::Newline) => {
                self.next();
                self.frame.delimited = true;
                self.frame.new_line = true;
            }
            None if matches!(self.frame.open, Open::Top) => return Ok(true),
            Some(TokenKind::BlockEnd) => self.close_block()?,
            Some(TokenKind::Name) if self.frame.delimited && self.close_word()? => {}
            Some(_) if self.frame.delimited => self.command()?,
            _ => return self.unexpected("a newline or `;`"),
        }
        Ok(false)
    }

    /// Adds a node; its link is told when it ends.
    pub(super) fn node(&mut self, kind: Kind, at: usize, new_line: bool) -> u32 {
        let index = offset(self.ast.nodes.len());
        self.ast.nodes.push(Node {
            at: offset(at),
            link: 0,
            kind,
            new_line,
        });
        index
    }

    /// The node ends here.
    pub(super) fn link(&mut self, index: u32) {
        let end = offset(self.ast.nodes.len());
        if let Some(node) = self.ast.nodes.get_mut(index as usize) {
            node.link = end;
        }
    }

    fn push(&mut self, open: Open, places: usize) -> Result<(), SyntaxError> {
        self.places(places)?;
        let frame = core::mem::replace(&mut self.frame, Frame::new(open, places));
        self.frames.push(frame);
        Ok(())
    }

    /// Returns to the construct around the top frame's.
    pub(super) fn pop(&mut self) {
        let outer = self.frames.pop();
        self.frame = outer.unwrap_or_else(|| Frame::new(Open::Top, 3));
    }

    /// Goes from one list of a construct to its next.
    pub(super) fn switch(&mut self, open: Open, places: usize) -> Result<(), SyntaxError> {
        self.places(places)?;
        self.frame = Frame::new(open, places);
        Ok(())
    }

    fn command(&mut self) -> Result<(), SyntaxError> {
        let places = self.frame.next_places();
        let new_line = self.frame.new_line;
        let Some(token) = self.peek().cloned() else {
            return self.unexpected("a command");
        };
        match token.kind {
            TokenKind::Word => return self.simple(new_line, places),
            TokenKind::Name => {}
            _ => return self.unexpected("a command"),
        }
        match self.text(&token) {
            b"if" => {
                self.next();
                let node = self.node(Kind::If, 0, new_line);
                let clause = self.node(Kind::Clause, 0, false);
                self.push(Open::IfCondition { node, clause }, places + 2)
            }
            word @ (b"while" | b"until") => {
                self.next();
                let until = word == b"until";
                let kind = if until { Kind::Until } else { Kind::While };
                let node = self.node(kind, 0, new_line);
                let clause = self.node(Kind::Clause, 0, false);
                self.push(Open::WhileCondition { node, clause }, places + 2)
            }
            b"for" => {
                self.next();
                self.for_head(new_line, places)
            }
            b"function" if matches!(self.frame.open, Open::Top) => {
                self.next();
                self.function_head(new_line, places)
            }
            word if is_reserved(word) => self.unexpected("a command"),
            _ => self.simple(new_line, places),
        }
    }

    fn simple(&mut self, new_line: bool, places: usize) -> Result<(), SyntaxError> {
        let at = self.lexer_at();
        let words = self.word_list()?;
        // The first word, the others, and the empty rule behind them; or command, words and block.
        self.places(places + (words + 1).max(3))?;
        if self.peek_kind() != Some(TokenKind::BlockStart) {
            self.node(Kind::Command, at, new_line);
            self.frame.completed();
            return Ok(());
        }
        let text = self.next().map_or(0, |token| token.span.end);
        let node = self.node(Kind::Block, at, new_line);
        self.node(Kind::Text, text, false);
        self.push(Open::Block { node }, places + 4)
    }

    /// Counts words up to something that is none. Reserved words count here.
    fn word_list(&mut self) -> Result<usize, SyntaxError> {
        let mut words = 0;
        while let Some(TokenKind::Name | TokenKind::Word) = self.peek_kind() {
            // Only such a one can be wrong.
            if core::mem::take(&mut self.lexer.quoted_dollar)
                && let Some(token) = &self.peeked
                && split_word(self.source, token.span.clone(), |_| {}).is_none()
            {
                return Err(self.error(self.peeked.as_ref(), "a lone `$`; write `\\$`"));
            }
            self.peeked = None;
            words += 1;
        }
        Ok(words)
    }

    /// The place of a name.
    fn name(&mut self) -> Result<usize, SyntaxError> {
        match self.peek().cloned() {
            Some(token) if token.kind == TokenKind::Name && !is_reserved(self.text(&token)) => {
                self.next();
                Ok(token.span.start)
            }
            _ => self.unexpected("a name"),
        }
    }

    fn for_head(&mut self, new_line: bool, places: usize) -> Result<(), SyntaxError> {
        let name = self.name()?;
        match self.peek().cloned() {
            Some(token) if self.text(&token) == b"in" => self.next(),
            _ => return self.unexpected("`in`"),
        };
        let words = self.word_list()?;
        self.places(places + 4 + words + 1)?;
        match self.peek_kind() {
            Some(TokenKind::Semicolon | TokenKind::Newline) => self.next(),
            _ => return self.unexpected("a newline or `;`"),
        };
        while self.peek_kind() == Some(TokenKind::Newline) {
            self.next();
        }
        match self.peek().cloned() {
            Some(token) if self.text(&token) == b"do" => self.next(),
            _ => return self.unexpected("`do`"),
        };
        let node = self.node(Kind::For, name, new_line);
        self.push(Open::For { node }, places + 7)
    }

    fn function_head(&mut self, new_line: bool, places: usize) -> Result<(), SyntaxError> {
        let name = self.name()?;
        while self.peek_kind() == Some(TokenKind::Newline) {
            self.next();
        }
        if self.peek_kind() != Some(TokenKind::BlockStart) {
            return self.unexpected("`{`");
        }
        self.next();
        let node = self.node(Kind::Function, name, new_line);
        self.push(Open::Function { node }, places + 5)
    }
}

fn shown(kind: TokenKind, text: &[u8]) -> String {
    match kind {
        TokenKind::Newline => String::from("a newline"),
        TokenKind::Bad if text.len() + 1 >= 8190 => {
            String::from("a word that is too long or never ends")
        }
        TokenKind::Bad if text.starts_with(b"$") => String::from("a lone `$`"),
        _ => {
            let head = text.split(|byte| *byte == b'\n').next().unwrap_or(text);
            let head = head.get(..40).unwrap_or(head);
            alloc::format!("`{}`", String::from_utf8_lossy(head))
        }
    }
}

pub(super) fn is_reserved(word: &[u8]) -> bool {
    matches!(
        word,
        b"case"
            | b"do"
            | b"done"
            | b"elif"
            | b"else"
            | b"esac"
            | b"fi"
            | b"for"
            | b"function"
            | b"if"
            | b"in"
            | b"select"
            | b"then"
            | b"until"
            | b"while"
    )
}
