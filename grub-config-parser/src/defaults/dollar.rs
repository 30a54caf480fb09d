//! What follows a `$`: parameters and their operators, and the starts of other substitutions.

use alloc::vec::Vec;

use super::lex::ParseError;
use super::parse::Parser;
use super::syntax::{Operator, Part};
use super::word_state::{Level, Open, Parts, Syntax, is_digit, is_name, is_name_start, is_special};

impl Parser<'_> {
    /// Behind a `$` at `start`. True if it begins quotes.
    pub(super) fn dollar(
        &mut self,
        levels: &mut Vec<Level>,
        parts: &mut Parts,
        start: usize,
    ) -> Result<bool, ParseError> {
        let joined = self.joined;
        let double = levels.last().is_some_and(|level| level.double);
        let mut c = self.get_joined();
        let starts = matches!(c, Some(b'(' | b'{')) || is_name_start(c) || is_special(c);
        if matches!(c, Some(b'\'' | b'"')) && self.is_bash() && !double {
            self.only_dash(self.joined != joined || !parts.open.is_empty())?;
            if c == Some(b'"') {
                self.unget(c);
            } else {
                self.escaped(parts, start)?;
            }
            return Ok(true);
        }
        self.only_dash(c == Some(b'[') || self.joined != joined)?;
        if self.here_mark || !starts {
            let quoted = double
                || levels
                    .last()
                    .is_some_and(|level| level.syntax != Syntax::Base);
            self.unget(c);
            parts.text(b'$', start..start + 1, quoted);
            return Ok(false);
        }
        if parts.open.len() >= super::parse::DEPTH {
            return Err(self.error("expansions nest too deep"));
        }
        if c == Some(b'(') {
            let next = self.get_joined();
            if next == Some(b'(') {
                self.only_dash(self.is_bash() && !self.only_numbers())?;
                levels.push(Level::new(Syntax::Arithmetic));
                parts.start(Open::Arithmetic, start);
            } else {
                self.unget(next);
                self.new_command()?;
                parts.push(Part::Command { quoted: double });
            }
            return Ok(false);
        }
        let braced = c == Some(b'{');
        if braced {
            c = self.get_joined();
        }
        let (name, operator, base) = self.parameter(c, braced);
        self.only_dash(self.joined != joined)?;
        let Some(level) = levels.last_mut() else {
            return Ok(false);
        };
        let syntax = match level.syntax {
            _ if base => Syntax::Base,
            Syntax::Arithmetic => Syntax::Double,
            other => other,
        };
        let simple = operator == Some(Operator::Normal);
        let quoted = level.double;
        let operator = match operator {
            None if self.is_bash() => {
                self.only_dash(!self.changes_text(&name))?;
                Operator::Other
            }
            None => Operator::Bad,
            // `${X:}`
            Some(Operator::Other)
                if self.text.get(..self.at).is_some_and(|t| t.ends_with(b":}")) =>
            {
                self.only_dash(true)?;
                Operator::Other
            }
            Some(operator) => operator,
        };
        if simple {
            let span = start..self.at;
            parts.push(Part::Parameter {
                name,
                operator,
                word: Vec::new(),
                quoted,
                span,
            });
            return Ok(false);
        }
        if syntax != level.syntax || level.inner_double {
            let mut level = Level::new(syntax);
            level.pushed = true;
            level.double = syntax != Syntax::Base;
            levels.push(level);
        }
        if let Some(level) = levels.last_mut() {
            level.variables += 1;
            level.double_variables += u32::from(level.double);
        }
        parts.start(
            Open::Parameter {
                name,
                operator,
                quoted,
            },
            start,
        );
        Ok(false)
    }

    /// Behind `$((`: true if there are no names up to the end. In bash a name's value is an expression of its
    /// own, which can assign.
    fn only_numbers(&self) -> bool {
        let rest = self.text.get(self.at..).unwrap_or(&[]);
        let end = rest.windows(2).position(|pair| pair == b"))");
        let text = end.and_then(|end| rest.get(..end));
        text.is_some_and(|text| {
            let names = |byte: &u8| byte.is_ascii_alphabetic() || b"_$`[{".contains(byte);
            !text.iter().any(names)
        })
    }

    /// bash's `$'...'`, behind its first quote.
    fn escaped(&mut self, parts: &mut Parts, start: usize) -> Result<(), ParseError> {
        let mut text = Vec::new();
        loop {
            let byte = self.get();
            match byte {
                None => {
                    return Err(ParseError {
                        certain: self.nested == 0,
                        ..self.error("a quoted string does not end")
                    });
                }
                Some(b'\'') => break,
                Some(b'\\') => {
                    let byte = self.escape();
                    // These bytes are marks inside bash.
                    self.only_dash(matches!(byte, None | Some(0 | 1 | 0x7f)))?;
                    text.extend(byte);
                }
                Some(byte) => text.push(byte),
            }
        }
        parts.push(Part::Text {
            text,
            span: start..self.at,
            quoted: true,
            exact: false,
        });
        Ok(())
    }

    /// What stands behind a backslash in `$'...'`: `None` for what is not followed.
    fn escape(&mut self) -> Option<u8> {
        let digits = |parser: &mut Self, most: usize, base: u32| {
            let rest = parser.text.get(parser.at..).unwrap_or(&[]);
            let digits = rest.iter().take(most);
            let count = digits
                .take_while(|b| char::from(**b).is_digit(base))
                .count();
            let text = rest.get(..count).unwrap_or(&[]);
            parser.at += count;
            u8::from_str_radix(core::str::from_utf8(text).ok()?, base).ok()
        };
        Some(match self.get()? {
            byte @ (b'\\' | b'\'' | b'"' | b'?') => byte,
            b'a' => 7,
            b'b' => 8,
            b't' => b'\t',
            b'n' => b'\n',
            b'v' => 11,
            b'f' => 12,
            b'r' => b'\r',
            b'e' | b'E' => 27,
            b'x' => return digits(self, 2, 16),
            b'0'..=b'7' => {
                self.at -= 1;
                return digits(self, 3, 8);
            }
            _ => return None,
        })
    }

    /// Behind a parameter's name, where dash knows no operator: true for those of bash that can only make
    /// a text of a text.
    fn changes_text(&self, name: &[u8]) -> bool {
        // Behind a colon, the byte that is no operator has been read.
        let colon = self.at.checked_sub(2).and_then(|at| self.text.get(at)) == Some(&b':');
        let start = self.at - usize::from(colon);
        let behind = self.text.get(start..).unwrap_or(&[]);
        let Some(end) = behind.iter().position(|byte| *byte == b'}') else {
            return false;
        };
        let word = behind.get(..end).unwrap_or(&[]);
        let number = |text: &[u8]| {
            let digits = (1..6).contains(&text.len()) && text.iter().all(u8::is_ascii_digit);
            digits && (text.len() == 1 || text.first() != Some(&b'0'))
        };
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/^,._ :".contains(byte);
        super::parse::is_name(name)
            && match self.text.get(start - 1) {
                Some(b':') => {
                    word.split(|byte| *byte == b':').all(number)
                        && word.split(|byte| *byte == b':').count() <= 2
                }
                Some(b'/' | b'^' | b',') => word.iter().all(plain),
                _ => false,
            }
    }

    /// Reads a parameter's name and operator, `c` being its first character. The operator is `None`
    /// where dash finds none; the last value tells if a pattern follows.
    fn parameter(&mut self, first: Option<u8>, braced: bool) -> (Vec<u8>, Option<Operator>, bool) {
        let mut c = first;
        let mut name = Vec::new();
        let mut length = false;
        loop {
            if is_name_start(c) {
                while let Some(byte) = c.filter(|_| is_name(c)) {
                    name.push(byte);
                    c = self.get_joined();
                }
            } else if is_digit(c) {
                while let Some(byte) = c.filter(|_| is_digit(c)) {
                    name.push(byte);
                    c = self.get_joined();
                    if !braced {
                        break;
                    }
                }
            } else if c == Some(b'}') {
                self.unget(c);
                return (name, None, false);
            } else {
                let mut special = c;
                c = self.get_joined();
                if braced && !length && special == Some(b'#') {
                    length = true;
                    if is_name(c) {
                        continue;
                    }
                    special = c;
                    c = self.get_joined();
                    if special == Some(b'}') || c != Some(b'}') {
                        self.unget(c);
                        length = false;
                        c = special;
                        special = Some(b'#');
                    }
                }
                if !is_special(special) {
                    self.unget(c);
                    return (name, None, false);
                }
                name.extend(special);
            }
            break;
        }
        if !braced {
            self.unget(c);
            return (name, Some(Operator::Normal), false);
        }
        if length {
            self.unget(c);
            let operator = (c == Some(b'}')).then_some(Operator::Other);
            return (name, operator, false);
        }
        let colon = c == Some(b':');
        if colon {
            c = self.get_joined();
        }
        let operator = match c {
            Some(b'}') if !colon => Some(Operator::Normal),
            Some(b'}') => Some(Operator::Other),
            Some(b'-') => Some(Operator::Minus { colon }),
            Some(b'+') => Some(Operator::Plus { colon }),
            Some(b'=') => Some(Operator::Assign { colon }),
            Some(b'?') => Some(Operator::Question { colon }),
            Some(b'%' | b'#') if !colon => {
                let next = self.get_joined();
                if next != c {
                    self.unget(next);
                }
                return (name, Some(Operator::Other), true);
            }
            _ => None,
        };
        (name, operator, false)
    }
}
