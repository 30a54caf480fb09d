//! Which packages a kernel needs, by the table or by the policy.

use gdr_policy::{PeermemPackage, Policy};

use super::back::{Back, text};
use super::candidates::fits;
use super::survey::Need;
use super::table::{Row, Wanted, fill, find, rows};
use super::{Manager, Problem, apt, dnf, outcome};
use crate::facts::{Facts, Os};

impl Back<'_> {
    /// What to install for one kernel, in the manager's words; none with a note where there is nothing.
    pub(super) fn wanted(
        &self,
        policy: &Policy,
        facts: &Facts,
        os: &Os,
        need: &Need,
        notes: &mut Vec<String>,
    ) -> Result<Option<Vec<String>>, Problem> {
        if let PeermemPackage::Name(name) = &policy.peermem.package {
            let name = name.as_str();
            if self.installed.has(name) {
                return Err(no_module(name, &need.kernel));
            }
            let version = self.choose(name, None, "", "")?;
            return Ok(Some(vec![self.spec(name, &version)]));
        }
        let Some(driver) = need.version.as_deref() else {
            let message = format!(
                "the driver of kernel {} is not known, and its module has to be of the same version",
                need.kernel
            );
            let fix =
                "install the driver, or load it once; or name the package in `peermem.package`";
            return Err(Problem::new("package.version-unknown", message, fix));
        };
        let rows = rows().map_err(|why| {
            Problem::new(
                "package.no-row",
                format!("the table of packages: {why}"),
                outcome::BY_HAND,
            )
        })?;
        let wanted = Wanted {
            os,
            origin: facts.gdr.origin.get().copied(),
            kernel: &need.kernel,
            version: driver,
            flavour: need.flavour,
        };
        let Some(row) =
            find(&rows, &wanted, &self.installed).filter(|row| row.manager == Some(self.manager))
        else {
            notes.push(format!(
                "package.no-row: which package brings nvidia-peermem on {} {} is not known here; name it in `peermem.package`",
                os.id,
                os.version.as_deref().unwrap_or_default()
            ));
            return Ok(None);
        };
        notes.extend(row.note.as_ref().map(|note| format!("{}: {note}", row.id)));
        self.of_row(row, need, driver).map(Some)
    }

    fn of_row(&self, row: &Row, need: &Need, driver: &str) -> Result<Vec<String>, Problem> {
        let kernel = &need.kernel;
        let mut specs = Vec::new();
        let mut all_there = true;
        for template in &row.packages {
            let name = fill(template, kernel, driver);
            let there = self.installed.get(&name).is_some_and(|package| {
                row.pin
                    .is_none_or(|pin| fits(pin, &package.version, driver, kernel))
            });
            if there {
                continue;
            }
            all_there = false;
            let on = row.driver_package.as_deref().unwrap_or_default();
            let on = fill(on, kernel, driver);
            let version = self.choose(&name, row.pin, driver, &on)?;
            specs.push(self.spec(&name, &version));
        }
        let Some(headers) = row.headers.as_deref().filter(|_| row.dkms) else {
            return match all_there {
                true => Err(no_module(&row.packages.join(", "), kernel)),
                false => Ok(specs),
            };
        };
        let build = format!("/lib/modules/{kernel}/build");
        if matches!(self.root.stat(&build), Ok(Some(_))) {
            if all_there {
                let message = format!(
                    "{} is installed and kernel {kernel} has headers, and DKMS has not built the module",
                    row.packages.join(", ")
                );
                let fix = format!("`dkms autoinstall -k {kernel}`, and look at what it says");
                return Err(Problem::new("package.not-built", message, fix));
            }
            return Ok(specs);
        }
        let headers = fill(headers, kernel, driver);
        specs.push(self.headers(&headers, kernel)?);
        Ok(specs)
    }

    /// The package of a kernel's headers, without which DKMS builds nothing.
    fn headers(&self, name: &str, kernel: &str) -> Result<String, Problem> {
        let fail = || {
            Problem::new(
                "package.no-headers",
                format!(
                    "kernel {kernel} has no headers for DKMS to build against, and no repository has {name}"
                ),
                "add the repository that the kernel is from, or boot a kernel that has headers",
            )
        };
        match self.manager {
            Manager::Apt => {
                let said = self.ask(&apt::policy(self.root, name))?;
                let offered = apt::parse_policy(&text(&said.stdout));
                let chosen = apt::choose(&offered, |_| true).ok_or_else(fail)?;
                Ok(self.spec(name, &chosen.version))
            }
            Manager::Dnf => {
                // Of the form NAME-VERSION-RELEASE.ARCH: dnf takes that as it is.
                let said = self.ask(&dnf::candidates(self.root, self.five, name, false))?;
                let any = text(&said.stdout).lines().any(|line| line.contains('\t'));
                any.then(|| name.to_owned()).ok_or_else(fail)
            }
            Manager::Zypper => Err(fail()),
        }
    }
}

fn no_module(package: &str, kernel: &str) -> Problem {
    Problem::new(
        "package.no-module",
        format!("{package} is installed and brings no nvidia-peermem for kernel {kernel}"),
        "install the driver's kernel-module package for exactly this kernel, or use DMA-BUF",
    )
}
