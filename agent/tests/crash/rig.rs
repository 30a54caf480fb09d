//! A sample node to be crashed: a small server, whose kernel's part is kept while its disk is put back again and again.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gdr_agent::cli::{Exit, run_on};
use gdr_agent::journal::{Journal, Record};
use gdr_agent::sys::{Root, Watch};
use gdr_tests::node::{self, Boot, Family, NodeSpec, Reboot, layout};

use crate::model::{Disk, Thing};

/// The agent's own files, which outlive what they tell.
const STATE: &str = "var/lib/gdr-agent";

/// One GPU and one NIC below a switch: enough for a path, and few files.
pub fn spec(family: Family) -> NodeSpec {
    let mut spec = NodeSpec {
        family,
        cmdline_default: match family {
            Family::Debian | Family::Suse => "quiet".into(),
            _ => String::new(),
        },
        ..NodeSpec::default()
    };
    spec.functions = Some(small(&spec));
    spec
}

/// The same, with a BAR1 that the policy's checks do not pass.
pub fn failing(family: Family) -> NodeSpec {
    let mut spec = NodeSpec {
        functions: None,
        bar1: 256 << 20,
        ..spec(family)
    };
    spec.functions = Some(small(&spec));
    spec
}

fn small(spec: &NodeSpec) -> Vec<layout::Function> {
    let mut all = layout::functions(spec);
    all.retain(|function| {
        function.dir.starts_with("sys/devices/pci0000:15")
            && !["0000:17:02.0", "0000:17:03.0"]
                .iter()
                .any(|port| function.dir.contains(port))
    });
    all
}

/// What somebody who owns the node would compare: every file on its disk but the agent's own.
pub type Print = BTreeMap<PathBuf, Thing>;

/// The node in a directory.
#[derive(Debug)]
pub struct Rig {
    pub root: PathBuf,
    _dir: tempfile::TempDir,
}

impl Rig {
    pub fn new(spec: &NodeSpec) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("node");
        std::fs::create_dir(&root).unwrap();
        node::create(&root, spec).unwrap();
        Self { root, _dir: dir }
    }

    /// Runs the agent in this process.
    pub fn agent(&self, watch: Option<Arc<dyn Watch>>, words: &[&str]) -> Result<Exit, String> {
        agent(&self.root, watch, words)
    }

    pub fn power(&self, how: Reboot) -> Result<Vec<Boot>, String> {
        node::reboot(&self.root, how).map_err(|e| e.to_string())
    }

    /// Starts the kernel that GRUB has loaded last.
    pub fn start(&self, mut boots: Vec<Boot>) -> Result<Vec<Boot>, String> {
        if let Some(last) = boots.pop() {
            boots.push(node::start(&self.root, last.grub).map_err(|e| e.to_string())?);
        }
        Ok(boots)
    }

    pub fn record(&self) -> Result<Option<Record>, String> {
        let root = Root::open(&self.root).map_err(|e| e.to_string())?;
        let journal = Journal::open(&root).map_err(|e| e.to_string())?;
        Ok(journal.last().cloned())
    }

    pub fn cmdline(&self) -> String {
        std::fs::read_to_string(self.root.join("proc/cmdline")).unwrap_or_default()
    }

    pub fn disk(&self) -> Disk {
        Disk::scan(&self.root, &mut 0, &mut |_, _| {})
    }

    pub fn print(&self) -> Print {
        let disk = self.disk();
        let paths = disk.paths().into_iter();
        let files = paths.filter(|(path, thing)| {
            !path.starts_with(STATE) && !matches!(thing, Thing::Dir { .. })
        });
        files.map(|(path, thing)| (path, thing.clone())).collect()
    }

    /// What the agent has left that is of no use any more.
    pub fn leftovers(&self) -> Vec<PathBuf> {
        let disk = self.disk();
        let paths = disk.paths();
        let useless = |path: &Path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let txn = path
                .parent()
                .is_some_and(|above| above.ends_with("gdr-agent/tx"));
            name.contains(".gdr-agent-")
                || name == "check.cfg"
                || (txn
                    && !paths
                        .keys()
                        .any(|p| p.starts_with(path) && p.extension().is_some_and(|x| x == "rec")))
        };
        paths.keys().filter(|path| useless(path)).cloned().collect()
    }

    pub fn has_state(&self) -> bool {
        self.root.join(STATE).exists()
    }

    /// What the kernel shows: command line, boot, devices.
    pub fn kernel(&self) -> Kernel {
        let mut files = Vec::new();
        for top in ["proc", "sys", "run"] {
            read(&self.root.join(top), &mut files);
        }
        Kernel(files)
    }
}

/// Runs the agent in this process, on the node in `root`.
pub fn agent(root: &Path, watch: Option<Arc<dyn Watch>>, words: &[&str]) -> Result<Exit, String> {
    let root = Root::open(root).map_err(|e| e.to_string())?;
    let root = match watch {
        Some(watch) => root.watched(watch),
        None => root,
    };
    let words: Vec<&str> = ["--quiet"].iter().chain(words).copied().collect();
    run_on(root, None, &words).map_err(|e| e.message)
}

/// The running kernel's part of the tree.
#[derive(Debug, Clone)]
pub struct Kernel(Vec<(PathBuf, Thing)>);

impl Kernel {
    /// Puts back what has changed since.
    pub fn write(&self, root: &Path) {
        let mut now = Vec::new();
        for top in ["proc", "sys", "run"] {
            read(&root.join(top), &mut now);
        }
        let wanted: BTreeMap<_, _> = self.0.iter().map(|(path, thing)| (path, thing)).collect();
        for (path, _) in now
            .iter()
            .rev()
            .filter(|(path, thing)| wanted.get(path) != Some(&thing))
        {
            match std::fs::symlink_metadata(path) {
                Ok(meta) if meta.is_dir() => drop(std::fs::remove_dir_all(path)),
                _ => drop(std::fs::remove_file(path)),
            }
        }
        for (path, thing) in &self.0 {
            match thing {
                _ if path.symlink_metadata().is_ok() => {}
                Thing::Dir { .. } => std::fs::create_dir(path).unwrap(),
                Thing::Link(to) => std::os::unix::fs::symlink(to, path).unwrap(),
                Thing::File { bytes, .. } => std::fs::write(path, &bytes[..]).unwrap(),
            }
        }
    }
}

fn read(path: &Path, all: &mut Vec<(PathBuf, Thing)>) {
    let Ok(meta) = path.symlink_metadata() else {
        return;
    };
    if meta.is_symlink() {
        all.push((path.into(), Thing::Link(std::fs::read_link(path).unwrap())));
    } else if meta.is_dir() {
        all.push((
            path.into(),
            Thing::Dir {
                names: BTreeMap::new(),
                mode: 0,
            },
        ));
        for entry in std::fs::read_dir(path).unwrap() {
            read(&entry.unwrap().path(), all);
        }
    } else if let Ok(bytes) = std::fs::read(path) {
        let bytes = bytes.into();
        all.push((path.into(), Thing::File { bytes, mode: 0 }));
    }
}
