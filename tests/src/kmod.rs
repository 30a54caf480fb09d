//! Builds the modules of `tests/kmod`, which stand in for the RDMA core, the GPU's driver and nvidia-peermem.
// This is the host's side, where there is no root directory, clock or process other than the host's own.
#![allow(clippy::disallowed_methods)]

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// A kernel whose headers are installed.
#[derive(Debug, Clone)]
pub struct Headers {
    /// Its release, as `uname -r` prints it.
    pub release: String,
    /// Its build directory.
    pub build: PathBuf,
}

impl Headers {
    /// All that are here; none without modprobe, depmod and modinfo to use the modules with.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let kmod = ["modprobe", "depmod", "modinfo"]
            .iter()
            .all(|program| Command::new(program).arg("--version").output().is_ok());
        let Ok(entries) = std::fs::read_dir("/lib/modules") else {
            return Vec::new();
        };
        let mut all: Vec<Self> = entries
            .flatten()
            .map(|entry| Self {
                release: entry.file_name().to_string_lossy().into_owned(),
                build: entry.path().join("build"),
            })
            .filter(|headers| kmod && headers.build.join("Module.symvers").exists())
            .collect();
        all.sort_by(|a, b| a.release.cmp(&b.release));
        all
    }

    /// The last of [`Headers::all`].
    #[must_use]
    pub fn newest() -> Option<Self> {
        Self::all().pop()
    }
}

/// Everything that `tests/kmod` makes, in a directory of its own that goes with this value.
#[derive(Debug)]
pub struct Built {
    dir: TempDir,
}

impl Built {
    /// Builds all of it: directories `core`, `core-no-peers`, `core-other`, `driver`, and with a module of the
    /// peer-memory interface `good`, `stub`, `magic`, `other`, `legacy` and `foreign`.
    ///
    /// # Errors
    /// What make said.
    pub fn new(headers: &Headers) -> Result<Self, String> {
        let dir = tempfile::tempdir().map_err(|e| format!("a temporary directory: {e}"))?;
        let built = Self { dir };
        built.make(headers, "driver", "driver", &[])?;
        built.make(headers, "core", "core", &[])?;
        built.make(headers, "core", "core-no-peers", &["PEERS=no"])?;
        built.make(headers, "core", "core-other", &["INTERFACE=other"])?;
        let against = |core: &str| {
            let symvers = built.dir.path().join(core).join("Module.symvers");
            format!("KBUILD_EXTRA_SYMBOLS={}", symvers.display())
        };
        let (core, other) = (against("core"), against("core-other"));
        for (name, variables) in [
            ("good", &[core.as_str()][..]),
            ("stub", &["VARIANT=stub"]),
            ("magic", &["VARIANT=magic", &core]),
            ("other", &["INTERFACE=other", &other]),
            ("legacy", &["VARIANT=legacy", &core]),
            ("foreign", &["VARIANT=foreign", &core]),
        ] {
            built.make(headers, "peermem", name, variables)?;
        }
        Ok(built)
    }

    fn make(
        &self,
        headers: &Headers,
        source: &str,
        name: &str,
        variables: &[&str],
    ) -> Result<(), String> {
        let source = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("kmod")
            .join(source);
        let to = self.dir.path().join(name);
        let copied = || -> std::io::Result<()> {
            std::fs::create_dir_all(&to)?;
            for entry in std::fs::read_dir(&source)? {
                let entry = entry?;
                std::fs::copy(entry.path(), to.join(entry.file_name()))?;
            }
            Ok(())
        };
        copied().map_err(|e| format!("copying {}: {e}", source.display()))?;
        let output = Command::new("make")
            .arg("-C")
            .arg(&headers.build)
            .arg(format!("M={}", to.display()))
            .arg("modules")
            .args(variables)
            .output()
            .map_err(|e| format!("make: {e}"))?;
        if output.status.success() {
            return Ok(());
        }
        Err(format!(
            "make {name}: {}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        ))
    }

    /// Where a file of a build is: `good/nvidia-peermem.ko`.
    #[must_use]
    pub fn path(&self, file: &str) -> PathBuf {
        self.dir.path().join(file)
    }
}
