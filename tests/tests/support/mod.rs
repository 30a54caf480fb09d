//! A made-up node and the binary that works on it.
#![allow(dead_code, reason = "each test program uses a part")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "it is part of tests"
)]

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use gdr_tests::node::config_space::ACS_CONTROL;
use gdr_tests::node::{self, NodeSpec, Reboot};

/// The binary under test: `GDR_AGENT_BIN`, or the one that lies beside the test program.
pub fn binary() -> PathBuf {
    if let Some(path) = std::env::var_os("GDR_AGENT_BIN") {
        return path.into();
    }
    let me = std::env::current_exe().unwrap();
    let dir = me.parent().and_then(Path::parent).unwrap();
    let path = dir.join("gdr-agent");
    assert!(
        path.exists(),
        "{} is not there: run `cargo build -p gdr-agent` first, or set GDR_AGENT_BIN",
        path.display()
    );
    path
}

/// Runs the agent with this on its standard input.
pub fn fed(args: &[&str], input: &str) -> Output {
    let mut child = Command::new(binary())
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    drop(stdin);
    child.wait_with_output().unwrap()
}

/// Where the configuration space of a function is.
pub fn config(bdf: &str) -> String {
    format!("sys/bus/pci/devices/{bdf}/config")
}

/// A made-up node in a temporary directory.
pub struct Node {
    path: PathBuf,
    _dir: Option<tempfile::TempDir>,
}

impl Node {
    pub fn new(spec: &NodeSpec) -> Self {
        let dir = tempfile::tempdir().unwrap();
        node::create(dir.path(), spec).unwrap();
        Self {
            path: dir.path().to_path_buf(),
            _dir: Some(dir),
        }
    }

    /// A node that somebody else has made.
    pub fn at(path: PathBuf) -> Self {
        Self { path, _dir: None }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn has(&self, path: &str) -> bool {
        self.path().join(path).exists()
    }

    pub fn read(&self, path: &str) -> Vec<u8> {
        std::fs::read(self.path().join(path)).unwrap()
    }

    pub fn write(&self, path: &str, bytes: &[u8]) {
        std::fs::write(self.path().join(path), bytes).unwrap();
    }

    /// The ACS control word of a port.
    pub fn acs_control(&self, bdf: &str) -> u16 {
        let config = self.read(&config(bdf));
        u16::from_le_bytes([config[ACS_CONTROL], config[ACS_CONTROL + 1]])
    }

    /// What `verify` says of the ports' ACS: subject and outcome, in its order.
    pub fn acs_checks(&self, exit: i32) -> Vec<(String, String)> {
        let verify = self.json(&["verify"], exit);
        let checks = verify["checks"].as_array().unwrap().iter();
        let acs = checks.filter(|check| check["id"] == "acs.redirect");
        let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        acs.map(|check| (text(&check["subject"]), text(&check["outcome"])))
            .collect()
    }

    pub fn cmdline(&self) -> String {
        String::from_utf8(self.read("proc/cmdline")).unwrap()
    }

    /// Runs the agent on the node.
    pub fn run(&self, args: &[&str]) -> Output {
        Command::new(binary())
            .arg("--root")
            .arg(self.path())
            .args(args)
            .output()
            .unwrap()
    }

    /// Runs it for JSON and expects an exit code.
    pub fn json(&self, args: &[&str], exit: i32) -> serde_json::Value {
        let mut all = vec!["--format", "json"];
        all.extend(args);
        let output = self.run(&all);
        let text = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            output.status.code(),
            Some(exit),
            "{args:?}\n{text}\n{errors}"
        );
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{args:?}: {e}\n{text}\n{errors}"))
    }

    /// Shuts down through the units, reboots, and starts the units of the next boot.
    pub fn reboot(&self, how: Reboot) {
        self.unit("arm");
        node::reboot(self.path(), how).unwrap();
        self.boot_units();
    }

    /// A reset: no unit runs before it.
    pub fn reboot_without_arming(&self) {
        node::reboot(self.path(), Reboot::default()).unwrap();
        self.boot_units();
    }

    fn boot_units(&self) {
        self.unit("acs");
        self.unit("settle");
        if self.cmdline().contains("gdr.txn=") {
            self.unit("measure");
            self.unit("verify");
        }
    }

    fn unit(&self, name: &str) {
        let output = self.run(&["boot", name]);
        assert!(
            output.status.success(),
            "boot {name}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

/// Path to owner, mode and hash of everything that a person would miss: what the kernel makes and the agent's own
/// state are left out.
pub fn fingerprint(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut todo = vec![root.to_path_buf()];
    while let Some(dir) = todo.pop() {
        for entry in std::fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            let inside = path.strip_prefix(root).unwrap().to_path_buf();
            if ["proc", "sys", "var/lib/gdr-agent", "run"]
                .iter()
                .any(|skip| inside.starts_with(skip))
            {
                continue;
            }
            let meta = path.symlink_metadata().unwrap();
            if meta.is_dir() {
                todo.push(path);
            } else if meta.is_file() {
                use std::os::unix::fs::MetadataExt;
                let mut hash = std::hash::DefaultHasher::new();
                std::fs::read(&path).unwrap().hash(&mut hash);
                let owner = format!("{:o} {}:{}", meta.mode(), meta.uid(), meta.gid());
                found.insert(
                    inside,
                    format!("{owner} {} {:016x}", meta.len(), hash.finish()),
                );
            }
        }
    }
    found
}
