//! What `docs/threat-model.md` says is not possible: directories and links of others, names and values that command a
//! terminal, and the environment of whoever calls the agent.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test looks at the machine from outside"
)]

mod support;

use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};
use std::path::Path;
use std::process::{Command, Output};

use gdr_tests::node::{NodeSpec, Reboot};
use support::{Node, binary, fingerprint};

/// Somebody who is not root.
const OTHER: u32 = 12345;

fn node() -> Node {
    Node::new(&NodeSpec {
        tools: Some(env!("CARGO_BIN_EXE_sample-node").into()),
        ..NodeSpec::default()
    })
}

fn root() -> bool {
    let id = Command::new("id").arg("-u").output().unwrap();
    let yes = id.stdout.trim_ascii() == b"0";
    assert!(
        yes || std::env::var_os("CI").is_none(),
        "in CI this runs as root"
    );
    if !yes {
        println!("SKIPPED: only root can give files to others");
    }
    yes
}

fn said(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

#[test]
fn a_state_directory_that_others_can_change_is_not_used() {
    let node = node();
    let dir = node.path().join("var/lib/gdr-agent");
    std::fs::create_dir_all(&dir).unwrap();
    let before = fingerprint(node.path());
    let refused = |words: &str| {
        let output = node.run(&["apply", "--reboot"]);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(9), "{said}");
        assert!(said.contains(words), "{said}");
        assert_eq!(fingerprint(node.path()), before, "something was changed");
        assert_eq!(
            std::fs::read_dir(&dir).unwrap().count(),
            0,
            "it was written to"
        );
    };
    for mode in [0o777, 0o775] {
        std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(mode)).unwrap();
        refused("writable by others");
    }
    std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o755)).unwrap();
    if root() {
        chown(&dir, Some(OTHER), None).unwrap();
        refused("belongs to user 12345");
        chown(&dir, Some(0), None).unwrap();
    }
    node.json(&["apply", "--reboot"], 8);
}

/// Everything that a transaction writes, from `apply` to the commit.
const WRITTEN: [&str; 7] = [
    "var/lib/gdr-agent",
    "boot/grub/custom.cfg",
    "boot/grub/grubenv",
    "boot/grub/grub.cfg",
    "etc/default/grub.d",
    "etc/default/grub.d/99-gdr-agent.cfg",
    "etc/modules-load.d",
];

#[test]
fn links_of_others_in_the_place_of_what_is_written_lead_nowhere() {
    if !root() {
        return;
    }
    for path in WRITTEN {
        let node = node();
        let at = node.path().join(path);
        let victim = node.path().join("victim");
        // What was there stays reachable, so that only the link is wrong.
        let is_dir = at.is_dir() || path == "var/lib/gdr-agent";
        if at.exists() {
            std::fs::rename(&at, &victim).unwrap();
        } else if is_dir {
            std::fs::create_dir_all(&victim).unwrap();
        } else {
            std::fs::write(&victim, "precious\n").unwrap();
        }
        std::fs::create_dir_all(at.parent().unwrap()).unwrap();
        // As far up as it is down, so that it leads there for the sample node's GRUB, too.
        let up = "../".repeat(path.matches('/').count());
        symlink(format!("{up}victim"), &at).unwrap();
        lchown(&at, Some(OTHER), Some(OTHER)).unwrap();
        let before = contents(&victim);
        let apply = node.run(&["apply", "--reboot"]);
        if apply.status.code() == Some(8) {
            node.run(&["boot", "arm"]);
            gdr_tests::node::reboot(node.path(), Reboot::default()).unwrap();
            for unit in ["acs", "settle", "verify"] {
                node.run(&["boot", unit]);
            }
        }
        assert_eq!(contents(&victim), before, "{path}\n{}", said(&apply));
    }
}

fn contents(path: &Path) -> Vec<(String, Vec<u8>)> {
    if path.is_dir() {
        let mut all: Vec<_> = std::fs::read_dir(path)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .map(|path| {
                (
                    path.display().to_string(),
                    std::fs::read(&path).unwrap_or_default(),
                )
            })
            .collect();
        all.sort();
        return all;
    }
    vec![(String::new(), std::fs::read(path).unwrap())]
}

#[test]
fn a_hard_link_of_an_edited_file_keeps_its_content() {
    let node = node();
    node.write(
        "etc/gdr-agent/policy.d/50-quiet.toml",
        b"[kernel]\nremove = [\"quiet\"]\n",
    );
    let (file, other) = ("etc/default/grub", "etc/other-name");
    std::fs::hard_link(node.path().join(file), node.path().join(other)).unwrap();
    let before = node.read(other);
    node.json(&["apply", "--reboot"], 8);
    node.reboot(Reboot::default());
    assert_eq!(node.json(&["status"], 0)["state"], "COMMITTED");
    assert_ne!(node.read(file), before, "the file itself was edited");
    assert_eq!(node.read(other), before);
}

#[test]
fn the_callers_environment_reaches_no_program() {
    let node = node();
    let evil = tempfile::tempdir().unwrap();
    let mark = evil.path().join("was-run");
    for name in [
        "chroot",
        "grub-mkconfig",
        "update-grub",
        "grub-script-check",
        "sh",
        "modprobe",
    ] {
        let path = evil.path().join(name);
        std::fs::write(
            &path,
            format!("#!/bin/sh\necho {name} >> {}\nexit 1\n", mark.display()),
        )
        .unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let profile = evil.path().join("profile");
    std::fs::write(&profile, format!("echo profile >> {}\n", mark.display())).unwrap();
    let agent = |args: &[&str]| {
        let output = Command::new(binary())
            .arg("--root")
            .arg(node.path())
            .args(args)
            .env("PATH", evil.path())
            .env("ENV", &profile)
            .env("BASH_ENV", &profile)
            .env("GRUB_CMDLINE_LINUX", "init=/bin/sh")
            .env("GRUB_CMDLINE_LINUX_DEFAULT", "init=/bin/sh")
            .env("IFS", "/")
            .env("TMPDIR", "/nonexistent")
            .env("HOME", evil.path())
            .output()
            .unwrap();
        (output.status.code(), said(&output))
    };
    assert_eq!(agent(&["apply", "--reboot"]).0, Some(8));
    agent(&["boot", "arm"]);
    gdr_tests::node::reboot(node.path(), Reboot::default()).unwrap();
    for unit in ["acs", "settle", "verify"] {
        let (code, said) = agent(&["boot", unit]);
        assert_eq!(code, Some(0), "{unit}: {said}");
    }
    assert_eq!(node.json(&["status"], 0)["state"], "COMMITTED");
    let menu = String::from_utf8(node.read("boot/grub/grub.cfg")).unwrap();
    assert!(
        menu.contains("iommu=pt") && !menu.contains("init="),
        "{menu}"
    );
    assert!(
        !mark.exists(),
        "{}",
        std::fs::read_to_string(&mark).unwrap()
    );
}

#[test]
fn a_name_with_escapes_and_line_breaks_commands_no_terminal() {
    let node = node();
    let name = "50-\u{1b}[2J\u{1b}]0;x\u{7}\nfake: all is well\u{202e}.toml";
    let dir = node.path().join("etc/gdr-agent/policy.d");
    let write = |text: &str| std::fs::write(dir.join(name), text).unwrap();
    let check = |args: &[&str]| {
        let output = Command::new(binary())
            .arg("--root")
            .arg(node.path())
            .args(args)
            // As on a terminal: styles are kept.
            .env("CLICOLOR_FORCE", "1")
            .output()
            .unwrap();
        let said = said(&output);
        for bad in ["\u{1b}[2J", "\u{1b}]", "\u{7}", "\nfake:", "\u{202e}"] {
            assert!(!said.contains(bad), "{args:?} prints {bad:?}: {said:?}");
        }
        said
    };
    write("[kernel]\nset = [\"a b\"]\n");
    let wrong = check(&["plan"]);
    assert!(wrong.contains("all is well"), "the file is named: {wrong}");
    check(&["policy", "check"]);
    write("[kernel]\niommu = \"keep\"\n");
    let shown = check(&["policy", "show"]);
    assert!(shown.contains("all is well"), "{shown}");
    std::fs::set_permissions(dir.join(name), std::fs::Permissions::from_mode(0o666)).unwrap();
    check(&["policy", "check"]);
    assert!(check(&["apply"]).contains("others may write it"));
}

#[test]
fn values_of_a_hostile_root_command_no_terminal() {
    let node = node();
    let text = "quiet \u{1b}[2J\u{1b}]0;x\u{7} \u{9b}31m \u{202e}turned";
    node.write("proc/cmdline", format!("{text}\n").as_bytes());
    let os = format!("ID=debian\nNAME=\"{text}\"\nPRETTY_NAME=\"{text}\"\n");
    std::fs::remove_file(node.path().join("etc/os-release")).unwrap();
    node.write("etc/os-release", os.as_bytes());
    node.write(
        "etc/modprobe.d/\u{1b}[2J.conf",
        b"blacklist nvidia-peermem\n",
    );
    node.write("etc/modules-load.d/\u{1b}[2J.conf", b"nvidia-peermem\n");
    node.write(
        "etc/default/grub.d/\u{1b}[2J.cfg",
        b"GRUB_CMDLINE_LINUX_DEFAULT=\"$(date)\"\n",
    );
    for args in [
        &["facts"][..],
        &["plan"],
        &["plan", "--format", "html"],
        &["apply"],
        &["doctor", "--no-smi"],
        &["doctor", "--no-smi", "--format", "html"],
        &["cmdline", "--all"],
        &["topology"],
        &["topology", "--format", "svg"],
        &["acs", "show"],
        &["status"],
        &["verify"],
        &["metrics"],
    ] {
        let output = Command::new(binary())
            .arg("--root")
            .arg(node.path())
            .args(args)
            .env("CLICOLOR_FORCE", "1")
            .output()
            .unwrap();
        let said = said(&output);
        for bad in ["\u{1b}[2J", "\u{1b}]", "\u{7}", "\u{9b}", "\u{202e}"] {
            assert!(!said.contains(bad), "{args:?} prints {bad:?}:\n{said:?}");
        }
    }
}
