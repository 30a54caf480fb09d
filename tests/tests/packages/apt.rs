//! apt and dpkg.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use gdr_tests::node::drivers::{Flavour, Peermem};
use gdr_tests::node::{Family, NodeSpec};

use super::deb::{AptNode, Deb};
use super::mirror::dying;
use super::{DRIVER, KERNEL, assert_refused, assert_undone, have, log, plan, spec, step, tool};

const TOOLS: [&str; 5] = ["apt-get", "dpkg-deb", "sha256sum", "busybox", "apt-cache"];
const NAME: &str = "nvidia-kernel-dkms";

/// The package that fits.
fn good() -> Deb {
    Deb::new(NAME, "570.148.08-1").with_module(&spec(Family::Debian), Peermem::Good)
}

/// What this apt's index is when there is also a newer driver.
fn two() -> Vec<Deb> {
    vec![good(), Deb::new(NAME, "580.65.06-1")]
}

#[test]
fn the_version_of_the_driver_is_installed_though_a_newer_one_is_there() {
    if !have(&TOOLS) {
        return;
    }
    let apt = AptNode::new(&two());
    let shown = plan(&apt.node);
    let step = step(&shown).unwrap_or_else(|| panic!("{shown:#}"));
    assert_eq!(step["id"], "package.install");
    assert_eq!(step["phase"], "live");
    assert_eq!(
        step["summary"],
        format!("install {NAME}=570.148.08-1 with apt for kernel {KERNEL}")
    );
    assert_eq!(step["diff"], format!("+{NAME} 570.148.08-1\n"));
    assert!(step["undo"].as_str().unwrap().contains("stay installed"));
    let ids: Vec<&str> = shown["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| s["id"].as_str().unwrap())
        .collect();
    assert!(ids.contains(&"modules.load-at-boot"), "{ids:?}");
    assert_eq!(apt.state(NAME), "");

    let done = apt.node.json(&["apply"], 0);
    assert_eq!(done["changed"], true);
    assert_eq!(apt.state(NAME), "ii 570.148.08-1");
    assert!(apt.node.has("etc/modules-load.d/gdr-agent.conf"));
    assert!(log(&apt.node).contains("Setting up nvidia-kernel-dkms (570.148.08-1)"));
    assert_eq!(plan(&apt.node)["gdr"]["path"], "peermem");

    // The second time there is nothing to ask: no program is started.
    let again = apt.node.json(&["apply"], 0);
    assert_eq!(again["changed"], false);
    assert_eq!(programs(&apt, "apply"), 1);
}

/// The programs that a verb runs, the agent itself among them.
fn programs(apt: &AptNode, verb: &str) -> usize {
    let trace = apt.repository.join("trace");
    let output = Command::new("strace")
        .args(["-f", "-qq", "-e", "trace=execve", "-o"])
        .arg(&trace)
        .arg(super::support::binary())
        .arg("--root")
        .arg(apt.node.path())
        .arg(verb)
        .output()
        .unwrap();
    assert!(output.status.code().is_some());
    let text = fs::read_to_string(trace).unwrap();
    text.lines()
        .filter(|line| line.contains("execve(") && line.ends_with("= 0"))
        .count()
}

#[test]
fn nothing_is_asked_where_nothing_is_needed() {
    if !have(&TOOLS) || !have(&["strace"]) {
        return;
    }
    // DMA-BUF is the way; no package; and a module that is a stub, which no package cures.
    let dma_buf = NodeSpec {
        policy: Some(super::POLICY.to_owned()),
        ..NodeSpec::default()
    };
    let mut stub = spec(Family::Debian);
    stub.drivers.peermem = Peermem::Stub;
    let mut none = spec(Family::Debian);
    none.policy = Some(format!("{}[peermem]\npackage = \"none\"\n", super::POLICY));
    for spec in [dma_buf, stub, none] {
        let apt = AptNode::on(&spec, &two());
        assert_eq!(programs(&apt, "plan"), 1);
    }
    let apt = AptNode::new(&two());
    assert!(programs(&apt, "plan") > 1);
}

#[test]
fn a_driver_that_no_package_fits_is_told_which_there_are() {
    if !have(&TOOLS) {
        return;
    }
    let apt = AptNode::new(&[Deb::new(NAME, "580.65.06-1"), Deb::new(NAME, "560.35.05-1")]);
    assert_refused(
        &apt.node,
        "package.no-candidate",
        "no nvidia-kernel-dkms for driver 570.148.08: there is 580.65.06-1, 560.35.05-1",
    );
    let apt = AptNode::new(&[Deb::new("other", "1")]);
    assert_refused(
        &apt.node,
        "package.no-candidate",
        "no repository of this node has nvidia-kernel-dkms",
    );
}

#[test]
fn pins_of_the_node_count() {
    if !have(&TOOLS) {
        return;
    }
    let apt = AptNode::new(&two());
    apt.node.write(
        "etc/apt/preferences",
        b"Package: nvidia-kernel-dkms\nPin: version 570.*\nPin-Priority: -1\n",
    );
    assert_refused(
        &apt.node,
        "package.held",
        "the node's own configuration excludes it",
    );
}

#[test]
fn nothing_is_removed_and_neither_driver_nor_kernel_is_moved() {
    if !have(&TOOLS) {
        return;
    }
    let conflict = AptNode::new(&[good().control("Conflicts: libx")]);
    assert_refused(&conflict.node, "package.would-remove", "libx 1.0 removed");

    let newer = AptNode::new(&[
        good().control("Depends: nvidia-kernel-support (>= 570.172.08)"),
        Deb::new("nvidia-kernel-support", "570.172.08-1"),
    ]);
    assert_refused(
        &newer.node,
        "package.would-upgrade",
        "change the driver or the kernel: nvidia-kernel-support 570.148.08-1 -> 570.172.08-1",
    );

    let kernel = AptNode::new(&[
        good().control("Depends: linux-image-6.1.0-40-amd64"),
        Deb::new("linux-image-6.1.0-40-amd64", "6.1.153-1"),
    ]);
    assert_refused(
        &kernel.node,
        "package.would-upgrade",
        "linux-image-6.1.0-40-amd64 6.1.153-1",
    );

    // Anything else may come along.
    let library = AptNode::new(&[
        good().control("Depends: libx (>= 2)"),
        Deb::new("libx", "2.0"),
    ]);
    let shown = plan(&library.node);
    let step = step(&shown).unwrap_or_else(|| panic!("{shown:#}"));
    let diff = step["diff"].as_str().unwrap();
    assert_eq!(
        diff,
        "-libx 1.0\n+libx 2.0\n+nvidia-kernel-dkms 570.148.08-1\n"
    );
}

#[test]
fn what_is_held_stays() {
    if !have(&TOOLS) {
        return;
    }
    let needs = good().control("Depends: libx (>= 2)");
    let apt = AptNode::new(&[needs, Deb::new("libx", "2.0")]);
    apt.status(&[("libx", "1.0", "hold ok installed")]);
    assert_refused(&apt.node, "package.held", "libx is held at 1.0");

    let apt = AptNode::new(&[good()]);
    apt.status(&[(NAME, "560.35.05-1", "hold ok installed")]);
    assert_refused(
        &apt.node,
        "package.held",
        "nvidia-kernel-dkms is held at 560.35.05-1",
    );
}

#[test]
fn dependencies_that_nobody_has_are_named() {
    if !have(&TOOLS) {
        return;
    }
    let apt = AptNode::new(&[good().control("Depends: nowhere (>= 2)")]);
    assert_refused(
        &apt.node,
        "package.unmet-dependencies",
        "Depends: nowhere (>= 2)",
    );
}

#[test]
fn two_drivers_are_one_too_many() {
    if !have(&TOOLS) {
        return;
    }
    let apt = AptNode::new(&[good()]);
    apt.status(&[
        (
            "nvidia-kernel-open-dkms",
            "570.148.08-1",
            "install ok installed",
        ),
        ("nvidia-dkms-560", "560.35.05-1", "install ok installed"),
    ]);
    assert_refused(
        &apt.node,
        "package.two-drivers",
        "nvidia 560, nvidia-kernel-open-dkms",
    );
}

#[test]
fn a_database_that_is_not_in_order_is_left_alone() {
    if !have(&TOOLS) {
        return;
    }
    let apt = AptNode::new(&[good()]);
    apt.status(&[("libx", "1.0", "install ok half-configured")]);
    assert_refused(
        &apt.node,
        "package.broken-database",
        "libx is half-configured",
    );
    apt.status(&[("libx", "1.0", "install reinstreq half-installed")]);
    assert_refused(&apt.node, "package.broken-database", "libx is reinstreq");
    apt.status(&[("libx", "1.0", "install ok installed")]);
    apt.node
        .write("var/lib/dpkg/updates/0001", b"Package: libx\n");
    assert_refused(
        &apt.node,
        "package.broken-database",
        "a dpkg that was interrupted",
    );
}

#[test]
fn no_repository_at_all() {
    if !have(&TOOLS) {
        return;
    }
    let apt = AptNode::new(&[good()]);
    for entry in fs::read_dir(apt.node.path().join("var/lib/apt/lists"))
        .unwrap()
        .flatten()
    {
        let _ = fs::remove_file(entry.path());
    }
    assert_refused(&apt.node, "package.no-repository", "apt has no index");
}

#[test]
fn a_kernel_without_headers_gets_them_or_is_refused() {
    if !have(&TOOLS) {
        return;
    }
    let headers = format!("linux-headers-{KERNEL}");
    let build = format!("usr/lib/modules/{KERNEL}/build");
    let apt = AptNode::new(&[good()]);
    fs::remove_dir(apt.node.path().join(&build)).unwrap();
    assert_refused(&apt.node, "package.no-headers", &headers);

    let apt = AptNode::new(&[good(), Deb::new(&headers, "6.1.140-1")]);
    fs::remove_dir(apt.node.path().join(&build)).unwrap();
    let step = step(&plan(&apt.node)).unwrap();
    let diff = step["diff"].as_str().unwrap();
    assert!(diff.contains(&format!("+{headers} 6.1.140-1\n")), "{diff}");

    // DKMS is there, headers are there, and there is no module.
    let apt = AptNode::new(&[good()]);
    apt.status(&[(NAME, "570.148.08-1", "install ok installed")]);
    assert_refused(
        &apt.node,
        "package.not-built",
        "DKMS has not built the module",
    );
}

#[test]
fn a_script_that_fails_is_named_with_the_state_it_leaves() {
    if !have(&TOOLS) {
        return;
    }
    let apt = AptNode::new(&[good().postinst("echo no compiler; exit 1")]);
    let said = assert_undone(&apt.node, "package.script-failed");
    assert!(
        said.contains("nvidia-kernel-dkms 570.148.08-1 is half-configured"),
        "{said}"
    );
    assert!(said.contains("but for the packages, which stay"), "{said}");
    assert!(log(&apt.node).contains("no compiler"), "{}", log(&apt.node));
    assert_eq!(apt.state(NAME), "iF 570.148.08-1");
    assert_refused(
        &apt.node,
        "package.broken-database",
        "nvidia-kernel-dkms is half-configured",
    );
}

#[test]
fn an_install_that_is_killed_is_named_with_the_state_it_leaves() {
    if !have(&TOOLS) {
        return;
    }
    // dpkg dies in the middle, as of a lack of memory.
    let apt = AptNode::new(&[good().postinst("kill -9 $PPID; sleep 1")]);
    let said = assert_undone(&apt.node, "package.interrupted");
    assert!(
        said.contains("nvidia-kernel-dkms 570.148.08-1 is half-configured"),
        "{said}"
    );
    let output = apt.node.run(&["--format", "json", "plan"]);
    assert_eq!(output.status.code(), Some(9));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("package.broken-database"), "{text}");
}

#[test]
fn a_mirror_that_dies_half_way_changes_nothing() {
    if !have(&TOOLS) {
        return;
    }
    let apt = AptNode::new(&[good()]);
    let port = dying(apt.repository.clone(), &[".deb"]);
    apt.sources(&format!("deb [trusted=yes] http://127.0.0.1:{port} ./\n"));
    apt.update();
    assert!(step(&plan(&apt.node)).is_some(), "{:#}", plan(&apt.node));
    let said = assert_undone(&apt.node, "package.download-failed");
    assert!(
        said.contains("nvidia-kernel-dkms is not installed"),
        "{said}"
    );
    assert_eq!(apt.state(NAME), "");
}

#[test]
fn a_lock_is_waited_for_and_then_named() {
    if !have(&TOOLS) {
        return;
    }
    // The limit is minutes: the messages are apt's own, asked without waiting.
    let apt = AptNode::new(&[good()]);
    let lock = apt.node.path().join("var/lib/dpkg/lock-frontend");
    fs::write(&lock, "").unwrap();
    // fcntl locks are of a process: a python holds it.
    let mut holder = Command::new("python3")
        .arg("-c")
        .arg("import fcntl,sys,time; f=open(sys.argv[1],'w'); fcntl.lockf(f,fcntl.LOCK_EX); print(1,flush=True); time.sleep(4)")
        .arg(&lock)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = [0; 2];
    std::io::Read::read_exact(holder.stdout.as_mut().unwrap(), &mut line).unwrap();
    // It is let go while the agent waits.
    apt.node.json(&["apply"], 0);
    holder.wait().unwrap();
    assert_eq!(apt.state(NAME), "ii 570.148.08-1");
}

#[test]
fn a_package_that_brings_a_stub_is_no_success() {
    if !have(&TOOLS) {
        return;
    }
    for (state, finding) in [
        (Peermem::Stub, "peermem.stub"),
        (Peermem::OtherInterface, "peermem.abi-mismatch"),
    ] {
        let deb = Deb::new(NAME, "570.148.08-1").with_module(&spec(Family::Debian), state);
        let apt = AptNode::new(&[deb]);
        let said = assert_undone(&apt.node, "package.no-module");
        assert!(said.contains(finding), "{said}");
        assert_eq!(apt.state(NAME), "ii 570.148.08-1");
    }
    let apt = AptNode::new(&[Deb::new(NAME, "570.148.08-1")]);
    let said = assert_undone(&apt.node, "package.no-module");
    assert!(said.contains("peermem.not-installed"), "{said}");
}

#[test]
fn a_name_in_the_policy_is_installed_as_it_is() {
    if !have(&TOOLS) {
        return;
    }
    let mut spec = spec(Family::Debian);
    spec.policy = Some(format!(
        "{}[peermem]\npackage = \"site-peermem\"\n",
        super::POLICY
    ));
    let deb = Deb::new("site-peermem", "1:3~beta-2").with_module(&spec, Peermem::Good);
    let apt = AptNode::on(&spec, &[deb, Deb::new("site-peermem", "1:2-9")]);
    apt.node.json(&["apply"], 0);
    assert_eq!(apt.state("site-peermem"), "ii 1:3~beta-2");

    let apt = AptNode::on(&spec, &[good()]);
    assert_refused(&apt.node, "package.no-candidate", "site-peermem");
    apt.status(&[("site-peermem", "1", "install ok installed")]);
    assert_refused(
        &apt.node,
        "package.no-module",
        "site-peermem is installed and brings no nvidia-peermem",
    );
}

#[test]
fn ubuntu_has_a_package_for_each_kernel_and_its_driver_in_the_dependencies() {
    if !have(&TOOLS) {
        return;
    }
    for (flavour, way) in [
        (Flavour::Proprietary, "570-server"),
        (Flavour::Open, "570-server-open"),
    ] {
        let mut spec = spec(Family::Debian);
        spec.drivers.flavour = flavour;
        let path = if flavour == Flavour::Open {
            "peermem"
        } else {
            "auto"
        };
        spec.policy = Some(format!("{}[gdr]\npath = \"{path}\"\n", super::POLICY));
        let name = format!("linux-modules-nvidia-{way}-{KERNEL}");
        let of = |version: &str, driver: &str| {
            Deb::new(&name, version).control(&format!(
                "Depends: nvidia-kernel-common-570-server (<= {driver}-1), nvidia-kernel-common-570-server (>= {driver})"
            ))
        };
        let debs = [
            of("6.1.0-37.37", DRIVER).with_module(&spec, Peermem::Good),
            of("6.1.0-37.37+1", "570.172.08"),
            Deb::new("nvidia-kernel-common-570-server", "570.172.08-0ubuntu1"),
        ];
        let apt = AptNode::on(&spec, &debs);
        apt.node.write(
            "usr/lib/os-release",
            b"ID=ubuntu\nID_LIKE=debian\nVERSION_ID=\"24.04\"\n",
        );
        apt.status(&[(
            "nvidia-kernel-common-570-server",
            "570.148.08-0ubuntu1",
            "install ok installed",
        )]);
        let shown = plan(&apt.node);
        let step = step(&shown).unwrap_or_else(|| panic!("{shown:#}"));
        assert_eq!(step["diff"], format!("+{name} 6.1.0-37.37\n"));
        apt.node.json(&["apply"], 0);
        assert_eq!(apt.state(&name), "ii 6.1.0-37.37");
    }
}

#[test]
fn a_repository_with_another_key_is_not_believed() {
    if !have(&TOOLS) || !have(&["gpg", "gpgv", "gpgconf"]) {
        return;
    }
    let apt = AptNode::new(&[good()]);
    let home = tempfile::tempdir().unwrap();
    let at = home.path().to_str().unwrap();
    let key = |who: &str| {
        tool(
            "gpg",
            &[
                "--homedir",
                at,
                "--batch",
                "--passphrase",
                "",
                "--quick-gen-key",
                who,
                "ed25519",
                "sign",
                "never",
            ],
            home.path(),
        );
    };
    key("good@example.org");
    key("other@example.org");
    let sum = tool("sha256sum", &["Packages"], &apt.repository);
    let size = fs::metadata(apt.repository.join("Packages")).unwrap().len();
    let sum = sum.split_whitespace().next().unwrap();
    let release = format!("Date: Thu, 01 Jan 2026 00:00:00 UTC\nSHA256:\n {sum} {size} Packages\n");
    fs::write(apt.repository.join("Release"), release).unwrap();
    let sign = |who: &str| {
        let args = [
            "--homedir",
            at,
            "--batch",
            "--yes",
            "-u",
            who,
            "--clearsign",
            "-o",
            "InRelease",
            "Release",
        ];
        tool("gpg", &args, &apt.repository);
    };
    let trusted = apt.node.path().join("etc/apt/trusted.gpg.d/good.gpg");
    let args = [
        "--homedir",
        at,
        "--batch",
        "-o",
        trusted.to_str().unwrap(),
        "--export",
        "good@example.org",
    ];
    tool("gpg", &args, home.path());
    apt.sources(&format!("deb file:{} ./\n", apt.repository.display()));
    for entry in fs::read_dir(apt.node.path().join("var/lib/apt/lists"))
        .unwrap()
        .flatten()
    {
        let _ = fs::remove_file(entry.path());
    }
    sign("other@example.org");
    let said = apt.update();
    assert!(said.contains("NO_PUBKEY"), "{said}");
    assert_refused(&apt.node, "package.no-repository", "apt has no index");

    sign("good@example.org");
    let said = apt.update();
    tool("gpgconf", &["--homedir", at, "--kill", "all"], home.path());
    assert!(
        step(&plan(&apt.node)).is_some(),
        "{said}{:#}",
        plan(&apt.node)
    );
    apt.node.json(&["apply"], 0);
    assert_eq!(apt.state(NAME), "ii 570.148.08-1");
}

/// A small file system of its own, unmounted at the end. A container may not give one.
struct Small(PathBuf);

impl Small {
    fn mount(at: PathBuf, kilobytes: u32) -> Option<Self> {
        fs::create_dir_all(&at).unwrap();
        let size = format!("size={kilobytes}k");
        let status = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "gdr-agent-test"])
            .arg(&at)
            .status();
        if status.is_ok_and(|status| status.success()) {
            return Some(Self(at));
        }
        println!("SKIPPED: nothing may be mounted here");
        None
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_is_named_and_nothing_is_installed() {
    if !have(&TOOLS) {
        return;
    }
    let mut large = good();
    let at = format!("lib/modules/{KERNEL}/updates/dkms/large.ko");
    large.files.push((at, vec![7; 2 << 20]));
    // There is no room for what is unpacked.
    let apt = AptNode::new(std::slice::from_ref(&large));
    let modules = format!("usr/lib/modules/{KERNEL}/updates/dkms");
    // What is there is hidden, the RDMA core among it: it is copied.
    let path = apt.node.path().join(&modules);
    let core = fs::read(path.join("ib_core.ko")).unwrap();
    if let Some(small) = Small::mount(path.clone(), 512) {
        fs::write(path.join("ib_core.ko"), core).unwrap();
        let said = assert_undone(&apt.node, "package.disk-full");
        assert!(
            said.contains("nvidia-kernel-dkms is not installed"),
            "{said}"
        );
        assert!(!path.join("large.ko").exists());
        drop(small);
    }
    // There is no room for what is fetched.
    let apt = AptNode::new(&[large]);
    let port = dying(apt.repository.clone(), &[]);
    apt.sources(&format!("deb [trusted=yes] http://127.0.0.1:{port} ./\n"));
    apt.update();
    let cache = apt.node.path().join("var/cache/apt/archives");
    if let Some(small) = Small::mount(cache, 512) {
        let said = assert_undone(&apt.node, "package.disk-full");
        assert!(
            said.contains("nvidia-kernel-dkms is not installed"),
            "{said}"
        );
        drop(small);
    }
    assert_eq!(apt.state(NAME), "");
}

#[test]
fn an_agent_that_is_killed_leaves_a_transaction_that_says_so() {
    if !have(&TOOLS) {
        return;
    }
    let slow = good().postinst("sleep 2; exit 1");
    let apt = AptNode::new(&[slow]);
    let mut agent = Command::new(super::support::binary())
        .arg("--root")
        .arg(apt.node.path())
        .arg("apply")
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !apt.state(NAME).starts_with("iF") {
        assert!(std::time::Instant::now() < until, "{}", apt.state(NAME));
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    agent.kill().unwrap();
    agent.wait().unwrap();
    // apt is not the agent's to lose: it goes on by itself, and ends as it would have.
    std::thread::sleep(std::time::Duration::from_secs(4));
    assert_eq!(apt.state(NAME), "iF 570.148.08-1");
    let back = apt.node.json(&["rollback"], 0);
    let spec = format!("{NAME}=570.148.08-1");
    assert_eq!(
        back["status"]["packages"],
        serde_json::json!([spec]),
        "{back:#}"
    );
    assert_refused(
        &apt.node,
        "package.broken-database",
        "nvidia-kernel-dkms is half-configured",
    );
}

/// The made-up node as the running system: this machine's programs over its own, in a mount namespace and a chroot.
#[test]
fn on_a_running_system_the_same_is_done_without_a_root() {
    if !have(&TOOLS) || !have(&["unshare", "chroot"]) {
        return;
    }
    let mut spec = spec(Family::Debian);
    // What is loaded is loaded into the kernel of this machine: not here.
    spec.policy = Some(format!("{}[peermem]\nload = false\n", super::POLICY));
    let apt = AptNode::on(&spec, &two());
    let root = apt.node.path();
    for path in ["dev", "repository", "upper", "work"] {
        fs::create_dir_all(root.join(path)).unwrap();
    }
    for entry in fs::read_dir(&apt.repository).unwrap().flatten() {
        fs::copy(
            entry.path(),
            root.join("repository").join(entry.file_name()),
        )
        .unwrap();
    }
    fs::copy(super::support::binary(), root.join("repository/gdr-agent")).unwrap();
    apt.sources("deb [trusted=yes] file:/repository ./\n");
    // Below this machine's /usr: the node's shell and modules come first.
    let script = "cd \"$1\" && mount -t overlay -o lowerdir=usr:/usr,upperdir=upper,workdir=work overlay usr && mount --rbind /dev dev || exit 77
        chroot . /usr/bin/apt-get -q update >&2 || exit 78
        exec chroot . /repository/gdr-agent --format json \"$2\"";
    let run = |verb: &str| {
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "sh", "-c", script, "sh"])
            .arg(root)
            .arg(verb);
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stdout).into_owned(),
            said,
        )
    };
    let (code, shown, said) = run("plan");
    if code == Some(77) {
        println!("SKIPPED: nothing may be mounted here: {said}");
        return;
    }
    assert_eq!(code, Some(3), "{shown}{said}");
    assert!(
        shown.contains("install nvidia-kernel-dkms=570.148.08-1 with apt"),
        "{shown}"
    );
    let (code, shown, said) = run("apply");
    assert_eq!(code, Some(0), "{shown}{said}");
    assert_eq!(apt.state(NAME), "ii 570.148.08-1");
    let (code, shown, said) = run("apply");
    assert_eq!(code, Some(0), "{shown}{said}");
    assert!(shown.contains("\"changed\": false"), "{shown}");
}
