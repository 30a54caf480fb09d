//! Is a package needed, which one, and what would installing it do?

use gdr_policy::{PeermemPackage, Policy};

use super::back::Back;
use super::harm::harmless;
use super::table::{Wanted, fill, find, rows};
use super::{Install, Installed, Manager, Problem, Survey, dpkg, sets, version};
use crate::facts::gdr::{Flavour, Origin};
use crate::facts::{Facts, Os};
use crate::plan::{Decision, GdrPath};
use crate::sys::Root;

/// Ids of notes.
const NO_USE: &str = "package.no-use";
const NO_MANAGER: &str = "package.no-manager";
const NOT_PACKAGED: &str = "package.not-packaged";

/// A kernel that lacks the module because its package is not installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    /// The kernel's release.
    pub kernel: String,
    /// The driver's version, where it is known.
    pub version: Option<String>,
    /// The driver's flavour, where it is known.
    pub flavour: Option<Flavour>,
}

/// What packages are needed, from files alone. Empty where the module is there, where it is not the way, where it could
/// not register with anything, or where the policy wants no package.
#[must_use]
pub fn need(policy: &Policy, facts: &Facts, decision: &Decision) -> (Vec<Need>, Vec<String>) {
    let mut notes = Vec::new();
    if policy.peermem.package == PeermemPackage::None || decision.path == GdrPath::DmaBuf {
        return (Vec::new(), notes);
    }
    let Some(first) = &decision.kernel else {
        return (Vec::new(), notes);
    };
    let cured = |finding: &str| matches!(finding, "peermem.not-installed" | "peermem.wrong-kernel");
    let mut needs = Vec::new();
    for module in decision.modules.iter().filter(|m| cured(&m.finding)) {
        // An older kernel is there to fall back to, and what it lacks is told as a note.
        if module.kernel != *first && version::rpmvercmp(&module.kernel, first).is_lt() {
            continue;
        }
        let mut targets = facts.gdr.targets.iter();
        let target = targets.find(|target| target.release == module.kernel);
        let api = target.and_then(|target| target.rdma.get());
        if api.is_none_or(|core| core.peer_memory == Some(false)) {
            notes.push(format!(
                "{NO_USE}: no package is looked for, since the RDMA core of kernel {} has no peer-memory interface and any nvidia-peermem for it would be a stub; install OFED first, or use DMA-BUF",
                module.kernel
            ));
            continue;
        }
        needs.push(Need {
            kernel: module.kernel.clone(),
            version: module.version.clone(),
            flavour: module.flavour,
        });
    }
    (needs, notes)
}

/// Finds the package, and simulates its installation. None where none is needed: no program is started then.
pub(crate) fn survey(
    root: &Root,
    policy: &Policy,
    facts: &Facts,
    decision: &Decision,
) -> Option<Survey> {
    let (needs, notes) = need(policy, facts, decision);
    if needs.is_empty() && notes.is_empty() {
        return None;
    }
    let mut survey = Survey {
        notes,
        ..Survey::default()
    };
    if needs.is_empty() {
        return Some(survey);
    }
    let first = decision.kernel.as_deref().unwrap_or_default();
    match look(root, policy, facts, (first, &needs), &mut survey.notes) {
        Ok(install) => survey.install = install,
        Err(problem) => survey.problems.push(problem),
    }
    Some(survey)
}

fn look(
    root: &Root,
    policy: &Policy,
    facts: &Facts,
    (first, needs): (&str, &[Need]),
    notes: &mut Vec<String>,
) -> Result<Option<Install>, Problem> {
    let origin = facts.gdr.origin.get().copied();
    let Some((os, manager)) = facts
        .os
        .get()
        .and_then(|os| Some((os, manager_of(root, os)?)))
    else {
        if let Some(advice) = advice(facts, origin, needs) {
            notes.push(advice);
        } else {
            notes.push(format!("{NO_MANAGER}: neither dpkg's nor rpm's database is there, so nothing is installed; install the driver's kernel-module package by hand"));
        }
        return Ok(None);
    };
    if let Some(advice) = advice(facts, origin, needs) {
        notes.push(advice);
        return Ok(None);
    }
    if let Some(command) = image_based(root, manager) {
        return Err(Problem::new(
            "package.image-based",
            "packages of this system are layers of its image, and are not changed while it runs",
            format!(
                "`{command}` with the driver's kernel-module package, and a reboot; or build it into the image"
            ),
        ));
    }
    let back = Back::open(root, manager)?;
    let drivers = sets(&back.installed);
    if drivers.len() > 1 {
        let names: Vec<String> = drivers.into_iter().collect();
        return Err(Problem::new(
            "package.two-drivers",
            format!(
                "the kernel modules of several drivers are installed: {}",
                names.join(", ")
            ),
            "remove all but the one that is to be used",
        ));
    }
    let mut specs = Vec::new();
    let mut kernels = Vec::new();
    for need in needs {
        let wanted = match back.wanted(policy, facts, os, need, notes) {
            // A newer kernel that boots one day is no reason to leave this one without.
            Err(problem) if need.kernel != *first => {
                notes.push(format!("kernel {}: {problem}", need.kernel));
                continue;
            }
            wanted => wanted?,
        };
        let Some(wanted) = wanted else { continue };
        kernels.push(need.kernel.clone());
        for spec in wanted {
            if !specs.contains(&spec) {
                specs.push(spec);
            }
        }
    }
    if specs.is_empty() {
        return Ok(None);
    }
    let changes = back.simulate(&specs)?;
    harmless(manager, &changes, &back.installed)?;
    Ok(Some(Install {
        manager,
        specs,
        kernels,
        changes,
    }))
}

/// Where no package brings the module, that is so whatever the distribution.
fn advice(facts: &Facts, origin: Option<Origin>, needs: &[Need]) -> Option<String> {
    if !matches!(origin, Some(Origin::Runfile | Origin::Container)) {
        return None;
    }
    let nowhere = Os {
        id: String::new(),
        id_like: Vec::new(),
        version: None,
        name: None,
    };
    let need = needs.first()?;
    let rows = rows().ok()?;
    let version = need.version.as_deref().unwrap_or("VERSION");
    let wanted = Wanted {
        os: facts.os.get().unwrap_or(&nowhere),
        origin,
        kernel: &need.kernel,
        version,
        flavour: need.flavour,
    };
    let row = find(&rows, &wanted, &Installed::default())?;
    let advice = fill(row.advice.as_deref()?, &need.kernel, version);
    Some(format!("{NOT_PACKAGED}: {advice}"))
}

/// What installs packages where `/usr` is not to be written to.
fn image_based(root: &Root, manager: Manager) -> Option<&'static str> {
    let there = |path: &str| matches!(root.stat(path), Ok(Some(_)));
    match manager {
        Manager::Dnf if there("/run/ostree-booted") || there("/ostree/repo") => {
            Some("rpm-ostree install")
        }
        Manager::Zypper if there("/usr/sbin/transactional-update") => {
            Some("transactional-update pkg install")
        }
        _ => None,
    }
}

/// The package manager of a distribution, if its database is there.
fn manager_of(root: &Root, os: &Os) -> Option<Manager> {
    let there = |path: &str| matches!(root.stat(path), Ok(Some(_)));
    if os.is_like("debian") || os.id == "ubuntu" {
        return (there(dpkg::STATUS) || there("/var/lib/dpkg/status.d")).then_some(Manager::Apt);
    }
    let rpm = ["/var/lib/rpm", "/usr/lib/sysimage/rpm", "/usr/share/rpm"];
    if !rpm.iter().any(|path| there(path)) {
        return None;
    }
    let suse = os.is_like("suse") || os.is_like("opensuse") || os.id.starts_with("sle");
    Some(if suse { Manager::Zypper } else { Manager::Dnf })
}
