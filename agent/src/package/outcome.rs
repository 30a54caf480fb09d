//! What a package manager that failed has said, as a finding.

use super::{Manager, Problem, dpkg};

/// Words of a message, the finding's id, and what to do. The first that is found counts: causes before consequences.
const SIGNS: [(&str, &str, &str); 47] = [
    ("could not get lock", LOCKED, WAIT),
    ("unable to acquire the dpkg frontend lock", LOCKED, WAIT),
    ("unable to lock", LOCKED, WAIT),
    ("system management is locked", LOCKED, WAIT),
    ("could not acquire lock", LOCKED, WAIT),
    ("no space left on device", FULL, ROOM),
    ("enough free space", FULL, ROOM),
    ("more space needed", FULL, ROOM),
    ("needs more space", FULL, ROOM),
    ("exited unexpectedly", "package.interrupted", dpkg::REPAIR),
    ("dpkg was interrupted", BROKEN, dpkg::REPAIR),
    (
        "database disk image is malformed",
        BROKEN,
        super::rpm::REPAIR,
    ),
    ("file is not a database", BROKEN, super::rpm::REPAIR),
    ("cannot open packages database", BROKEN, super::rpm::REPAIR),
    ("error: rpmdb open failed", BROKEN, super::rpm::REPAIR),
    ("error: rpmdb", BROKEN, super::rpm::REPAIR),
    ("no_pubkey", UNTRUSTED, KEY),
    ("gpg check failed", UNTRUSTED, KEY),
    ("gpg error", UNTRUSTED, KEY),
    ("is not installed. failing package", UNTRUSTED, KEY),
    ("signature verification failed", UNTRUSTED, KEY),
    ("signature verification error", UNTRUSTED, KEY),
    ("bad gpg signature", UNTRUSTED, KEY),
    ("cannot be authenticated", UNTRUSTED, KEY),
    ("unsigned file", UNTRUSTED, KEY),
    ("is not signed", UNTRUSTED, KEY),
    ("held packages were changed", HELD, UNHOLD),
    ("remove lock to allow", HELD, UNHOLD),
    ("remove is disabled", "package.would-remove", BY_HAND),
    ("scriptlet failed", SCRIPT, LOOK),
    ("script subprocess returned error", SCRIPT, LOOK),
    ("error processing package", SCRIPT, LOOK),
    ("failed to fetch", DOWNLOAD, MIRROR),
    ("unable to fetch", DOWNLOAD, MIRROR),
    ("failed to download", DOWNLOAD, MIRROR),
    ("error downloading", DOWNLOAD, MIRROR),
    ("cannot download", DOWNLOAD, MIRROR),
    ("curl error", DOWNLOAD, MIRROR),
    ("download (curl) error", DOWNLOAD, MIRROR),
    ("timeout exceeded when accessing", DOWNLOAD, MIRROR),
    ("connection failed", DOWNLOAD, MIRROR),
    ("failed to provide package", DOWNLOAD, MIRROR),
    ("valid metadata not found", DOWNLOAD, MIRROR),
    ("unmet dependencies", UNMET, BY_HAND),
    ("nothing provides", UNMET, BY_HAND),
    ("conflicting requests", UNMET, BY_HAND),
    ("held broken packages", UNMET, BY_HAND),
];

const LOCKED: &str = "package.locked";
const FULL: &str = "package.disk-full";
const BROKEN: &str = "package.broken-database";
const UNTRUSTED: &str = "package.untrusted";
const HELD: &str = "package.held";
const SCRIPT: &str = "package.script-failed";
const DOWNLOAD: &str = "package.download-failed";
const UNMET: &str = "package.unmet-dependencies";

const WAIT: &str = "another package manager is at work: run the command again when it has ended";
const ROOM: &str = "free some space and run the command again";
const KEY: &str = "import the key of that repository, or leave the repository out; nothing is installed unchecked";
pub(super) const UNHOLD: &str = "release the hold if the change is meant (`apt-mark unhold`, `dnf versionlock delete`, `zypper removelock`)";
const LOOK: &str = "the package's own script failed: its output is kept with the transaction";
const MIRROR: &str = "make the node's repositories reachable and run the command again";
pub(super) const BY_HAND: &str =
    "decide by hand: try the same with the package manager; or set `peermem.package = \"none\"`";

/// The finding for what was said.
pub(super) fn explain(manager: Manager, what: &str, said: &str) -> Problem {
    let low = said.to_lowercase();
    let sign = SIGNS.iter().find(|(words, ..)| low.contains(words));
    let (id, fix) = sign.map_or(("package.failed", BY_HAND), |(_, id, fix)| (*id, *fix));
    let fix = match (id, manager) {
        (BROKEN, Manager::Apt) => dpkg::REPAIR,
        (BROKEN, _) => super::rpm::REPAIR,
        _ => fix,
    };
    Problem::new(
        id,
        format!("{} {what}: {}", manager.name(), tail(said)),
        fix,
    )
}

/// The lines that matter, on one line.
pub(super) fn tail(said: &str) -> String {
    let lines: Vec<&str> = said
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('<'))
        // dnf's word on a root without a release package, which is not why anything fails.
        .filter(|line| !line.starts_with("Unable to detect release version"))
        .collect();
    let says = |line: &&&str| {
        let low = line.to_lowercase();
        [
            "e:",
            "error",
            "dpkg:",
            "problem",
            "no match",
            "nothing provides",
            "curl error",
            "unable to",
        ]
        .iter()
        .any(|start| low.starts_with(start))
            // dnf's reasons.
            || low.starts_with("- ")
            || low.contains("gpg check failed")
            || low.contains("depends:")
    };
    let mut told: Vec<&str> = lines.iter().filter(says).copied().take(6).collect();
    if told.is_empty() {
        told = lines.iter().rev().take(3).rev().copied().collect();
    }
    let text = told.join(" | ");
    if text.is_empty() {
        "it said nothing".to_owned()
    } else {
        text.chars().take(600).collect()
    }
}
