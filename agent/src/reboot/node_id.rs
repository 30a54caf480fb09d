//! Who a node is to a server: not its machine id, which machine-id(5) asks to keep confidential.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// What the agent is to `sd_id128_get_machine_app_specific(3)`. Never to change: nodes would be
/// strangers to the server that holds their slots.
const APPLICATION: [u8; 16] = [
    0x4b, 0x1c, 0x0e, 0x5f, 0x6d, 0x2a, 0x4d, 0x93, 0xa7, 0x58, 0x21, 0xc4, 0x9e, 0x36, 0xf0, 0x8d,
];

/// The node's name for servers, 32 hexadecimal digits: the application-specific machine id as systemd
/// makes it, HMAC-SHA256 of the application's id with the machine id as the key, cut to an UUID of version 4.
/// `systemd-id128 machine-id --app-specific=4b1c0e5f6d2a4d93a75821c49e36f08d` prints the same.
///
/// # Errors
/// The text is not a machine id: in an image, `/etc/machine-id` is empty or `uninitialized`.
pub fn node_id(machine_id: &str) -> Result<String, String> {
    let text = machine_id.trim();
    let bytes = bytes_of(text).ok_or_else(|| {
        format!(
            "/etc/machine-id holds `{}`, which is no machine id (32 hexadecimal digits); run `systemd-machine-id-setup`",
            text.chars().take(40).collect::<String>().escape_debug()
        )
    })?;
    let mut mac = Hmac::<Sha256>::new_from_slice(&bytes).map_err(|e| e.to_string())?;
    mac.update(&APPLICATION);
    let mut id: [u8; 16] = [0; 16];
    for (to, from) in id.iter_mut().zip(mac.finalize().into_bytes()) {
        *to = from;
    }
    let [.., version, _, variant, _, _, _, _, _, _, _] = &mut id;
    *version = (*version & 0x0f) | 0x40;
    *variant = (*variant & 0x3f) | 0x80;
    Ok(id.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn bytes_of(text: &str) -> Option<[u8; 16]> {
    if text.len() != 32
        || !text.bytes().all(|b| b.is_ascii_hexdigit())
        || text.bytes().all(|b| b == b'0')
    {
        return None;
    }
    let mut bytes = [0; 16];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected: RFC 2104 by another implementation (Python), which on a real machine id gives what
    /// `systemd-id128 machine-id --app-specific` of systemd 252 prints.
    #[test]
    fn it_is_the_one_that_systemd_makes() {
        let id = node_id("0123456789abcdef0123456789abcdef\n").unwrap();
        assert_eq!(id, "891db1d8213340c0a33cf57baa93984b");
        assert!(node_id("fedcba9876543210fedcba9876543210").unwrap() != id);
    }

    #[test]
    fn what_is_no_machine_id_is_said_to_be_none() {
        for text in [
            "",
            "uninitialized\n",
            "00000000000000000000000000000000",
            "0123",
            "g123456789abcdef0123456789abcdef",
            "+123456789abcdef0123456789abcdef",
            "ééééééééééééééééé",
        ] {
            let error = node_id(text).unwrap_err();
            assert!(error.contains("/etc/machine-id"), "{error}");
        }
    }
}
