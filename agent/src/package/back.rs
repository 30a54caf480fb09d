//! A package manager, asked.

use std::time::Duration;

use super::{Installed, Manager, Problem, apt, dnf, dpkg, outcome, rpm, zypper};
use crate::sys::process::{self, Ended, Output};
use crate::sys::{Root, SysError, clock};

/// Questions to a package manager; dnf and zypper may fetch their repositories' indexes first.
const ASK: Duration = Duration::from_secs(180);
/// How long a question waits for another package manager to end.
const ASK_LOCK: Duration = Duration::from_secs(60);

/// A package manager on a root.
pub(super) struct Back<'r> {
    pub(super) root: &'r Root,
    pub(super) manager: Manager,
    pub(super) five: bool,
    pub(super) installed: Installed,
}

impl<'r> Back<'r> {
    /// Reads what is installed. A database that is not in order is refused before anything is asked of it.
    pub(super) fn open(root: &'r Root, manager: Manager) -> Result<Self, Problem> {
        let mut back = Self {
            root,
            manager,
            five: manager == Manager::Dnf && dnf::is_five(root),
            installed: Installed::default(),
        };
        back.installed = match manager {
            Manager::Apt => {
                let installed = dpkg::installed(root).map_err(|e| unreadable(&e))?;
                if let Some(problem) = dpkg::broken(root, &installed).map_err(|e| unreadable(&e))? {
                    return Err(problem);
                }
                installed
            }
            Manager::Dnf | Manager::Zypper => {
                let output = back.ask(&rpm::list(root))?;
                let said = text(&output.stderr);
                // rpm ends with 0 on a database that it could not open.
                if output.status != Some(0) || said.contains("error:") {
                    let message =
                        format!("rpm's database cannot be read: {}", outcome::tail(&said));
                    return Err(Problem::new(
                        "package.broken-database",
                        message,
                        rpm::REPAIR,
                    ));
                }
                rpm::parse(&text(&output.stdout))
            }
        };
        Ok(back)
    }

    fn env(&self) -> &'static [(&'static str, &'static str)] {
        match self.manager {
            Manager::Apt => &apt::ENV,
            Manager::Dnf => &[],
            Manager::Zypper => &zypper::ENV,
        }
    }

    pub(super) fn ask(&self, argv: &[String]) -> Result<Output, Problem> {
        let began = clock::now();
        loop {
            let ended = run(argv, self.env(), ASK, Duration::from_secs(5), &mut |_| {})?;
            if ended.stopped {
                return Err(self.late("was asked", ASK));
            }
            let output = ended.output;
            // zypper has waited by itself.
            let waits = self.manager == Manager::Dnf && self.is_locked(&output);
            if !waits || clock::now() - began > ASK_LOCK {
                return Ok(output);
            }
            clock::sleep(Duration::from_secs(1));
        }
    }

    pub(super) fn late(&self, what: &str, limit: Duration) -> Problem {
        Problem::new(
            "package.timeout",
            format!(
                "{} {what} and had not ended after {} s",
                self.manager.name(),
                limit.as_secs()
            ),
            "look at what it waits for, and run the command again",
        )
    }

    pub(super) fn spec(&self, name: &str, version: &str) -> String {
        match self.manager {
            Manager::Apt | Manager::Zypper => format!("{name}={version}"),
            Manager::Dnf => format!("{name}-{version}"),
        }
    }

    pub(super) fn explain(&self, what: &str, output: &Output) -> Problem {
        let stdout = text(&output.stdout);
        let stdout = match self.manager {
            Manager::Zypper => zypper::messages(&stdout),
            _ => stdout,
        };
        let said = format!("{}\n{stdout}", text(&output.stderr));
        if self.is_locked(output) {
            let said = format!("could not acquire lock\n{said}");
            return outcome::explain(self.manager, what, &said);
        }
        outcome::explain(self.manager, what, &said)
    }

    /// Fetches the indexes anew where the manager does not by itself. That some repository cannot be reached is no
    /// reason to stop: what is known of it stays.
    pub(super) fn refresh(&self) -> Result<Option<Output>, Problem> {
        match self.manager {
            Manager::Apt => self.ask(&apt::update(self.root)).map(Some),
            Manager::Dnf | Manager::Zypper => Ok(None),
        }
    }

    /// Installs.
    pub(super) fn install(
        &self,
        specs: &[String],
        limit: Duration,
        tick: &mut dyn FnMut(Duration),
    ) -> Result<Ended, Problem> {
        let argv = match self.manager {
            Manager::Apt => apt::install(self.root, specs),
            Manager::Dnf => dnf::install(self.root, self.five, specs),
            Manager::Zypper => zypper::install(self.root, specs),
        };
        run(&argv, self.env(), limit, Duration::from_secs(30), tick)
    }

    /// Whether it gave up since another one is at work; apt has waited as long as it should then.
    pub(super) fn is_locked(&self, output: &Output) -> bool {
        match self.manager {
            Manager::Apt => false,
            Manager::Dnf => output.status == Some(dnf::LOCKED),
            Manager::Zypper => output.status == Some(zypper::LOCKED),
        }
    }
}

fn run(
    argv: &[String],
    env: &[(&str, &str)],
    limit: Duration,
    grace: Duration,
    tick: &mut dyn FnMut(Duration),
) -> Result<Ended, Problem> {
    let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
    let mut all = vec![("HOME", "/root")];
    all.extend(env);
    let started = process::start_outside(&argv, &all);
    let ended = started.and_then(|running| running.wait_telling(limit, grace, tick));
    ended.map_err(|e| {
        let fix =
            "install the package manager of this distribution, or set `peermem.package = \"none\"`";
        Problem::new("package.failed", e.to_string(), fix)
    })
}

pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub(super) fn unreadable(e: &SysError) -> Problem {
    Problem::new(
        "package.broken-database",
        e.to_string(),
        "make it readable and run the command again",
    )
}
