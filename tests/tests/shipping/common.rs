//! Packages, and roots to install them in.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use gdr_tests::node::{self, NodeSpec, POLICY, Reboot};

use crate::support::{Node, binary, fingerprint};

/// The version of the second build.
pub const NEXT: &str = "99.0.0";

pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .into()
}

/// Runs a program and gives what it said; it has to succeed.
pub fn ok(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let text = both(&output);
    assert!(output.status.success(), "{command:?}\n{text}");
    text
}

pub fn both(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// `cargo xtask`, which lies beside the test program.
pub fn xtask() -> Command {
    let me = std::env::current_exe().unwrap();
    let path = me.parent().and_then(Path::parent).unwrap().join("xtask");
    assert!(
        path.exists(),
        "{} is not there: run `cargo build -p xtask` first",
        path.display()
    );
    let mut command = Command::new(path);
    command
        .current_dir(repository())
        .env("SOURCE_DATE_EPOCH", "1796000000");
    command
}

/// The program that goes into the packages, without what only a debugger reads.
fn stripped(dir: &Path) -> PathBuf {
    let to = dir.join("gdr-agent");
    ok(Command::new("strip").arg("-o").arg(&to).arg(binary()));
    to
}

/// Builds both packages into a directory.
pub fn build(to: &Path, version: Option<&str>) {
    let mut command = xtask();
    command
        .env("XZ_LEVEL", "0")
        .env("GDR_AGENT_BIN", stripped(to))
        .arg("dist")
        .arg("--out")
        .arg(to);
    if let Some(version) = version {
        command.args(["--version", version]);
    }
    ok(&mut command);
}

/// The packages of this program, of this version and of [`NEXT`]; the first test that asks builds them for all.
pub fn packages() -> PathBuf {
    let target = std::env::current_exe().unwrap();
    let dir = target.ancestors().nth(3).unwrap().join("shipping");
    std::fs::create_dir_all(&dir).unwrap();
    let lock = File::create(dir.join("packages.lock")).unwrap();
    lock.lock().unwrap();
    let to = dir.join("packages");
    let mut sources = vec![binary(), xtask().get_program().into()];
    for part in [
        "packaging",
        "systemd",
        "policy/src/starter.toml",
        "docs",
        "README.md",
        "CHANGELOG.md",
    ] {
        add_files(&repository().join(part), &mut sources);
    }
    let newest = sources.iter().map(|path| modified(path)).max();
    let done = to.join("done");
    if !done.exists() || Some(modified(&done)) < newest {
        let _ = std::fs::remove_dir_all(&to);
        std::fs::create_dir_all(&to).unwrap();
        build(&to, None);
        build(&to, Some(NEXT));
        std::fs::write(&done, "").unwrap();
    }
    to
}

fn modified(path: &Path) -> std::time::SystemTime {
    path.metadata().and_then(|m| m.modified()).unwrap()
}

fn add_files(path: &Path, to: &mut Vec<PathBuf>) {
    if path.is_dir() {
        for entry in std::fs::read_dir(path).unwrap() {
            add_files(&entry.unwrap().path(), to);
        }
    } else {
        to.push(path.into());
    }
}

/// The file in a directory whose name ends so and has the version.
pub fn find(dir: &Path, version: &str, end: &str) -> PathBuf {
    let mut names = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path());
    names
        .find(|path| {
            let name = path.file_name().unwrap().to_string_lossy();
            name.contains(version) && name.ends_with(end)
        })
        .unwrap_or_else(|| panic!("no {version} {end} in {}", dir.display()))
}

pub const THIS: &str = env!("CARGO_PKG_VERSION");

/// Root and the tools; without them a test says so, and fails in CI.
pub fn can_install(tools: &[&str]) -> bool {
    let id = ok(Command::new("id").arg("-u"));
    let missing: Vec<&&str> = tools
        .iter()
        .filter(|tool| {
            let found = Command::new("sh")
                .args(["-c", &format!("command -v {tool}")])
                .output();
            !found.unwrap().status.success()
        })
        .collect();
    if id.trim() == "0" && missing.is_empty() {
        return true;
    }
    assert!(
        std::env::var_os("CI").is_none(),
        "in CI this has to run: root, {tools:?}; missing: {missing:?}"
    );
    println!("SKIPPED: needs root and {tools:?}; missing: {missing:?}");
    false
}

/// A Debian with the boot files, the devices and GRUB's tools of a sample node.
pub struct Machine {
    _dir: tempfile::TempDir,
    pub node: Node,
    /// The arguments that it boots with before anything is installed.
    pub line: Vec<String>,
}

impl Machine {
    /// A command in the machine's root.
    pub fn chroot(&self, args: &[&str]) -> Command {
        let mut command = Command::new("chroot");
        command.arg(self.root()).args(args);
        command
    }

    pub fn new() -> Self {
        let tar = ok(&mut Command::new(repository().join("scripts/package-root")));
        let tar = tar.lines().last().unwrap();
        // In memory: the file system that is frozen for GRUB must not be the one that everybody here works on.
        let dir = in_memory();
        let root = dir.path().join("root");
        std::fs::create_dir(&root).unwrap();
        ok(Command::new("tar")
            .arg("-C")
            .arg(&root)
            .args(["--numeric-owner", "-xf", tar]));
        let sample = dir.path().join("node");
        let spec = NodeSpec {
            tools: Some(env!("CARGO_BIN_EXE_sample-node").into()),
            policy: None,
            ..NodeSpec::default()
        };
        node::create(&sample, &spec).unwrap();
        // The node's own shell and directories give way to Debian's, which come with a package manager.
        ok(Command::new("cp")
            .args(["-a", "--no-clobber"])
            .arg(sample.join("."))
            .arg(&root));
        let _ = std::fs::remove_dir_all(root.join("etc/gdr-agent"));
        let node = Node::at(root);
        let line = args(&node);
        Self {
            _dir: dir,
            node,
            line,
        }
    }

    pub fn root(&self) -> &Path {
        self.node.path()
    }

    /// What it boots with now, by the sample node's own GRUB.
    pub fn boots(&self) -> Vec<String> {
        node::reboot(self.root(), Reboot::default()).unwrap();
        args(&self.node)
    }

    pub fn write_policy(&self) {
        self.node
            .write("etc/gdr-agent/policy.toml", POLICY.as_bytes());
    }

    /// Boot files and what may have become of them.
    pub fn boot_files(&self) -> BTreeMap<PathBuf, String> {
        let mut all = fingerprint(self.root());
        all.retain(|path, _| {
            [
                "boot",
                "etc/default",
                "etc/grub.d",
                "etc/modules-load.d",
                "etc/modprobe.d",
                "etc/kernel",
            ]
            .iter()
            .any(|dir| path.starts_with(dir))
        });
        all
    }

    /// Everything with the agent's name that is left, but for the package manager's own records.
    pub fn traces(&self) -> Vec<String> {
        let found = ok(Command::new("find")
            .arg(".")
            .args([
                "-path", "./proc", "-prune", "-o", "-path", "./sys", "-prune", "-o",
            ])
            .args([
                "-path",
                "./var/lib/rpm",
                "-prune",
                "-o",
                "-name",
                "*gdr?agent*",
                "-print",
            ])
            .current_dir(self.root()));
        let mut all: Vec<String> = found.lines().map(str::to_owned).collect();
        all.sort();
        all
    }

    /// A transaction to its end.
    pub fn commit(&self) {
        self.write_policy();
        self.node.json(&["apply", "--reboot"], 8);
        self.node.reboot(Reboot::default());
        assert_eq!(self.node.json(&["status"], 0)["state"], "COMMITTED");
        let line = self.boots();
        assert!(line.iter().any(|arg| arg == "iommu=pt"), "{line:?}");
    }
}

/// A temporary directory on a tmpfs: the one for all tests, if it is on one.
fn in_memory() -> tempfile::TempDir {
    let usual = std::env::temp_dir();
    let kind = ok(Command::new("stat").args(["-f", "-c", "%T"]).arg(&usual));
    if kind.trim() == "tmpfs" {
        tempfile::tempdir_in(usual).unwrap()
    } else {
        tempfile::tempdir_in("/dev/shm").unwrap()
    }
}

/// The running line, without what GRUB adds.
pub fn args(node: &Node) -> Vec<String> {
    let mut all: Vec<String> = node
        .cmdline()
        .split_whitespace()
        .filter(|arg| !arg.starts_with("BOOT_IMAGE="))
        .map(str::to_owned)
        .collect();
    all.sort();
    all
}

/// The units that the preset enables, by the links that enable them.
pub fn enabled(root: &Path) -> Vec<String> {
    let links = ok(Command::new("find")
        .arg(root.join("etc/systemd/system"))
        .args(["-name", "gdr-agent*", "-printf", "%P\\n"]));
    let mut all: Vec<String> = links.lines().map(str::to_owned).collect();
    all.sort();
    all
}
