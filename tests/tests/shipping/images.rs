//! The examples for image builders, on a Debian with a sample node's boot files: mmdebstrap runs its hook, mkosi's script
//! and the commands of Packer's template run in a chroot, as those two would run them.

use std::path::PathBuf;
use std::process::Command;

use crate::common::{Machine, THIS, both, can_install, find, ok, packages, repository};

const TOOLS: [&str; 4] = ["dpkg", "rpmbuild", "mmdebstrap", "chroot"];
const POLICY: &str = "version = 1\n[kernel]\niommu = \"passthrough\"\n[reboot]\nallow = true\n";

impl Machine {
    /// As an image is while it is built: no kernel of its own runs.
    fn image() -> Self {
        let machine = Self::new();
        for path in ["proc/cmdline", "proc/sys/kernel/random/boot_id"] {
            std::fs::remove_file(machine.root().join(path)).unwrap();
        }
        machine
    }

    fn install_with_policy(&self) {
        ok(Command::new("dpkg")
            .arg("--root")
            .arg(self.root())
            .arg("-i")
            .arg(find(&packages(), THIS, ".deb")));
        self.node
            .write("etc/gdr-agent/policy.toml", POLICY.as_bytes());
    }

    /// The next boot is the trial, and ends well.
    fn first_boot_commits(&self) {
        let status = self.chroot(&["gdr-agent", "status"]).output().unwrap();
        assert_eq!(status.status.code(), Some(8), "{}", both(&status));
        let said = both(&status);
        assert!(said.contains("ARMED"), "{said}");
        assert!(said.contains("the next boot is the trial"), "{said}");
        self.node.reboot_without_arming();
        assert_eq!(self.node.json(&["status"], 0)["state"], "COMMITTED");
        let line = self.boots();
        assert!(line.iter().any(|arg| arg == "iommu=pt"), "{line:?}");
    }
}

fn example(path: &str) -> PathBuf {
    repository().join("packaging").join(path)
}

/// A directory with the policy, and the policy's path.
fn policy() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("policy.toml");
    std::fs::write(&path, POLICY).unwrap();
    (dir, path)
}

#[test]
fn mmdebstrap_bakes_the_policy_in_by_its_hook() {
    if !can_install(&TOOLS) {
        return;
    }
    let machine = Machine::image();
    let (dir, policy) = policy();
    let image = dir.path().join("image");
    // The root is there already, so nothing is downloaded; hooks and clean-up are mmdebstrap's.
    let from = machine.root().to_str().unwrap();
    ok(Command::new("mmdebstrap")
        .args(["--mode=root", "--variant=custom", "--format=directory"])
        .arg("--skip=update")
        .arg(format!("--setup-hook=cp -a {from}/. \"$1\""))
        .arg(format!(
            "--customize-hook={} \"$1\" {} {}",
            example("mmdebstrap/customize-hook").display(),
            find(&packages(), THIS, ".deb").display(),
            policy.display()
        ))
        .args(["bookworm", image.to_str().unwrap()])
        .arg("deb [trusted=yes] copy:///nowhere ./"));
    std::fs::remove_dir_all(machine.root()).unwrap();
    std::fs::rename(&image, machine.root()).unwrap();
    machine.first_boot_commits();
    assert!(!machine.node.has("tmp/gdr-agent.deb"));
}

#[test]
fn the_builders_kernel_and_firmware_say_nothing_about_the_image() {
    if !can_install(&TOOLS) {
        return;
    }
    let machine = Machine::new();
    machine.install_with_policy();
    // A chroot with /proc and /sys: the machine is the builder's, here one with an AMD processor.
    let tables = machine.root().join("sys/firmware/acpi/tables");
    let _ = std::fs::remove_file(tables.join("DMAR"));
    machine.node.write("sys/firmware/acpi/tables/IVRS", b"IVRS");
    machine.node.write("proc/cmdline", b"builder iommu=pt\n");
    machine
        .node
        .write("proc/sys/kernel/osrelease", b"6.99-builder\n");
    let mounts = "40 22 0:21 / /proc rw - proc proc rw\n";
    machine.node.write("proc/self/mountinfo", mounts.as_bytes());
    let baked = machine
        .chroot(&["gdr-agent", "apply", "--bake"])
        .output()
        .unwrap();
    assert_eq!(baked.status.code(), Some(8), "{}", both(&baked));
    let custom = machine.node.read("boot/grub/custom.cfg");
    let custom = String::from_utf8_lossy(&custom);
    assert!(custom.contains(" intel_iommu=on iommu=pt"), "{custom}");
    assert!(!custom.contains("builder"), "{custom}");
}

#[test]
fn mmdebstraps_hook_fails_on_a_policy_with_a_mistake() {
    if !can_install(&TOOLS) {
        return;
    }
    let machine = Machine::image();
    let before = machine.boot_files();
    let (_dir, policy) = policy();
    std::fs::write(&policy, POLICY.replace("passthrough", "passthru")).unwrap();
    let failed = Command::new(example("mmdebstrap/customize-hook"))
        .arg(machine.root())
        .arg(find(&packages(), THIS, ".deb"))
        .arg(&policy)
        .output()
        .unwrap();
    assert!(!failed.status.success());
    assert!(both(&failed).contains("passthru"), "{}", both(&failed));
    assert_eq!(machine.boot_files(), before);
}

#[test]
fn mkosis_script_bakes_the_policy_in_and_not_for_a_build_that_is_thrown_away() {
    if !can_install(&TOOLS) {
        return;
    }
    let machine = Machine::image();
    machine.install_with_policy();
    let before = machine.boot_files();
    let script = std::fs::read(example("mkosi/mkosi.postinst.chroot")).unwrap();
    machine.node.write("tmp/postinst", &script);
    ok(&mut machine.chroot(&["sh", "/tmp/postinst", "build"]));
    assert_eq!(machine.boot_files(), before);
    ok(&mut machine.chroot(&["sh", "/tmp/postinst", "final"]));
    machine.first_boot_commits();
}

/// The commands of the template's last provisioner, and the exit codes that it takes for success.
fn last_provisioner(template: &str) -> (Vec<String>, Vec<i32>) {
    let (_, last) = template.rsplit_once("provisioner \"shell\"").unwrap();
    let list = |key: &str| {
        let line = last.lines().find(|line| line.trim().starts_with(key));
        let (_, value) = line.unwrap().split_once('=').unwrap();
        value.trim().to_owned()
    };
    (
        serde_json::from_str(&list("inline")).unwrap(),
        serde_json::from_str(&list("valid_exit_codes")).unwrap(),
    )
}

#[test]
fn packers_last_provisioner_bakes_the_policy_in() {
    if !can_install(&TOOLS) {
        return;
    }
    let template = std::fs::read_to_string(example("packer/gdr-agent.pkr.hcl")).unwrap();
    let (commands, codes) = last_provisioner(&template);
    assert_eq!(commands.len(), 2, "{commands:?}");
    assert_eq!(codes, [0, 8]);
    let machine = Machine::image();
    machine.install_with_policy();
    // As Packer writes its script: `-e`, so that the exit code is that of the first that fails.
    let script = format!("#!/bin/sh -e\n{}\n", commands.join("\n"));
    machine.node.write("tmp/script", script.as_bytes());
    let done = machine
        .chroot(&["sh", "-e", "/tmp/script"])
        .output()
        .unwrap();
    assert!(
        codes.contains(&done.status.code().unwrap()),
        "{}",
        both(&done)
    );
    machine.first_boot_commits();
}
