//! The versions that the repositories have, and the one that is for the driver.

use super::back::{Back, text};
use super::table::Pin;
use super::{Manager, Problem, apt, dnf, dpkg, outcome, version, zypper};
use crate::sys::process::Output;

impl Back<'_> {
    /// The version to install: the newest that is for this driver.
    pub(super) fn choose(
        &self,
        name: &str,
        pin: Option<Pin>,
        driver: &str,
        on: &str,
    ) -> Result<String, Problem> {
        let offered = self.offered(name)?;
        let fit = |version: &str| match pin {
            None => Ok(true),
            Some(Pin::Dependency) => self.is_for(name, version, driver, on),
            Some(pin) => Ok(fits(pin, version, driver, "")),
        };
        let mut best: Option<&apt::Offered> = None;
        for one in &offered {
            if one.priority < 0 || !fit(&one.version)? {
                continue;
            }
            let newer = best.is_none_or(|best| {
                let order = match self.manager {
                    Manager::Apt => version::dpkg(&one.version, &best.version),
                    _ => version::rpm(&one.version, &best.version),
                };
                one.priority.cmp(&best.priority).then(order).is_gt()
            });
            if newer {
                best = Some(one);
            }
        }
        match best {
            Some(best) => Ok(best.version.clone()),
            None => Err(self.no_candidate(name, driver, &offered)),
        }
    }

    fn offered(&self, name: &str) -> Result<Vec<apt::Offered>, Problem> {
        let plain = |versions: Vec<String>| {
            let one = |version| apt::Offered {
                version,
                priority: 0,
            };
            versions.into_iter().map(one).collect()
        };
        match self.manager {
            Manager::Apt => {
                let output = self.ask(&apt::policy(self.root, name))?;
                Ok(apt::parse_policy(&text(&output.stdout)))
            }
            Manager::Dnf => {
                if let Some(problem) = self.no_repository() {
                    return Err(problem);
                }
                let argv = dnf::candidates(self.root, self.five, name, false);
                let output = self.ask(&argv)?;
                if output.status != Some(0) {
                    return Err(self.explain("could not look in the repositories", &output));
                }
                self.or_skipped(dnf::parse_candidates(&text(&output.stdout), name), &output)
                    .map(plain)
            }
            Manager::Zypper => {
                if let Some(problem) = self.no_repository() {
                    return Err(problem);
                }
                let output = self.ask(&zypper::candidates(self.root, name))?;
                if !matches!(output.status, Some(0 | zypper::NOT_FOUND)) {
                    return Err(self.explain("could not look in the repositories", &output));
                }
                let found = zypper::parse_candidates(&text(&output.stdout), name);
                let found = found.map_err(|why| {
                    let message = format!("zypper's answer cannot be read: {why}");
                    Problem::new("package.failed", message, outcome::BY_HAND)
                })?;
                self.or_skipped(found, &output).map(plain)
            }
        }
    }

    /// A repository that cannot be reached or believed is left out with a word, and nothing is found then.
    fn or_skipped(&self, found: Vec<String>, output: &Output) -> Result<Vec<String>, Problem> {
        let problem = self.explain("could not use all repositories", output);
        match found.is_empty() && problem.id != "package.failed" {
            true => Err(problem),
            false => Ok(found),
        }
    }

    /// Whether a package for one kernel is for this driver. Without such a dependency nothing tells, and then it is not.
    fn is_for(&self, name: &str, version: &str, driver: &str, on: &str) -> Result<bool, Problem> {
        let output = self.ask(&apt::show(self.root, name))?;
        let depends = apt::depends(&text(&output.stdout), version).unwrap_or_default();
        Ok(dpkg::needed_driver(&depends, on).as_deref() == Some(driver))
    }

    fn no_candidate(&self, name: &str, driver: &str, offered: &[apt::Offered]) -> Problem {
        if let Some(problem) = self.no_repository() {
            return problem;
        }
        let excluded = match self.manager {
            Manager::Apt => offered.iter().any(|one| one.priority < 0),
            Manager::Dnf => {
                let output = self.ask(&dnf::candidates(self.root, self.five, name, true));
                output.is_ok_and(|output| {
                    let all = dnf::parse_candidates(&text(&output.stdout), name);
                    all.iter()
                        .any(|version| driver.is_empty() || fits(Pin::Version, version, driver, ""))
                })
            }
            Manager::Zypper => false,
        };
        if excluded {
            let message = format!("{name} is there, and the node's own configuration excludes it");
            return Problem::new("package.held", message, outcome::UNHOLD);
        }
        let there: Vec<&str> = offered.iter().map(|one| one.version.as_str()).collect();
        let message = match (there.is_empty(), driver) {
            (true, _) => format!("no repository of this node has {name}"),
            (false, "") => format!("{name} cannot be installed"),
            (false, driver) => format!(
                "no {name} for driver {driver}: there is {}",
                there.join(", ")
            ),
        };
        let fix = "add the repository that the driver is from and refresh its index, or move the driver to a version that is there";
        Problem::new("package.no-candidate", message, fix)
    }

    /// Whether there is anything to look in at all.
    fn no_repository(&self) -> Option<Problem> {
        let dir = match self.manager {
            Manager::Apt => "/var/lib/apt/lists",
            Manager::Dnf => "/etc/yum.repos.d",
            Manager::Zypper => "/etc/zypp/repos.d",
        };
        let entries = self.root.list(dir).unwrap_or_default();
        let some = entries.iter().any(|entry| match self.manager {
            Manager::Apt => entry.name.contains("_Packages") || entry.name.contains("_InRelease"),
            _ if !entry.name.ends_with(".repo") => false,
            // One that cannot be read is the manager's to complain about.
            _ => self
                .root
                .read_if_there(&format!("{dir}/{}", entry.name))
                .map_or(true, |bytes| has_enabled(&text(&bytes.unwrap_or_default()))),
        });
        if some {
            return None;
        }
        let (message, fix) = match self.manager {
            Manager::Apt => (
                "apt has no index of any repository",
                "add a repository if there is none, then `apt-get update`, and look at what it says",
            ),
            _ => (
                "no repository is configured and enabled",
                "add the repository that the driver is from",
            ),
        };
        Some(Problem::new(
            "package.no-repository",
            format!("{dir}: {message}"),
            fix,
        ))
    }
}

/// Whether a `.repo` file has a section that is not switched off; without `enabled` it is on.
fn has_enabled(repo: &str) -> bool {
    let mut sections = repo.split("\n[").filter(|section| section.contains(']'));
    sections.any(|section| {
        let mut lines = section.lines().filter_map(|line| line.split_once('='));
        let off = |value: &str| {
            matches!(
                value.trim().to_lowercase().as_str(),
                "0" | "no" | "false" | "off"
            )
        };
        !lines.any(|(key, value)| key.trim() == "enabled" && off(value))
    })
}

/// Whether a version is one of the driver's.
pub(super) fn fits(pin: Pin, package: &str, driver: &str, kernel: &str) -> bool {
    let evr = version::Evr::of(package);
    match pin {
        Pin::Upstream => version::upstream(package) == driver,
        Pin::Version => evr.version == driver,
        Pin::Kmp => evr
            .version
            .strip_prefix(driver)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with("_k")),
        // The name has the kernel, and no other version of it is wanted.
        Pin::Dependency => !kernel.is_empty(),
    }
}
