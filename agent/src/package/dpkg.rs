//! dpkg's database, read directly: `status`, `status.d` of images without dpkg, and what an interrupted run leaves.

use super::version;
use super::{Installed, Package, Problem};
use crate::sys::{EntryKind, Root, SysError};

pub(super) const STATUS: &str = "/var/lib/dpkg/status";
const STATUS_D: &str = "/var/lib/dpkg/status.d";
const UPDATES: &str = "/var/lib/dpkg/updates";

/// What to do about a database that is not in order.
pub(super) const REPAIR: &str =
    "`dpkg --configure -a`, then `apt-get -f install`; `dpkg --audit` says what is left";

/// Everything that is installed.
///
/// # Errors
/// A file is there and cannot be read.
pub(super) fn installed(root: &Root) -> Result<Installed, SysError> {
    let mut packages = Vec::new();
    if let Some(bytes) = root.read_if_there(STATUS)? {
        packages = parse_status(&String::from_utf8_lossy(&bytes));
    }
    // What dpkg has noted since, and has not put into `status` if it was killed.
    for name in pending(root)? {
        let bytes = root.read_if_there(&format!("{UPDATES}/{name}"))?;
        for package in parse_status(&String::from_utf8_lossy(&bytes.unwrap_or_default())) {
            packages.retain(|old| old.name != package.name);
            packages.push(package);
        }
    }
    for entry in root.list(STATUS_D)? {
        if entry.kind == EntryKind::Dir || entry.name.ends_with(".md5sums") {
            continue;
        }
        let bytes = root.read_if_there(&format!("{STATUS_D}/{}", entry.name))?;
        let text = String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned();
        packages.extend(records(&text).filter_map(|record| {
            Some(Package {
                name: field(record, "Package")?.to_owned(),
                version: field(record, "Version").unwrap_or_default().to_owned(),
                broken: None,
                held: false,
            })
        }));
    }
    Ok(Installed { packages })
}

/// Packages that are not in order, and journals of a run that was interrupted.
///
/// # Errors
/// The directory is there and cannot be listed.
pub(super) fn broken(root: &Root, installed: &Installed) -> Result<Option<Problem>, SysError> {
    let mut wrong: Vec<String> = installed
        .packages
        .iter()
        .filter_map(|p| Some(format!("{} is {}", p.name, p.broken.as_ref()?)))
        .collect();
    if !pending(root)?.is_empty() {
        wrong.push(format!(
            "{UPDATES} has records of a dpkg that was interrupted"
        ));
    }
    if wrong.is_empty() {
        return Ok(None);
    }
    let message = format!("dpkg's database is not in order: {}", wrong.join(", "));
    Ok(Some(Problem::new(
        "package.broken-database",
        message,
        REPAIR,
    )))
}

/// The journal of a run: files with numbers for names, in order.
fn pending(root: &Root) -> Result<Vec<String>, SysError> {
    let entries = root.list(UPDATES)?.into_iter().map(|entry| entry.name);
    let number = |name: &String| !name.is_empty() && name.bytes().all(|b| b.is_ascii_digit());
    let mut names: Vec<String> = entries.filter(number).collect();
    names.sort();
    Ok(names)
}

/// The packages of `/var/lib/dpkg/status` that are installed, wholly or not (dpkg(1), "package states").
#[must_use]
pub fn parse_status(text: &str) -> Vec<Package> {
    let one = |record: &str| {
        let name = field(record, "Package")?.to_owned();
        let version = field(record, "Version").unwrap_or_default().to_owned();
        let mut words = field(record, "Status")?.split_whitespace();
        let (want, flag, state) = (words.next()?, words.next()?, words.next()?);
        if matches!(state, "not-installed" | "config-files") {
            return None;
        }
        let broken = match (flag, state) {
            // Triggers are worked off by whoever runs dpkg next.
            ("ok", "installed" | "triggers-pending" | "triggers-awaited") => None,
            ("ok", state) => Some(state.to_owned()),
            (flag, _) => Some(flag.to_owned()),
        };
        Some(Package {
            name,
            version,
            broken,
            held: want == "hold",
        })
    };
    records(text).filter_map(one).collect()
}

/// Paragraphs of a control file (deb822(5)).
pub(super) fn records(text: &str) -> impl Iterator<Item = &str> {
    text.split("\n\n")
        .filter(|record| !record.trim().is_empty())
}

/// A field of one line in a paragraph.
pub(super) fn field<'a>(record: &'a str, name: &str) -> Option<&'a str> {
    record.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

/// The driver's version that a package for one kernel is for: the highest that its dependency on a package of the driver
/// asks for, such as 570.148.08 of `nvidia-kernel-common-570-server (>= 570.148.08)`.
pub(super) fn needed_driver(depends: &str, driver_package: &str) -> Option<String> {
    let at_least = depends.split([',', '|']).filter_map(|one| {
        let (name, rest) = one.trim().split_once('(')?;
        let wanted = rest.trim().strip_suffix(')')?;
        let version = wanted
            .strip_prefix(">=")
            .or_else(|| wanted.strip_prefix("="))?;
        (name.trim() == driver_package).then(|| version::upstream(version.trim()).to_owned())
    });
    at_least.max_by(|a, b| version::dpkg(a, b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_of_packages() {
        let text = "Package: a\nStatus: install ok installed\nVersion: 1:2-3\nDescription: x\n y\n\n\
            Package: b\nStatus: deinstall ok config-files\nVersion: 1\n\n\
            Package: c\nStatus: hold ok installed\nVersion: 2\n\n\
            Package: d\nStatus: install ok half-configured\nVersion: 3\n\n\
            Package: e\nStatus: install reinstreq half-installed\nVersion: 4\n\n\
            Package: f\nStatus: install ok triggers-awaited\nVersion: 5\n";
        let all = parse_status(text);
        let short: Vec<_> = all
            .iter()
            .map(|p| {
                (
                    p.name.as_str(),
                    p.version.as_str(),
                    p.broken.as_deref(),
                    p.held,
                )
            })
            .collect();
        assert_eq!(
            short,
            [
                ("a", "1:2-3", None, false),
                ("c", "2", None, true),
                ("d", "3", Some("half-configured"), false),
                ("e", "4", Some("reinstreq"), false),
                ("f", "5", None, false),
            ]
        );
        assert_eq!(parse_status("\n\nnothing\n\nPackage: x\n"), []);
    }

    #[test]
    fn the_driver_is_in_the_dependencies() {
        // As of packages.ubuntu.com.
        let depends = "linux-image-6.8.0-45-generic | linux-image-unsigned-6.8.0-45-generic, linux-objects-nvidia-570-server-open-6.8.0-45-generic (= 6.8.0-45.45), nvidia-kernel-common-570-server (<= 570.148.08-1), nvidia-kernel-common-570-server (>= 570.148.08)";
        let of = |name| needed_driver(depends, name);
        assert_eq!(
            of("nvidia-kernel-common-570-server").as_deref(),
            Some("570.148.08")
        );
        assert_eq!(of("nvidia-kernel-common-570"), None);
    }
}
