//! The way of a transaction on every family of boot configurations, kernels that come in between
//! included.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test looks at the machine from outside"
)]

mod support;

use gdr_tests::node::{Family, NodeSpec, Reboot, Tree, install_kernel, rewrite_entries};
use support::{Node, fingerprint};

const NEW_KERNEL: &str = "6.1.0-40-amd64";

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
        // Only Debian and SUSE have the second variable.
        cmdline_default: match family {
            Family::Debian | Family::Suse => "quiet".into(),
            _ => String::new(),
        },
        ..NodeSpec::default()
    })
}

fn has(node: &Node, arg: &str) -> bool {
    node.cmdline().split_whitespace().any(|a| a == arg)
}

/// Each argument with how often it stands on the running line, without what GRUB adds.
fn args(node: &Node) -> Vec<String> {
    let line = node.cmdline();
    let mut args: Vec<String> = line
        .split_whitespace()
        .filter(|a| !a.starts_with("BOOT_IMAGE="))
        .map(str::to_owned)
        .collect();
    args.sort();
    args
}

/// Puts a line into the environment block, whose size stays.
fn add_to_grubenv(node: &Node, line: impl FnOnce(usize) -> String) {
    let path = "boot/grub2/grubenv";
    let text = String::from_utf8(node.read(path)).unwrap();
    let body = text.trim_end_matches('#');
    let text = format!("{body}{}\n", line(1024 - body.len()));
    node.write(
        path,
        format!("{text}{}", "#".repeat(1024 - text.len())).as_bytes(),
    );
}

/// A line that leaves so many bytes free of those that there are.
fn leaves(bytes: usize) -> impl FnOnce(usize) -> String {
    move |free| format!("filler={}", "x".repeat(free - 8 - bytes))
}

fn boot_units(node: &Node) {
    for unit in ["acs", "settle", "verify"] {
        assert!(node.run(&["boot", unit]).status.success(), "{unit}");
    }
}

#[test]
fn every_family_commits_and_new_kernels_have_the_arguments() {
    for family in ALL {
        let node = node(family);
        let before = args(&node);
        node.json(&["apply", "--reboot"], 8);
        node.reboot(Reboot::default());
        assert!(node.cmdline().contains("gdr.txn="), "{family:?}");
        let status = node.json(&["status"], 0);
        assert_eq!(status["state"], "COMMITTED", "{family:?}: {status:#}");
        node.reboot(Reboot::default());
        let mut wanted = before.clone();
        wanted.extend(["intel_iommu=on".to_owned(), "iommu=pt".to_owned()]);
        wanted.sort();
        assert_eq!(args(&node), wanted, "{family:?}");
        let again = node.json(&["apply"], 0);
        assert_eq!(again["changed"], false, "{family:?}: {again:#}");
        assert_eq!(node.json(&["verify"], 0)["verdict"], "met", "{family:?}");

        install_kernel(&Tree::new(node.path()), NEW_KERNEL).unwrap();
        node.reboot(Reboot::default());
        assert!(node.cmdline().contains(NEW_KERNEL), "{family:?}");
        assert_eq!(args(&node), wanted, "{family:?}: a kernel installed later");
        assert_eq!(node.json(&["apply"], 0)["changed"], false, "{family:?}");
    }
}

#[test]
fn every_family_is_as_before_after_a_trial_that_died_and_after_a_rollback() {
    for family in ALL {
        let node = node(family);
        let before = fingerprint(node.path());
        node.json(&["apply", "--reboot"], 8);
        node.reboot(Reboot {
            dies: true,
            ..Reboot::default()
        });
        assert!(!has(&node, "iommu=pt"), "{family:?}");
        assert_eq!(
            node.json(&["status"], 6)["state"],
            "QUARANTINED",
            "{family:?}"
        );
        assert_eq!(fingerprint(node.path()), before, "{family:?}");

        node.json(&["apply", "--reboot", "--retry"], 8);
        node.reboot(Reboot::default());
        assert_eq!(
            node.json(&["status"], 0)["state"],
            "COMMITTED",
            "{family:?}"
        );
        node.json(&["rollback"], 8);
        node.reboot(Reboot::default());
        assert!(!has(&node, "iommu=pt"), "{family:?}");
        let status = node.json(&["status"], 0);
        assert_eq!(
            (&status["state"], &status["conflicts"]),
            (&"ROLLED_BACK".into(), &serde_json::json!([])),
            "{family:?}"
        );
        assert_eq!(fingerprint(node.path()), before, "{family:?}");
    }
}

#[test]
fn a_kernel_that_is_installed_in_the_trial_boot_gets_the_arguments_and_not_the_trials_own() {
    for family in ALL {
        let node = node(family);
        node.json(&["apply", "--reboot"], 8);
        assert!(node.run(&["boot", "arm"]).status.success());
        gdr_tests::node::reboot(node.path(), Reboot::default()).unwrap();
        assert!(has(&node, "iommu=pt"));
        let trial = args(&node);
        install_kernel(&Tree::new(node.path()), NEW_KERNEL).unwrap();
        boot_units(&node);
        let status = node.json(&["status"], 0);
        assert_eq!(status["state"], "COMMITTED", "{family:?}: {status:#}");
        node.reboot(Reboot::default());
        assert!(node.cmdline().contains(NEW_KERNEL), "{family:?}");
        assert!(has(&node, "iommu=pt"), "{family:?}: {}", node.cmdline());
        for own in ["gdr.txn", "panic", "oops", "systemd.crash_reboot"] {
            assert!(
                trial.iter().any(|a| a.starts_with(own)) && !node.cmdline().contains(own),
                "{family:?}: {}",
                node.cmdline()
            );
        }
    }
}

#[test]
fn a_kernel_that_came_after_the_commit_is_rolled_back_too() {
    // Where the menu is generated, that takes grub-mkconfig, which runs on the running system only.
    for family in [Family::El8, Family::El8Efi, Family::El9, Family::Fedora] {
        let node = node(family);
        let before = args(&node);
        node.json(&["apply", "--reboot"], 8);
        node.reboot(Reboot::default());
        install_kernel(&Tree::new(node.path()), NEW_KERNEL).unwrap();
        node.json(&["rollback"], 8);
        node.reboot(Reboot::default());
        assert!(node.cmdline().contains(NEW_KERNEL), "{family:?}");
        assert_eq!(args(&node), before, "{family:?}");
    }
}

#[test]
fn what_a_later_policy_names_no_more_goes_from_every_place() {
    for family in ALL {
        let node = node(family);
        let policy = String::from_utf8(node.read("etc/gdr-agent/policy.toml")).unwrap();
        let with = policy.replace(
            "iommu = \"passthrough\"",
            "iommu = \"passthrough\"\nset = [\"pci=realloc=off\"]",
        );
        node.write("etc/gdr-agent/policy.toml", with.as_bytes());
        node.json(&["apply", "--reboot"], 8);
        node.reboot(Reboot::default());
        node.reboot(Reboot::default());
        assert!(has(&node, "pci=realloc=off"), "{family:?}");
        node.write("etc/gdr-agent/policy.toml", policy.as_bytes());
        node.json(&["apply", "--reboot"], 8);
        node.reboot(Reboot::default());
        node.reboot(Reboot::default());
        assert!(!has(&node, "pci=realloc=off"), "{family:?}");
        assert!(has(&node, "iommu=pt"), "{family:?}");
        for place in ["etc/default/grub", "etc/kernel/cmdline"] {
            let text = Tree::new(node.path()).text(place).unwrap_or_default();
            assert!(!text.contains("realloc"), "{family:?}: {place}: {text}");
        }
        install_kernel(&Tree::new(node.path()), NEW_KERNEL).unwrap();
        node.reboot(Reboot::default());
        assert!(!has(&node, "pci=realloc=off"), "{family:?}");
    }
}

#[test]
fn an_argument_that_was_there_before_stays_when_the_policy_drops_it() {
    for family in ALL {
        let node = Node::new(&NodeSpec {
            family,
            cmdline: "console=tty0 pci=realloc=off".into(),
            cmdline_default: String::new(),
            ..NodeSpec::default()
        });
        let policy = String::from_utf8(node.read("etc/gdr-agent/policy.toml")).unwrap();
        let with = policy.replace(
            "iommu = \"passthrough\"",
            "iommu = \"passthrough\"\nset = [\"pci=realloc=off\"]",
        );
        node.write("etc/gdr-agent/policy.toml", with.as_bytes());
        node.json(&["apply", "--reboot"], 8);
        node.reboot(Reboot::default());
        node.reboot(Reboot::default());
        node.write("etc/gdr-agent/policy.toml", policy.as_bytes());
        let apply = node.json(&["apply", "--no-reboot"], 0);
        assert_eq!(apply["reboot_required"], false, "{family:?}: {apply:#}");
        assert!(has(&node, "pci=realloc=off"), "{family:?}");
    }
}

#[test]
fn fedoras_mkconfig_writes_the_same_arguments_again() {
    let node = node(Family::Fedora);
    node.json(&["apply", "--reboot"], 8);
    node.reboot(Reboot::default());
    node.reboot(Reboot::default());
    let before = args(&node);
    rewrite_entries(&Tree::new(node.path())).unwrap();
    node.reboot(Reboot::default());
    assert_eq!(args(&node), before);
}

#[test]
fn what_tuned_sets_later_than_the_policy_is_told_with_its_name() {
    let node = node(Family::El8);
    // tuned's variable stands behind `$kernelopts` in the entries: it has the last word.
    add_to_grubenv(&node, |_| {
        "tuned_params=iommu=nopt intel_iommu=on".to_owned()
    });
    node.reboot(Reboot::default());
    let plan = node.json(&["plan"], 9);
    let refusal = &plan["refusals"][0];
    assert_eq!(refusal["id"], "boot.entry-overridden", "{plan:#}");
    assert!(
        refusal["message"]
            .as_str()
            .unwrap()
            .contains("tuned adds `iommu=nopt"),
        "{refusal:#}"
    );
}

#[test]
fn a_default_that_depends_on_an_unknown_order_is_refused() {
    let node = node(Family::El9);
    node.write("usr/lib/os-release", b"ID=somethingelse\n");
    let dir = "boot/loader/entries";
    for name in Tree::new(node.path()).names(dir).unwrap() {
        std::fs::remove_file(node.path().join(dir).join(name)).unwrap();
    }
    for version in ["5.14.0-70.el9.x86_64", "5.14.0-70.13.1.el9_0.x86_64"] {
        node.write(
            &format!("{dir}/m-{version}.conf"),
            format!("linux /boot/vmlinuz-{version}\noptions ro\n").as_bytes(),
        );
    }
    let plan = node.json(&["plan"], 9);
    assert_eq!(plan["refusals"][0]["id"], "boot.order-unknown", "{plan:#}");
}

#[test]
fn an_environment_block_without_room_is_told_before_anything_is_written() {
    // kernelopts has no room for two arguments more.
    let node = node(Family::El8);
    add_to_grubenv(&node, leaves(20));
    node.reboot(Reboot::default());
    let before = fingerprint(node.path());
    let apply = node.json(&["apply", "--reboot"], 9);
    let refusal = &apply["refusals"][0];
    assert_eq!(refusal["id"], "boot.grubenv-full", "{apply:#}");
    assert!(refusal["message"].as_str().unwrap().contains("room"));
    assert_eq!(fingerprint(node.path()), before);
}

/// For each argument of the default entry where it is written, the last place first.
fn written(node: &Node) -> Vec<(String, String)> {
    let cmdline = node.json(&["cmdline"], 0);
    let entries = cmdline["entries"].as_array().unwrap();
    let default = entries.iter().find(|e| e["default"] == true).unwrap();
    let arguments = default["arguments"].as_array().unwrap();
    let one = |argument: &serde_json::Value| {
        assert_eq!(argument["complete"], true, "{argument:#}");
        let last = argument["from"].as_array().unwrap().last().unwrap();
        let place = format!("{}:{}", last["file"].as_str().unwrap(), last["line"]);
        (argument["arg"].as_str().unwrap().to_owned(), place)
    };
    arguments.iter().map(one).collect()
}

#[test]
fn each_argument_is_told_with_the_line_that_has_it() {
    for family in ALL {
        let node = node(family);
        node.json(&["apply", "--reboot"], 8);
        node.reboot(Reboot::default());
        node.reboot(Reboot::default());
        let written = written(&node);
        let args: Vec<&str> = written.iter().map(|(arg, _)| arg.as_str()).collect();
        let line = node.cmdline();
        let running: Vec<&str> = line.split_whitespace().skip(1).collect();
        assert_eq!(args, running, "{family:?}");
        // The file has the argument in that very line.
        for (arg, place) in &written {
            let (file, number) = place.rsplit_once(':').unwrap();
            let text =
                String::from_utf8_lossy(&node.read(file.trim_start_matches('/'))).into_owned();
            let line = text
                .lines()
                .nth(number.parse::<usize>().unwrap() - 1)
                .unwrap();
            assert!(line.contains(arg), "{family:?}: {arg} {place}: {line}");
        }
        let place = &written.iter().find(|(arg, _)| arg == "iommu=pt").unwrap().1;
        let file = match family {
            Family::Debian => "/etc/default/grub.d/99-gdr-agent.cfg",
            Family::El9 | Family::Fedora => "/boot/loader/entries/",
            // EL 8 has it in kernelopts too, which grub2-mkconfig writes from there.
            Family::El8 | Family::El8Efi | Family::Suse => "/etc/default/grub",
        };
        assert!(place.starts_with(file), "{family:?}: {place}");
    }
}

#[test]
fn an_argument_that_a_later_one_overrides_is_told() {
    let node = node(Family::Debian);
    node.write(
        "etc/default/grub.d/50-cloudimg-settings.cfg",
        b"GRUB_CMDLINE_LINUX_DEFAULT=\"iommu=off iommu=pt\"\n",
    );
    let tree = Tree::new(node.path());
    gdr_tests::node::regenerate(&tree, None).unwrap();
    let cmdline = node.json(&["cmdline"], 0);
    let entries = cmdline["entries"].as_array().unwrap();
    let default = entries.iter().find(|e| e["default"] == true).unwrap();
    let effect = |arg: &str| {
        let arguments = default["arguments"].as_array().unwrap();
        let found = arguments.iter().find(|a| a["arg"] == arg).unwrap();
        found["effect"].as_str().unwrap().to_owned()
    };
    assert_eq!(effect("iommu=off"), "overridden");
    assert_eq!(effect("iommu=pt"), "counts");
    assert_eq!(effect("console=tty0"), "adds");
    let last = |arg: &str| {
        written(&node)
            .into_iter()
            .find(|(a, _)| a == arg)
            .unwrap()
            .1
    };
    assert_eq!(
        last("iommu=pt"),
        "/etc/default/grub.d/50-cloudimg-settings.cfg:1"
    );
}

const ENTRIES: &str = "boot/loader/entries";
const MACHINE: &str = "3f1d0c7e5b9a4d2c8e6f1a2b3c4d5e6f";

fn entry(kernel: &str) -> String {
    format!("{ENTRIES}/{MACHINE}-{kernel}.conf")
}

fn edit(node: &Node, path: &str, from: &str, to: &str) {
    let text = String::from_utf8(node.read(path)).unwrap();
    assert!(text.contains(from), "{path}: {text}");
    node.write(path, text.replace(from, to).as_bytes());
}

fn commit(node: &Node) {
    node.json(&["apply", "--reboot"], 8);
    node.reboot(Reboot::default());
    assert_eq!(node.json(&["status"], 0)["state"], "COMMITTED");
}

#[test]
fn what_another_entry_had_before_survives_a_rollback() {
    let node = node(Family::El9);
    let old = entry("6.1.0-35-amd64");
    edit(&node, &old, " ro ", " ro intel_iommu=on iommu=pt ");
    let before = fingerprint(node.path());
    commit(&node);
    node.json(&["rollback"], 8);
    node.reboot(Reboot::default());
    assert_eq!(fingerprint(node.path()), before);
}

#[test]
fn an_entry_that_somebody_has_changed_since_loses_only_the_policys_arguments() {
    for family in [Family::El9, Family::El8] {
        let node = node(family);
        commit(&node);
        let path = match family {
            Family::El8 => "boot/grub2/grubenv".to_owned(),
            _ => entry("6.1.0-37-amd64"),
        };
        // grubby --args=theirs, in place
        match family {
            Family::El8 => edit(&node, &path, "iommu=pt \n#######", "iommu=pt theirs \n"),
            _ => edit(&node, &path, "iommu=pt", "iommu=pt theirs"),
        }
        let rollback = node.json(&["rollback"], 8);
        let conflicts = rollback["status"]["conflicts"].to_string();
        assert!(
            conflicts.contains("only the policy's arguments"),
            "{conflicts}"
        );
        node.reboot(Reboot::default());
        assert!(has(&node, "theirs"), "{family:?}: {}", node.cmdline());
        assert!(!has(&node, "iommu=pt"), "{family:?}: {}", node.cmdline());
    }
}

#[test]
fn room_in_grubenv_is_counted_with_the_trials_own_variables() {
    let node = node(Family::El8);
    // Enough for the arguments (24 bytes), or for the trial's two variables (54), not for both.
    add_to_grubenv(&node, leaves(60));
    let plan = node.json(&["plan"], 9);
    assert_eq!(plan["refusals"][0]["id"], "boot.grubenv-full", "{plan:#}");
}

#[test]
fn the_template_of_new_kernels_is_never_older_than_the_defaults() {
    let node = node(Family::El9);
    let newer = || {
        let time = |path: &str| {
            let meta = std::fs::metadata(node.path().join(path)).unwrap();
            meta.modified().unwrap()
        };
        time("etc/kernel/cmdline") >= time("etc/default/grub")
    };
    commit(&node);
    assert!(newer(), "after the commit");
    node.json(&["rollback"], 8);
    node.reboot(Reboot::default());
    assert!(newer(), "after the rollback");
}

#[test]
fn entries_of_another_system_are_left_alone() {
    let node = node(Family::El9);
    let other = format!("{ENTRIES}/{}-6.1.0-20-amd64.conf", "0".repeat(32));
    let text =
        b"title Other\nlinux /boot/vmlinuz-6.1.0-35-amd64\noptions root=/dev/sdb1 ro quiet\n";
    node.write(&other, text);
    commit(&node);
    assert_eq!(node.read(&other), text);
}

#[test]
fn a_default_that_is_right_already_does_not_hide_that_other_places_are_not() {
    let node = node(Family::El9);
    let default = entry("6.1.0-37-amd64");
    edit(
        &node,
        &default,
        "ttyS0,115200n8",
        "ttyS0,115200n8 intel_iommu=on iommu=pt",
    );
    node.reboot(Reboot::default());
    assert!(has(&node, "iommu=pt"));
    let plan = node.json(&["plan"], 3);
    assert_eq!(plan["reboot_required"], false, "{plan:#}");
    node.json(&["apply"], 0);
    for path in ["etc/kernel/cmdline", &entry("6.1.0-35-amd64")] {
        let text = String::from_utf8(node.read(path)).unwrap();
        assert!(text.contains("iommu=pt"), "{path}: {text}");
    }
    assert_eq!(node.json(&["apply"], 0)["changed"], false);
}

#[test]
fn leftovers_of_a_power_cut_are_no_entries_and_go() {
    let node = node(Family::El9);
    let before = fingerprint(node.path());
    let left =
        format!("{ENTRIES}/.gdr-agent-tmp.0123456789abcdef.{MACHINE}-6.1.0-37-amd64.conf.tmp");
    node.write(&left, b"title half\nlinux /boot/vmli");
    let hold = format!("{}.gdr-agent-old", entry("6.1.0-37-amd64"));
    node.write(&hold, b"old");
    commit(&node);
    assert!(!node.has(&left) && !node.has(&hold));
    node.json(&["rollback"], 8);
    node.reboot(Reboot::default());
    assert_eq!(fingerprint(node.path()), before);
}

#[test]
fn two_menus_of_which_one_may_be_dead_are_refused() {
    let node = node(Family::El9);
    let dir = node.path().join("boot/efi/EFI/rocky");
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(
        dir.join("grub.cfg"),
        "search.fs_uuid x root\nconfigfile $prefix/grub.cfg\n",
    )
    .unwrap();
    node.json(&["plan"], 3);
    std::fs::write(dir.join("grub.cfg"), "insmod blscfg\nblscfg\n").unwrap();
    let plan = node.json(&["plan"], 9);
    assert_eq!(plan["refusals"][0]["id"], "boot.two-menus", "{plan:#}");
}

#[test]
fn what_grub_adds_to_every_entry_is_not_left_out_of_a_trial() {
    let node = node(Family::El9);
    let path = "boot/grub2/grubenv";
    edit(&node, path, &"#".repeat(24), "early_initrd=acpi.img\n##");
    let plan = node.json(&["plan"], 9);
    assert_eq!(plan["refusals"][0]["id"], "boot.entry-variable", "{plan:#}");
}

#[test]
fn what_cannot_even_be_loaded_falls_back_to_the_entry_that_is_proven() {
    let node = node(Family::El9);
    edit(
        &node,
        "boot/grub2/grubenv",
        "6.1.0-37-amd64",
        "6.1.0-35-amd64",
    );
    node.reboot(Reboot::default());
    assert!(node.cmdline().contains("6.1.0-35-amd64"));
    node.json(&["apply", "--reboot"], 8);
    assert!(node.run(&["boot", "arm"]).status.success());
    // The trial's kernel is there, its initramfs is not: GRUB takes the fallback, and that is not the
    // newest kernel, which nobody has booted.
    let custom = String::from_utf8(node.read("boot/grub2/custom.cfg")).unwrap();
    node.write(
        "boot/grub2/custom.cfg",
        custom
            .replace(
                "initrd /boot/initrd.img-6.1.0-35-amd64",
                "initrd /boot/gone",
            )
            .as_bytes(),
    );
    gdr_tests::node::reboot(node.path(), Reboot::default()).unwrap();
    assert!(
        node.cmdline().contains("6.1.0-35-amd64"),
        "{}",
        node.cmdline()
    );
    assert!(!node.cmdline().contains("gdr.txn"), "{}", node.cmdline());
}

#[test]
fn tuneds_variable_in_the_defaults_is_no_stale_menu() {
    let node = node(Family::Debian);
    let path = "etc/default/grub";
    let mut text = node.read(path);
    text.extend_from_slice(
        b"GRUB_CMDLINE_LINUX_DEFAULT=\"${GRUB_CMDLINE_LINUX_DEFAULT:+$GRUB_CMDLINE_LINUX_DEFAULT }\\$tuned_params\"\n",
    );
    node.write(path, &text);
    gdr_tests::node::regenerate(&Tree::new(node.path()), None).unwrap();
    commit(&node);
    node.reboot(Reboot::default());
    assert!(has(&node, "iommu=pt"), "{}", node.cmdline());
    let kept = String::from_utf8(node.read("boot/grub/grub.cfg")).unwrap();
    assert!(kept.contains("$tuned_params"), "tuned still has its place");
}

#[test]
fn what_a_trial_would_leave_out_or_cannot_be_kept_is_refused() {
    let refused = |node: &Node| {
        let plan = node.json(&["plan"], 9);
        plan["refusals"][0]["id"].as_str().unwrap().to_owned()
    };
    // A device tree that the default entry loads.
    let tree = node(Family::Debian);
    edit(
        &tree,
        "boot/grub/grub.cfg",
        "\tlinux\t",
        "\tdevicetree\t/a.dtb\n\tlinux\t",
    );
    assert_eq!(refused(&tree), "boot.devicetree");
    // A menu that would have to be replaced on FAT.
    let fat = node(Family::Debian);
    let mounts = "proc/1/mountinfo";
    let text = String::from_utf8(fat.read(mounts)).unwrap();
    let line = "99 1 8:9 / /boot rw - vfat /dev/sda9 rw\n";
    fat.write(mounts, format!("{text}{line}").as_bytes());
    assert_eq!(refused(&fat), "boot.menu-on-fat");
}

#[test]
fn what_says_which_files_count_must_be_readable() {
    // A directory where the program should be can be seen and not be read.
    for (family, program) in [
        (Family::Debian, "usr/sbin/grub-mkconfig"),
        (Family::El9, "usr/sbin/grub2-mkconfig"),
    ] {
        let node = node(family);
        let path = node.path().join(program);
        if path.exists() {
            std::fs::remove_file(&path).unwrap();
        }
        std::fs::create_dir_all(&path).unwrap();
        let plan = node.json(&["plan"], 9);
        assert_eq!(plan["refusals"][0]["id"], "boot.unreadable", "{plan:#}");
        let message = plan["refusals"][0]["message"].as_str().unwrap();
        assert!(message.contains(program), "{message}");
    }
}

#[test]
fn a_change_of_more_than_one_sector_of_grubenv_is_not_written_in_place() {
    use std::os::unix::fs::MetadataExt;
    let node = node(Family::El8);
    let path = "boot/grub2/grubenv";
    // kernelopts stands across the border of the sectors.
    let text = String::from_utf8(node.read(path)).unwrap();
    let start = text.find("kernelopts=").unwrap();
    let end = start + text[start..].find('\n').unwrap();
    let filler = format!("filler={}\n", "x".repeat(505 - end - 8));
    let body = format!("{}{filler}{}", &text[..start], &text[start..]);
    let body = body.trim_end_matches('#');
    let before = format!("{body}{}", "#".repeat(1024 - body.len()));
    node.write(path, before.as_bytes());
    let inode = || std::fs::metadata(node.path().join(path)).unwrap().ino();
    let old = inode();
    commit(&node);
    assert_ne!(inode(), old);
    let after = node.read(path);
    assert_eq!(after.len(), 1024);
    assert!(String::from_utf8(after).unwrap().contains("iommu=pt"));
    node.json(&["rollback"], 8);
    assert!(
        !String::from_utf8(node.read(path))
            .unwrap()
            .contains("iommu=pt")
    );
}

#[test]
fn a_file_that_only_bash_can_read_is_edited_where_sh_is_bash() {
    const OWN: &str = "GRUB_CMDLINE_LINUX+=\" console=tty0\"\n";
    let with_own = |family| {
        let node = node(family);
        let text = String::from_utf8(node.read("etc/default/grub")).unwrap();
        node.write("etc/default/grub", format!("{text}{OWN}").as_bytes());
        (node, text)
    };
    let (el, text) = with_own(Family::El9);
    el.json(&["apply", "--reboot"], 8);
    el.reboot(Reboot::default());
    assert_eq!(el.json(&["status"], 0)["state"], "COMMITTED");
    let added = OWN.replace("tty0", "tty0 intel_iommu=on iommu=pt");
    assert_eq!(
        String::from_utf8(el.read("etc/default/grub")).unwrap(),
        format!("{text}{added}")
    );
    let facts = el.json(&["facts"], 0);
    let line = facts["facts"]["boot"]["defaults"]["value"]["GRUB_CMDLINE_LINUX"].as_str();
    assert!(
        line.unwrap_or_default()
            .ends_with(" console=tty0 intel_iommu=on iommu=pt"),
        "{line:?}"
    );

    let (debian, _) = with_own(Family::Debian);
    let before = fingerprint(debian.path());
    let said = debian.json(&["apply"], 9).to_string();
    assert!(said.contains("boot.default-aborts"), "{said}");
    assert_eq!(fingerprint(debian.path()), before);

    // Which shell it is is not known: the two do not agree.
    let (other, _) = with_own(Family::Suse);
    std::fs::remove_file(other.path().join("usr/bin/sh")).unwrap();
    let said = other.json(&["apply"], 9).to_string();
    assert!(
        said.contains("boot.default-computed") && said.contains("/bin/sh"),
        "{said}"
    );
}
