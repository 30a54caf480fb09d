//! Tokens to commands: dash's grammar (`parser.c`).

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::keywords::{ends_list, keyword, never_fits};
use super::lex::{ParseError, Tok};
use super::nested::Here;
use super::syntax::{Command, Redirects, Simple, Word};
use super::{Shell, Token, TokenKind};
use crate::lines::Lines;

/// How deep commands may nest. dash has no bound but its stack.
pub(super) const DEPTH: usize = 80;

/// A command that dash reads as one and then runs.
#[derive(Debug, Clone)]
pub(super) struct Unit {
    pub(super) command: Command,
    pub(super) line: usize,
}

/// How many commands, words and pieces of words one command of the outermost level may have. A shell reads
/// and forgets one such command after the other, and so does this crate: the bound is on its memory. No
/// real file has a tenth of it.
const MOST_NODES: usize = 2000;

/// What to look for when the next token is read.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Look {
    pub(super) newlines: bool,
    keywords: bool,
}

pub(super) struct Parser<'a> {
    pub(super) text: &'a [u8],
    pub(super) at: usize,
    pub(super) shell: Shell,
    /// How many lines have been joined.
    pub(super) joined: usize,
    /// The line of the text's first byte.
    pub(super) first_line: usize,
    pub(super) lines: Lines<'a>,
    pub(super) token_start: usize,
    pub(super) word: Word,
    /// For `<<`: whether leading tabs go.
    pub(super) redirect_here: Option<bool>,
    /// True while the word behind `<<` is read: nothing is expanded there.
    pub(super) here_mark: bool,
    pub(super) here_documents: Vec<Here>,
    pub(super) pushed_back: bool,
    pub(super) last: Tok,
    pub(super) depth: usize,
    /// Tokens of the outermost level, where somebody wants them.
    pub(super) tokens: Option<Vec<Token>>,
    /// Nodes of the command that is being read.
    nodes: usize,
    pub(super) nested: usize,
}

/// The commands of a text, one after the other, up to its end or the first error.
pub(super) struct Units<'a> {
    parser: Parser<'a>,
    over: bool,
}

impl<'a> Units<'a> {
    pub(super) fn new(text: &'a [u8], first_line: usize, depth: usize, shell: Shell) -> Self {
        Self {
            parser: Parser::new(text, first_line, depth, shell),
            over: false,
        }
    }
}

impl Iterator for Units<'_> {
    type Item = Result<Unit, ParseError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.over {
            match self.parser.unit() {
                Ok(Some(Some(unit))) => return Some(Ok(unit)),
                Ok(Some(None)) => {}
                Ok(None) => self.over = true,
                Err(error) => {
                    self.over = true;
                    return Some(Err(error));
                }
            }
        }
        None
    }
}

/// The tokens of a text, up to its end or the first error.
pub(super) fn tokens(text: &[u8], shell: Shell) -> Vec<Token> {
    let mut units = Units::new(text, 1, 0, shell);
    units.parser.tokens = Some(Vec::new());
    while let Some(Ok(_)) = units.next() {}
    units.parser.tokens.unwrap_or_default()
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a [u8], first_line: usize, depth: usize, shell: Shell) -> Self {
        Self {
            text,
            at: 0,
            shell,
            joined: 0,
            first_line,
            lines: Lines::new(text),
            token_start: 0,
            word: Word::default(),
            redirect_here: None,
            here_mark: false,
            here_documents: Vec::new(),
            pushed_back: false,
            last: Tok::Newline,
            depth,
            tokens: None,
            nodes: 0,
            nested: 0,
        }
    }

    pub(super) fn line_at(&self, at: usize) -> usize {
        self.first_line - 1 + self.lines.line(at)
    }

    pub(super) fn line(&self) -> usize {
        self.line_at(self.at)
    }

    fn token_line(&self) -> usize {
        self.line_at(self.token_start)
    }

    pub(super) fn note(&mut self, kind: TokenKind, start: usize) {
        if self.nested == 0
            && let Some(tokens) = &mut self.tokens
        {
            tokens.push(Token {
                kind,
                span: start..self.at,
            });
        }
    }

    /// Counts what has been read of a command.
    pub(super) fn count(&mut self, nodes: usize) -> Result<(), ParseError> {
        self.nodes += nodes;
        self.fits(0)
    }

    /// An error if so many more would be too many.
    pub(super) fn fits(&self, more: usize) -> Result<(), ParseError> {
        if self.nodes + more > MOST_NODES {
            return Err(self.error("a command with more in it than any real one has"));
        }
        Ok(())
    }

    pub(super) fn unexpected<T>(&self) -> Result<T, ParseError> {
        let line = self.token_line();
        let message = match self.last {
            Tok::Eof => "the file ends inside a command",
            Tok::Newline => "a newline inside a command",
            _ => "a word or sign that fits nothing here",
        };
        Err(ParseError {
            line,
            message: message.into(),
            certain: self.nested == 0 && never_fits(self.last),
        })
    }

    pub(super) fn token(&mut self, look: Look) -> Result<Tok, ParseError> {
        if self.pushed_back {
            self.pushed_back = false;
        } else {
            self.last = self.raw_token()?;
        }
        if look.newlines {
            while self.last == Tok::Newline {
                self.last = self.raw_token()?;
            }
        }
        if look.keywords
            && self.last == Tok::Word
            && !self.word.quoted
            && let Some(keyword) = self.word.literal().and_then(|text| keyword(&text))
        {
            self.last = keyword;
        }
        Ok(self.last)
    }

    pub(super) fn plain(&mut self) -> Result<Tok, ParseError> {
        self.token(Look::default())
    }

    pub(super) fn push_back(&mut self) {
        self.pushed_back = true;
    }

    pub(super) fn expect(&mut self, wanted: Tok, look: Look) -> Result<(), ParseError> {
        if self.token(look)? == wanted {
            Ok(())
        } else {
            self.unexpected()
        }
    }

    /// One complete command of the outermost level: `None` at the end of the file, `Some(None)` for
    /// an empty line.
    #[allow(clippy::option_option, reason = "end, nothing, something")]
    fn unit(&mut self) -> Result<Option<Option<Unit>>, ParseError> {
        let mut commands = Vec::new();
        let mut line = 0;
        self.nodes = 0;
        loop {
            let tok = self.token(KEYWORDS)?;
            match tok {
                Tok::Newline | Tok::Eof if !commands.is_empty() => {
                    if tok == Tok::Eof {
                        self.push_back();
                    }
                    let command = list_of(commands);
                    return Ok(Some(Some(Unit { command, line })));
                }
                Tok::Newline => return Ok(Some(None)),
                Tok::Eof => return Ok(None),
                _ => self.push_back(),
            }
            if commands.is_empty() {
                line = self.token_line();
            }
            let command = self.chain(KEYWORDS)?;
            match self.plain()? {
                Tok::Background => commands.push(Command::Background(Arc::new(command))),
                Tok::Semicolon => commands.push(command),
                Tok::Newline | Tok::Eof => {
                    commands.push(command);
                    self.push_back();
                }
                _ => return self.unexpected(),
            }
        }
    }

    /// A list inside a construct, up to a token that ends one, which stays. `empty`: there may be no
    /// command at all.
    pub(super) fn list(&mut self, empty: bool) -> Result<Command, ParseError> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(self.error("commands nest too deep"));
        }
        let mut commands = Vec::new();
        loop {
            let tok = self.token(NEWLINES)?;
            self.push_back();
            if tok == Tok::Eof || (empty || !commands.is_empty()) && ends_list(tok) {
                break;
            }
            let command = self.chain(NEWLINES)?;
            match self.plain()? {
                Tok::Background => commands.push(Command::Background(Arc::new(command))),
                Tok::Semicolon => commands.push(command),
                Tok::Newline => {
                    commands.push(command);
                    self.push_back();
                }
                _ => {
                    commands.push(command);
                    self.push_back();
                    break;
                }
            }
        }
        self.depth -= 1;
        if commands.is_empty() && !empty {
            return self.unexpected();
        }
        Ok(list_of(commands))
    }

    fn chain(&mut self, look: Look) -> Result<Command, ParseError> {
        let first = self.pipeline(look)?;
        let mut rest = Vec::new();
        loop {
            let and = match self.plain()? {
                Tok::And => true,
                Tok::Or => false,
                _ => {
                    self.push_back();
                    break;
                }
            };
            rest.push((and, self.pipeline(NEWLINES)?));
        }
        Ok(if rest.is_empty() {
            first
        } else {
            Command::Chain {
                first: Arc::new(first),
                rest,
            }
        })
    }

    fn pipeline(&mut self, look: Look) -> Result<Command, ParseError> {
        let negated = self.token(look)? == Tok::Not;
        let mut next = look;
        if negated {
            next = KEYWORDS;
        } else {
            self.push_back();
        }
        // The line of the pipeline is that of its first command.
        let tok = self.token(next)?;
        // To bash a `!` alone is a command.
        self.only_dash(negated && (tok == Tok::Newline || never_fits(tok)))?;
        self.push_back();
        let line = self.token_line();
        let first = self.command(next)?;
        let mut commands = alloc::vec![first];
        while self.plain()? == Tok::Pipe {
            commands.push(self.command(NEWLINES)?);
        }
        self.push_back();
        let command = match commands.pop() {
            Some(only) if commands.is_empty() => only,
            last => {
                commands.extend(last);
                Command::Pipeline { commands, line }
            }
        };
        Ok(if negated {
            Command::Not(Arc::new(command))
        } else {
            command
        })
    }

    fn command(&mut self, look: Look) -> Result<Command, ParseError> {
        self.count(1)?;
        let tok = self.token(look)?;
        let line = self.token_line();
        let command = match tok {
            Tok::If => self.if_command()?,
            Tok::While | Tok::Until => {
                let condition = Arc::new(self.list(false)?);
                self.expect(Tok::Do, KEYWORDS)?;
                let body = Arc::new(self.list(false)?);
                self.expect(Tok::Done, KEYWORDS)?;
                Command::While {
                    condition,
                    body,
                    until: tok == Tok::Until,
                }
            }
            Tok::For => self.for_command()?,
            Tok::Case => self.case_command()?,
            Tok::Open => {
                let body = Arc::new(self.list(false)?);
                self.expect(Tok::Close, KEYWORDS)?;
                let redirects = self.redirects()?;
                return Ok(Command::Subshell {
                    body,
                    redirects,
                    line,
                });
            }
            Tok::Begin => {
                let body = self.list(false)?;
                self.expect(Tok::End, KEYWORDS)?;
                body
            }
            Tok::Word | Tok::Redirect => {
                self.push_back();
                return self.simple();
            }
            _ => return self.unexpected(),
        };
        let redirects = self.redirects()?;
        if redirects.is_empty() {
            return Ok(command);
        }
        Ok(Command::Redirected {
            command: Arc::new(command),
            redirects,
        })
    }

    fn redirects(&mut self) -> Result<Redirects, ParseError> {
        let mut redirects = Vec::new();
        while self.token(KEYWORDS)? == Tok::Redirect {
            redirects.push(self.redirect_target()?);
        }
        self.push_back();
        Ok(redirects)
    }

    fn redirect_target(&mut self) -> Result<Word, ParseError> {
        let here = self.redirect_here.take();
        self.here_mark = here.is_some();
        let tok = self.plain();
        self.here_mark = false;
        if tok? != Tok::Word {
            return self.unexpected();
        }
        if let Some(strip) = here {
            let mark = self.word.literal().unwrap_or_default();
            self.here_documents.push(Here {
                mark,
                quoted: self.word.quoted,
                strip,
            });
            return Ok(Word::default());
        }
        Ok(core::mem::take(&mut self.word))
    }

    fn simple(&mut self) -> Result<Command, ParseError> {
        let mut simple = Simple {
            assignments: Vec::new(),
            words: Vec::new(),
            redirects: Vec::new(),
            line: self.token_line(),
        };
        loop {
            match self.plain()? {
                Tok::Word => {
                    let word = core::mem::take(&mut self.word);
                    if simple.words.is_empty() && word.assigned_name().is_some() {
                        simple.assignments.push(word);
                    } else {
                        simple.words.push(word);
                    }
                }
                Tok::Redirect => simple.redirects.push(self.redirect_target()?),
                Tok::Open
                    if simple.words.len() == 1
                        && simple.assignments.is_empty()
                        && simple.redirects.is_empty() =>
                {
                    self.expect(Tok::Close, Look::default())?;
                    let name = simple.words.first().filter(|word| !word.quoted);
                    let name = name
                        .and_then(Word::literal)
                        .filter(|name| is_name(name) && !super::builtin::is_special_builtin(name));
                    let Some(name) = name else {
                        return Err(self.error("a bad function name"));
                    };
                    self.depth += 1;
                    if self.depth > DEPTH {
                        return Err(self.error("commands nest too deep"));
                    }
                    let before = self.nodes;
                    let body = Arc::new(self.command(NEWLINES)?);
                    self.only_dash(matches!(*body, Command::Simple(_)))?;
                    self.depth -= 1;
                    let nodes = self.nodes.saturating_sub(before);
                    return Ok(Command::Function { name, body, nodes });
                }
                _ => {
                    self.push_back();
                    return Ok(Command::Simple(simple));
                }
            }
        }
    }
}

pub(super) const KEYWORDS: Look = Look {
    newlines: false,
    keywords: true,
};
pub(super) const NEWLINES: Look = Look {
    newlines: true,
    keywords: true,
};

fn list_of(mut commands: Vec<Command>) -> Command {
    match commands.pop() {
        Some(only) if commands.is_empty() => only,
        last => {
            commands.extend(last);
            Command::List(commands)
        }
    }
}

pub(super) fn is_name(text: &[u8]) -> bool {
    text.first()
        .is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_')
        && text
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}
