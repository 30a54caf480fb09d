//! zypper: what to ask it, and how to read its XML.

use super::Change;
use crate::sys::{Root, SysError};

/// What zypper ends with when another one is at work (zypper(8), `ZYPPER_EXIT_ZYPP_LOCKED`).
pub(super) const LOCKED: i32 = 7;
/// What it ends with when nothing has that name.
pub(super) const NOT_FOUND: i32 = 104;

const LOCKS: &str = "/etc/zypp/locks";

/// How long it waits for another one to end, in seconds: less than a question may take.
pub(super) const ENV: [(&str, &str); 1] = [("ZYPP_LOCK_TIMEOUT", "60")];

fn command(root: &Root) -> Vec<String> {
    let mut argv = ["zypper", "--non-interactive", "--xmlout"]
        .map(str::to_owned)
        .to_vec();
    if !root.is_live() {
        argv.extend([
            "--root".to_owned(),
            root.path().to_string_lossy().into_owned(),
        ]);
    }
    argv
}

pub(super) fn candidates(root: &Root, name: &str) -> Vec<String> {
    let mut argv = command(root);
    argv.extend(["search", "-s", "--match-exact", "-t", "package", "--"].map(str::to_owned));
    argv.push(name.to_owned());
    argv
}

pub(super) fn simulate(root: &Root, specs: &[String]) -> Vec<String> {
    transaction(root, specs, Some("--dry-run"))
}

pub(super) fn install(root: &Root, specs: &[String]) -> Vec<String> {
    transaction(root, specs, None)
}

fn transaction(root: &Root, specs: &[String], more: Option<&str>) -> Vec<String> {
    let mut argv = command(root);
    argv.push("install".to_owned());
    argv.extend(more.map(str::to_owned));
    let fixed = [
        "--no-recommends",
        "--no-force-resolution",
        "--auto-agree-with-licenses",
        "--",
    ];
    argv.extend(fixed.map(str::to_owned));
    argv.extend(specs.iter().cloned());
    argv
}

/// Versions in the answer to a search.
///
/// # Errors
/// It is not XML.
pub(super) fn parse_candidates(text: &str, name: &str) -> Result<Vec<String>, String> {
    let document = roxmltree::Document::parse(text).map_err(|e| e.to_string())?;
    let solvables = document
        .descendants()
        .filter(|node| node.has_tag_name("solvable"));
    let mut versions: Vec<String> = solvables
        .filter(|node| node.attribute("name") == Some(name))
        .filter_map(|node| node.attribute("edition").map(str::to_owned))
        .collect();
    versions.sort();
    versions.dedup();
    Ok(versions)
}

/// What a dry run would do. `to-upgrade`, `to-change-arch` and the like have `edition-old`.
///
/// # Errors
/// It is not XML.
pub(super) fn parse_simulation(text: &str) -> Result<Vec<Change>, String> {
    let document = roxmltree::Document::parse(text).map_err(|e| e.to_string())?;
    let solvables = document.descendants().filter(|node| {
        node.has_tag_name("solvable") && node.attribute("type").is_none_or(|kind| kind == "package")
    });
    let change = |node: roxmltree::Node| {
        let name = node.attribute("name")?.to_owned();
        let edition = node.attribute("edition").map(str::to_owned);
        let removed = node
            .parent()
            .is_some_and(|list| list.tag_name().name().starts_with("to-remove"));
        Some(if removed {
            Change {
                name,
                old: edition,
                new: None,
            }
        } else {
            Change {
                name,
                old: node.attribute("edition-old").map(str::to_owned),
                new: edition,
            }
        })
    };
    Ok(solvables.filter_map(change).collect())
}

/// The text of its messages, one a line.
pub(super) fn messages(text: &str) -> String {
    let Ok(document) = roxmltree::Document::parse(text) else {
        return text.to_owned();
    };
    let mut lines = Vec::new();
    for node in document.descendants() {
        let kind = node.tag_name().name();
        let in_prompt = || node.ancestors().any(|n| n.has_tag_name("prompt"));
        let start = match (kind, node.attribute("type")) {
            ("message", Some("error")) => "Error: ",
            ("message", _) => "",
            ("description", _) if in_prompt() => "Problem: ",
            _ => continue,
        };
        let texts = node.descendants().filter(roxmltree::Node::is_text);
        let said: String = texts.filter_map(|n| n.text()).collect();
        lines.push(format!("{start}{}", said.trim().replace('\n', " ")));
    }
    lines.join("\n")
}

/// Names and patterns that a person has locked.
///
/// # Errors
/// The file is there and cannot be read.
pub(super) fn locks(root: &Root) -> Result<Vec<String>, SysError> {
    let bytes = root.read_if_there(LOCKS)?.unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let names = text
        .lines()
        .filter_map(|line| line.strip_prefix("solvable_name:"));
    Ok(names.map(|name| name.trim().to_owned()).collect())
}

/// Whether a name fits a pattern with `*`.
pub(super) fn is_locked(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else {
        return false;
    };
    let mut stars = false;
    let mut last = "";
    for part in parts {
        stars = true;
        last = part;
        match rest.find(part) {
            Some(at) => rest = rest.get(at + part.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    rest.is_empty() || (stars && (last.is_empty() || name.ends_with(last)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_with_patterns() {
        for (pattern, name, expected) in [
            ("libx", "libx", true),
            ("libx", "libxy", false),
            ("nvidia-*", "nvidia-open-driver", true),
            ("*-kmp-*", "nvidia-kmp-default", true),
            ("*-kmp", "a-kmp-kmp", true),
            ("*-kmp", "a-kmp-x", false),
        ] {
            assert_eq!(is_locked(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn what_a_dry_run_says() {
        // As zypper 1.14.42 prints it.
        let text = "<?xml version='1.0'?>\n<stream>\n<install-summary packages-to-change=\"2\">\n<to-upgrade>\n<solvable type=\"package\" name=\"libx\" edition=\"2-1\" arch=\"noarch\" edition-old=\"1-1\" arch-old=\"noarch\" summary=\"x\">\n<description>x</description></solvable>\n</to-upgrade>\n<to-remove><solvable type=\"package\" name=\"liby\" edition=\"1-1\"/></to-remove></install-summary>\n</stream>\n";
        let shown: Vec<String> = parse_simulation(text)
            .unwrap()
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(shown, ["libx 1-1 -> 2-1", "liby 1-1 removed"]);
        assert!(parse_simulation("not XML").is_err());
    }
}
