//! The whole way of a transaction on a made-up node, with the real binary: good, dying, refused by
//! its checks, interrupted at every step.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test looks at the machine from outside"
)]

mod support;

use gdr_tests::node::{Cpu, Family, NodeSpec, Reboot};
use support::{Node, fingerprint};

#[test]
fn a_good_policy_is_tried_committed_and_idempotent() {
    let node = Node::new(&NodeSpec::default());
    let plan = node.json(&["plan"], 3);
    assert_eq!(
        (&plan["changed"], &plan["reboot_required"]),
        (&true.into(), &true.into())
    );
    let phases: Vec<&str> = plan["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| s["phase"].as_str().unwrap())
        .collect();
    assert!(
        phases.contains(&"trial") && phases.contains(&"commit") && phases.contains(&"every-boot"),
        "{phases:?}"
    );

    let before = fingerprint(node.path());
    assert_eq!(node.json(&["plan"], 3), plan);
    assert_eq!(fingerprint(node.path()), before, "plan writes nothing");

    let apply = node.json(&["apply", "--reboot"], 8);
    assert_eq!(
        (&apply["changed"], &apply["status"]["state"]),
        (&true.into(), &"GRANTED".into())
    );
    node.json(&["apply", "--reboot"], 8);
    node.reboot(Reboot::default());
    assert!(
        node.cmdline().contains("iommu=pt") && node.cmdline().contains("gdr.txn="),
        "{}",
        node.cmdline()
    );
    let status = node.json(&["status"], 0);
    assert_eq!(status["state"], "COMMITTED", "{status:#}");

    node.reboot(Reboot::default());
    assert!(node.cmdline().contains("iommu=pt"), "{}", node.cmdline());
    assert!(
        !node.cmdline().contains("gdr.txn") && !node.cmdline().contains("panic="),
        "{}",
        node.cmdline()
    );
    let verify = node.json(&["verify"], 0);
    assert_eq!(verify["verdict"], "met", "{verify:#}");
    let acs = node.json(&["topology"], 0);
    assert!(
        acs["paths"]
            .as_array()
            .unwrap()
            .iter()
            .all(|p| p["redirected"] == false),
        "cleared again after the reboot"
    );

    let before = fingerprint(node.path());
    let again = node.json(&["apply"], 0);
    assert_eq!(
        (&again["changed"], again["steps"].as_array().map(Vec::len)),
        (&false.into(), Some(0))
    );
    assert_eq!(
        fingerprint(node.path()),
        before,
        "a second apply writes nothing"
    );
    assert!(!node.has("boot/grub/custom.cfg"), "the hook is gone");
}

#[test]
fn a_trial_that_dies_leaves_no_trace_and_is_not_tried_again() {
    let node = Node::new(&NodeSpec::default());
    let before = fingerprint(node.path());
    node.json(&["apply", "--reboot"], 8);
    node.reboot(Reboot {
        dies: true,
        ..Reboot::default()
    });
    assert!(!node.cmdline().contains("iommu=pt"), "{}", node.cmdline());
    let status = node.json(&["status"], 6);
    assert_eq!(
        (&status["state"], &status["failure"]["kind"]),
        (&"QUARANTINED".into(), &"died".into()),
        "{status:#}"
    );
    assert_eq!(fingerprint(node.path()), before, "every file is as it was");
    let refused = node.json(&["apply", "--reboot"], 7);
    assert_eq!(refused["refusals"][0]["id"], "policy.quarantined");
    assert_eq!(fingerprint(node.path()), before);
    node.json(&["apply", "--reboot", "--retry"], 8);
}

#[test]
fn a_required_check_that_is_not_met_rolls_back() {
    // A BAR1 of 256 MiB is what firmware leaves that places no large BAR.
    let node = Node::new(&NodeSpec {
        bar1: 256 << 20,
        ..NodeSpec::default()
    });
    let before = fingerprint(node.path());
    node.json(&["apply", "--reboot"], 8);
    node.reboot(Reboot::default());
    let status = node.json(&["status"], 6);
    assert_eq!(
        (&status["state"], &status["failure"]["kind"]),
        (&"ROLLING_BACK".into(), &"verify".into()),
        "{status:#}"
    );
    assert!(status["unmet"].to_string().contains("bar1.small"));
    node.reboot(Reboot::default());
    let status = node.json(&["status"], 6);
    assert_eq!(
        (&status["state"], &status["reboots"]["used"]),
        (&"QUARANTINED".into(), &2.into()),
        "{status:#}"
    );
    assert!(!node.cmdline().contains("iommu=pt"));
    assert_eq!(fingerprint(node.path()), before);
}

#[test]
fn a_rollback_after_the_commit_restores_every_byte() {
    let node = Node::new(&NodeSpec::default());
    let before = fingerprint(node.path());
    node.json(&["apply", "--reboot"], 8);
    node.reboot(Reboot::default());
    node.json(&["status"], 0);
    let rollback = node.json(&["rollback"], 8);
    assert_eq!(rollback["reboot_required"], true);
    node.reboot(Reboot::default());
    assert!(!node.cmdline().contains("iommu=pt"));
    assert_eq!(fingerprint(node.path()), before);
    assert_eq!(node.json(&["status"], 0)["state"], "ROLLED_BACK");
}

#[test]
fn a_rollback_before_the_reboot_restores_every_byte() {
    let node = Node::new(&NodeSpec::default());
    let before = fingerprint(node.path());
    node.json(&["apply", "--no-reboot"], 8);
    assert_ne!(fingerprint(node.path()), before);
    node.json(&["rollback"], 0);
    assert_eq!(fingerprint(node.path()), before);
}

#[test]
fn what_somebody_else_changed_is_left_alone_and_named() {
    let node = Node::new(&NodeSpec::default());
    node.json(&["apply", "--reboot"], 8);
    node.reboot(Reboot::default());
    let drop_in = "etc/default/grub.d/99-gdr-agent.cfg";
    let mut text = node.read(drop_in);
    text.extend_from_slice(b"# a colleague's line\n");
    node.write(drop_in, &text);
    let rollback = node.json(&["rollback"], 8);
    let conflicts = rollback["status"]["conflicts"].to_string();
    assert!(conflicts.contains("99-gdr-agent.cfg"), "{conflicts}");
    assert_eq!(node.read(drop_in), text);
}

#[test]
fn a_reboot_that_skips_the_arming_unit_boots_the_old_line_and_the_trial_is_still_to_come() {
    let node = Node::new(&NodeSpec::default());
    node.json(&["apply", "--reboot"], 8);
    node.reboot_without_arming();
    assert!(!node.cmdline().contains("gdr.txn"));
    assert_eq!(node.json(&["status"], 8)["state"], "REBOOT_REQUESTED");
    node.run(&["boot", "reconcile"]);
    node.reboot(Reboot::default());
    assert_eq!(node.json(&["status"], 0)["state"], "COMMITTED");
}

#[test]
fn staging_alone_arms_nothing() {
    let node = Node::new(&NodeSpec::default());
    node.json(&["apply", "--no-reboot"], 8);
    node.reboot(Reboot::default());
    assert!(!node.cmdline().contains("gdr.txn"));
    assert_eq!(node.json(&["status"], 8)["state"], "STAGED");
}

#[test]
fn json_is_what_the_published_schemas_say() {
    let node = Node::new(&NodeSpec::default());
    let schemas = node.json(&["schema"], 0);
    let check = |value: &serde_json::Value| {
        let name = value["schema"].as_str().unwrap();
        let validator = jsonschema::validator_for(&schemas[name]).unwrap();
        let errors: Vec<String> = validator
            .iter_errors(value)
            .map(|e| format!("{}: {e}", e.instance_path))
            .collect();
        assert!(errors.is_empty(), "{name}: {errors:#?}");
    };
    for (args, exit) in [
        (&["facts"][..], 0),
        (&["plan"], 3),
        (&["status"], 0),
        (&["cmdline"], 0),
        (&["topology"], 0),
        (&["policy", "show"], 0),
        (&["policy", "check"], 0),
        (&["acs", "show"], 0),
        (&["metrics"], 0),
        (&["verify"], 3),
        (&["apply", "--reboot"], 8),
    ] {
        check(&node.json(args, exit));
    }
    node.reboot(Reboot::default());
    check(&node.json(&["status"], 0));
    check(&node.json(&["verify"], 0));
    check(&node.json(&["rollback"], 8));
}

#[test]
fn the_first_boot_of_a_baked_image_is_the_trial() {
    let node = Node::new(&NodeSpec::default());
    // An image has never booted.
    for path in ["proc/cmdline", "proc/sys/kernel/random/boot_id"] {
        std::fs::remove_file(node.path().join(path)).unwrap();
    }
    assert_eq!(
        node.json(&["apply", "--bake"], 8)["status"]["state"],
        "ARMED"
    );
    node.reboot_without_arming();
    assert_eq!(node.json(&["status"], 0)["state"], "COMMITTED");
    assert!(node.cmdline().contains("iommu=pt"));
}

/// Puts one text in the place of another, which has to be there.
fn edit_policy(node: &Node, from: &str, to: &str) {
    let text = String::from_utf8(node.read("etc/gdr-agent/policy.toml")).unwrap();
    let edited = text.replace(from, to);
    assert_ne!(edited, text);
    node.write("etc/gdr-agent/policy.toml", edited.as_bytes());
}

/// What was baked for a processor that was not known has an argument more than a node with AMD's needs.
#[test]
fn a_baked_image_is_committed_on_another_makers_processor_and_stays_as_it_is() {
    for (family, bake) in [
        (Family::Debian, "arm"),
        (Family::Debian, "commit"),
        (Family::El9, "arm"),
        (Family::El9, "commit"),
    ] {
        let what = format!("{family:?}, {bake}");
        let node = Node::new(&NodeSpec {
            family,
            cpu: Cpu::Amd,
            ..NodeSpec::default()
        });
        let text = String::from_utf8(node.read("etc/gdr-agent/policy.toml")).unwrap();
        node.write(
            "etc/gdr-agent/policy.toml",
            format!("{text}\n[trial]\nbake = \"{bake}\"\n").as_bytes(),
        );
        let exit = if bake == "arm" { 8 } else { 0 };
        node.json(&["apply", "--bake"], exit);
        node.reboot_without_arming();
        assert_eq!(
            node.json(&["status"], 0)["state"],
            "COMMITTED",
            "{what}: {}",
            node.cmdline()
        );
        node.reboot(Reboot::default());
        let line = node.cmdline();
        assert!(
            line.contains("intel_iommu=on") && line.contains("iommu=pt"),
            "{what}: {line}"
        );
        assert_eq!(node.json(&["verify"], 0)["verdict"], "met", "{what}");
        assert_eq!(node.json(&["apply"], 0)["changed"], false, "{what}");
    }
}

/// Where nothing has to be tried, the image is done when it is made, whatever its maker's machine is like.
#[test]
fn an_image_whose_command_line_is_to_stay_is_committed_at_once() {
    let node = Node::new(&NodeSpec::default());
    edit_policy(&node, "iommu = \"passthrough\"", "iommu = \"keep\"");
    let line = node.cmdline();
    let baked = node.json(&["apply", "--bake"], 0);
    assert_eq!(baked["status"]["state"], "COMMITTED", "{baked:#}");
    node.reboot_without_arming();
    assert_eq!(node.cmdline(), line);
    assert_eq!(node.json(&["apply"], 0)["changed"], false);
}

#[test]
fn an_image_is_not_told_of_ports_by_its_command_line() {
    let node = Node::new(&NodeSpec::default());
    edit_policy(&node, "[acs]\n", "[acs]\nmethod = \"cmdline\"\n");
    let before = fingerprint(node.path());
    let refused = node.json(&["apply", "--bake"], 9);
    assert!(
        refused.to_string().contains("boot.acs-needs-node"),
        "{refused:#}"
    );
    assert_eq!(fingerprint(node.path()), before);
}

#[test]
fn an_image_that_commits_boots_the_new_line_at_once_and_rolls_back_like_any_other() {
    for family in [
        Family::Debian,
        Family::El8,
        Family::El9,
        Family::Fedora,
        Family::Suse,
    ] {
        let node = Node::new(&NodeSpec {
            family,
            ..NodeSpec::default()
        });
        let line = node.cmdline();
        let text = String::from_utf8(node.read("etc/gdr-agent/policy.toml")).unwrap();
        node.write(
            "etc/gdr-agent/policy.toml",
            format!("{text}\n[trial]\nbake = \"commit\"\n").as_bytes(),
        );
        let before = fingerprint(node.path());
        let saved: Vec<(&str, Vec<u8>)> = ["proc/cmdline", "proc/sys/kernel/random/boot_id"]
            .map(|path| (path, node.read(path)))
            .to_vec();
        for (path, _) in &saved {
            std::fs::remove_file(node.path().join(path)).unwrap();
        }
        let baked = node.json(&["apply", "--bake"], 0);
        assert_eq!(
            (&baked["status"]["state"], &baked["reboot_required"]),
            (&"COMMITTED".into(), &false.into()),
            "{family:?}: {baked:#}"
        );
        assert_eq!(
            node.json(&["apply", "--bake"], 0)["changed"],
            false,
            "{family:?}"
        );
        let custom = ["boot/grub/custom.cfg", "boot/grub2/custom.cfg"];
        assert!(
            !custom.iter().any(|path| node.has(path)),
            "{family:?}: no hook"
        );

        node.reboot_without_arming();
        let booted = node.cmdline();
        assert!(booted.contains("iommu=pt"), "{family:?}: {booted}");
        assert!(!booted.contains("gdr.txn"), "{family:?}: {booted}");
        assert_eq!(node.json(&["verify"], 0)["verdict"], "met", "{family:?}");
        assert_eq!(node.json(&["apply"], 0)["changed"], false, "{family:?}");

        node.json(&["rollback"], 8);
        node.reboot(Reboot::default());
        assert_eq!(node.cmdline(), line, "{family:?}");
        assert_eq!(fingerprint(node.path()), before, "{family:?}");
    }
}

#[test]
fn an_argument_that_the_policy_names_no_more_goes_again() {
    let node = Node::new(&NodeSpec::default());
    let plain = String::from_utf8(node.read("etc/gdr-agent/policy.toml")).unwrap();
    let more = plain.replace(
        "[kernel]\n",
        "[kernel]\nset = [\"pci=realloc=off\"]\nremove = [\"quiet\"]\n",
    );
    for (policy, has, quiet) in [(&more, true, false), (&plain, false, false)] {
        node.write("etc/gdr-agent/policy.toml", policy.as_bytes());
        node.json(&["apply", "--reboot"], 8);
        node.reboot(Reboot::default());
        assert_eq!(node.json(&["status"], 0)["state"], "COMMITTED");
        node.reboot(Reboot::default());
        assert_eq!(
            node.cmdline().contains("pci=realloc=off"),
            has,
            "{}",
            node.cmdline()
        );
        // What was there before the first policy and was removed by it is not the agent's to invent again.
        assert_eq!(
            node.cmdline().contains("quiet"),
            quiet,
            "{}",
            node.cmdline()
        );
        assert!(node.cmdline().contains("iommu=pt"));
        assert_eq!(node.json(&["apply"], 0)["changed"], false);
    }
}

#[test]
fn the_way_is_gone_again_from_wherever_the_power_is_cut() {
    from_every_record(&NodeSpec::default());
}

#[test]
fn the_way_is_gone_again_where_the_arguments_are_in_the_environment_block() {
    for family in [Family::El8, Family::El8Efi] {
        from_every_record(&NodeSpec {
            family,
            cmdline_default: String::new(),
            ..NodeSpec::default()
        });
    }
}

fn from_every_record(spec: &NodeSpec) {
    // The journal holds whole records or none, so a cut is a boot that finds the node as one of its
    // records left it: each prefix of them is tried.
    let node = Node::new(spec);
    let before = fingerprint(node.path());
    node.json(&["apply", "--reboot"], 8);
    let tx = std::fs::read_dir(node.path().join("var/lib/gdr-agent/tx"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let mut records: Vec<_> = std::fs::read_dir(&tx)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|x| x == "rec"))
        .collect();
    records.sort();
    assert!(records.len() >= 4, "{records:?}");
    while records.len() > 1 {
        std::fs::remove_file(records.pop().unwrap()).unwrap();
        let copy = tempfile::tempdir().unwrap();
        let status = std::process::Command::new("cp")
            .arg("-a")
            .arg(format!("{}/.", node.path().display()))
            .arg(copy.path())
            .status();
        assert!(status.unwrap().success());
        let cut = Node::at(copy.path().to_path_buf());
        cut.reboot_without_arming();
        for _ in 0..3 {
            cut.run(&["boot", "reconcile"]);
            cut.reboot(Reboot::default());
        }
        let state = cut.run(&["--format", "json", "status"]);
        let state: serde_json::Value = serde_json::from_slice(&state.stdout).unwrap();
        match state["state"].as_str().unwrap() {
            "COMMITTED" => assert!(cut.cmdline().contains("iommu=pt")),
            "ROLLED_BACK" => assert_eq!(fingerprint(cut.path()), before),
            other => panic!("{} records: {other}", records.len()),
        }
    }
}
