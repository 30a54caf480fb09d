//! What `systemctl status` shows of a unit that runs (`NotifyAccess=main`).
//!
//! Source: sd_notify(3).

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Tells the service manager what this process is doing. Not started by one, or one that does not listen: nothing happens, since
/// nothing depends on it.
pub fn status(text: &str) {
    if let Some(socket) = std::env::var_os("NOTIFY_SOCKET") {
        let _ = send(socket.as_encoded_bytes(), text);
    }
}

/// A name that begins with `@` is in the abstract namespace; others are paths.
fn send(socket: &[u8], text: &str) -> std::io::Result<()> {
    let address = match socket.split_first() {
        Some((b'@', name)) => SocketAddr::from_abstract_name(name)?,
        _ => {
            SocketAddr::from_pathname(std::str::from_utf8(socket).map_err(std::io::Error::other)?)?
        }
    };
    let from = UnixDatagram::unbound()?;
    // A manager that hangs must hold up nothing.
    from.set_nonblocking(true)?;
    // One assignment to a line.
    let line: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    from.send_to_addr(format!("STATUS={line}").as_bytes(), &address)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_and_an_abstract_name_get_one_assignment() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify");
        let name = format!("@gdr-agent-test-{}", std::process::id());
        let abstract_name = SocketAddr::from_abstract_name(&name[1..]).unwrap();
        for (socket, listening) in [
            (path.to_str().unwrap(), UnixDatagram::bind(&path).unwrap()),
            (
                name.as_str(),
                UnixDatagram::bind_addr(&abstract_name).unwrap(),
            ),
        ] {
            send(socket.as_bytes(), "verified\nREADY=1").unwrap();
            let mut bytes = [0; 64];
            let n = listening.recv(&mut bytes).unwrap();
            assert_eq!(&bytes[..n], b"STATUS=verified READY=1", "{socket}");
        }
    }

    #[test]
    fn nobody_listens() {
        assert!(send(b"/nonexistent/notify", "x").is_err());
        assert!(send(b"", "x").is_err());
    }
}
