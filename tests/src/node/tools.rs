//! The programs on the made-up machine: a shell, and this crate's own `sample-node` under the names of
//! GRUB's tools. They run in a chroot, so the libraries that they need come along.

use std::fs;
use std::path::Path;

use super::tree::{Tree, TreeError};

/// The names under which `sample-node` does the work of GRUB's tools.
pub const TOOLS: [&str; 5] = [
    "grub-mkconfig",
    "update-grub",
    "grub-script-check",
    // as Red Hat and SUSE call them
    "grub2-mkconfig",
    "grub2-script-check",
];

/// Directories of a merged `/usr`; before anything is put into them.
pub(super) fn merge_usr(tree: &Tree, shell: &str) -> Result<(), TreeError> {
    for name in ["bin", "sbin", "lib", "lib64"] {
        tree.dir(&format!("usr/{name}"))?;
        tree.link(name, &format!("usr/{name}"))?;
    }
    tree.link("usr/bin/sh", shell)
}

/// Puts `tool`, a `sample-node` binary, and the shell of the machine that runs the tests into the tree.
///
/// The shell has the name that the family's has; what it is stays the test machine's.
pub(super) fn install(tree: &Tree, tool: &Path, shell: &str) -> Result<(), TreeError> {
    copy(tree, tool, "usr/lib/sample-node")?;
    for (dir, name) in ["usr/sbin", "usr/sbin", "usr/bin"].iter().zip(TOOLS) {
        tree.link(&format!("{dir}/{name}"), "../lib/sample-node")?;
    }
    copy(tree, Path::new("/bin/sh"), &format!("usr/bin/{shell}"))?;
    for path in libraries()? {
        copy(tree, Path::new(&path), path.trim_start_matches('/'))?;
    }
    Ok(())
}

/// The shared libraries of this process, and the loaders by the names that programs ask for.
fn libraries() -> Result<Vec<String>, TreeError> {
    let host = Tree::new(Path::new("/"));
    let mut all: Vec<String> = host
        .text("proc/self/maps")?
        .lines()
        .filter_map(|line| line.split_whitespace().nth(5))
        .filter(|path| path.starts_with('/') && (path.ends_with(".so") || path.contains(".so.")))
        .map(str::to_owned)
        .collect();
    for dir in ["lib64", "lib"] {
        let names = host.names(dir)?;
        let loaders = names.iter().filter(|name| name.starts_with("ld-linux"));
        all.extend(loaders.map(|name| format!("/{dir}/{name}")));
    }
    all.sort();
    all.dedup();
    Ok(all)
}

fn copy(tree: &Tree, from: &Path, to: &str) -> Result<(), TreeError> {
    if let Some((above, _)) = to.rsplit_once('/') {
        tree.dir(above)?;
    }
    fs::copy(from, tree.at(to))
        .map(drop)
        .map_err(|source| TreeError {
            what: "copying",
            path: from.to_path_buf(),
            source,
        })
}
