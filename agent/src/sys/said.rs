//! What a program said, from the program or from the file that a capture has of it.

use std::time::Duration;

use super::{Root, SysError, process};

/// Where captures have what programs said. A running system is never asked for these files.
pub const DIR: &str = "/run/gdr-agent/said";

/// Leave to run programs.
#[derive(Clone, Copy)]
pub struct Ask<'a> {
    /// How long one may take.
    pub limit: Duration,
    /// Who is told, each second from the first one on, for how long one has been running; with an empty text that it is over.
    pub tell: &'a dyn Fn(&str),
}

impl std::fmt::Debug for Ask<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ask").field("limit", &self.limit).finish()
    }
}

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

/// What `rpm -qa` says, with lines in this format, and the file that a capture has of it.
pub const PACKAGES: &str = "/run/gdr-agent/said/rpm_-qa";

/// Asks rpm, where there is one, so that a capture has the answer. The format is none of the file's name.
pub fn note_packages(root: &Root, format: &str, limit: Duration) {
    if process::find(root, "rpm").is_none() {
        return;
    }
    let argv = ["rpm", "-qa", "--qf", format];
    let said = of(
        process::start(root, &argv, &[]).and_then(|running| running.wait(limit)),
        limit,
    );
    root.note_file(PACKAGES, said.bytes());
}

fn of(ended: Result<process::Ended, SysError>, limit: Duration) -> Said {
    match ended {
        Ok(ended) if ended.stopped => Said::Stopped(limit.as_secs()),
        Ok(ended) => Said::Output(ended.output.stdout),
        Err(e) => Said::Failed(e.to_string()),
    }
}

/// What a capture or a directory has of it; else, with leave, the program is run if it is there. None if it was not asked.
#[must_use]
pub fn said(root: &Root, argv: &[&str], ask: Option<Ask<'_>>) -> Option<Said> {
    let path = file(argv);
    if !root.is_live()
        && let Ok(Some(bytes)) = root.read_if_there(&path)
    {
        return Said::read(&bytes);
    }
    let ask = ask?;
    process::find(root, argv.first()?)?;
    let said = of(run(root, argv, ask), ask.limit);
    root.note_file(&path, said.bytes());
    Some(said)
}

fn run(root: &Root, argv: &[&str], ask: Ask<'_>) -> Result<process::Ended, SysError> {
    let (name, most) = (argv.join(" "), ask.limit.as_secs());
    let mut told = 0;
    let mut tick = |since: Duration| {
        let seconds = since.as_secs();
        if seconds > told {
            told = seconds;
            (ask.tell)(&format!(
                "{name} has been running for {seconds} s; it is stopped after {most}"
            ));
        }
    };
    let ended = process::start(root, argv, &[])?.wait_telling(ask.limit, Duration::ZERO, &mut tick);
    if told > 0 {
        (ask.tell)("");
    }
    ended
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
