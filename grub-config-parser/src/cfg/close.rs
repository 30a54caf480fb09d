//! Where constructs end.

use super::ast::{Kind, offset};
use super::error::SyntaxError;
use super::frames::Open;
use super::parse::Parser;

impl Parser<'_> {
    pub(super) fn close_block(&mut self) -> Result<(), SyntaxError> {
        let node = match self.frame.open {
            Open::Block { node } => node,
            Open::Function { node } if self.frame.delimited => node,
            _ => return self.unexpected("the end of the command"),
        };
        let brace = self.next().map_or(0, |token| token.span.start);
        if let Open::Block { node } = self.frame.open
            && let Some(text) = self.ast.nodes.get_mut(node as usize + 1)
        {
            text.link = offset(brace);
        }
        self.close(node);
        Ok(())
    }

    /// Handles `then`, `else`, `elif`, `fi`, `do` and `done` where they end a list. False if the word
    /// is none of them.
    pub(super) fn close_word(&mut self) -> Result<bool, SyntaxError> {
        let Some(token) = self.peeked.clone() else {
            return Ok(false);
        };
        let places = self.frame.places + 3;
        match (self.frame.open, self.text(&token)) {
            (Open::IfCondition { node, clause }, b"then") => {
                let clause = self.next_clause(clause, Kind::Clause);
                self.switch(Open::IfBody { node, clause }, places)?;
            }
            (Open::IfBody { node, clause }, b"elif") => {
                let clause = self.next_clause(clause, Kind::Clause);
                self.switch(Open::IfCondition { node, clause }, places)?;
            }
            (Open::IfBody { node, clause }, b"else") => {
                let clause = self.next_clause(clause, Kind::Else);
                self.switch(Open::Else { node, clause }, places)?;
            }
            (Open::IfBody { node, clause } | Open::Else { node, clause }, b"fi") => {
                self.link(clause);
                self.close(node);
            }
            (Open::WhileCondition { node, clause }, b"do") => {
                self.link(clause);
                self.switch(Open::WhileBody { node }, places)?;
            }
            (Open::For { node } | Open::WhileBody { node }, b"done") => self.close(node),
            _ => return Ok(false),
        }
        self.next();
        Ok(true)
    }

    /// Ends one clause and begins another one.
    fn next_clause(&mut self, clause: u32, kind: Kind) -> u32 {
        self.link(clause);
        self.node(kind, 0, false)
    }

    /// Ends a construct and returns to the list around it.
    fn close(&mut self, node: u32) {
        self.link(node);
        self.pop();
        self.frame.completed();
    }
}
