//! Writing a directory that stands for the root of a machine.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// A file, link or directory of the made-up machine that could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{what} {path}: {source}")]
pub struct TreeError {
    /// What was tried, a verb in its -ing form.
    pub what: &'static str,
    /// The path on the machine that runs the tests.
    pub path: PathBuf,
    /// What the system said.
    pub source: std::io::Error,
}

/// The root directory of a made-up machine; every path given to it is relative to that root.
#[derive(Debug, Clone)]
pub struct Tree {
    root: PathBuf,
}

impl Tree {
    /// A tree below `root`, which need not exist yet.
    #[must_use]
    pub fn new(root: &Path) -> Self {
        Tree {
            root: root.to_path_buf(),
        }
    }

    /// The root directory itself.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where `path` (with or without a leading slash) lies on the machine that runs the tests.
    #[must_use]
    pub fn at(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// Is there something at `path`, links followed?
    #[must_use]
    pub fn exists(&self, path: &str) -> bool {
        self.at(path).exists()
    }

    /// Makes a directory and those above it.
    pub fn dir(&self, path: &str) -> Result<(), TreeError> {
        let at = self.at(path);
        fs::create_dir_all(&at).map_err(|source| TreeError {
            what: "making",
            path: at,
            source,
        })
    }

    /// Writes a file, with the directories above it.
    pub fn file(&self, path: &str, content: impl AsRef<[u8]>) -> Result<(), TreeError> {
        if let Some((above, _)) = path.rsplit_once('/') {
            self.dir(above)?;
        }
        let at = self.at(path);
        fs::write(&at, content).map_err(|source| TreeError {
            what: "writing",
            path: at,
            source,
        })
    }

    /// Writes a file that may be executed.
    pub fn script(&self, path: &str, content: &str) -> Result<(), TreeError> {
        self.file(path, content)?;
        self.mode(path, 0o755)
    }

    /// Sets permission bits.
    pub fn mode(&self, path: &str, mode: u32) -> Result<(), TreeError> {
        let at = self.at(path);
        fs::set_permissions(&at, fs::Permissions::from_mode(mode)).map_err(|source| TreeError {
            what: "setting the mode of",
            path: at,
            source,
        })
    }

    /// Makes a symbolic link; `target` is written as it is.
    pub fn link(&self, path: &str, target: &str) -> Result<(), TreeError> {
        if let Some((above, _)) = path.rsplit_once('/') {
            self.dir(above)?;
        }
        let at = self.at(path);
        symlink(target, &at).map_err(|source| TreeError {
            what: "linking",
            path: at,
            source,
        })
    }

    /// The bytes of a file.
    pub fn read(&self, path: &str) -> Result<Vec<u8>, TreeError> {
        let at = self.at(path);
        fs::read(&at).map_err(|source| TreeError {
            what: "reading",
            path: at,
            source,
        })
    }

    /// The text of a file; bytes that are not UTF-8 are replaced.
    pub fn text(&self, path: &str) -> Result<String, TreeError> {
        Ok(String::from_utf8_lossy(&self.read(path)?).into_owned())
    }

    /// The names in a directory, sorted bytewise; none if it does not exist.
    pub fn names(&self, path: &str) -> Result<Vec<String>, TreeError> {
        let at = self.at(path);
        if !at.exists() {
            return Ok(Vec::new());
        }
        let wrap = |source| TreeError {
            what: "listing",
            path: at.clone(),
            source,
        };
        let mut names = Vec::new();
        for entry in fs::read_dir(&at).map_err(wrap)? {
            names.push(
                entry
                    .map_err(wrap)?
                    .file_name()
                    .to_string_lossy()
                    .into_owned(),
            );
        }
        names.sort();
        Ok(names)
    }

    /// Removes a file, a link or a whole directory; nothing there is fine.
    pub fn remove(&self, path: &str) -> Result<(), TreeError> {
        let at = self.at(path);
        let Ok(meta) = fs::symlink_metadata(&at) else {
            return Ok(());
        };
        let done = if meta.is_dir() {
            fs::remove_dir_all(&at)
        } else {
            fs::remove_file(&at)
        };
        done.map_err(|source| TreeError {
            what: "removing",
            path: at,
            source,
        })
    }
}
