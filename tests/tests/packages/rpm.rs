//! A repository of RPM packages, and the made-up node whose dnf or zypper reads it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gdr_tests::node::drivers::Peermem;
use gdr_tests::node::{Family, NodeSpec};

use super::support::Node;
use super::{KERNEL, module, shell, spec, tool};

/// A package to build.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rpm {
    name: String,
    epoch: u32,
    version: String,
    release: String,
    /// Further lines of its preamble.
    preamble: String,
    /// Its `%post`.
    post: Option<String>,
    files: Vec<(String, Vec<u8>)>,
}

impl Rpm {
    pub(crate) fn new(name: &str, version: &str, release: &str) -> Self {
        Self {
            name: name.to_owned(),
            version: version.to_owned(),
            release: release.to_owned(),
            ..Self::default()
        }
    }

    pub(crate) fn epoch(mut self, epoch: u32) -> Self {
        self.epoch = epoch;
        self
    }

    pub(crate) fn preamble(mut self, line: &str) -> Self {
        self.preamble += &format!("{line}\n");
        self
    }

    pub(crate) fn post(mut self, script: &str) -> Self {
        self.post = Some(script.to_owned());
        self
    }

    /// Brings the module, with its line in `modules.dep`.
    pub(crate) fn with_module(mut self, spec: &NodeSpec, state: Peermem) -> Self {
        let (path, bytes) = module(spec, state);
        self.files
            .push((format!("/usr/lib/modules/{KERNEL}/{path}"), bytes));
        self.post(&format!(
            "echo '{path}:' >> /usr/lib/modules/{KERNEL}/modules.dep"
        ))
    }

    fn build(&self, repository: &Path) {
        let work = tempfile::tempdir().unwrap();
        let root = work.path().join("files");
        for (path, bytes) in &self.files {
            let at = root.join(path.trim_start_matches('/'));
            fs::create_dir_all(at.parent().unwrap()).unwrap();
            fs::write(at, bytes).unwrap();
        }
        fs::create_dir_all(&root).unwrap();
        let files: String = self
            .files
            .iter()
            .map(|(path, _)| format!("{path}\n"))
            .collect();
        let post = self.post.as_ref();
        let post = post.map_or(String::new(), |script| format!("%post\n{script}\n"));
        let spec = format!(
            "%global __os_install_post %{{nil}}\nName: {}\nEpoch: {}\nVersion: {}\nRelease: {}\nSummary: made for a test\nLicense: none\nBuildArch: noarch\nAutoReqProv: no\n{}\n%description\nmade for a test\n%install\nmkdir -p %{{buildroot}}\ncp -a {}/. %{{buildroot}}/\n{post}%files\n{files}",
            self.name,
            self.epoch,
            self.version,
            self.release,
            self.preamble,
            root.display()
        );
        let file = work.path().join("it.spec");
        fs::write(&file, spec).unwrap();
        let top = format!("_topdir {}", work.path().display());
        let out = format!("_rpmdir {}", repository.display());
        // The names of shells and files are no dependencies here: the root has no packages that provide them.
        tool(
            "rpmbuild",
            &[
                "-bb",
                "--quiet",
                "--define",
                &top,
                "--define",
                &out,
                file.to_str().unwrap(),
            ],
            work.path(),
        );
    }
}

/// The package that provides what scripts need.
pub(crate) fn base() -> Rpm {
    Rpm::new("base", "1", "1").preamble("Provides: /bin/sh")
}

/// A made-up node with rpm's database, and a repository beside it.
pub(crate) struct RpmNode {
    pub(crate) node: Node,
    pub(crate) repository: PathBuf,
    zypper: bool,
    _dir: tempfile::TempDir,
}

impl RpmNode {
    /// `installed` is what is installed to begin with, out of the same repository.
    pub(crate) fn new(family: Family, packages: &[Rpm], installed: &[&str]) -> Self {
        Self::on(&spec(family), packages, installed)
    }

    pub(crate) fn on(spec: &NodeSpec, packages: &[Rpm], installed: &[&str]) -> Self {
        let node = Node::new(spec);
        let zypper = spec.family == Family::Suse;
        let dir = tempfile::tempdir().unwrap();
        let repository = dir.path().join("repository");
        fs::create_dir(&repository).unwrap();
        for path in [
            "var/lib",
            "etc/yum.repos.d",
            "etc/dnf",
            "etc/zypp/repos.d",
            "tmp",
            "var/tmp",
            "root",
            "run",
        ] {
            fs::create_dir_all(node.path().join(path)).unwrap();
        }
        fs::create_dir_all(node.path().join(format!("usr/lib/modules/{KERNEL}/build"))).unwrap();
        shell(node.path());
        let this = Self {
            node,
            repository,
            zypper,
            _dir: dir,
        };
        this.one_database();
        this.node.write("etc/dnf/dnf.conf", b"[main]\n");
        let url = format!("file://{}", this.repository.display());
        this.source(&url, "gpgcheck=0\n");
        this.publish(packages);
        let files = fs::read_dir(this.repository.join("noarch"))
            .unwrap()
            .flatten();
        let files: Vec<PathBuf> = files.map(|entry| entry.path()).collect();
        let start = |name: &&str| {
            let mut files = files.iter();
            let found = files.find(|path| {
                path.file_name()
                    .unwrap()
                    .to_string_lossy()
                    .starts_with(*name)
            });
            found
                .unwrap_or_else(|| panic!("{name} in {files:?}"))
                .to_str()
                .unwrap()
                .to_owned()
        };
        let mut args: Vec<String> = [
            "--root",
            this.node.path().to_str().unwrap(),
            "-i",
            "--nodeps",
            "--force-debian",
        ]
        .map(str::to_owned)
        .to_vec();
        args.push(start(&"base"));
        args.extend(installed.iter().map(start));
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        tool("rpm", &args, this.node.path());
        this
    }

    /// Debian's rpm has its database in root's home, zypper looks in the place that it has elsewhere: one leads to the other.
    fn one_database(&self) {
        let path = tool("rpm", &["--eval", "%{_dbpath}"], self.node.path());
        let path = path.trim();
        let real = self.node.path().join(path.trim_start_matches('/'));
        fs::create_dir_all(&real).unwrap();
        if path != "/var/lib/rpm" {
            let link = self.node.path().join("var/lib/rpm");
            std::os::unix::fs::symlink(format!("../..{path}"), link).unwrap();
        }
    }

    /// The node's only repository.
    pub(crate) fn source(&self, url: &str, more: &str) {
        let text = format!(
            "[test]\nname=test\nbaseurl={url}/noarch\nenabled=1\nautorefresh=1\nmetadata_expire=0\n{more}"
        );
        let dir = if self.zypper {
            "etc/zypp/repos.d"
        } else {
            "etc/yum.repos.d"
        };
        self.node
            .write(&format!("{dir}/test.repo"), text.as_bytes());
    }

    pub(crate) fn publish(&self, packages: &[Rpm]) {
        base().build(&self.repository);
        for package in packages {
            package.build(&self.repository);
        }
        tool("createrepo_c", &["-q", "noarch"], &self.repository);
    }

    /// What rpm says is installed of a name.
    pub(crate) fn state(&self, name: &str) -> String {
        let output = Command::new("rpm")
            .arg("--root")
            .arg(self.node.path())
            .args(["-q", "--qf", "%{EPOCH}:%{VERSION}-%{RELEASE}\\n", name])
            .output()
            .unwrap();
        if output.status.success() {
            String::from_utf8(output.stdout).unwrap().trim().to_owned()
        } else {
            String::new()
        }
    }
}
