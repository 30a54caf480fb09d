//! GRUB's script language, as much of it as `grub-mkconfig` and people use (GNU GRUB Manual, "Writing
//! full configuration files directly"): words with both kinds of quotes, variables, `if`, `function`, blocks.

use std::rc::Rc;

/// Why a script could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct SyntaxError {
    /// From 1.
    pub line: usize,
    /// What was wrong.
    pub what: String,
}

/// A piece of a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    Text(String),
    /// An unquoted variable is split at blanks, a quoted one is not.
    Var {
        name: String,
        quoted: bool,
    },
}

/// A word before its variables are replaced. A quoted word stays an argument even when it is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) parts: Vec<Part>,
    pub(super) quoted: bool,
}

impl Word {
    /// The text of a word that is one bare piece: a keyword can only be that.
    fn bare(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [Part::Text(text)] if !self.quoted => Some(text),
            _ => None,
        }
    }
}

pub(super) type Block = Rc<[Statement]>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Statement {
    /// A command, with its block if it has one: `menuentry 'x' { ... }`.
    Command {
        words: Vec<Word>,
        block: Option<Block>,
    },
    /// Condition and body of each arm; the last `else` has the condition `None`.
    If(Vec<(Option<Block>, Block)>),
    Function {
        name: String,
        body: Block,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Word(Word),
    End,
    Open,
    Close,
}

/// Whether `text` is a script at all: what `grub-script-check` says.
pub fn check(text: &str) -> Result<(), SyntaxError> {
    parse(text).map(drop)
}

/// Reads a whole file.
pub(super) fn parse(text: &str) -> Result<Block, SyntaxError> {
    let tokens = tokens(text)?;
    let mut parser = Parser {
        tokens: &tokens,
        at: 0,
    };
    let block = parser.statements(&[])?;
    match parser.peek() {
        None => Ok(block),
        Some(_) => Err(parser.error("a closing brace or keyword without its beginning")),
    }
}

struct Parser<'a> {
    tokens: &'a [(usize, Token)],
    at: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|(_, token)| token)
    }

    fn error(&self, what: &str) -> SyntaxError {
        let line = self
            .tokens
            .get(self.at)
            .or(self.tokens.last())
            .map_or(1, |(line, _)| *line);
        SyntaxError {
            line,
            what: what.to_owned(),
        }
    }

    fn keyword(&self) -> Option<&str> {
        match self.peek() {
            Some(Token::Word(word)) => word.bare(),
            _ => None,
        }
    }

    /// Statements up to a closing brace, the end, or one of `ends`, none of which is taken.
    fn statements(&mut self, ends: &[&str]) -> Result<Block, SyntaxError> {
        let mut all = Vec::new();
        loop {
            match self.peek() {
                None | Some(Token::Close) => break,
                Some(Token::End) => self.at += 1,
                Some(Token::Open) => return Err(self.error("an opening brace without a command")),
                Some(Token::Word(_)) => match self.keyword() {
                    Some(word) if ends.contains(&word) => break,
                    Some("if") => all.push(self.condition()?),
                    Some("function") => all.push(self.function()?),
                    Some(word @ ("for" | "while" | "until" | "then" | "fi" | "else" | "elif")) => {
                        let what = format!("`{word}` is not understood here");
                        return Err(self.error(&what));
                    }
                    _ => all.push(self.command()?),
                },
            }
        }
        Ok(all.into())
    }

    fn expect(&mut self, keyword: &str) -> Result<(), SyntaxError> {
        if self.keyword() == Some(keyword) {
            self.at += 1;
            return Ok(());
        }
        Err(self.error(&format!("expected `{keyword}`")))
    }

    fn condition(&mut self) -> Result<Statement, SyntaxError> {
        self.expect("if")?;
        let mut arms = Vec::new();
        loop {
            let condition = self.statements(&["then"])?;
            self.expect("then")?;
            let body = self.statements(&["elif", "else", "fi"])?;
            arms.push((Some(condition), body));
            match self.keyword() {
                Some("elif") => self.at += 1,
                Some("else") => {
                    self.at += 1;
                    arms.push((None, self.statements(&["fi"])?));
                    break;
                }
                _ => break,
            }
        }
        self.expect("fi")?;
        Ok(Statement::If(arms))
    }

    fn function(&mut self) -> Result<Statement, SyntaxError> {
        self.expect("function")?;
        let Some(name) = self.keyword().map(str::to_owned) else {
            return Err(self.error("a function needs a name"));
        };
        self.at += 1;
        Ok(Statement::Function {
            name,
            body: self.block()?,
        })
    }

    fn block(&mut self) -> Result<Block, SyntaxError> {
        while self.peek() == Some(&Token::End) {
            self.at += 1;
        }
        if self.peek() != Some(&Token::Open) {
            return Err(self.error("expected `{`"));
        }
        self.at += 1;
        let block = self.statements(&[])?;
        if self.peek() != Some(&Token::Close) {
            return Err(self.error("a block is not closed"));
        }
        self.at += 1;
        Ok(block)
    }

    fn command(&mut self) -> Result<Statement, SyntaxError> {
        let mut words = Vec::new();
        while let Some(Token::Word(word)) = self.peek() {
            words.push(word.clone());
            self.at += 1;
        }
        let block = match self.peek() {
            Some(Token::Open) => Some(self.block()?),
            _ => None,
        };
        Ok(Statement::Command { words, block })
    }
}

fn tokens(text: &str) -> Result<Vec<(usize, Token)>, SyntaxError> {
    let mut all = Vec::new();
    let mut chars = text.chars().peekable();
    let mut line = 1;
    while let Some(&next) = chars.peek() {
        match next {
            '\n' | ';' => {
                chars.next();
                all.push((line, Token::End));
                line += usize::from(next == '\n');
            }
            ' ' | '\t' | '\r' => drop(chars.next()),
            '#' => while chars.next_if(|c| *c != '\n').is_some() {},
            _ => {
                let start = line;
                let word = word(&mut chars, &mut line)?;
                let token = match word.bare() {
                    Some("{") => Token::Open,
                    Some("}") => Token::Close,
                    // only a backslash and a line break
                    Some("") => continue,
                    _ => Token::Word(word),
                };
                all.push((start, token));
            }
        }
    }
    Ok(all)
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn word(chars: &mut Chars<'_>, line: &mut usize) -> Result<Word, SyntaxError> {
    let mut word = Word::default();
    let mut text = String::new();
    // which quotes are open
    let mut quote = None;
    while let Some(&next) = chars.peek() {
        match (quote, next) {
            (None, ' ' | '\t' | '\r' | '\n' | ';') => break,
            (None, '\'' | '"') => {
                quote = Some(next);
                word.quoted = true;
                chars.next();
            }
            (Some(open), _) if open == next => {
                quote = None;
                chars.next();
            }
            (None | Some('"'), '\\') => {
                chars.next();
                let escaped = chars.next().unwrap_or('\\');
                *line += usize::from(escaped == '\n');
                match (quote, escaped) {
                    // the line goes on
                    (_, '\n') => {}
                    // inside double quotes a backslash hides only these
                    (Some(_), c) if !"$\"\\".contains(c) => text.extend(['\\', c]),
                    (_, c) => text.push(c),
                }
            }
            (None | Some('"'), '$') => {
                chars.next();
                match variable(chars) {
                    Some(name) => {
                        if !text.is_empty() {
                            word.parts.push(Part::Text(std::mem::take(&mut text)));
                        }
                        word.parts.push(Part::Var {
                            name,
                            quoted: quote.is_some(),
                        });
                    }
                    None => text.push('$'),
                }
            }
            (_, c) => {
                *line += usize::from(c == '\n');
                text.push(c);
                chars.next();
            }
        }
    }
    if quote.is_some() {
        return Err(SyntaxError {
            line: *line,
            what: "a quote is not closed".into(),
        });
    }
    if !text.is_empty() || word.parts.is_empty() {
        word.parts.push(Part::Text(text));
    }
    Ok(word)
}

/// The name after a dollar sign, or nothing if it is a dollar sign and no more.
fn variable(chars: &mut Chars<'_>) -> Option<String> {
    let mut name = String::new();
    if chars.next_if_eq(&'{').is_some() {
        while let Some(c) = chars.next_if(|c| *c != '}') {
            name.push(c);
        }
        chars.next();
        return Some(name);
    }
    if let Some(c) = chars.next_if(|c| "?#@*".contains(*c)) {
        return Some(c.into());
    }
    while let Some(c) = chars.next_if(|c| c.is_ascii_alphanumeric() || *c == '_') {
        name.push(c);
    }
    (!name.is_empty()).then_some(name)
}
