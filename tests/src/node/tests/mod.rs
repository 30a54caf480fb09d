//! What the made-up machine must get right for anything that is tested on it to mean something.

mod boot;
mod hardware;
mod kernel;

use std::path::Path;
use std::process::Command;

use super::{NodeSpec, Tree, create};

/// A node in a directory that goes away with the value.
fn node(spec: &NodeSpec) -> (tempfile::TempDir, Tree) {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("root");
    create(&root, spec).unwrap();
    (dir, Tree::new(&root))
}

/// Standard output of a program of this machine; `None` says that it is not installed. In CI, where it
/// has to be, that is a failure.
fn program(name: &str, args: &[&str]) -> Option<String> {
    match Command::new(name).args(args).output() {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{name} {args:?}: {said}");
            Some(String::from_utf8_lossy(&output.stdout).into_owned())
        }
        Err(error) => {
            assert!(
                std::env::var_os("CI").is_none(),
                "{name} is not installed: {error}"
            );
            println!("skipped: {name}: {error}");
            None
        }
    }
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}
