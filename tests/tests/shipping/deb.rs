//! The .deb's life in a Debian whose systemd does not run, as in an image or a chroot.

use std::process::Command;

use gdr_tests::node::{Reboot, Tree, install_kernel};

use crate::common::{Machine, NEXT, THIS, both, can_install, enabled, find, ok, packages};

const TOOLS: [&str; 4] = ["dpkg", "rpmbuild", "mmdebstrap", "chroot"];

impl Machine {
    fn dpkg(&self, args: &[&str]) -> String {
        ok(self.command(args))
    }

    fn command<'c>(&self, args: &[&str]) -> &'c mut Command {
        let mut command = Command::new("dpkg");
        command.arg("--root").arg(self.root()).args(args);
        command
            .env("DEBIAN_FRONTEND", "noninteractive")
            .env("LC_ALL", "C");
        // No terminal to ask on: what somebody has changed stays.
        command.stdin(std::process::Stdio::null());
        Box::leak(Box::new(command))
    }

    fn install_deb(&self, version: &str) -> String {
        let deb = find(&packages(), version, ".deb");
        self.dpkg(&[
            "--force-confold",
            "--force-downgrade",
            "-i",
            deb.to_str().unwrap(),
        ])
    }

    fn version(&self) -> String {
        let shown = ok(&mut self.chroot(&[
            "dpkg-query",
            "-W",
            "-f",
            "${Version} ${db:Status-Status}",
            "gdr-agent",
        ]));
        shown.trim().to_owned()
    }
}

#[test]
fn installing_enables_by_preset_and_changes_no_boot_file() {
    if !can_install(&TOOLS) {
        return;
    }
    let machine = Machine::new();
    let before = machine.boot_files();
    machine.install_deb(THIS);
    assert_eq!(machine.version(), format!("{THIS}-1 installed"));
    assert_eq!(machine.boot_files(), before);
    assert_eq!(machine.boots(), machine.line);
    let links = enabled(machine.root());
    for link in [
        "sysinit.target.wants/gdr-agent-acs.service",
        "sysinit.target.wants/gdr-agent-deadline.service",
        "multi-user.target.wants/gdr-agent-arm.service",
        "timers.target.wants/gdr-agent-reconcile.timer",
    ] {
        assert!(links.iter().any(|l| l == link), "{link}: {links:?}");
    }
    let state = machine.root().join("var/lib/gdr-agent");
    let mode = ok(Command::new("stat").args(["-c", "%a"]).arg(&state));
    assert_eq!(mode.trim(), "700");
    // The policy that comes with it says nothing wrong.
    ok(&mut machine.chroot(&["gdr-agent", "policy", "check", "/etc/gdr-agent/policy.toml"]));

    // An administrator's choice and file outlive an upgrade and a downgrade.
    ok(&mut machine.chroot(&["systemctl", "disable", "gdr-agent-reconcile.timer"]));
    machine.write_policy();
    let policy = machine.node.read("etc/gdr-agent/policy.toml");
    for version in [NEXT, THIS] {
        machine.install_deb(version);
        assert_eq!(machine.version(), format!("{version}-1 installed"));
        assert_eq!(machine.node.read("etc/gdr-agent/policy.toml"), policy);
        let links = enabled(machine.root());
        assert!(!links.iter().any(|l| l.contains("reconcile")), "{links:?}");
        assert!(links.iter().any(|l| l.contains("arm")), "{links:?}");
        assert_eq!(machine.boot_files(), before);
    }

    machine.dpkg(&["-r", "gdr-agent"]);
    assert_eq!(machine.boot_files(), before);
    assert_eq!(
        machine.node.read("etc/gdr-agent/policy.toml"),
        policy,
        "a conffile"
    );
    assert_eq!(machine.boots(), machine.line);
    machine.dpkg(&["-P", "gdr-agent"]);
    assert_eq!(machine.traces(), [""; 0]);
    assert_eq!(machine.boot_files(), before);
}

#[test]
fn what_is_under_way_outlives_an_upgrade_and_is_undone_by_a_removal() {
    if !can_install(&TOOLS) {
        return;
    }
    let machine = Machine::new();
    let before = machine.boot_files();
    machine.install_deb(THIS);
    machine.write_policy();
    machine.node.json(&["apply", "--reboot"], 8);
    let staged = machine.boot_files();
    assert_ne!(staged, before);
    for version in [NEXT, THIS] {
        machine.install_deb(version);
        assert_eq!(machine.node.json(&["status"], 8)["state"], "GRANTED");
        assert_eq!(machine.boot_files(), staged);
    }
    // The worst moment: GRUB is told to boot the trial, and it never will.
    assert!(machine.node.run(&["boot", "arm"]).status.success());
    assert_eq!(machine.node.json(&["status"], 8)["state"], "ARMED");
    machine.dpkg(&["-r", "gdr-agent"]);
    assert_eq!(machine.boot_files(), before);
    assert!(
        !machine.node.has("var/lib/gdr-agent/uninstall"),
        "nothing is in force"
    );
    assert_eq!(machine.boots(), machine.line);
    machine.dpkg(&["-P", "gdr-agent"]);
    assert_eq!(machine.traces(), [""; 0]);
    assert_eq!(machine.boot_files(), before);
    assert_eq!(machine.boots(), machine.line);
}

#[test]
fn what_is_committed_stays_until_the_purge() {
    if !can_install(&TOOLS) {
        return;
    }
    let machine = Machine::new();
    let before = machine.boot_files();
    machine.install_deb(THIS);
    machine.commit();
    let committed = (machine.boot_files(), machine.boots());
    let said = machine.dpkg(&["-r", "gdr-agent"]);
    assert!(
        said.contains("/var/lib/gdr-agent/uninstall/gdr-agent rollback"),
        "{said}"
    );
    assert_eq!((machine.boot_files(), machine.boots()), committed);

    // It comes back: nothing was lost, and the copy goes.
    machine.install_deb(NEXT);
    assert!(!machine.node.has("var/lib/gdr-agent/uninstall"));
    assert_eq!(machine.node.json(&["status"], 0)["state"], "COMMITTED");
    machine.dpkg(&["-r", "gdr-agent"]);

    machine.dpkg(&["-P", "gdr-agent"]);
    assert_eq!(machine.traces(), [""; 0]);
    assert_eq!(machine.boot_files(), before);
    assert_eq!(machine.boots(), machine.line);
}

#[test]
fn the_program_that_a_removal_keeps_can_roll_back() {
    if !can_install(&TOOLS) {
        return;
    }
    let machine = Machine::new();
    let before = machine.boot_files();
    machine.install_deb(THIS);
    machine.commit();
    machine.dpkg(&["-r", "gdr-agent"]);
    let done = machine
        .chroot(&["/var/lib/gdr-agent/uninstall/gdr-agent", "rollback"])
        .output()
        .unwrap();
    // The files are back; the line that runs is the policy's until the reboot.
    assert_eq!(done.status.code(), Some(8), "{}", both(&done));
    assert_eq!(machine.boot_files(), before);
    assert_eq!(machine.boots(), machine.line);
    machine.dpkg(&["-P", "gdr-agent"]);
    assert_eq!(machine.traces(), [""; 0]);
}

#[test]
fn a_purge_makes_the_menu_anew_where_a_kernel_came_in_between() {
    if !can_install(&TOOLS) {
        return;
    }
    let machine = Machine::new();
    machine.install_deb(THIS);
    machine.commit();
    install_kernel(&Tree::new(machine.root()), "6.1.0-40-amd64").unwrap();
    machine.node.reboot(Reboot::default());
    let with = machine.boots();
    assert!(with.iter().any(|arg| arg == "iommu=pt"), "{with:?}");
    machine.dpkg(&["-P", "gdr-agent"]);
    assert_eq!(machine.traces(), [""; 0]);
    assert_eq!(machine.boots(), machine.line);
    assert!(
        machine.node.cmdline().contains("6.1.0-40"),
        "{}",
        machine.node.cmdline()
    );
}

#[test]
fn a_purge_that_cannot_undo_keeps_everything_and_says_so() {
    if !can_install(&TOOLS) {
        return;
    }
    let machine = Machine::new();
    machine.install_deb(THIS);
    machine.commit();
    let committed = machine.boot_files();
    machine.dpkg(&["-r", "gdr-agent"]);
    std::fs::remove_dir_all(machine.root().join("var/lib/gdr-agent/uninstall")).unwrap();
    let failed = machine.command(&["-P", "gdr-agent"]).output().unwrap();
    assert!(!failed.status.success());
    assert!(
        both(&failed).contains("install the package again"),
        "{}",
        both(&failed)
    );
    assert!(machine.node.has("var/lib/gdr-agent/committed.json"));
    assert_eq!(machine.boot_files(), committed);
    // What it says helps.
    machine.install_deb(THIS);
    machine.dpkg(&["-P", "gdr-agent"]);
    assert_eq!(machine.traces(), [""; 0]);
    assert_eq!(machine.boots(), machine.line);
}

#[test]
fn an_image_is_baked_in_a_chroot_without_systemd_and_bus() {
    if !can_install(&TOOLS) {
        return;
    }
    for (bake, exit, state) in [("arm", 8, "ARMED"), ("commit", 0, "COMMITTED")] {
        let machine = Machine::new();
        machine.install_deb(THIS);
        // logind would be asked, were it there.
        let policy = format!(
            "version = 1\n[kernel]\niommu = \"passthrough\"\n[trial]\nbake = \"{bake}\"\n[reboot]\nallow = true\n"
        );
        machine
            .node
            .write("etc/gdr-agent/policy.toml", policy.as_bytes());
        for path in ["proc/cmdline", "proc/sys/kernel/random/boot_id"] {
            std::fs::remove_file(machine.root().join(path)).unwrap();
        }
        let baked = machine
            .chroot(&["gdr-agent", "apply", "--bake"])
            .output()
            .unwrap();
        assert_eq!(baked.status.code(), Some(exit), "{}", both(&baked));
        assert!(both(&baked).contains(state), "{}", both(&baked));
        machine.node.reboot_without_arming();
        assert_eq!(machine.node.json(&["status"], 0)["state"], "COMMITTED");
        let line = machine.boots();
        assert!(line.iter().any(|arg| arg == "iommu=pt"), "{line:?}");
        machine.dpkg(&["-P", "gdr-agent"]);
        assert_eq!(machine.boots(), machine.line, "{bake}");
    }
}
