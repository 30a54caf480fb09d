//! The other end of the bandwidth test.

use super::{Invalid, checked_text};
use crate::escape::quote;

checked_text! {
    /// `loopback` for a second NIC of the same node, or a host name or IP address on which the
    /// perftest server runs.
    Peer,
    check,
    "`loopback`, or a host name or IP address.",
    "^[A-Za-z0-9:][A-Za-z0-9.:_-]{0,252}$"
}

impl Peer {
    /// Whether the test stays inside the node.
    pub fn is_loopback(&self) -> bool {
        self.as_str() == "loopback"
    }
}

fn check(text: &str) -> Result<(), Invalid> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || ".:_-".contains(c);
    if text.is_empty()
        || text.len() > 253
        || !text.chars().all(allowed)
        || text.starts_with(['-', '.', '_'])
    {
        return Err(Invalid::new(format!("{} is not a host", quote(text)))
            .help("write \"loopback\", a host name or an IP address"));
    }
    Ok(())
}
