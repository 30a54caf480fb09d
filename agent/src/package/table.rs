//! The table of packages, as data: which one brings nvidia-peermem, by distribution, release, where the driver is
//! from and flavour.

use serde::Deserialize;

use super::{Installed, Manager};
use crate::facts::Os;
use crate::facts::gdr::{Flavour, Origin};

const TEXT: &str = include_str!("table.toml");

/// One way in which the module is packaged.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// A stable name.
    pub id: String,
    /// `ID` of os-release, or `*`.
    pub distribution: Vec<String>,
    /// `VERSION_ID` of os-release or its beginning up to a dot, or `*`.
    pub releases: Vec<String>,
    /// Where the driver is from.
    pub source: Source,
    /// Which of NVIDIA's two sets of modules.
    pub flavour: RowFlavour,
    /// What installs it; none where no package brings it.
    #[serde(default)]
    pub manager: Option<Manager>,
    /// Packages of which one is installed where this row is the way. Templates, as below.
    #[serde(default)]
    pub when: Vec<String>,
    /// What is installed: `{kernel}`, `{branch}` and `{version}` stand for the kernel's release, the driver's first
    /// number and its version.
    #[serde(default)]
    pub packages: Vec<String>,
    /// How a version is chosen.
    #[serde(default)]
    pub pin: Option<Pin>,
    /// With [`Pin::Dependency`]: the package of the driver on which the dependency is.
    #[serde(default)]
    pub driver_package: Option<String>,
    /// Whether DKMS builds the module, for each kernel that has headers.
    #[serde(default)]
    pub dkms: bool,
    /// The package of the kernel's headers.
    #[serde(default)]
    pub headers: Option<String>,
    /// What a person should know before.
    #[serde(default)]
    pub note: Option<String>,
    /// What to do where no package brings the module.
    #[serde(default)]
    pub advice: Option<String>,
    /// Where that is written.
    pub documentation: String,
    /// How far it was tried.
    pub tested: Tested,
}

/// Where the driver is from, as in [`Origin`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// A package of the distribution.
    Distribution,
    /// A package of NVIDIA's own repository.
    NvidiaRepository,
    /// NVIDIA's installer.
    Runfile,
    /// A container.
    Container,
}

impl Source {
    fn of(origin: Option<Origin>) -> Self {
        match origin {
            // What no file tells to be from elsewhere is the distribution's.
            None | Some(Origin::Distribution) => Self::Distribution,
            Some(Origin::NvidiaRepository) => Self::NvidiaRepository,
            Some(Origin::Runfile) => Self::Runfile,
            Some(Origin::Container) => Self::Container,
        }
    }
}

/// Which set of modules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RowFlavour {
    /// The open ones.
    Open,
    /// The proprietary ones.
    Proprietary,
    /// Both alike.
    Any,
}

impl RowFlavour {
    fn fits(self, flavour: Option<Flavour>) -> bool {
        matches!(
            (self, flavour),
            (Self::Any, _)
                | (Self::Open, Some(Flavour::Open))
                | (Self::Proprietary, Some(Flavour::Proprietary))
        )
    }
}

/// How the version of a package is matched to the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pin {
    /// Debian's upstream version is the driver's.
    Upstream,
    /// The RPM's version is the driver's.
    Version,
    /// The RPM's version is the driver's, then `_k` and the kernel's.
    Kmp,
    /// The name has the kernel; the driver is in the dependencies.
    Dependency,
}

/// How far a row was tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tested {
    /// On the distribution, with its packages.
    Real,
    /// With the real package manager on repositories that the test makes.
    Synthetic,
    /// Read only.
    Documentation,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    row: Vec<Row>,
}

/// Reads and checks the table.
///
/// # Errors
/// It is not TOML of this form, or a row says too little or too much. A test reads it, so that a build that has passed
/// its tests does not see that.
pub fn rows() -> Result<Vec<Row>, String> {
    parse(TEXT)
}

/// As [`rows`], of any text.
///
/// # Errors
/// See [`rows`].
pub fn parse(text: &str) -> Result<Vec<Row>, String> {
    let table: Table = toml::from_str(text).map_err(|e| e.to_string())?;
    let mut ids = std::collections::BTreeSet::new();
    for row in &table.row {
        let id = &row.id;
        if !ids.insert(id) {
            return Err(format!("two rows are called {id}"));
        }
        check(row).map_err(|why| format!("row {id}: {why}"))?;
    }
    Ok(table.row)
}

fn check(row: &Row) -> Result<(), String> {
    if !row.documentation.starts_with("https://") {
        return Err("no documentation".to_owned());
    }
    if row.distribution.is_empty() || row.releases.is_empty() {
        return Err("it is for no distribution or no release".to_owned());
    }
    match (row.manager, row.advice.is_some()) {
        (None, false) => return Err("neither packages nor advice".to_owned()),
        (None, true) if row.packages.is_empty() && row.pin.is_none() => return Ok(()),
        (Some(_), false) => {}
        _ => return Err("packages and advice exclude each other".to_owned()),
    }
    if row.packages.is_empty() {
        return Err("a manager and no packages".to_owned());
    }
    let deb = row.manager == Some(Manager::Apt);
    let pin = row.pin.ok_or("no pin")?;
    if deb != matches!(pin, Pin::Upstream | Pin::Dependency) {
        return Err("its pin is not one of its manager".to_owned());
    }
    if (pin == Pin::Dependency) != row.driver_package.is_some() {
        return Err("`driver_package` goes with the pin `dependency`, and only with it".to_owned());
    }
    if row.dkms != row.headers.is_some() {
        return Err("`headers` goes with `dkms`".to_owned());
    }
    let names = row.packages.iter().chain(&row.when).chain(&row.headers);
    for name in names.chain(&row.driver_package) {
        let filled = fill(name, "6.1.0-37-amd64", "570.148.08");
        if filled.parse::<gdr_policy::PackageName>().is_err() {
            return Err(format!("{name} does not become the name of a package"));
        }
    }
    Ok(())
}

/// Fills a template in.
#[must_use]
pub fn fill(template: &str, kernel: &str, version: &str) -> String {
    let branch = version.split('.').next().unwrap_or(version);
    template
        .replace("{kernel}", kernel)
        .replace("{branch}", branch)
        .replace("{version}", version)
}

/// What a row is looked up by.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The distribution.
    pub os: &'a Os,
    /// Where the driver is from, where that is known.
    pub origin: Option<Origin>,
    /// The kernel's release.
    pub kernel: &'a str,
    /// The driver's version.
    pub version: &'a str,
    /// The driver's flavour.
    pub flavour: Option<Flavour>,
}

/// The row for a node. What is installed tells more than which repositories there are, so rows with `when` come first.
#[must_use]
pub fn find<'r>(rows: &'r [Row], wanted: &Wanted<'_>, installed: &Installed) -> Option<&'r Row> {
    let source = Source::of(wanted.origin);
    let here = |row: &&Row| {
        let distribution = row.distribution.iter();
        let release = wanted.os.version.as_deref();
        let mut releases = row.releases.iter();
        distribution
            .map(String::as_str)
            .any(|id| id == "*" || id == wanted.os.id)
            && releases.any(|known| is_release(known, release))
            && row.flavour.fits(wanted.flavour)
    };
    let packaged = matches!(source, Source::Distribution | Source::NvidiaRepository);
    let by_package = rows.iter().filter(here).find(|row| {
        let mut when = row.when.iter();
        packaged && when.any(|name| installed.has(&fill(name, wanted.kernel, wanted.version)))
    });
    by_package.or_else(|| {
        let mut rest = rows.iter().filter(here);
        rest.find(|row| row.when.is_empty() && row.source == source)
    })
}

/// `9` is 9.4, too; a release that is not said fits only `*`.
fn is_release(known: &str, release: Option<&str>) -> bool {
    known == "*"
        || release.is_some_and(|release| {
            release
                .strip_prefix(known)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
}
