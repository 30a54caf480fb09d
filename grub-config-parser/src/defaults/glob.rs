//! Patterns of `case`.

use alloc::vec::Vec;

use super::state::{State, Stop};
use super::syntax::{Part, Word};

/// A pattern: bytes, and whether each is quoted.
pub(super) type Pattern = Vec<(u8, bool)>;

impl State {
    /// Expands a pattern; `None` where it is not known.
    pub(super) fn pattern(&mut self, word: &Word) -> Result<Option<Pattern>, Stop> {
        let mut pattern = Vec::new();
        for part in &word.parts {
            let quoted = match part {
                Part::Text { quoted, .. } | Part::Parameter { quoted, .. } => *quoted,
                _ => true,
            };
            let text = self.expand(core::slice::from_ref(part), 0)?;
            let Some(bytes) = text.known.map(|text| text.bytes) else {
                return Ok(None);
            };
            pattern.extend(bytes.into_iter().map(|byte| (byte, quoted)));
        }
        // Bracket expressions have rules of their own in each C library.
        let brackets = pattern.contains(&(b'[', false));
        let escapes = self.is_bash() && pattern.contains(&(b'\\', false));
        Ok((!brackets && !escapes).then_some(pattern))
    }
}

/// True if `*` and `?` can make `text` of `pattern`.
pub(super) fn matches(pattern: &[(u8, bool)], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match (pattern.get(p), text.get(t)) {
            (Some((b'*', false)), _) => {
                star = Some((p + 1, t));
                p += 1;
            }
            (Some((b'?', false)), _) => {
                p += 1;
                t += 1;
            }
            (Some((wanted, _)), Some(byte)) if wanted == byte => {
                p += 1;
                t += 1;
            }
            _ => match star {
                Some((after, from)) => {
                    star = Some((after, from + 1));
                    p = after;
                    t = from + 1;
                }
                None => return false,
            },
        }
    }
    pattern.iter().skip(p).all(|item| *item == (b'*', false))
}
