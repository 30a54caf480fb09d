//! apt: what to ask it, and how to read its answers.

use super::dpkg::{field, records};
use super::{Change, version};
use crate::sys::Root;

/// A version that apt could install, with the priority that the node's pins give it (apt_preferences(5)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Offered {
    pub version: String,
    pub priority: i32,
}

/// How long apt waits for another one to end, in seconds.
pub(super) const LOCK_LIMIT: u32 = 300;

/// Nothing may ask anything: not debconf, not dpkg about configuration files, not needrestart.
pub(super) const ENV: [(&str, &str); 5] = [
    ("DEBIAN_FRONTEND", "noninteractive"),
    ("DEBIAN_PRIORITY", "critical"),
    ("UCF_FORCE_CONFFOLD", "1"),
    ("NEEDRESTART_SUSPEND", "1"),
    ("APT_LISTCHANGES_FRONTEND", "none"),
];

fn command(root: &Root, program: &str) -> Vec<String> {
    let mut argv = vec![program.to_owned()];
    let mut option = |text: String| argv.extend(["-o".to_owned(), text]);
    if !root.is_live() {
        // Sources, keys, pins and databases are the image's; programs and apt.conf this machine's.
        let at = root.path().to_string_lossy();
        option(format!("Dir={at}"));
        option(format!("Dir::State::status={at}{}", super::dpkg::STATUS));
        option(format!("DPkg::Options::=--root={at}"));
    }
    option("DPkg::Use-Pty=0".to_owned());
    option(format!("DPkg::Lock::Timeout={LOCK_LIMIT}"));
    option("Dpkg::Options::=--force-confdef".to_owned());
    option("Dpkg::Options::=--force-confold".to_owned());
    argv
}

pub(super) fn policy(root: &Root, name: &str) -> Vec<String> {
    let mut argv = command(root, "apt-cache");
    argv.extend(["policy", "--", name].map(str::to_owned));
    argv
}

pub(super) fn show(root: &Root, name: &str) -> Vec<String> {
    let mut argv = command(root, "apt-cache");
    argv.extend(["show", "--", name].map(str::to_owned));
    argv
}

pub(super) fn update(root: &Root) -> Vec<String> {
    let mut argv = command(root, "apt-get");
    argv.extend(["-q", "update"].map(str::to_owned));
    argv
}

pub(super) fn simulate(root: &Root, specs: &[String]) -> Vec<String> {
    transaction(root, specs, &["-s"])
}

/// What was simulated had nothing to remove; should that have changed, apt refuses by itself.
pub(super) fn install(root: &Root, specs: &[String]) -> Vec<String> {
    transaction(root, specs, &["--no-remove"])
}

fn transaction(root: &Root, specs: &[String], more: &[&str]) -> Vec<String> {
    let mut argv = command(root, "apt-get");
    let fixed = ["-q", "-y", "--no-install-recommends"];
    argv.extend(fixed.iter().chain(more).map(|s| (*s).to_owned()));
    argv.extend(["install".to_owned(), "--".to_owned()]);
    argv.extend(specs.iter().cloned());
    argv
}

/// `apt-cache policy NAME`: versions stand five columns in, or behind ` ***`; their sources further in.
pub(super) fn parse_policy(text: &str) -> Vec<Offered> {
    let table = text
        .lines()
        .skip_while(|line| line.trim() != "Version table:");
    let version = |line: &str| {
        let rest = line.strip_prefix(" *** ").or_else(|| {
            let rest = line.strip_prefix("     ")?;
            (!rest.starts_with(' ')).then_some(rest)
        })?;
        let mut words = rest.split_whitespace();
        Some(Offered {
            version: words.next()?.to_owned(),
            priority: words.next()?.parse().ok()?,
        })
    };
    table.skip(1).filter_map(version).collect()
}

/// The dependencies of one version in `apt-cache show NAME`.
pub(super) fn depends(text: &str, wanted: &str) -> Option<String> {
    let record = records(text).find(|record| field(record, "Version") == Some(wanted))?;
    let both = ["Pre-Depends", "Depends"].iter();
    let found: Vec<&str> = both.filter_map(|name| field(record, name)).collect();
    Some(found.join(", "))
}

/// `Inst NAME [OLD] (NEW ARCHIVE [ARCH])` and `Remv NAME [OLD]` of `apt-get -s`.
pub(super) fn parse_simulation(text: &str) -> Vec<Change> {
    let change = |line: &str| {
        let mut words = line.split_whitespace();
        let verb = words.next()?;
        if !matches!(verb, "Inst" | "Remv" | "Purg") {
            return None;
        }
        let name = words.next()?;
        let name = name.split(':').next().unwrap_or(name).to_owned();
        let bracketed = |word: &str| Some(word.strip_prefix('[')?.strip_suffix(']')?.to_owned());
        let mut next = words.next();
        let old = next.and_then(bracketed);
        if old.is_some() {
            next = words.next();
        }
        let new = next
            .and_then(|word| word.strip_prefix('('))
            .map(str::to_owned);
        let new = if verb == "Inst" { new } else { None };
        Some(Change { name, old, new })
    };
    text.lines().filter_map(change).collect()
}

/// The newest version that fits and that the node's pins do not forbid.
pub(super) fn choose(offered: &[Offered], fits: impl Fn(&str) -> bool) -> Option<&Offered> {
    let may = offered
        .iter()
        .filter(|o| o.priority >= 0 && fits(&o.version));
    may.max_by(|a, b| {
        let pinned = a.priority.cmp(&b.priority);
        pinned.then_with(|| version::dpkg(&a.version, &b.version))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    // Both as apt 2.6 prints them.
    #[test]
    fn versions_of_a_policy() {
        let text = "mod:\n  Installed: 1.0\n  Candidate: 560.1-1\n  Version table:\n     560.1-1 500\n        500 file:/repo ./ Packages\n     550.163.01-2 -1\n        500 file:/repo ./ Packages\n *** 1.0 100\n        100 /var/lib/dpkg/status\n     3.0 500 (phased 10%)\n        500 file:/repo ./ Packages\n";
        let all = parse_policy(text);
        let short: Vec<_> = all
            .iter()
            .map(|o| (o.version.as_str(), o.priority))
            .collect();
        assert_eq!(
            short,
            [
                ("560.1-1", 500),
                ("550.163.01-2", -1),
                ("1.0", 100),
                ("3.0", 500)
            ]
        );
        assert_eq!(choose(&all, |v| v.starts_with("550")), None);
        assert_eq!(parse_policy("N: Unable to locate package nope\n"), []);
    }

    #[test]
    fn lines_of_a_simulation() {
        let text = "Reading package lists...\nRemv libx [1.0]\nInst liby [1.0] (2.0 localhost [amd64]) []\nInst mod:amd64 (560.1-1 localhost [amd64])\nConf mod (560.1-1 localhost [amd64])\n";
        let shown: Vec<String> = parse_simulation(text)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            shown,
            ["libx 1.0 removed", "liby 1.0 -> 2.0", "mod 560.1-1"]
        );
    }
}
