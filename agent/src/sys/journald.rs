//! systemd's journal over its native protocol: one datagram, a line or a counted value for each field.
//!
//! Source: systemd's `docs/JOURNAL_NATIVE_PROTOCOL.md`.

use std::os::unix::net::UnixDatagram;
use std::path::Path;

use super::SysError;

/// Where journald listens.
pub const SOCKET: &str = "/run/systemd/journal/socket";

/// The most that is sent. A socket takes about 200 KiB unless it was given less; more would have to go through a
/// sealed file in memory, and nothing here is that large.
pub const LIMIT: usize = 64 << 10;

/// Sends one entry without waiting.
///
/// # Errors
/// Nobody listens there, its queue is full, or the entry is larger than [`LIMIT`] or has a name that is none.
pub fn send(socket: &Path, fields: &[(&str, String)]) -> Result<(), SysError> {
    let failed = |source| SysError::File {
        action: "send an event to",
        path: socket.into(),
        source,
    };
    let refused = |why: String| SysError::Refused {
        action: "send an event to",
        path: socket.into(),
        why,
    };
    let mut bytes = Vec::new();
    for (name, value) in fields {
        if !is_name(name) {
            return Err(refused(format!(
                "`{}` is no field name",
                name.escape_debug()
            )));
        }
        put(&mut bytes, name, value.as_bytes());
    }
    if bytes.len() > LIMIT {
        return Err(refused(format!(
            "it has {} bytes, more than {LIMIT}",
            bytes.len()
        )));
    }
    let from = UnixDatagram::unbound().map_err(failed)?;
    // A journal that hangs must hold up nothing.
    from.set_nonblocking(true).map_err(failed)?;
    let sent = from.send_to(&bytes, socket).map_err(failed)?;
    if sent == bytes.len() {
        Ok(())
    } else {
        Err(refused(format!("it took {sent} of {} bytes", bytes.len())))
    }
}

/// What journald takes from others: capitals, digits and underscores, a letter first, at most 64.
fn is_name(name: &str) -> bool {
    let rest = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_';
    name.len() <= 64
        && name.bytes().all(rest)
        && name.bytes().next().is_some_and(|b| b.is_ascii_uppercase())
}

/// A value with a line feed is counted, so that none can end it early and begin a field of its own.
fn put(bytes: &mut Vec<u8>, name: &str, value: &[u8]) {
    bytes.extend_from_slice(name.as_bytes());
    if value.contains(&b'\n') {
        bytes.push(b'\n');
        bytes.extend_from_slice(&(value.len() as u64).to_le_bytes());
    } else {
        bytes.push(b'=');
    }
    bytes.extend_from_slice(value);
    bytes.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads the protocol as journald does.
    fn read(mut bytes: &[u8]) -> Vec<(String, Vec<u8>)> {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let line = bytes.iter().position(|b| *b == b'\n').unwrap();
            let text = &bytes[..line];
            if let Some(at) = text.iter().position(|b| *b == b'=') {
                let name = String::from_utf8(text[..at].to_vec()).unwrap();
                fields.push((name, text[at + 1..].to_vec()));
                bytes = &bytes[line + 1..];
            } else {
                let name = String::from_utf8(text.to_vec()).unwrap();
                let (count, rest) = bytes[line + 1..].split_at(8);
                let count = usize::try_from(u64::from_le_bytes(count.try_into().unwrap())).unwrap();
                fields.push((name, rest[..count].to_vec()));
                assert_eq!(rest[count], b'\n');
                bytes = &rest[count + 1..];
            }
        }
        fields
    }

    fn listening() -> (tempfile::TempDir, std::path::PathBuf, UnixDatagram) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("socket");
        let socket = UnixDatagram::bind(&path).unwrap();
        (dir, path, socket)
    }

    #[test]
    fn a_value_cannot_begin_a_field_of_its_own() {
        let (_dir, path, socket) = listening();
        let sent = [
            ("MESSAGE", "a\nPRIORITY=0\n_UID=0\n".to_owned()),
            ("GDR_A", "b=c".to_owned()),
            ("GDR_EMPTY", String::new()),
            ("GDR_Z", "\u{1b}[2J\0\u{2028}ü".to_owned()),
        ];
        send(&path, &sent).unwrap();
        let mut bytes = vec![0; LIMIT + 1];
        let length = socket.recv(&mut bytes).unwrap();
        let got = read(&bytes[..length]);
        let sent: Vec<(String, Vec<u8>)> = sent
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value.into_bytes()))
            .collect();
        assert_eq!(got, sent);
    }

    #[test]
    fn bad_names_and_large_entries_are_refused_and_nothing_is_sent() {
        let (_dir, path, socket) = listening();
        for name in ["", "_UID", "1A", "a", "A B", "A=B", "A\nB", &"A".repeat(65)] {
            let error = send(&path, &[(name, "x".to_owned())]).unwrap_err();
            assert_eq!(error.kind(), "refused", "{name}");
        }
        let error = send(&path, &[("A", "x".repeat(LIMIT))]).unwrap_err();
        assert_eq!(error.kind(), "refused");
        socket.set_nonblocking(true).unwrap();
        assert!(socket.recv(&mut [0; 8]).is_err());
        send(&path, &[("A", "x".repeat(LIMIT - 3))]).unwrap();
    }

    #[test]
    fn nobody_there_and_nobody_who_reads_are_errors_at_once() {
        let (dir, path, socket) = listening();
        let none = send(&dir.path().join("none"), &[]).unwrap_err();
        assert!(none.is_not_found(), "{none}");
        let entry = [("A", "x".repeat(LIMIT - 3))];
        let full = (0..10_000).find_map(|_| send(&path, &entry).err());
        assert_eq!(full.unwrap().errno(), Some(11), "EAGAIN");
        drop(socket);
        assert!(send(&path, &entry).is_err());
    }
}
