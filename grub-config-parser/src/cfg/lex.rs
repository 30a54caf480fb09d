//! The lexer: GRUB's `script/yylex.l`, every byte accounted for.
//!
//! GRUB lexes line by line and glues the next line on where a quote is open or a backslash ends the
//! line. Reading the whole text at once gives the same tokens, because `#` at the start of a token is
//! always a comment. Flex's buffer of 8192 bytes is a limit of the format: a longer token stops GRUB.

use core::ops::Range;

/// The size of flex's token buffer.
const TOKEN_BUFFER: usize = 8192;

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// Blanks, tabs, carriage returns, and what follows a NUL on its line.
    Blank,
    /// `#` to the end of the line.
    Comment,
    /// A newline outside quotes.
    Newline,
    /// `;`
    Semicolon,
    /// `{`
    BlockStart,
    /// `}`
    BlockEnd,
    /// A letter or `_`, then letters, digits or `_`; reserved words too.
    Name,
    /// Any other word, quotes and all.
    Word,
    /// What GRUB has no use for: `|`, `&`, `<`, `>`, `;;`, `[[`, `]]`, a lone `$`, an open quote.
    Bad,
}

/// One token: a kind and the bytes it stands on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: TokenKind,
    /// Its place in the source.
    pub span: Range<usize>,
}

/// Splits a script into tokens. The spans follow each other and cover the whole input.
pub fn tokens(source: &[u8]) -> impl Iterator<Item = Token> {
    let mut lexer = Lexer::new(source);
    core::iter::from_fn(move || lexer.next_token())
}

pub(super) struct Lexer<'a> {
    source: &'a [u8],
    at: usize,
    /// True if a `$` in double quotes was seen since this was last made false.
    pub(super) quoted_dollar: bool,
    /// True once a line that GRUB's own reader drops (it starts with `#`) was seen inside a word.
    pub(super) comment_in_word: bool,
}

/// So many blanks are skipped without a token for them.
const FEW_BLANKS: usize = 8;

const BLANK: u8 = 1;
/// What a word may hold without quotes.
const WORD: u8 = 2;
const NAME_START: u8 = 4;
const NAME: u8 = 8;

/// What each byte may be part of.
static CLASSES: [u8; 256] = classes();

#[allow(
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "256 bytes"
)]
const fn classes() -> [u8; 256] {
    let mut table = [WORD; 256];
    let mut index = 0;
    while index < 256 {
        table[index] = match index as u8 {
            b'{' | b'}' | b'|' | b'&' | b'$' | b';' | b'<' | b'>' | b'\n' | 0 => 0,
            b'\'' | b'"' | b'\\' => 0,
            b' ' | b'\t' | b'\r' => BLANK,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => WORD | NAME | NAME_START,
            b'0'..=b'9' => WORD | NAME,
            _ => WORD,
        };
        index += 1;
    }
    table
}

fn class(byte: u8) -> u8 {
    CLASSES.get(usize::from(byte)).copied().unwrap_or(0)
}

pub(super) fn is_name_start(byte: u8) -> bool {
    class(byte) & NAME_START != 0
}

pub(super) fn is_name_char(byte: u8) -> bool {
    class(byte) & NAME != 0
}

impl<'a> Lexer<'a> {
    pub(super) fn new(source: &'a [u8]) -> Self {
        Self {
            source,
            at: 0,
            quoted_dollar: false,
            comment_in_word: false,
        }
    }

    /// Goes to a place where a token begins.
    pub(super) fn seek(&mut self, at: usize) {
        self.at = at;
    }

    pub(super) fn position(&self) -> usize {
        self.at
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.source.get(at).copied()
    }

    fn skip_while(&self, at: usize, wanted: impl Fn(u8) -> bool) -> usize {
        let rest = self.source.get(at..).unwrap_or(&[]);
        at + rest
            .iter()
            .position(|byte| !wanted(*byte))
            .unwrap_or(rest.len())
    }

    fn skip_class(&self, at: usize, wanted: u8) -> usize {
        self.skip_while(at, |byte| class(byte) & wanted != 0)
    }

    /// The next token that is neither blank nor a comment.
    #[inline]
    pub(super) fn next_solid(&mut self) -> Option<Token> {
        // Most tokens are plain words behind a blank or a few tabs.
        let rest = self.source.get(self.at..).unwrap_or(&[]);
        let few = rest.iter().take(FEW_BLANKS);
        let blanks = few.take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        let start = self.at + blanks;
        if let Some(first) = rest.get(blanks)
            && class(*first) & WORD != 0
        {
            if *first != b'#'
                && let Ok((kind, end)) = self.plain_word(start)
            {
                self.at = end;
                return Some(Token {
                    kind,
                    span: start..end,
                });
            }
            self.at = start;
        }
        loop {
            let token = self.next_token()?;
            if !matches!(token.kind, TokenKind::Blank | TokenKind::Comment) {
                return Some(token);
            }
        }
    }

    pub(super) fn next_token(&mut self) -> Option<Token> {
        let start = self.at;
        let first = self.byte(start)?;
        let (kind, end) = match first {
            b'\n' => (TokenKind::Newline, start + 1),
            b' ' | b'\t' | b'\r' => self.blanks(start),
            // C strings end at a NUL, and with it GRUB's line.
            0 => (
                TokenKind::Blank,
                self.skip_while(start, |byte| byte != b'\n'),
            ),
            b'#' => self.comment(start),
            b';' if self.byte(start + 1) == Some(b';') => (TokenKind::Bad, start + 2),
            b';' => (TokenKind::Semicolon, start + 1),
            b'{' => (TokenKind::BlockStart, start + 1),
            b'}' => (TokenKind::BlockEnd, start + 1),
            b'|' | b'&' | b'<' | b'>' => (TokenKind::Bad, start + 1),
            _ => self.word(start),
        };
        self.at = end;
        Some(Token {
            kind,
            span: start..end,
        })
    }

    fn blanks(&self, start: usize) -> (TokenKind, usize) {
        let end = self.skip_class(start, BLANK);
        let kind = if end - start < TOKEN_BUFFER {
            TokenKind::Blank
        } else {
            TokenKind::Bad
        };
        (kind, end)
    }

    fn comment(&self, start: usize) -> (TokenKind, usize) {
        let end = self.skip_while(start, |byte| byte != b'\n');
        let mut length = end - start;
        if length + 2 >= TOKEN_BUFFER {
            let text = self.source.get(start..end).unwrap_or(&[]);
            length = text.iter().position(|byte| *byte == 0).unwrap_or(length);
        }
        // Flex also counts the newline that it looks ahead to and its own end mark.
        let kind = if length + 2 < TOKEN_BUFFER {
            TokenKind::Comment
        } else {
            TokenKind::Bad
        };
        (kind, end)
    }

    /// Reads a name or plain text, as most words are; or says where something else begins in it.
    #[inline]
    fn plain_word(&self, start: usize) -> Result<(TokenKind, usize), usize> {
        let rest = self.source.get(start..).unwrap_or(&[]);
        // What all of its bytes may be part of.
        let mut common = NAME | WORD;
        let mut end = start;
        for byte in rest {
            let own = class(*byte);
            if own & WORD == 0 {
                break;
            }
            common &= own;
            end += 1;
        }
        let ends = !matches!(self.byte(end), Some(b'\\' | b'"' | b'\'' | b'$'));
        if ends && end - start + 1 < TOKEN_BUFFER && end > start {
            let first = rest.first().copied().unwrap_or(0);
            if common & NAME != 0 && is_name_start(first) {
                return Ok((TokenKind::Name, end));
            }
            if !matches!(first, b'[' | b']') {
                return Ok((TokenKind::Word, end));
            }
        }
        Err(end)
    }

    fn word(&mut self, start: usize) -> (TokenKind, usize) {
        let plain_end = match self.plain_word(start) {
            Ok(found) => return found,
            Err(end) => end,
        };
        let mut at = plain_end;
        // An unquoted backslash may not join the last line with nothing.
        let mut joined_nothing = false;
        while let Some(byte) = self.byte(at) {
            let next = match byte {
                b'\\' => {
                    let end = self.escape(at);
                    joined_nothing = end.is_some_and(|end| {
                        end >= self.source.len() && self.byte(at + 1).unwrap_or(b'\n') == b'\n'
                    });
                    end
                }
                b'"' => self.double_quoted(at + 1),
                b'\'' => self.single_quoted(at + 1),
                b'$' => match self.dollar(at) {
                    Some(end) => Some(end),
                    None if at == start => return (TokenKind::Bad, start + 1),
                    None => break,
                },
                _ if class(byte) & WORD != 0 => Some(self.skip_class(at, WORD)),
                _ => break,
            };
            match next {
                Some(end) => at = end,
                // An open quote: nothing after it can be trusted.
                None => return (TokenKind::Bad, self.source.len()),
            }
        }
        let text = self.source.get(start..at).unwrap_or(&[]);
        if joined_nothing || !fits(text) || matches!(text, b"[[" | b"]]") {
            return (TokenKind::Bad, at);
        }
        (
            if is_name(text) {
                TokenKind::Name
            } else {
                TokenKind::Word
            },
            at,
        )
    }

    /// A backslash and what it escapes. At the end of the text it escapes the newline that GRUB adds.
    fn escape(&mut self, at: usize) -> Option<usize> {
        match self.byte(at + 1) {
            None => Some(at + 1),
            Some(byte) => {
                self.note_line(byte, at + 2);
                Some(at + 2)
            }
        }
    }

    fn note_line(&mut self, byte: u8, next: usize) {
        if byte == b'\n' && self.byte(next) == Some(b'#') {
            self.comment_in_word = true;
        }
    }

    fn double_quoted(&mut self, mut at: usize) -> Option<usize> {
        loop {
            let rest = self.source.get(at..)?;
            at += rest
                .iter()
                .position(|byte| matches!(byte, b'"' | b'\\' | b'\n' | b'$'))?;
            match self.byte(at)? {
                b'"' => return Some(at + 1),
                b'\\' => {
                    self.note_line(self.byte(at + 1)?, at + 2);
                    at += 2;
                }
                byte => {
                    at += 1;
                    self.quoted_dollar |= byte == b'$';
                    self.note_line(byte, at);
                }
            }
        }
    }

    fn single_quoted(&mut self, at: usize) -> Option<usize> {
        let rest = self.source.get(at..)?;
        let (mut length, mut newlines) = (0, false);
        for byte in rest {
            if *byte == b'\'' {
                break;
            }
            newlines |= *byte == b'\n';
            length += 1;
        }
        let text = rest.get(..length).filter(|_| length < rest.len())?;
        // Titles have no newlines.
        if newlines && text.windows(2).any(|pair| pair == b"\n#") {
            self.comment_in_word = true;
        }
        Some(at + length + 1)
    }

    /// `$name`, `${name}`, `$1`, `$?` and kin, or `$"text"`.
    fn dollar(&mut self, at: usize) -> Option<usize> {
        if self.byte(at + 1) == Some(b'"') {
            // An open `$"` ends the text like any open quote; `Bad` either way.
            return self.double_quoted(at + 2);
        }
        variable(self.source, at + 1).map(|(_, end)| end)
    }
}

/// The variable name that follows a `$` at `at - 1`: its place and where the reference ends.
pub(super) fn variable(source: &[u8], at: usize) -> Option<(Range<usize>, usize)> {
    let braced = source.get(at) == Some(&b'{');
    let start = at + usize::from(braced);
    let rest = source.get(start..)?;
    let first = *rest.first()?;
    let length = if is_name_start(first) {
        rest.iter().take_while(|byte| is_name_char(**byte)).count()
    } else if first.is_ascii_digit() {
        rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
    } else if matches!(first, b'?' | b'#' | b'*' | b'@') {
        1
    } else {
        return None;
    };
    let end = start + length;
    if braced && source.get(end) != Some(&b'}') {
        return None;
    }
    Some((start..end, end + usize::from(braced)))
}

fn is_name(text: &[u8]) -> bool {
    text.first().copied().is_some_and(is_name_start) && text.iter().copied().all(is_name_char)
}

/// True if flex's buffer holds the word. A newline at its end takes one byte more, and so does text
/// without any quoting, unless it is a name.
fn fits(text: &[u8]) -> bool {
    if text.len() + 1 < TOKEN_BUFFER {
        return true;
    }
    let plain = !text
        .iter()
        .any(|byte| matches!(byte, b'"' | b'\'' | b'$' | b'\\'));
    text.len() < TOKEN_BUFFER - usize::from(text.last() == Some(&b'\n') || plain && !is_name(text))
}
