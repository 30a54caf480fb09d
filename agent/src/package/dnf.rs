//! dnf 4 and 5: what to ask, and how to read the answers.

use super::{Change, rpm};
use crate::sys::Root;

/// What dnf 4 ends with when another one is at work, since it is told not to wait: it would without a limit.
pub(super) const LOCKED: i32 = 200;

/// Which of the two there is: from release 5 on the name `dnf` is a link.
pub(super) fn is_five(root: &Root) -> bool {
    let five = |path| {
        let link = root.link(path).ok().flatten();
        link.is_some_and(|target| target.ends_with("dnf5"))
    };
    five("/usr/bin/dnf")
}

fn command(root: &Root, five: bool) -> Vec<String> {
    let mut argv = vec!["dnf".to_owned()];
    if !root.is_live() {
        argv.push(format!("--installroot={}", root.path().to_string_lossy()));
    }
    argv.push("--setopt=install_weak_deps=False".to_owned());
    if !five {
        argv.push("--setopt=exit_on_lock=True".to_owned());
    }
    argv
}

/// All versions that the repositories have, with or without what the node excludes.
pub(super) fn candidates(root: &Root, five: bool, name: &str, excluded: bool) -> Vec<String> {
    let mut argv = command(root, five);
    argv.push("-q".to_owned());
    match (excluded, five) {
        (true, true) => argv.push("--setopt=disable_excludes=*".to_owned()),
        (true, false) => {
            argv.extend(
                ["--disableexcludes=all", "--disableplugin=versionlock"].map(str::to_owned),
            );
        }
        (false, _) => {}
    }
    let format = "%{name}\\t%{epoch}\\t%{version}\\t%{release}";
    // dnf 5 adds no line feed of its own.
    let format = if five {
        format!("{format}\\n")
    } else {
        format.to_owned()
    };
    argv.extend([
        "repoquery".to_owned(),
        "--available".to_owned(),
        "--qf".to_owned(),
    ]);
    argv.extend([
        format.replace("\\t", "\t").replace("\\n", "\n"),
        name.to_owned(),
    ]);
    argv
}

/// The versions in that answer.
pub(super) fn parse_candidates(text: &str, name: &str) -> Vec<String> {
    let found = rpm::parse(text).packages.into_iter();
    let mut versions: Vec<String> = found
        .filter(|package| package.name == name)
        .map(|package| package.version)
        .collect();
    versions.sort();
    versions.dedup();
    versions
}

pub(super) fn simulate(root: &Root, five: bool, specs: &[String]) -> Vec<String> {
    transaction(root, five, specs, "--assumeno")
}

pub(super) fn install(root: &Root, five: bool, specs: &[String]) -> Vec<String> {
    transaction(root, five, specs, "-y")
}

fn transaction(root: &Root, five: bool, specs: &[String], answer: &str) -> Vec<String> {
    let mut argv = command(root, five);
    argv.extend([answer.to_owned(), "install".to_owned()]);
    argv.extend(specs.iter().cloned());
    argv
}

/// The table that dnf prints before it asks: headings, then rows of name, architecture, version, repository and size,
/// which may be broken anywhere.
pub(super) fn parse_simulation(text: &str) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut heading = None;
    let mut words: Vec<&str> = Vec::new();
    for line in text.lines() {
        let known = line.strip_suffix(':').and_then(Heading::of);
        if known.is_some() || line.starts_with("Transaction Summary") || line.trim().is_empty() {
            take(&mut changes, heading, &words);
            words.clear();
            heading = known;
            continue;
        }
        if heading.is_some() {
            words.extend(line.split_whitespace());
        }
    }
    take(&mut changes, heading, &words);
    pair(changes)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Heading {
    New,
    Gone,
}

impl Heading {
    fn of(text: &str) -> Option<Self> {
        let starts = |words: &[&str]| words.iter().any(|word| text.starts_with(word));
        if starts(&["Installing", "Upgrading", "Downgrading", "Reinstalling"]) {
            Some(Self::New)
        } else if starts(&["Removing", "Obsoleting"]) {
            Some(Self::Gone)
        } else {
            None
        }
    }
}

fn take(changes: &mut Vec<Change>, heading: Option<Heading>, words: &[&str]) {
    let Some(heading) = heading else { return };
    let mut rest = words;
    while let [first, tail @ ..] = rest {
        if *first == "replacing" {
            // dnf 4: `replacing  NAME.ARCH VERSION`; dnf 5: a whole row.
            let [name, version, more @ ..] = tail else {
                return;
            };
            if let Some((name, _)) = name.rsplit_once('.').filter(|_| starts_with_digit(version)) {
                changes.push(gone(name, version));
                rest = more;
                continue;
            }
            let [name, _arch, version, _repository, _size, _unit, more @ ..] = tail else {
                return;
            };
            changes.push(gone(name, version));
            rest = more;
            continue;
        }
        let [name, _arch, version, _repository, _size, _unit, more @ ..] = rest else {
            return;
        };
        changes.push(match heading {
            Heading::New => Change {
                name: (*name).to_owned(),
                old: None,
                new: Some((*version).to_owned()),
            },
            Heading::Gone => gone(name, version),
        });
        rest = more;
    }
}

fn starts_with_digit(word: &str) -> bool {
    word.bytes().next().is_some_and(|b| b.is_ascii_digit())
}

fn gone(name: &str, version: &str) -> Change {
    Change {
        name: name.to_owned(),
        old: Some(version.to_owned()),
        new: None,
    }
}

/// What is replaced by another version of itself, as dnf 5 says of an upgrade, is not removed.
fn pair(changes: Vec<Change>) -> Vec<Change> {
    let mut paired: Vec<Change> = Vec::new();
    let (new, gone): (Vec<Change>, Vec<Change>) =
        changes.into_iter().partition(|c| c.new.is_some());
    paired.extend(new);
    for change in gone {
        match paired
            .iter_mut()
            .find(|c| c.name == change.name && c.old.is_none())
        {
            Some(same) => same.old = change.old,
            None => paired.push(change),
        }
    }
    paired
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        parse_simulation(text)
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn tables_of_dnf_4() {
        // As dnf 4.14 prints them.
        let text = "Dependencies resolved.\n================\n Package                    Arch        Version                    Repo    Size\n================\nInstalling:\n kmod-nvidia-open-dkms      noarch      3:570.148.08-1.el9         t      6.0 k\n a-name-that-is-so-long-that-the-table-is-broken\n                            noarch      1-1                        t      6.0 k\n     replacing  libx.noarch 1-1\nUpgrading:\n liby                       noarch      2-1                        t      5.9 k\n\nTransaction Summary\n================\nInstall  2 Packages\n\nTotal size: 12 k\nOperation aborted.\n";
        assert_eq!(
            shown(text),
            [
                "kmod-nvidia-open-dkms 3:570.148.08-1.el9",
                "a-name-that-is-so-long-that-the-table-is-broken 1-1",
                "liby 2-1",
                "libx 1-1 removed",
            ]
        );
        assert_eq!(shown("Error: Unable to find a match: nope\n"), [""; 0]);
    }

    #[test]
    fn tables_of_dnf_5() {
        // In the form of its manual: columns Package, Arch, Version, Repository, Size.
        let text = "Package      Arch   Version      Repository      Size\nInstalling:\n kmod-nvidia-open-dkms noarch 3:570.148.08-1.fc41 cuda 6.0 KiB\nUpgrading:\n libx noarch 2-1.fc41 cuda 5.9 KiB\n   replacing libx noarch 1-1.fc41 cuda 5.9 KiB\nRemoving:\n liby noarch 1-1.fc41 cuda 5.9 KiB\n\nTransaction Summary:\n Installing: 1 package\n";
        assert_eq!(
            shown(text),
            [
                "kmod-nvidia-open-dkms 3:570.148.08-1.fc41",
                "libx 1-1.fc41 -> 2-1.fc41",
                "liby 1-1.fc41 removed",
            ]
        );
    }
}
