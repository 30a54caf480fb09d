//! Spans of time as people write them.

use std::fmt;
use std::str::FromStr;

use super::{Invalid, string_form};
use crate::escape::quote;

/// A span of time in whole seconds, written in hours, minutes and seconds: `90s`, `10m`, `1h30m`.
/// Never zero, at most 7 days.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Duration(u64);

const MAX: u64 = 7 * 24 * 3600;
const UNITS: [(char, u64); 3] = [('h', 3600), ('m', 60), ('s', 1)];

impl Duration {
    /// A span of this many seconds; `None` outside 1 second to 7 days.
    pub const fn from_secs(secs: u64) -> Option<Self> {
        if secs == 0 || secs > MAX {
            None
        } else {
            Some(Self(secs))
        }
    }

    /// Seconds.
    pub const fn as_secs(self) -> u64 {
        self.0
    }
}

impl From<Duration> for std::time::Duration {
    fn from(duration: Duration) -> Self {
        Self::from_secs(duration.0)
    }
}

impl FromStr for Duration {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let malformed = || {
            Invalid::new(format!("{} is not a duration", quote(text)))
                .help("write hours, minutes and seconds, as in \"90s\", \"10m\" or \"1h30m\"")
        };
        let mut rest = text;
        let mut secs: u64 = 0;
        for (unit, factor) in UNITS {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let (number, tail) = rest.split_at(digits);
            if let Some(tail) = tail.strip_prefix(unit) {
                let number: u64 = number.parse().map_err(|_| malformed())?;
                secs = secs.saturating_add(number.saturating_mul(factor));
                rest = tail;
            }
        }
        if text.is_empty() || !rest.is_empty() {
            return Err(malformed());
        }
        Self::from_secs(secs)
            .ok_or_else(|| Invalid::new(format!("{} is not between 1s and 168h", quote(text))))
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        for (unit, factor) in UNITS {
            let count = rest / factor;
            rest %= factor;
            if count > 0 {
                write!(f, "{count}{unit}")?;
            }
        }
        Ok(())
    }
}

string_form!(
    Duration,
    "A span of time in hours, minutes and seconds, as in `90s`, `10m` or `1h30m`.",
    "^([0-9]+h([0-9]+m)?([0-9]+s)?|[0-9]+m([0-9]+s)?|[0-9]+s)$"
);
