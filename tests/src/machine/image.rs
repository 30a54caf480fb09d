//! The disk images that machines start from.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::Error;

/// A disk image that no machine writes to: each starts with an overlay of its own.
#[derive(Debug, Clone)]
pub struct Image {
    /// Which Debian.
    pub(crate) variant: Variant,
    /// The folder that `scripts/vm/build` made: firmware, loader and disk.
    pub(crate) base: PathBuf,
    /// The disk image to put the overlay on, and its format.
    pub(crate) disk: PathBuf,
    pub(crate) format: &'static str,
}

/// `scripts/vm` of this repository.
pub(crate) fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/vm")
}

/// A Debian that machines are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variant {
    /// Its suite: `trixie`.
    pub suite: &'static str,
    /// One package that the others have not, or nothing.
    pub with: &'static str,
}

impl Variant {
    /// The plain one of a suite.
    #[must_use]
    pub const fn of(suite: &'static str) -> Self {
        Self { suite, with: "" }
    }
}

/// Runs a script of `scripts/vm` to its end, for one of the Debians.
fn script(name: &str, variant: Variant, args: &[&Path]) -> Result<Output, Error> {
    let path = scripts().join(name);
    Command::new(&path)
        .env("GDR_VM_SUITE", variant.suite)
        .env("GDR_VM_WITH", variant.with)
        .args(args)
        .output()
        .map_err(Error::host("run", path))
}

/// The one line that the script printed, if it ended well.
fn printed(output: &Output) -> Option<PathBuf> {
    let line = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (output.status.success() && !line.is_empty()).then(|| PathBuf::from(line))
}

impl Image {
    /// The plain Debian, or `None` where `scripts/vm/build` has not been run to its end.
    ///
    /// # Errors
    /// The script cannot be run at all.
    pub fn plain(variant: Variant) -> Result<Option<Self>, Error> {
        let output = script("build", variant, &[Path::new("--print")])?;
        Ok(printed(&output).map(|base| Self {
            variant,
            disk: base.join("disk.img"),
            base,
            format: "raw",
        }))
    }

    /// This image with the agent, its units and nothing else installed; made when it is asked for the first time.
    ///
    /// # Errors
    /// What `scripts/vm/install` said.
    pub fn with_agent(&self, binary: &Path) -> Result<Self, Error> {
        self.made_by("install", &[binary])
    }

    /// This image after a job that ran in it before its first boot, as an image builder runs one: without systemd or bus.
    ///
    /// `dir` holds a shell script called `job` and the files it needs; `name` keeps its image apart from those of other jobs.
    ///
    /// # Errors
    /// What `scripts/vm/prepare` said; the job's own output is in `prepare-NAME.log` beside the images.
    pub fn prepared(&self, name: &str, dir: &Path) -> Result<Self, Error> {
        self.made_by("prepare", &[Path::new(name), dir])
    }

    fn made_by(&self, name: &str, args: &[&Path]) -> Result<Self, Error> {
        let output = script(name, self.variant, args)?;
        let disk = printed(&output).ok_or_else(|| Error::Script {
            script: format!("scripts/vm/{name} {args:?}"),
            stderr: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        })?;
        Ok(Self {
            variant: self.variant,
            base: self.base.clone(),
            disk,
            format: "qcow2",
        })
    }

    /// Makes `overlay`, an empty layer over this image.
    pub(crate) fn overlay(&self, overlay: &Path) -> Result<(), Error> {
        let mut command = Command::new("qemu-img");
        command.args(["create", "-q", "-f", "qcow2", "-F", self.format, "-b"]);
        command.arg(&self.disk).arg(overlay);
        let output = command.output().map_err(Error::host("run", "qemu-img"))?;
        if output.status.success() {
            return Ok(());
        }
        Err(Error::Script {
            script: "qemu-img create".to_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        })
    }

    /// Where logs and overlays of machines go: beside the images.
    pub(crate) fn runs(&self) -> PathBuf {
        self.base.parent().unwrap_or(&self.base).join("runs")
    }
}
