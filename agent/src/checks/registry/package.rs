//! What stands between a node and the package that brings nvidia-peermem (`docs/packages.md`).

use super::super::Severity;
use super::{Entry, Kind};

const fn package(
    id: &'static str,
    question: &'static str,
    symptom: &'static str,
    fix: &'static str,
) -> Entry {
    Entry {
        id,
        kind: Kind::Plan,
        question,
        severity: Severity::Warning,
        facts: &["the package manager"],
        symptom,
        fix,
        explains: &[],
    }
}

pub(super) const ENTRIES: &[Entry] = &[
    package(
        "package.no-use",
        "Is there an RDMA core that nvidia-peermem could register with?",
        "no package is looked for",
        "install OFED first, or use DMA-BUF",
    ),
    package(
        "package.not-packaged",
        "Did a package bring the driver?",
        "no package fits a driver that an installer or a container brought",
        "use the same installer again, with its option for the module",
    ),
    package(
        "package.no-manager",
        "Is there a package database?",
        "nothing is installed",
        "install the driver's kernel-module package by hand",
    ),
    package(
        "package.no-row",
        "Is this distribution in the table of packages?",
        "no package is named",
        "name the package: `peermem.package = \"NAME\"`",
    ),
    package(
        "package.image-based",
        "Are packages installed into the running system here?",
        "the package manager refuses, or what it installs is gone after a reboot",
        "`rpm-ostree install`, `transactional-update`, or the image's own build",
    ),
    package(
        "package.version-unknown",
        "Is the version of the driver known?",
        "no version can be chosen",
        "install or load the driver first",
    ),
    package(
        "package.no-repository",
        "Has the package manager an index to look in?",
        "`apt-cache policy` knows nothing",
        "add the repository and refresh its index",
    ),
    package(
        "package.no-candidate",
        "Has a repository the package for exactly this driver?",
        "the package is there in other versions, or not at all",
        "add the repository that the driver is from, or move the driver",
    ),
    package(
        "package.held",
        "May the package be changed?",
        "held back, locked, or pinned away",
        "release it, if that is meant",
    ),
    package(
        "package.would-remove",
        "Would everything that is installed stay?",
        "the package manager would remove or replace packages",
        "do it by hand, knowing what goes",
    ),
    package(
        "package.would-upgrade",
        "Would driver and kernel stay as they are?",
        "the package manager would change the driver or bring a kernel",
        "move driver and kernel first, in a window of their own",
    ),
    package(
        "package.unmet-dependencies",
        "Can everything that the package needs be had?",
        "`unmet dependencies`, `nothing provides`",
        "add the repository, or resolve it by hand",
    ),
    package(
        "package.two-drivers",
        "Is one driver installed, and no other?",
        "modules of more than one driver",
        "remove all but one",
    ),
    package(
        "package.no-headers",
        "Has DKMS headers to build against?",
        "DKMS builds nothing for this kernel",
        "add the repository of the kernel, or boot a kernel that has headers",
    ),
    package(
        "package.not-built",
        "Has DKMS built the module?",
        "package and headers are there, and the module is not",
        "`dkms autoinstall -k KERNEL`, and look at its log",
    ),
    package(
        "package.no-module",
        "Does the package bring a module that works?",
        "the install succeeded and nvidia-peermem is not there, or would not load",
        "see the finding that is named with it",
    ),
    package(
        "package.broken-database",
        "Is the package database in order?",
        "`dpkg was interrupted`, `rpmdb open failed`",
        "`dpkg --configure -a`, `apt-get -f install`, `rpmdb --rebuilddb`",
    ),
    package(
        "package.untrusted",
        "Is the repository signed by a key that this node has?",
        "`NO_PUBKEY`, `GPG check FAILED`",
        "import the key, or leave the repository out",
    ),
    package(
        "package.download-failed",
        "Can the repositories be reached?",
        "`Failed to fetch`, `Curl error`",
        "make it reachable and run the command again",
    ),
    package(
        "package.locked",
        "Is no other package manager at work?",
        "`Could not get lock`",
        "wait for it and run the command again",
    ),
    package(
        "package.disk-full",
        "Is there room for the package?",
        "`No space left on device`",
        "free some room and run the command again",
    ),
    package(
        "package.script-failed",
        "Did the package's scripts succeed?",
        "a script returned an error",
        "look at the log; the package is in the state that is told",
    ),
    package(
        "package.interrupted",
        "Did the package manager end by itself?",
        "it was killed",
        "`dpkg --configure -a`, or run the command again",
    ),
    package(
        "package.timeout",
        "Did the package manager end in time?",
        "it was stopped after its limit",
        "look at what it waits for, and run the command again",
    ),
    package(
        "package.failed",
        "Did the package manager succeed?",
        "an error of its own",
        "by hand",
    ),
];
