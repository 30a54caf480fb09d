//! What a program said, from the program or from the file that a capture has of it.

use std::time::Duration;

use super::{Root, SysError, process};

/// Where captures have what programs said. A running system is never asked for these files.
pub const DIR: &str = "/run/gdr-agent/said";

/// How asking ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// It ended, and this is its standard output, whatever its exit status.
    Output(Vec<u8>),
    /// It was stopped after so many seconds.
    Stopped(u64),
    /// It could not be run.
    Failed(String),
}

impl Said {
    fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Output(bytes) => [b"ended\n", bytes.as_slice()].concat(),
            Self::Stopped(seconds) => format!("stopped {seconds}\n").into_bytes(),
            Self::Failed(why) => format!("failed {why}\n").into_bytes(),
        }
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let end = bytes.iter().position(|b| *b == b'\n')?;
        let (head, rest) = (bytes.get(..end)?, bytes.get(end + 1..)?);
        let head = String::from_utf8_lossy(head);
        match head.split_once(' ') {
            None if head == "ended" => Some(Self::Output(rest.to_vec())),
            Some(("stopped", seconds)) => Some(Self::Stopped(seconds.parse().ok()?)),
            Some(("failed", why)) => Some(Self::Failed(why.to_owned())),
            _ => None,
        }
    }
}

/// The file of a program's answer: the command's words, joined.
fn file(argv: &[&str]) -> String {
    format!("{DIR}/{}", argv.join("_"))
}

/// What a capture or a directory has of it; else, with a limit, the program is run if it is there. None if it was not asked.
#[must_use]
pub fn said(root: &Root, argv: &[&str], limit: Option<Duration>) -> Option<Said> {
    let path = file(argv);
    if !root.is_live()
        && let Ok(Some(bytes)) = root.read_if_there(&path)
    {
        return Said::read(&bytes);
    }
    let limit = limit?;
    process::find(root, argv.first()?)?;
    let said = match run(root, argv, limit) {
        Ok(ended) if ended.stopped => Said::Stopped(limit.as_secs()),
        Ok(ended) => Said::Output(ended.output.stdout),
        Err(e) => Said::Failed(e.to_string()),
    };
    root.note_file(&path, said.bytes());
    Some(said)
}

fn run(root: &Root, argv: &[&str], limit: Duration) -> Result<process::Ended, SysError> {
    process::start(root, argv, &[])?.wait(limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_all_that_was_said() {
        for said in [
            Said::Output(b"<a>\n\xff\n".to_vec()),
            Said::Output(Vec::new()),
            Said::Stopped(20),
            Said::Failed("cannot start: no such file".into()),
        ] {
            assert_eq!(Said::read(&said.bytes()), Some(said));
        }
        for bad in [&b""[..], b"ended", b"stopped x\n", b"other 1\n"] {
            assert_eq!(Said::read(bad), None);
        }
    }
}
