//! The .rpm's life. Its scripts run in the same Debian, with dash for `/bin/sh`; rpm's own database is in it.

use std::process::Command;

use crate::common::{Machine, NEXT, THIS, can_install, enabled, find, ok, packages};

const TOOLS: [&str; 4] = ["rpm", "rpmbuild", "mmdebstrap", "chroot"];

impl Machine {
    fn rpm(&self, args: &[&str]) -> String {
        let mut command = Command::new("rpm");
        command
            .arg("--root")
            .arg(self.root())
            .args(["--define", "_dbpath /var/lib/rpm"]);
        // Debian's libraries are not in rpm's database.
        command.args(args);
        ok(&mut command)
    }

    fn install_rpm(&self, version: &str) -> String {
        let rpm = find(&packages(), version, ".rpm");
        self.rpm(&["-U", "--nodeps", "--oldpackage", rpm.to_str().unwrap()])
    }
}

#[test]
fn install_upgrade_downgrade_and_removal() {
    if !can_install(&TOOLS) {
        return;
    }
    let machine = Machine::new();
    let before = machine.boot_files();
    machine.install_rpm(THIS);
    assert_eq!(machine.boot_files(), before);
    assert_eq!(machine.boots(), machine.line);
    let links = enabled(machine.root());
    assert!(
        links
            .iter()
            .any(|l| l == "multi-user.target.wants/gdr-agent-arm.service"),
        "{links:?}"
    );
    let state = machine.root().join("var/lib/gdr-agent");
    let mode = ok(Command::new("stat").args(["-c", "%a"]).arg(&state));
    assert_eq!(mode.trim(), "700");
    ok(&mut machine.chroot(&["systemctl", "disable", "gdr-agent-reconcile.timer"]));
    machine.write_policy();
    let policy = machine.node.read("etc/gdr-agent/policy.toml");
    machine.node.json(&["apply", "--reboot"], 8);
    let staged = machine.boot_files();
    for version in [NEXT, THIS] {
        machine.install_rpm(version);
        let shown = machine.rpm(&["-q", "gdr-agent"]);
        assert!(shown.contains(version), "{shown}");
        assert_eq!(machine.node.read("etc/gdr-agent/policy.toml"), policy);
        assert_eq!(machine.boot_files(), staged);
        let links = enabled(machine.root());
        assert!(!links.iter().any(|l| l.contains("reconcile")), "{links:?}");
    }
    assert!(machine.node.run(&["boot", "arm"]).status.success());
    machine.rpm(&["-e", "gdr-agent"]);
    assert_eq!(machine.boot_files(), before);
    assert_eq!(machine.boots(), machine.line);
    assert_eq!(enabled(machine.root()), [""; 0]);
    // rpm keeps what somebody has changed.
    assert_eq!(machine.traces(), ["./etc/gdr-agent"]);
    assert_eq!(
        machine.node.read("etc/gdr-agent/policy.toml.rpmsave"),
        policy
    );
}

#[test]
fn what_is_committed_stays_with_the_program_that_takes_it_back() {
    if !can_install(&TOOLS) {
        return;
    }
    let machine = Machine::new();
    let before = machine.boot_files();
    machine.install_rpm(THIS);
    machine.commit();
    let committed = (machine.boot_files(), machine.boots());
    let said = machine.rpm(&["-e", "gdr-agent"]);
    assert!(
        said.contains("/var/lib/gdr-agent/uninstall/gdr-agent rollback"),
        "{said}"
    );
    assert_eq!((machine.boot_files(), machine.boots()), committed);
    ok(&mut machine.chroot(&[
        "/var/lib/gdr-agent/uninstall/gdr-agent",
        "boot",
        "uninstall",
        "--purge",
    ]));
    assert_eq!(machine.boot_files(), before);
    assert_eq!(machine.boots(), machine.line);
    assert!(!machine.node.has("var/lib/gdr-agent"));
}
