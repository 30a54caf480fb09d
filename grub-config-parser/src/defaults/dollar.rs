//! What follows a `$`: parameters and their operators, and the starts of other substitutions.

use alloc::vec::Vec;

use super::lex::ParseError;
use super::parse::Parser;
use super::syntax::{Operator, Part};
use super::word_state::{Level, Open, Parts, Syntax, is_digit, is_name, is_name_start, is_special};

impl Parser<'_> {
    /// Behind a `$` at `start`.
    pub(super) fn dollar(
        &mut self,
        levels: &mut Vec<Level>,
        parts: &mut Parts,
        start: usize,
    ) -> Result<(), ParseError> {
        let double = levels.last().is_some_and(|level| level.double);
        let mut c = self.get_joined();
        let starts = matches!(c, Some(b'(' | b'{')) || is_name_start(c) || is_special(c);
        if self.here_mark || !starts {
            let quoted = double
                || levels
                    .last()
                    .is_some_and(|level| level.syntax != Syntax::Base);
            self.unget(c);
            parts.text(b'$', start..start + 1, quoted);
            return Ok(());
        }
        if parts.open.len() >= super::parse::DEPTH {
            return Err(self.error("expansions nest too deep"));
        }
        if c == Some(b'(') {
            let next = self.get_joined();
            if next == Some(b'(') {
                levels.push(Level::new(Syntax::Arithmetic));
                parts.start(Open::Arithmetic, start);
            } else {
                self.unget(next);
                self.new_command()?;
                parts.push(Part::Command { quoted: double });
            }
            return Ok(());
        }
        let braced = c == Some(b'{');
        if braced {
            c = self.get_joined();
        }
        let (name, operator, base) = self.parameter(c, braced);
        let Some(level) = levels.last_mut() else {
            return Ok(());
        };
        let syntax = match level.syntax {
            _ if base => Syntax::Base,
            Syntax::Arithmetic => Syntax::Double,
            other => other,
        };
        let simple = operator == Some(Operator::Normal);
        let quoted = level.double;
        let operator = operator.unwrap_or(Operator::Bad);
        if simple {
            let span = start..self.at;
            parts.push(Part::Parameter {
                name,
                operator,
                word: Vec::new(),
                quoted,
                span,
            });
            return Ok(());
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
        Ok(())
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
