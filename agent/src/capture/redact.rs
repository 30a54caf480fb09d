//! What is taken out of text before it leaves a node: secrets always, addresses and names of machines unless they
//! were asked for. The rest of a line stays, so that what is said about it stays the same.

use std::collections::BTreeMap;

use aho_corasick::{AhoCorasick, MatchKind};

/// How to take things out.
#[derive(Debug, Clone, Default)]
pub struct Redactor {
    /// Leave addresses and host names in.
    pub addresses: bool,
    /// The node's own name.
    pub host: Option<String>,
}

const GONE: &str = "REDACTED";

/// Parts of names whose values are secrets.
const SECRETS: [&str; 9] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "credential",
    "credentials",
    "key",
    "psk",
];

impl Redactor {
    /// One text.
    #[must_use]
    pub fn text(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        for line in text.split_inclusive('\n') {
            let line = secrets(line);
            if self.addresses {
                out.push_str(&line);
            } else {
                out.push_str(&addresses(&line));
            }
        }
        match (&self.host, self.addresses) {
            (Some(host), false) if host.len() > 1 => {
                replace_names(&out, &[(host.clone(), "this-host".to_owned())])
            }
            _ => out,
        }
    }

    /// The log of a job: its host names become `host-1`, `host-2` and so on, each always the same.
    #[must_use]
    pub fn log(&self, text: &str) -> String {
        let mut text = self.text(text);
        if !self.addresses {
            let mut names: BTreeMap<String, usize> = BTreeMap::new();
            for line in text.lines() {
                if let Some(name) = log_host(line) {
                    let next = names.len() + 1;
                    names.entry(name.to_owned()).or_insert(next);
                }
            }
            let names: Vec<(String, String)> = names
                .into_iter()
                .map(|(name, at)| (name, format!("host-{at}")))
                .collect();
            text = replace_names(&text, &names);
        }
        text
    }
}

/// `HOST:PID:TID [DEVICE] NCCL INFO`.
fn log_host(line: &str) -> Option<&str> {
    let (before, _) = line.split_once(" NCCL ")?;
    before.split_whitespace().rev().find_map(|word| {
        let (rest, thread) = word.rsplit_once(':')?;
        let (host, process) = rest.rsplit_once(':')?;
        let number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let host = host.rsplit([']', '>', ':']).next()?;
        (number(thread) && number(process) && !host.is_empty()).then_some(host)
    })
}

/// Whole words only.
fn replace_names(text: &str, names: &[(String, String)]) -> String {
    let patterns = names.iter().map(|(name, _)| name);
    let Ok(finder) = AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostLongest)
        .build(patterns)
    else {
        return text.to_owned();
    };
    let bytes = text.as_bytes();
    let is_word =
        |at: Option<&u8>| at.is_some_and(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for found in finder.find_iter(text) {
        let before = found.start().checked_sub(1).and_then(|at| bytes.get(at));
        if is_word(before) || is_word(bytes.get(found.end())) {
            continue;
        }
        out.push_str(text.get(done..found.start()).unwrap_or_default());
        if let Some((_, new)) = names.get(found.pattern().as_usize()) {
            out.push_str(new);
        }
        done = found.end();
    }
    out.push_str(text.get(done..).unwrap_or_default());
    out
}

/// `password_pbkdf2 USER HASH` of GRUB, `NAME=VALUE` where the name says that it is secret, `//USER:SECRET@`.
fn secrets(line: &str) -> String {
    let trimmed = line.trim_start();
    if trimmed.starts_with("password_pbkdf2 ") || trimmed.starts_with("password ") {
        let end = if line.ends_with('\n') { "\n" } else { "" };
        let indent = line.get(..line.len() - trimmed.len()).unwrap_or_default();
        let words: Vec<&str> = trimmed.split_whitespace().take(2).collect();
        return format!("{indent}{} {GONE}{end}", words.join(" "));
    }
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find(['=', '@']) {
        let (before, after) = rest.split_at(at);
        if after.starts_with('@') {
            // A user and a secret before the name of a server.
            match before.rfind("://") {
                Some(scheme)
                    if !before
                        .get(scheme + 3..)
                        .unwrap_or_default()
                        .contains(['/', ' ', '"']) =>
                {
                    out.push_str(before.get(..scheme + 3).unwrap_or_default());
                    out.push_str(GONE);
                }
                _ => out.push_str(before),
            }
            out.push('@');
            rest = after.get(1..).unwrap_or_default();
            continue;
        }
        out.push_str(before);
        out.push('=');
        rest = after.get(1..).unwrap_or_default();
        let name = before
            .rsplit([' ', '\t', '"', '\'', ',', '='])
            .next()
            .unwrap_or_default();
        let lower = name.to_ascii_lowercase();
        if lower
            .split(['.', '_', '-'])
            .any(|part| SECRETS.contains(&part))
        {
            let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''));
            let value = rest
                .get(quote.map_or(0, char::len_utf8)..)
                .unwrap_or_default();
            let end = match quote {
                Some(quote) => value.find(quote).unwrap_or_else(|| value.trim_end().len()),
                None => value
                    .find([' ', '\t', '\n', '"', '\''])
                    .unwrap_or(value.len()),
            };
            out.extend(quote);
            out.push_str(GONE);
            rest = value.get(end..).unwrap_or_default();
        }
    }
    out.push_str(rest);
    out
}

/// Internet, Ethernet and InfiniBand addresses.
fn addresses(line: &str) -> String {
    let of_address = |c: char| c.is_ascii_hexdigit() || matches!(c, ':' | '.');
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    let mut before: Option<char> = None;
    while let Some(first) = rest.chars().next() {
        let length = rest.find(|c: char| !of_address(c)).unwrap_or(rest.len());
        if length == 0 {
            out.push(first);
            before = Some(first);
            rest = rest.get(first.len_utf8()..).unwrap_or_default();
            continue;
        }
        let (token, after) = rest.split_at(length);
        let word =
            |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
        // At either end a part may belong to a longer word, and behind the colon there may still be an
        // address: `eth0:10.0.0.1`, `10.0.0.1:eth0`.
        let (head, rest_of) = match (word(before), token.split_once(':')) {
            (false, _) => ("", token),
            (true, Some((head, tail))) => (token.get(..=head.len()).unwrap_or(head), tail),
            (true, None) => (token, ""),
        };
        let (middle, tail) = match (word(after.chars().next()), rest_of.rfind(':')) {
            (false, _) => (rest_of, ""),
            (true, Some(at)) => rest_of.split_at(at),
            (true, None) => ("", rest_of),
        };
        out.push_str(head);
        out.push_str(&masked(middle));
        out.push_str(tail);
        before = token.chars().last();
        rest = after;
    }
    out
}

fn masked(token: &str) -> String {
    let (token, end) = match token.trim_end_matches(['.', ':']) {
        inner if inner.ends_with(':') => (token, ""),
        inner => token.split_at(inner.len()),
    };
    let groups: Vec<&str> = token.split(':').collect();
    let all = |length: usize| groups.iter().all(|g| g.len() == length);
    let masked = if groups.len() >= 6 && all(2) {
        "xx:xx:xx:xx:xx:xx".to_owned()
    } else if groups.len() == 4 && all(4) {
        "xxxx:xxxx:xxxx:xxxx".to_owned()
    } else if is_ipv6(token, &groups) {
        "x::x".to_owned()
    } else {
        let parts = groups
            .iter()
            .map(|group| if is_ipv4(group) { "x.x.x.x" } else { group });
        parts.collect::<Vec<&str>>().join(":")
    };
    format!("{masked}{end}")
}

fn is_ipv6(token: &str, groups: &[&str]) -> bool {
    let last = groups.len().saturating_sub(1);
    let mut of_group = groups.iter().enumerate();
    let short =
        of_group.all(|(at, g)| g.len() <= 4 && !g.contains('.') || at == last && is_ipv4(g));
    let named = token.bytes().any(|b| b.is_ascii_digit());
    short && named && (token.contains("::") && token != "::1" || groups.len() == 8)
}

fn is_ipv4(text: &str) -> bool {
    let parts: Vec<&str> = text.split('.').collect();
    let number = |part: &&str| {
        part.parse::<u8>().is_ok()
            && (part.len() == 1 || !part.starts_with('0'))
            && part.bytes().all(|b| b.is_ascii_digit())
    };
    parts.len() == 4
        && parts.iter().all(number)
        && !matches!(text, "127.0.0.1" | "0.0.0.0" | "255.255.255.255")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_go_and_pci_addresses_stay() {
        for (line, clean) in [
            ("peer 10.0.0.2<4791> failed", "peer x.x.x.x<4791> failed"),
            ("OOB eth0:192.168.1.7<0>", "OOB eth0:x.x.x.x<0>"),
            (
                "ip=192.168.7.5::192.168.7.1:255.255.255.0:node:eth0:off",
                "ip=x.x.x.x::x.x.x.x:x.x.x.x:node:eth0:off",
            ),
            (
                "0:10.0.0.2 v10.0.0.3 10.0.0.4x",
                "0:x.x.x.x v10.0.0.3 10.0.0.4x",
            ),
            ("at 10.1.2.3:4791, then.", "at x.x.x.x:4791, then."),
            ("mac 0c:42:a1:00:11:22.", "mac xx:xx:xx:xx:xx:xx."),
            ("gid fe80::e42:a1ff:fe00:1122 here", "gid x::x here"),
            ("gid 2001:0db8:0:0:0:0:0:1", "gid x::x"),
            ("guid 0c42:a103:0065:7a2e", "guid xxxx:xxxx:xxxx:xxxx"),
            (
                "0000:17:00.0 at 12:34:56 of 570.148.08",
                "0000:17:00.0 at 12:34:56 of 570.148.08",
            ),
            (
                "std::vector<a::b> 6.1.0-37.4",
                "std::vector<a::b> 6.1.0-37.4",
            ),
            ("127.0.0.1 ::1", "127.0.0.1 ::1"),
            (
                "kernel 5.4.3.2-generic v1.2.3.4",
                "kernel 5.4.3.2-generic v1.2.3.4",
            ),
        ] {
            let redactor = Redactor::default();
            assert_eq!(redactor.text(line), clean);
            let kept = Redactor {
                addresses: true,
                ..Redactor::default()
            };
            assert_eq!(kept.text(line), line);
        }
    }

    #[test]
    fn secrets_always_go() {
        let redactor = Redactor {
            addresses: true,
            ..Redactor::default()
        };
        for (line, clean) in [
            (
                "quiet rd.iscsi.password=s3cret iommu=pt\n",
                "quiet rd.iscsi.password=REDACTED iommu=pt\n",
            ),
            (
                "  password_pbkdf2 root grub.pbkdf2.sha512.10000.AB\n",
                "  password_pbkdf2 root REDACTED\n",
            ),
            ("password admin hunter2", "password admin REDACTED"),
            ("API_TOKEN=\"a b\" X=1\n", "API_TOKEN=\"REDACTED\" X=1\n"),
            (
                "inst.repo=https://me:pw@example/ a@b",
                "inst.repo=https://REDACTED@example/ a@b",
            ),
            ("vconsole.keymap=de monkey=1", "vconsole.keymap=de monkey=1"),
        ] {
            assert_eq!(redactor.text(line), clean);
        }
    }

    #[test]
    fn hosts_of_a_log_stay_apart() {
        let redactor = Redactor::default();
        let log = "gpu-b:10:11 [0] NCCL INFO x\n[1,0]<stdout>:gpu-a:12:13 [1] NCCL INFO from gpu-b, not gpu-bb\n";
        assert_eq!(
            redactor.log(log),
            "host-1:10:11 [0] NCCL INFO x\n[1,0]<stdout>:host-2:12:13 [1] NCCL INFO from host-1, not gpu-bb\n"
        );
        let node = Redactor {
            host: Some("gpu-a".into()),
            ..Redactor::default()
        };
        assert_eq!(
            node.text("Hostname set to <gpu-a>."),
            "Hostname set to <this-host>."
        );
    }
}
