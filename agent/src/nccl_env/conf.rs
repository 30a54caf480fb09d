//! The lines of a configuration file, and a process's environment, as NCCL takes them (`src/misc/param.cc`, `setEnvFile`).
//!
//! `KEY=VALUE`, nothing is trimmed, no quotes are taken away, `#` is a comment only as the first character, a line without `=` is
//! passed over. Of a key and of a value the first 1,023 bytes count.

use schemars::JsonSchema;
use serde::Serialize;

use crate::plain::shown;

/// As much of a key and of a value counts.
const LONGEST: usize = 1023;
/// Lines and variables that are kept.
const MOST: usize = 4096;

/// A line that sets something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Line {
    /// Counted from 1.
    pub number: u64,
    /// The key, with the blanks that it has.
    pub key: String,
    /// The value, with the blanks, quotes and the carriage return that it has.
    pub value: String,
}

/// The lines of a file that set something.
#[must_use]
pub fn conf(bytes: &[u8]) -> Vec<Line> {
    let lines = bytes.split(|b| *b == b'\n').zip(1..);
    let settings = lines.filter_map(|(line, number)| {
        // C strings end at the first 0
        let line = line.split(|b| *b == 0).next()?;
        if line.first() == Some(&b'#') {
            return None;
        }
        let (key, value) = split(line)?;
        Some(Line { number, key, value })
    });
    settings.take(MOST).collect()
}

/// The variables of `/proc/PID/environ` whose names begin with `NCCL_`, as far as that name goes; of one that is there twice the
/// first counts, as with `getenv(3)`.
#[must_use]
pub fn environ(bytes: &[u8]) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for variable in bytes.split(|b| *b == 0).filter(|v| v.starts_with(b"NCCL_")) {
        let Some((name, value)) = split(variable) else {
            continue;
        };
        if found.len() < MOST / 8 && !found.iter().any(|(other, _)| *other == name) {
            found.push((name, value));
        }
    }
    found
}

fn split(line: &[u8]) -> Option<(String, String)> {
    let at = line.iter().position(|b| *b == b'=')?;
    let (key, rest) = line.split_at_checked(at)?;
    let part = |bytes: &[u8]| {
        let bytes = bytes.get(..LONGEST).unwrap_or(bytes);
        String::from_utf8_lossy(bytes).into_owned()
    };
    Some((part(key), part(rest.get(1..)?)))
}

impl Line {
    /// Why NCCL never reads what a line sets, where somebody meant a variable of NCCL's.
    #[must_use]
    pub fn mistake(&self) -> Option<String> {
        let bare = self.key.trim().trim_start_matches("export ").trim();
        (bare != self.key && bare.starts_with("NCCL_")).then(|| {
            format!(
                "it sets a variable named `{}`, blanks included, which nothing reads: NCCL wants KEY=VALUE without blanks and without `export`",
                shown(&self.key.replace(' ', "\u{2423}"))
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_as_nccl_takes_them() {
        let text = b"# NCCL_A=1\n #NCCL_B=2\nNCCL_IB_HCA==mlx5_0:1\nNCCL_DEBUG=\"INFO\" \nNCCL_X\n\nNCCL_C=1\r\nNCCL_D=1\0NCCL_E=2\nNCCL_F=";
        let found: Vec<(u64, String, String)> = conf(text)
            .into_iter()
            .map(|l| (l.number, l.key, l.value))
            .collect();
        let wanted = [
            (2, " #NCCL_B", "2"),
            (3, "NCCL_IB_HCA", "=mlx5_0:1"),
            (4, "NCCL_DEBUG", "\"INFO\" "),
            (7, "NCCL_C", "1\r"),
            (8, "NCCL_D", "1"),
            (9, "NCCL_F", ""),
        ];
        assert_eq!(
            found,
            wanted.map(|(n, k, v)| (n, k.to_owned(), v.to_owned()))
        );
    }

    #[test]
    fn lines_that_set_nothing_of_nccls() {
        let mistake = |line: &str| conf(line.as_bytes())[0].mistake().is_some();
        assert!(mistake("export NCCL_DEBUG=INFO"));
        assert!(mistake(" NCCL_DEBUG=INFO"));
        assert!(mistake("NCCL_DEBUG =INFO"));
        assert!(!mistake("NCCL_DEBUG= INFO"));
        assert!(!mistake("PATH=/bin"));
    }

    #[test]
    fn environments() {
        let found = environ(b"PATH=/bin\0NCCL_DEBUG=INFO\0XNCCL_A=1\0NCCL_DEBUG=WARN\0NCCL_NONE\0");
        assert_eq!(found, [("NCCL_DEBUG".to_owned(), "INFO".to_owned())]);
    }
}
