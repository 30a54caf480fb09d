//! What is in the packages, and what the distributions' own checkers say of them.

use std::process::Command;

use crate::common::{THIS, build, can_install, find, ok, packages, repository};

#[test]
fn two_builds_are_the_same_bytes() {
    if !can_install(&["dpkg-deb", "rpmbuild", "dpkg-shlibdeps"]) {
        return;
    }
    let again = tempfile::tempdir().unwrap();
    build(again.path(), None);
    for end in [".deb", ".rpm", ".tar.gz"] {
        let (a, b) = (find(&packages(), THIS, end), find(again.path(), THIS, end));
        assert!(
            std::fs::read(&a).unwrap() == std::fs::read(b).unwrap(),
            "{}",
            a.display()
        );
    }
}

#[test]
fn the_collection_has_the_version_of_the_agent() {
    let galaxy = repository().join("packaging/ansible/galaxy.yml");
    let text = std::fs::read_to_string(galaxy).unwrap();
    let mut lines = text.lines();
    let version = lines.find_map(|line| line.strip_prefix("version: "));
    assert_eq!(version, Some(THIS));
    let changes = repository().join("packaging/ansible/CHANGELOG.md");
    let text = std::fs::read_to_string(changes).unwrap();
    let heading = format!("## {THIS}");
    assert!(text.lines().any(|line| line == heading), "{heading}");
}

const BOTH: [&str; 26] = [
    "/etc/gdr-agent/policy.toml",
    "/usr/bin/gdr-agent",
    "/usr/lib/systemd/catalog/gdr-agent.catalog",
    "/usr/lib/systemd/system/gdr-agent-bus.service",
    "/usr/share/dbus-1/system-services/org.gdr_agent.Agent1.service",
    "/usr/share/dbus-1/system.d/org.gdr_agent.Agent1.conf",
    "/usr/share/gdr-agent/grafana/gdr-agent.json",
    "/usr/share/gdr-agent/prometheus/gdr-agent.rules.yml",
    "/usr/share/polkit-1/actions/org.gdr_agent.Agent1.policy",
    "/usr/lib/systemd/system-preset/90-gdr-agent.preset",
    "/usr/lib/systemd/system/gdr-agent-acs.service",
    "/usr/lib/systemd/system/gdr-agent-arm.service",
    "/usr/lib/systemd/system/gdr-agent-deadline.service",
    "/usr/lib/systemd/system/gdr-agent-reconcile.timer",
    "/usr/lib/systemd/system/gdr-agent-verify.service",
    "/usr/lib/tmpfiles.d/gdr-agent.conf",
    "/usr/lib/udev/rules.d/70-gdr-agent.rules",
    "/usr/share/bash-completion/completions/gdr-agent",
    "/usr/share/doc/gdr-agent/README.md",
    "/usr/share/doc/gdr-agent/docs/failures.md",
    "/usr/share/doc/gdr-agent/docs/topology-hgx8.svg",
    "/usr/share/fish/vendor_completions.d/gdr-agent.fish",
    "/usr/share/gdr-agent/profiles/hgx-bare-metal.toml",
    "/usr/share/man/man5/gdr-agent-policy.5.gz",
    "/usr/share/man/man8/gdr-agent.8.gz",
    "/usr/share/man/man8/gdr-agent-apply.8.gz",
];

#[test]
fn the_deb_has_everything_and_lintian_finds_nothing() {
    if !can_install(&["dpkg-deb", "rpmbuild", "lintian"]) {
        return;
    }
    let deb = find(&packages(), THIS, ".deb");
    let list = ok(Command::new("dpkg-deb").arg("-c").arg(&deb));
    let more = [
        "/usr/share/doc/gdr-agent/copyright",
        "/usr/share/doc/gdr-agent/changelog.Debian.gz",
        "/usr/share/zsh/vendor-completions/_gdr-agent",
    ];
    for path in BOTH.iter().chain(&more) {
        assert!(
            list.lines()
                .any(|line| line.ends_with(&format!(" .{path}"))),
            "{path}\n{list}"
        );
    }
    assert!(
        list.lines().all(|line| line.contains(" root/root ")),
        "{list}"
    );
    let field = |name: &str| {
        ok(Command::new("dpkg-deb").arg("-f").arg(&deb).arg(name))
            .trim()
            .to_owned()
    };
    let arch = ok(Command::new("dpkg").arg("--print-architecture"));
    assert_eq!(field("Architecture"), arch.trim());
    assert!(
        field("Depends").contains("libc6 (>= "),
        "{}",
        field("Depends")
    );
    let conffiles = ok(Command::new("dpkg-deb")
        .args(["-I"])
        .arg(&deb)
        .arg("conffiles"));
    assert_eq!(conffiles, "/etc/gdr-agent/policy.toml\n");
    let said = ok(Command::new("lintian")
        .args(["--allow-root", "--fail-on", "error,warning"])
        .arg(&deb));
    let bad: Vec<&str> = said
        .lines()
        .filter(|line| line.starts_with("E:") || line.starts_with("W:"))
        .collect();
    assert!(bad.is_empty(), "{said}");
}

#[test]
fn the_rpm_has_everything_and_rpmlint_finds_nothing() {
    if !can_install(&["dpkg-deb", "rpmbuild", "rpmlint", "rpm"]) {
        return;
    }
    let rpm = find(&packages(), THIS, ".rpm");
    let query = |what: &str| ok(Command::new("rpm").args(["-qp", what]).arg(&rpm));
    let list = query("-l");
    let more = [
        "/usr/share/licenses/gdr-agent/LICENSE-MIT",
        "/usr/share/zsh/site-functions/_gdr-agent",
    ];
    for path in BOTH.iter().chain(&more) {
        assert!(list.lines().any(|line| line == *path), "{path}\n{list}");
    }
    assert_eq!(query("-c").trim(), "/etc/gdr-agent/policy.toml");
    let said = ok(Command::new("rpmlint")
        .arg("-c")
        .arg(repository().join("packaging/rpm/rpmlint.toml"))
        .arg(&rpm));
    assert!(said.contains("0 errors, 0 warnings"), "{said}");
}
