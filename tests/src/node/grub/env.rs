//! The environment block as GRUB reads and writes it (grub-core/lib/envblk.c): a header line, then
//! `name=value` lines with backslash and line break escaped, then `#` up to the end. GRUB never
//! changes the size of the file: it writes over the blocks that the file has.

const SIGNATURE: &str = "# GRUB Environment Block\n";

/// Why GRUB's command failed; it prints the message and goes on with the next command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EnvError {
    #[error("invalid environment block")]
    Invalid,
    #[error("environment block too small")]
    Full,
}

/// All variables in the block.
pub(super) fn load(block: &[u8]) -> Result<Vec<(String, String)>, EnvError> {
    let text = String::from_utf8_lossy(block);
    let body = text.strip_prefix(SIGNATURE).ok_or(EnvError::Invalid)?;
    let mut all = Vec::new();
    for line in lines(body) {
        if line.starts_with('#') {
            continue;
        }
        if let Some((name, value)) = line.split_once('=') {
            all.push((name.to_owned(), unescape(value)));
        }
    }
    Ok(all)
}

/// The block with `name` set to `value`, or without it; the size stays.
pub(crate) fn save(block: &[u8], name: &str, value: Option<&str>) -> Result<Vec<u8>, EnvError> {
    let text = String::from_utf8_lossy(block);
    let body = text.strip_prefix(SIGNATURE).ok_or(EnvError::Invalid)?;
    let mut kept: Vec<String> = Vec::new();
    let mut new = value.map(|value| format!("{name}={}", escape(value)));
    for line in lines(body) {
        let same = line.split_once('=').is_some_and(|(other, _)| other == name);
        if same {
            // in its old place, once
            kept.extend(new.take());
        } else if !line.bytes().all(|byte| byte == b'#') {
            kept.push(line.to_owned());
        }
    }
    kept.extend(new);
    let mut out = SIGNATURE.to_owned();
    for line in kept {
        out += &line;
        out.push('\n');
    }
    if out.len() > block.len() {
        return Err(EnvError::Full);
    }
    let mut out = out.into_bytes();
    out.resize(block.len(), b'#');
    Ok(out)
}

/// Lines, where a backslash before the break keeps it in the line.
fn lines(body: &str) -> Vec<&str> {
    let mut all = Vec::new();
    let mut rest = body;
    while !rest.is_empty() {
        let mut escaped = false;
        let end = rest.bytes().position(|byte| {
            let ends = byte == b'\n' && !escaped;
            escaped = byte == b'\\' && !escaped;
            ends
        });
        let (line, after) = match end {
            Some(at) => (
                rest.get(..at).unwrap_or(""),
                rest.get(at + 1..).unwrap_or(""),
            ),
            None => (rest, ""),
        };
        all.push(line);
        rest = after;
    }
    all
}

fn escape(value: &str) -> String {
    value.replace('\\', "\\\\").replace('\n', "\\\n")
}

fn unescape(value: &str) -> String {
    let mut out = String::new();
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => out.extend(chars.next()),
            c => out.push(c),
        }
    }
    out
}
