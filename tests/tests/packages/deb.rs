//! A repository of Debian packages, and the apt of a made-up node that reads it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gdr_tests::node::drivers::Peermem;
use gdr_tests::node::{Family, NodeSpec};

use super::support::Node;
use super::{KERNEL, module, shell, spec, tool};

/// A package to build.
#[derive(Debug, Clone, Default)]
pub struct Deb {
    pub name: String,
    pub version: String,
    /// Further lines of its control file.
    pub control: String,
    /// Its postinst.
    pub postinst: Option<String>,
    /// Files that it brings.
    pub files: Vec<(String, Vec<u8>)>,
}

impl Deb {
    pub fn new(name: &str, version: &str) -> Self {
        Self {
            name: name.to_owned(),
            version: version.to_owned(),
            ..Self::default()
        }
    }

    pub fn control(mut self, line: &str) -> Self {
        self.control += &format!("{line}\n");
        self
    }

    pub fn postinst(mut self, script: &str) -> Self {
        self.postinst = Some(format!("#!/bin/sh\n{script}\n"));
        self
    }

    /// Brings the module, as DKMS or a prebuilt package would leave it: with its line in `modules.dep`.
    pub fn with_module(mut self, spec: &NodeSpec, state: Peermem) -> Self {
        let (path, bytes) = module(spec, state);
        self.files
            .push((format!("lib/modules/{KERNEL}/{path}"), bytes));
        let dep = format!("echo '{path}:' >> /lib/modules/{KERNEL}/modules.dep");
        self.postinst(&dep)
    }

    fn control_file(&self) -> String {
        format!(
            "Package: {}\nVersion: {}\nArchitecture: amd64\nMaintainer: Nobody <nobody@example.org>\n{}Description: made for a test\n",
            self.name, self.version, self.control
        )
    }

    fn build(&self, repository: &Path) -> String {
        let work = tempfile::tempdir().unwrap();
        let debian = work.path().join("DEBIAN");
        fs::create_dir(&debian).unwrap();
        fs::write(debian.join("control"), self.control_file()).unwrap();
        if let Some(script) = &self.postinst {
            fs::write(debian.join("postinst"), script).unwrap();
            tool("chmod", &["755", "postinst"], &debian);
        }
        for (path, bytes) in &self.files {
            let path = work.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        let version = self.version.replace(':', "%3a");
        let file = format!("{}_{version}_amd64.deb", self.name);
        let at = repository.join(&file);
        let (from, to) = (work.path().to_str().unwrap(), at.to_str().unwrap());
        tool(
            "dpkg-deb",
            &["-Znone", "--root-owner-group", "-b", from, to],
            repository,
        );
        let sum = tool("sha256sum", &[to], repository);
        let sum = sum.split_whitespace().next().unwrap();
        let size = fs::metadata(&at).unwrap().len();
        format!(
            "{}Filename: ./{file}\nSize: {size}\nSHA256: {sum}\n\n",
            self.control_file()
        )
    }
}

/// A made-up node with dpkg's database, and a repository beside it.
pub struct AptNode {
    pub node: Node,
    pub repository: PathBuf,
    _dir: tempfile::TempDir,
}

impl AptNode {
    /// With kernel headers and the driver's other packages installed, and an index of what the repository has.
    pub fn new(packages: &[Deb]) -> Self {
        Self::on(&spec(Family::Debian), packages)
    }

    pub fn on(spec: &NodeSpec, packages: &[Deb]) -> Self {
        let node = Node::new(spec);
        let dir = tempfile::tempdir().unwrap();
        let repository = dir.path().to_path_buf();
        for path in [
            "var/lib/dpkg/info",
            "var/lib/dpkg/updates",
            "var/lib/dpkg/triggers",
            "var/lib/apt/lists/partial",
            "var/cache/apt/archives/partial",
            "var/log/apt",
            "etc/apt/sources.list.d",
            "etc/apt/preferences.d",
            "etc/apt/trusted.gpg.d",
            "tmp",
        ] {
            fs::create_dir_all(node.path().join(path)).unwrap();
        }
        fs::create_dir_all(node.path().join(format!("usr/lib/modules/{KERNEL}/build"))).unwrap();
        shell(node.path());
        let this = Self {
            node,
            repository,
            _dir: dir,
        };
        this.status(&[
            (
                "nvidia-kernel-support",
                "570.148.08-1",
                "install ok installed",
            ),
            ("libx", "1.0", "install ok installed"),
        ]);
        this.publish(packages);
        let line = format!("deb [trusted=yes] file:{} ./\n", this.repository.display());
        this.sources(&line);
        this.update();
        this
    }

    /// What dpkg says is installed.
    pub fn status(&self, packages: &[(&str, &str, &str)]) {
        let record = |(name, version, status): &(&str, &str, &str)| {
            format!(
                "Package: {name}\nStatus: {status}\nMaintainer: Nobody <nobody@example.org>\nArchitecture: amd64\nVersion: {version}\nDescription: made for a test\n\n"
            )
        };
        let text: String = packages.iter().map(record).collect();
        self.node.write("var/lib/dpkg/status", text.as_bytes());
        for (name, ..) in packages {
            self.node
                .write(&format!("var/lib/dpkg/info/{name}.list"), b"/.\n");
        }
    }

    pub fn publish(&self, packages: &[Deb]) {
        let index: String = packages
            .iter()
            .map(|deb| deb.build(&self.repository))
            .collect();
        fs::write(self.repository.join("Packages"), index).unwrap();
    }

    pub fn sources(&self, text: &str) {
        self.node.write("etc/apt/sources.list", text.as_bytes());
    }

    /// `apt-get update`, as an administrator would have run it; returns what it said.
    pub fn update(&self) -> String {
        let root = self.node.path().display();
        let output = Command::new("apt-get")
            .args(["-o", &format!("Dir={root}"), "-o"])
            .arg(format!("Dir::State::status={root}/var/lib/dpkg/status"))
            .arg("update")
            .output()
            .unwrap();
        format!(
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        )
    }

    /// The state of a package by dpkg's own word, such as `ii` or `iF`.
    pub fn state(&self, name: &str) -> String {
        let output = Command::new("dpkg-query")
            .arg(format!(
                "--admindir={}/var/lib/dpkg",
                self.node.path().display()
            ))
            .args(["-W", "-f", "${db:Status-Abbrev}${Version}", name])
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    }
}
