//! The host's end of the guest's root shell (`scripts/vm/guest/vm-shell`).

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use super::Error;

/// Before every greeting: whatever came earlier is void, since the machine went down in the middle of it.
const GREETING: &[u8] = b"\xff\xfehello ";

/// What the guest says.
#[derive(Debug)]
pub(crate) enum Event {
    /// The shell started; the kernel's boot id.
    Hello(String),
    /// A command ended.
    Done {
        id: u64,
        status: i32,
        stdout: Vec<u8>,
        stderr: Vec<u8>,
    },
}

/// A connection, which outlives reboots of the guest and ends with QEMU.
#[derive(Debug)]
pub(crate) struct Shell {
    stream: UnixStream,
    pending: Vec<u8>,
    last_id: u64,
}

impl Shell {
    pub(crate) fn new(stream: UnixStream) -> Self {
        Self {
            stream,
            pending: Vec::new(),
            last_id: 0,
        }
    }

    /// Sends a script; its answer has the returned id.
    pub(crate) fn send_run(&mut self, script: &[u8], limit: Duration) -> std::io::Result<u64> {
        self.last_id += 1;
        let header = format!(
            "run {} {} {}\n",
            self.last_id,
            limit.as_secs(),
            script.len()
        );
        self.stream.write_all(header.as_bytes())?;
        self.stream.write_all(script)?;
        Ok(self.last_id)
    }

    /// Sends a file; the answer has the returned id.
    pub(crate) fn send_put(&mut self, path: &str, mode: u32, bytes: &[u8]) -> std::io::Result<u64> {
        self.last_id += 1;
        let header = format!("put {} {mode:o} {} {path}\n", self.last_id, bytes.len());
        self.stream.write_all(header.as_bytes())?;
        self.stream.write_all(bytes)?;
        Ok(self.last_id)
    }

    /// The next thing that the guest says, or `None` when it says nothing for `wait`.
    pub(crate) fn event(&mut self, wait: Duration) -> Result<Option<Event>, Error> {
        let end = Instant::now() + wait;
        loop {
            if let Some(event) = self.parse()? {
                return Ok(Some(event));
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            let mut chunk = [0; 65536];
            // A zero time-out would mean none.
            let timeout = Some(left.max(Duration::from_millis(1)));
            let read = self
                .stream
                .set_read_timeout(timeout)
                .and_then(|()| self.stream.read(&mut chunk));
            match read {
                // QEMU is gone; whoever owns it finds out how.
                Ok(0) => return Ok(None),
                Ok(n) => self.pending.extend(chunk.iter().take(n)),
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(Error::host("read", "the guest's shell")(e)),
            }
        }
    }

    /// Takes one whole event from what has arrived.
    fn parse(&mut self) -> Result<Option<Event>, Error> {
        if let Some(at) = self
            .pending
            .windows(GREETING.len())
            .rposition(|w| w == GREETING)
        {
            self.pending.drain(..at);
        }
        let Some(end) = self.pending.iter().position(|&b| b == b'\n') else {
            return Ok(None);
        };
        let line = self.pending.get(..end).unwrap_or_default().to_vec();
        if let Some(boot_id) = line.strip_prefix(GREETING) {
            self.pending.drain(..=end);
            return Ok(Some(Event::Hello(
                String::from_utf8_lossy(boot_id).into_owned(),
            )));
        }
        let text = String::from_utf8_lossy(&line).into_owned();
        let bad = || Error::Protocol { line: text.clone() };
        let numbers: Vec<u64> = text
            .strip_prefix("done ")
            .and_then(|rest| rest.split(' ').map(|n| n.parse().ok()).collect())
            .ok_or_else(bad)?;
        let &[id, status, out, err] = numbers.as_slice() else {
            return Err(bad());
        };
        let (out, err) = (out as usize, err as usize);
        let body = end + 1;
        if self.pending.len() < body + out + err {
            return Ok(None);
        }
        let mut taken = self.pending.drain(..body + out + err).skip(body);
        let stdout = taken.by_ref().take(out).collect();
        let stderr = taken.collect();
        Ok(Some(Event::Done {
            id,
            status: status as i32,
            stdout,
            stderr,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (Shell, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        (Shell::new(ours), theirs)
    }

    const SOON: Duration = Duration::from_millis(20);

    #[test]
    fn an_answer_may_come_in_pieces_and_hold_any_byte() {
        let (mut shell, mut guest) = pair();
        guest.write_all(b"done 7 3 4 2\na\n").unwrap();
        assert!(shell.event(SOON).unwrap().is_none());
        guest.write_all(b"\0\xffe").unwrap();
        assert!(shell.event(SOON).unwrap().is_none());
        guest.write_all(b"\n").unwrap();
        let Some(Event::Done {
            id,
            status,
            stdout,
            stderr,
        }) = shell.event(SOON).unwrap()
        else {
            panic!("no answer");
        };
        assert_eq!((id, status), (7, 3));
        assert_eq!(
            (stdout.as_slice(), stderr.as_slice()),
            (&b"a\n\0\xff"[..], &b"e\n"[..])
        );
    }

    #[test]
    fn a_greeting_voids_the_answer_that_it_interrupts() {
        let (mut shell, mut guest) = pair();
        guest
            .write_all(b"done 1 0 100 0\npart\xff\xfehello abc\n")
            .unwrap();
        assert!(matches!(shell.event(SOON).unwrap(), Some(Event::Hello(id)) if id == "abc"));
        assert!(shell.event(SOON).unwrap().is_none());
    }

    #[test]
    fn anything_else_is_an_error() {
        let (mut shell, mut guest) = pair();
        guest.write_all(b"bash: command not found\n").unwrap();
        assert!(matches!(shell.event(SOON), Err(Error::Protocol { .. })));
    }

    #[test]
    fn the_other_end_gone_is_no_event() {
        let (mut shell, guest) = pair();
        drop(guest);
        assert!(shell.event(Duration::from_secs(60)).unwrap().is_none());
    }
}
