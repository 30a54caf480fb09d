//! rpm's database, asked once through rpm: its format is rpm's own and changes with it.

use super::{Installed, Package};
use crate::sys::Root;

/// What to do about a database that cannot be read.
pub(super) const REPAIR: &str = "`rpmdb --rebuilddb` after a copy of the database was made; `rpm -qa` has to work before anything is installed";

/// A line of [`parse`].
pub(crate) const FORMAT: &str = "%{NAME}\\t%|EPOCH?{%{EPOCH}}:{0}|\\t%{VERSION}\\t%{RELEASE}\\n";

pub(super) fn list(root: &Root) -> Vec<String> {
    let mut argv = vec!["rpm".to_owned()];
    if !root.is_live() {
        argv.extend([
            "--root".to_owned(),
            root.path().to_string_lossy().into_owned(),
        ]);
    }
    argv.extend(["-qa", "--qf", FORMAT].map(str::to_owned));
    argv
}

/// Lines of name, epoch, version and release.
pub(super) fn parse(text: &str) -> Installed {
    let one = |line: &str| {
        let mut fields = line.split('\t');
        let (name, epoch) = (fields.next()?, fields.next()?);
        let (version, release) = (fields.next()?, fields.next()?);
        Some(Package {
            name: name.to_owned(),
            version: evr(epoch, version, release),
            broken: None,
            held: false,
        })
    };
    Installed {
        packages: text.lines().filter_map(one).collect(),
    }
}

/// `EPOCH:VERSION-RELEASE`, an epoch of 0 left out as the package managers do.
pub(super) fn evr(epoch: &str, version: &str, release: &str) -> String {
    match epoch {
        "0" | "" | "(none)" => format!("{version}-{release}"),
        epoch => format!("{epoch}:{version}-{release}"),
    }
}
