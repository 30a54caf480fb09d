//! What installing would do, by the manager's own word.

use super::back::{Back, text, unreadable};
use super::harm::harmless;
use super::{Change, Manager, Problem, apt, dnf, is_kernel, outcome, zypper};
use crate::sys::process::Output;

impl Back<'_> {
    /// What installing would do.
    pub(super) fn simulate(&self, specs: &[String]) -> Result<Vec<Change>, Problem> {
        let failed = "would not install it";
        let mut changes = match self.manager {
            Manager::Apt => {
                let output = self.ask(&apt::simulate(self.root, specs))?;
                let changes = apt::parse_simulation(&text(&output.stdout));
                if output.status != Some(0) {
                    return Err(self.refused(specs, failed, &output, &changes));
                }
                changes
            }
            Manager::Dnf => {
                let output = self.ask(&dnf::simulate(self.root, self.five, specs))?;
                let changes = dnf::parse_simulation(&text(&output.stdout));
                // Answered no, it ends with 1 as it does after an error.
                if changes.is_empty() {
                    return Err(self.refused(specs, failed, &output, &changes));
                }
                changes
            }
            Manager::Zypper => {
                self.locked(specs)?;
                let output = self.ask(&zypper::simulate(self.root, specs))?;
                let changes = zypper::parse_simulation(&text(&output.stdout)).unwrap_or_default();
                if output.status != Some(0) {
                    return Err(self.refused(specs, failed, &output, &changes));
                }
                changes
            }
        };
        for change in changes
            .iter_mut()
            .filter(|c| c.new.is_some() && c.old.is_none())
        {
            // dnf 4 does not say what is replaced; of kernels several stay.
            let now = self
                .installed
                .get(&change.name)
                .filter(|_| !is_kernel(&change.name));
            change.old = now
                .map(|package| package.version.clone())
                .filter(|old| Some(old) != change.new.as_ref());
        }
        if changes.is_empty() {
            let message = format!(
                "{} says that there is nothing to do for {}",
                self.manager.name(),
                specs.join(" ")
            );
            return Err(Problem::new("package.no-module", message, outcome::BY_HAND));
        }
        Ok(changes)
    }

    /// Locks of zypper are silent in what it prints.
    fn locked(&self, specs: &[String]) -> Result<(), Problem> {
        let locks = zypper::locks(self.root).map_err(|e| unreadable(&e))?;
        for spec in specs {
            let name = spec.split('=').next().unwrap_or(spec);
            if let Some(lock) = locks.iter().find(|lock| zypper::is_locked(lock, name)) {
                let message = format!("{name} is locked by `{lock}`");
                return Err(Problem::new("package.held", message, outcome::UNHOLD));
            }
        }
        Ok(())
    }

    fn refused(
        &self,
        specs: &[String],
        what: &str,
        output: &Output,
        changes: &[Change],
    ) -> Problem {
        let problem = self.explain(what, output);
        // That a hold is the cause is said nowhere: the dependency that cannot be met is of what is held.
        let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
        let mut held = self
            .installed
            .packages
            .iter()
            .filter(|package| package.held);
        let named = |name: &str| {
            let words = said.split(|c: char| c.is_whitespace() || "():,".contains(c));
            let mut words = words.filter(|word| !word.is_empty());
            words.any(|word| word == name)
                || specs
                    .iter()
                    .any(|spec| spec.starts_with(&format!("{name}=")))
        };
        if let Some(package) = held.find(|package| named(&package.name)) {
            let message = format!(
                "{} is held at {}: {}",
                package.name, package.version, problem.message
            );
            return Problem::new("package.held", message, outcome::UNHOLD);
        }
        match harmless(self.manager, changes, &self.installed) {
            Err(worse) if problem.id == "package.failed" => worse,
            _ => problem,
        }
    }
}
