//! Where constructs end.

use super::ast::{Block, Kind, Slice};
use super::error::SyntaxError;
use super::frames::Open;
use super::parse::{Parser, offset};

impl Parser<'_> {
    pub(super) fn close_block(&mut self) -> Result<(), SyntaxError> {
        let complete = match self.frame.open {
            Open::Block { .. } => true,
            Open::Function { .. } => self.frame.delimited,
            _ => false,
        };
        if !complete {
            return self.unexpected("the end of the command");
        }
        let brace = self.next().map_or(0, |token| token.span.start);
        let list = self.take_list();
        match self.pop() {
            Open::Block {
                words,
                new_line,
                text_start,
            } => {
                let span = Slice {
                    start: text_start,
                    end: offset(brace),
                };
                let block = Some(Block { list, span });
                self.add(Kind::Command { words, block }, new_line);
            }
            Open::Function { name, new_line } => {
                self.add(Kind::Function { name, body: list }, new_line);
            }
            _ => {}
        }
        Ok(())
    }

    /// Handles `then`, `else`, `elif`, `fi`, `do` and `done` where they end a list. False if the word
    /// is none of them.
    pub(super) fn close_word(&mut self) -> Result<bool, SyntaxError> {
        let Some(token) = self.peeked.clone() else {
            return Ok(false);
        };
        let places = self.frame.places;
        let word = self.text(&token);
        let fits = matches!(
            (&self.frame.open, word),
            (Open::IfCondition { .. }, b"then")
                | (Open::IfBody { .. }, b"elif" | b"else" | b"fi")
                | (Open::Else { .. }, b"fi")
                | (Open::WhileCondition { .. }, b"do")
                | (Open::For { .. } | Open::WhileBody { .. }, b"done")
        );
        if !fits {
            return Ok(false);
        }
        self.next();
        let list = self.take_list();
        let open = core::mem::replace(&mut self.frame.open, Open::Top);
        match open {
            Open::IfCondition { new_line, done } => {
                self.switch(
                    Open::IfBody {
                        new_line,
                        done,
                        condition: list,
                    },
                    places + 3,
                )?;
            }
            Open::IfBody {
                new_line,
                mut done,
                condition,
            } => {
                done.push((condition, list));
                match word {
                    b"elif" => {
                        self.switch(Open::IfCondition { new_line, done }, places + 3)?;
                    }
                    b"else" => self.switch(Open::Else { new_line, done }, places + 3)?,
                    _ => self.close_if(new_line, &done, Slice::default()),
                }
            }
            Open::Else { new_line, done } => self.close_if(new_line, &done, list),
            Open::WhileCondition { new_line, until } => {
                let open = Open::WhileBody {
                    new_line,
                    until,
                    condition: list,
                };
                self.switch(open, places + 3)?;
            }
            Open::WhileBody {
                new_line,
                until,
                condition,
            } => {
                self.pop();
                self.add(
                    Kind::While {
                        condition,
                        body: list,
                        until,
                    },
                    new_line,
                );
            }
            Open::For {
                new_line,
                name,
                words,
            } => {
                self.pop();
                self.add(
                    Kind::For {
                        name,
                        words,
                        body: list,
                    },
                    new_line,
                );
            }
            _ => {}
        }
        Ok(true)
    }

    fn close_if(&mut self, new_line: bool, done: &[(Slice, Slice)], otherwise: Slice) {
        let first = offset(self.ast.branches.len());
        self.ast.branches.extend_from_slice(done);
        let branches = Slice {
            start: first,
            end: offset(self.ast.branches.len()),
        };
        self.pop();
        self.add(
            Kind::If {
                branches,
                otherwise,
            },
            new_line,
        );
    }
}
