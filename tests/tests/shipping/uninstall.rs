//! What the packages' scripts call, on nodes of every family: `boot uninstall`, and with `--purge`.

use std::process::Command;

use gdr_tests::node::{self, Family, NodeSpec, POLICY, Reboot};

use crate::common::{args, can_install, ok};
use crate::support::{Node, binary, fingerprint};

const ALL: [Family; 6] = [
    Family::Debian,
    Family::El8,
    Family::El8Efi,
    Family::El9,
    Family::Fedora,
    Family::Suse,
];

fn node(family: Family) -> Node {
    Node::new(&NodeSpec {
        family,
        cmdline_default: match family {
            Family::Debian | Family::Suse => "quiet".into(),
            _ => String::new(),
        },
        ..NodeSpec::default()
    })
}

fn uninstall(node: &Node, purge: bool) {
    let mut all = vec!["boot", "uninstall"];
    all.extend(purge.then_some("--purge"));
    let output = node.run(&all);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

fn no_state(node: &Node) -> bool {
    !node.has("var/lib/gdr-agent")
}

/// The policy of the sample node with one argument more.
fn other_policy(node: &Node) {
    let text = POLICY.replacen("[kernel]\n", "[kernel]\nset = [\"pci=realloc=off\"]\n", 1);
    assert_ne!(text, POLICY);
    node.write("etc/gdr-agent/policy.toml", text.as_bytes());
}

fn commit(node: &Node) {
    node.json(&["apply", "--reboot"], 8);
    node.reboot(Reboot::default());
    assert_eq!(node.json(&["status"], 0)["state"], "COMMITTED");
    node.reboot(Reboot::default());
}

#[test]
fn on_a_node_that_never_had_a_transaction_nothing_is_written() {
    let node = node(Family::Debian);
    let _ = std::fs::remove_dir_all(node.path().join("var/lib/gdr-agent"));
    let before = fingerprint(node.path());
    for purge in [false, true] {
        uninstall(&node, purge);
        assert_eq!(fingerprint(node.path()), before);
        assert!(no_state(&node));
    }
}

#[test]
fn every_family_is_as_before_whatever_was_under_way() {
    for family in ALL {
        for armed in [false, true] {
            let node = node(family);
            let (before, line) = (fingerprint(node.path()), args(&node));
            node.json(&["apply", "--reboot"], 8);
            if armed {
                assert!(node.run(&["boot", "arm"]).status.success());
            }
            uninstall(&node, false);
            assert_eq!(fingerprint(node.path()), before, "{family:?}");
            uninstall(&node, false);
            node.reboot_without_arming();
            assert_eq!(args(&node), line, "{family:?}");
            uninstall(&node, true);
            assert_eq!(fingerprint(node.path()), before, "{family:?}");
            assert!(no_state(&node), "{family:?}");
        }
    }
}

#[test]
fn a_purge_takes_back_every_policy_that_was_committed() {
    for family in ALL {
        let node = node(family);
        let (mut before, line) = (fingerprint(node.path()), args(&node));
        commit(&node);
        other_policy(&node);
        commit(&node);
        let both = args(&node);
        assert!(
            both.iter().any(|arg| arg == "iommu=pt"),
            "{family:?}: {both:?}"
        );
        assert!(
            both.iter().any(|arg| arg == "pci=realloc=off"),
            "{family:?}: {both:?}"
        );
        uninstall(&node, false);
        node.reboot_without_arming();
        assert_eq!(args(&node), both, "{family:?}: what is committed stays");

        uninstall(&node, true);
        let mut after = fingerprint(node.path());
        for all in [&mut before, &mut after] {
            all.remove(std::path::Path::new("etc/gdr-agent/policy.toml"));
        }
        assert_eq!(after, before, "{family:?}");
        assert!(no_state(&node), "{family:?}");
        node.reboot_without_arming();
        assert_eq!(args(&node), line, "{family:?}");
    }
}

#[test]
fn no_reboot_is_asked_for() {
    let node = node(Family::Debian);
    commit(&node);
    // In the boot of the trial itself, which a rollback would leave by a reboot.
    other_policy(&node);
    node.json(&["apply", "--reboot"], 8);
    uninstall(&node, false);
    let status = node.run(&["--format", "json", "status"]);
    let status: serde_json::Value = serde_json::from_slice(&status.stdout).unwrap();
    assert_eq!(status["state"], "ROLLED_BACK", "{status:#}");
    assert_eq!(status["reboots"]["allowed"], false, "{status:#}");
}

#[test]
fn what_others_have_changed_is_left_alone_and_the_hook_goes_all_the_same() {
    let node = node(Family::Debian);
    node.json(&["apply", "--reboot"], 8);
    let custom = "boot/grub/custom.cfg";
    let mut text = node.read(custom);
    text.splice(0..0, b"# mine\n".iter().copied());
    text.extend(b"menuentry mine { true }\n");
    node.write(custom, &text);
    uninstall(&node, true);
    assert_eq!(node.read(custom), b"# mine\nmenuentry mine { true }\n");
    assert!(!String::from_utf8_lossy(&node.read("boot/grub/grubenv")).contains("gdr_"));

    let node = self::node(Family::Debian);
    commit(&node);
    let drop_in = "etc/default/grub.d/99-gdr-agent.cfg";
    let mut text = node.read(drop_in);
    text.extend(b"GRUB_TIMEOUT=3\n");
    node.write(drop_in, &text);
    let said = node.run(&["boot", "uninstall", "--purge"]);
    let errors = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(
        said.status.success() && errors.contains("99-gdr-agent.cfg"),
        "{errors}"
    );
    assert_eq!(node.read(drop_in), text);
    assert!(no_state(&node));
}

#[test]
fn without_a_journal_the_hook_goes_and_a_purge_says_why_not_more() {
    let node = node(Family::Debian);
    node.json(&["apply", "--reboot"], 8);
    let tx = node.path().join("var/lib/gdr-agent/tx");
    let txn = std::fs::read_dir(&tx)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let mut records: Vec<_> = std::fs::read_dir(&txn)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    records.retain(|path| path.extension().is_some_and(|e| e == "rec"));
    records.sort();
    std::fs::write(records.last().unwrap(), "not a record\n").unwrap();
    let said = node.run(&["boot", "uninstall", "--purge"]);
    assert!(!said.status.success());
    assert!(!node.has("boot/grub/custom.cfg"));
    assert!(!String::from_utf8_lossy(&node.read("boot/grub/grubenv")).contains("gdr_"));
    assert!(node.has("var/lib/gdr-agent/tx"), "kept for a report");
    uninstall(&node, false);

    // With the journal gone, what is known by its name goes.
    let node = self::node(Family::Debian);
    commit(&node);
    std::fs::remove_dir_all(node.path().join("var/lib/gdr-agent/tx")).unwrap();
    uninstall(&node, true);
    assert!(!node.has("etc/default/grub.d/99-gdr-agent.cfg"));
    assert!(no_state(&node));
}

/// The agent, killed at its Nth flush: what it has done until then is durable, and the rest was never begun.
fn killed_at(node: &Node, n: u32, args: &[&str]) -> bool {
    let output = Command::new("strace")
        .args([
            "-f",
            "-qq",
            "-o",
            "/dev/null",
            "-e",
            "trace=fsync,unlinkat",
            "-e",
        ])
        .arg(format!("inject=fsync,unlinkat:signal=KILL:when={n}"))
        .arg(binary())
        .arg("--root")
        .arg(node.path())
        .args(args)
        .output()
        .unwrap();
    !output.status.success()
}

#[test]
fn killed_at_any_moment_it_boots_a_known_line_and_the_next_run_ends_the_work() {
    if !can_install(&["strace"]) {
        return;
    }
    for (family, committed) in [
        (Family::Debian, false),
        (Family::Debian, true),
        (Family::El9, true),
    ] {
        let fresh = node(family);
        let (before, line) = (fingerprint(fresh.path()), args(&fresh));
        if committed {
            commit(&fresh);
        } else {
            fresh.json(&["apply", "--reboot"], 8);
            assert!(fresh.run(&["boot", "arm"]).status.success());
        }
        let with = args(&fresh);
        let mut kills = 0;
        for n in 1.. {
            let dir = tempfile::tempdir().unwrap();
            let copy = dir.path().join("node");
            ok(Command::new("cp").arg("-a").arg(fresh.path()).arg(&copy));
            let node = Node::at(copy);
            if !killed_at(&node, n, &["boot", "uninstall", "--purge"]) {
                break;
            }
            kills += 1;
            uninstall(&node, true);
            assert_eq!(
                fingerprint(node.path()),
                before,
                "{family:?} {committed} {n}"
            );
            assert!(no_state(&node), "{family:?} {committed} {n}");
            node::reboot(node.path(), Reboot::default()).unwrap();
            assert_eq!(args(&node), line, "{family:?} {committed} {n}");
            // And the same moment with no second run before the reboot.
            if n % 4 == 0 {
                let copy = dir.path().join("boots");
                ok(Command::new("cp").arg("-a").arg(fresh.path()).arg(&copy));
                let node = Node::at(copy);
                assert!(killed_at(&node, n, &["boot", "uninstall", "--purge"]));
                node::reboot(node.path(), Reboot::default()).unwrap();
                let booted = args(&node);
                let trial = booted.iter().any(|arg| arg.starts_with("gdr.txn="));
                assert!(
                    booted == line || (committed && booted == with) || (!committed && trial),
                    "{family:?} {committed} {n}: {booted:?}"
                );
            }
        }
        assert!(kills > 10, "{family:?}: {kills}");
    }
}
