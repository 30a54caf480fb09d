//! Where the FleetLock server is, and what the node is to it.

use super::{Invalid, checked_text};
use crate::escape::{character, quote};

checked_text! {
    /// The base URL of a FleetLock server: http or https, host, optional port and path. No user,
    /// password, query or fragment.
    FleetlockUrl,
    check_url,
    "A URL: http or https, without user, password, query or fragment.",
    r"^https?://([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?(/[A-Za-z0-9._~/%-]*)?$"
}

checked_text! {
    /// A FleetLock group (FleetLock protocol, `client_params.group`).
    FleetlockGroup,
    check_group,
    "The FleetLock group of the node: letters, digits, . and -.",
    "^[a-zA-Z0-9.-]+$"
}

const MAX_URL: usize = 2048;
const MAX_GROUP: usize = 128;

fn check_url(text: &str) -> Result<(), Invalid> {
    let invalid = |why: String| {
        Invalid::new(format!("URL {} {why}", quote(text)))
            .help("write it as in \"https://fleetlock.example:9090/\"")
    };
    if text.len() > MAX_URL {
        return Err(invalid(format!("is longer than {MAX_URL} bytes")));
    }
    let rest = text
        .strip_prefix("https://")
        .or_else(|| text.strip_prefix("http://"))
        .ok_or_else(|| invalid("does not start with http:// or https://".to_owned()))?;
    let (authority, path) = match rest.find('/') {
        Some(slash) => rest.split_at(slash),
        None => (rest, ""),
    };
    if authority.contains('@') {
        // The text may hold a password, so it is not repeated.
        return Err(
            Invalid::new("a URL with a user name or a password is refused")
                .help("everybody who can read the policy or the reports would see it"),
        );
    }
    let (host, port) = split_port(authority);
    if !is_host(host) {
        return Err(invalid("has no valid host".to_owned()));
    }
    if port.is_some_and(|port| !is_port(port)) {
        return Err(invalid("has no valid port".to_owned()));
    }
    match path
        .chars()
        .find(|c| !c.is_ascii_alphanumeric() && !"/._~%-".contains(*c))
    {
        Some(bad) => Err(invalid(format!("has {} in its path", character(bad)))),
        None => Ok(()),
    }
}

/// Splits `host:port`; the colons of a bracketed IPv6 address belong to the host.
fn split_port(authority: &str) -> (&str, Option<&str>) {
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (authority, None),
    }
}

fn is_host(host: &str) -> bool {
    match host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
    {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => {
            !host.is_empty()
                && host
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b == b'.' || b == b'-')
                && !host.starts_with(['-', '.'])
        }
    }
}

fn is_port(port: &str) -> bool {
    port.bytes().all(|b| b.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|port| port > 0)
}

fn check_group(text: &str) -> Result<(), Invalid> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '-';
    if text.is_empty() || text.len() > MAX_GROUP || !text.chars().all(allowed) {
        return Err(
            Invalid::new(format!("{} is not a FleetLock group", quote(text)))
                .help("use 1 to 128 letters, digits, `.` and `-`"),
        );
    }
    Ok(())
}
