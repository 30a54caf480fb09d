//! Installing what was simulated: once more looked at, then done, with all output kept.

use std::time::Duration;

use super::back::{Back, text};
use super::{Install, Installed, Manager, Problem};
use crate::sys::{Root, clock};

/// DKMS builds every module of the driver for every kernel: minutes each.
const LIMIT: Duration = Duration::from_secs(3600);
/// For another package manager to end, where this one does not wait by itself.
const LOCK_LIMIT: Duration = Duration::from_secs(300);

/// What came of it.
#[derive(Debug)]
pub(crate) struct Done {
    /// All that was said.
    pub(crate) log: String,
    /// Why it failed, with the exact state.
    pub(crate) result: Result<(), Problem>,
}

/// Fetches the indexes where the manager does not by itself; what it says is for the log.
pub(crate) fn refresh(root: &Root, manager: Manager) -> Result<String, Problem> {
    let output = Back::open(root, manager)?.refresh()?;
    Ok(output.map_or(String::new(), |output| {
        format!("{}{}", text(&output.stdout), text(&output.stderr))
    }))
}

/// Installs, and reports how long it has been at work every few seconds.
pub(crate) fn install(root: &Root, plan: &Install, report: &dyn Fn(&str)) -> Done {
    let mut log = String::new();
    let result = attempt(root, plan, report, &mut log).map_err(|mut problem| {
        problem.message = format!("{}; {}", problem.message, state(root, plan));
        problem
    });
    Done { log, result }
}

fn attempt(
    root: &Root,
    plan: &Install,
    report: &dyn Fn(&str),
    log: &mut String,
) -> Result<(), Problem> {
    let back = Back::open(root, plan.manager)?;
    let specs = plan.specs.join(" ");
    let began = clock::now();
    loop {
        let mut last = 0;
        let ended = back.install(&plan.specs, LIMIT, &mut |passed| {
            let now = passed.as_secs();
            if now >= last + 5 || (now >= 1 && last == 0) {
                last = now;
                report(&format!("installing {specs}, {now} s"));
            }
        })?;
        let output = ended.output;
        log.push_str(&text(&output.stdout));
        log.push_str(&text(&output.stderr));
        if ended.stopped {
            return Err(back.late("was installing", LIMIT));
        }
        if output.status == Some(0) {
            return Ok(());
        }
        if !back.is_locked(&output) || clock::now() - began > LOCK_LIMIT {
            return Err(back.explain("failed", &output));
        }
        report("waiting for another package manager to end");
        clock::sleep(Duration::from_secs(2));
    }
}

/// What is there now of what was to be installed.
pub(crate) fn state(root: &Root, plan: &Install) -> String {
    let installed = match plan.manager {
        Manager::Apt => super::dpkg::installed(root).map_err(|e| e.to_string()),
        _ => Back::open(root, plan.manager)
            .map(|back| back.installed)
            .map_err(|problem| problem.message),
    };
    match installed {
        Ok(installed) => format!("now: {}", describe(plan, &installed)),
        Err(why) => format!("what is installed now cannot be read: {why}"),
    }
}

fn describe(plan: &Install, installed: &Installed) -> String {
    let one = |change: &super::Change| {
        let name = &change.name;
        match installed.get(name) {
            None => format!("{name} is not installed"),
            Some(package) => match &package.broken {
                Some(state) => format!("{name} {} is {state}", package.version),
                None => format!("{name} {} is installed", package.version),
            },
        }
    };
    let mut said: Vec<String> = plan.changes.iter().map(one).collect();
    let named = |name: &str| plan.changes.iter().any(|change| change.name == name);
    let others = installed.packages.iter().filter(|p| !named(&p.name));
    said.extend(others.filter_map(|p| {
        Some(format!(
            "{} {} is {}",
            p.name,
            p.version,
            p.broken.as_ref()?
        ))
    }));
    said.join(", ")
}
