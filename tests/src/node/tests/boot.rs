//! The made-up GRUB against what real GRUB 2.06 was seen to do.

use proptest::prelude::*;

use super::super::grub::Firmware;
use super::super::{Boot, NodeSpec, PowerError, Reboot, Tree, create, mkconfig, reboot};
use super::{node, path, program};

const ENV: &str = "boot/grub/grubenv";
const ID: &str = "0000013f9a2c17be";
const NONE: &str = "0000000000000000";

/// A hook that disarms first, looks whether that lasted, and only then chooses the trial.
const HOOK: &str = r#"load_env gdr_trial
if [ "${gdr_trial}" = "0000013f9a2c17be" ]; then
  set gdr_trial=0000000000000000
  set gdr_taken=0000013f9a2c17be
  save_env gdr_trial gdr_taken
  set gdr_trial=unknown
  load_env gdr_trial
  if [ "${gdr_trial}" = "0000000000000000" ]; then set default=gdr-agent-trial; set boot_once=true; set fallback=0; fi
fi
menuentry 'gdr-agent trial 0000013f9a2c17be' --id gdr-agent-trial --unrestricted {
  search --no-floppy --fs-uuid --set=root 5d0f3c1a-7b42-4e86-9a10-2f6c8e4b7d93
  linux @KERNEL@ root=UUID=5d0f3c1a-7b42-4e86-9a10-2f6c8e4b7d93 ro quiet iommu=pt gdr.txn=0000013f9a2c17be panic=30
  initrd /boot/initrd.img-6.1.0-37-amd64
}
"#;

/// Writes an environment block by hand: header, lines, padding to 1024 bytes.
fn set_env(tree: &Tree, variables: &[(&str, &str)]) {
    let mut text = String::from("# GRUB Environment Block\n");
    for (name, value) in variables {
        text += &format!("{name}={value}\n");
    }
    tree.file(ENV, format!("{text:#<1024}")).unwrap();
}

fn armed(kernel: &str) -> (tempfile::TempDir, Tree) {
    let (dir, tree) = node(&NodeSpec::default());
    tree.file("boot/grub/custom.cfg", HOOK.replace("@KERNEL@", kernel))
        .unwrap();
    set_env(&tree, &[("gdr_trial", ID), ("gdr_taken", NONE)]);
    (dir, tree)
}

fn titles(boots: &[Boot]) -> Vec<&str> {
    boots.iter().map(|boot| boot.grub.title.as_str()).collect()
}

const TRIAL: &str = "gdr-agent trial 0000013f9a2c17be";
const DEFAULT: &str = "Debian GNU/Linux";
const KERNEL: &str = "/boot/vmlinuz-6.1.0-37-amd64";

#[test]
fn an_armed_trial_boots_once() {
    let (_dir, tree) = armed(KERNEL);
    assert_eq!(
        titles(&reboot(tree.root(), Reboot::default()).unwrap()),
        [TRIAL]
    );
    assert!(
        tree.text("proc/cmdline")
            .unwrap()
            .ends_with(" iommu=pt gdr.txn=0000013f9a2c17be panic=30\n")
    );
    // written over in place: the two values, and not a byte else
    let expected = format!(
        "{:#<1024}",
        format!("# GRUB Environment Block\ngdr_trial={NONE}\ngdr_taken={ID}\n")
    );
    assert_eq!(tree.text(ENV).unwrap(), expected);
    assert_eq!(
        titles(&reboot(tree.root(), Reboot::default()).unwrap()),
        [DEFAULT]
    );
}

#[test]
fn a_trial_that_dies_is_followed_by_the_old_entry() {
    let (_dir, tree) = armed(KERNEL);
    let how = Reboot {
        dies: true,
        ..Reboot::default()
    };
    let boots = reboot(tree.root(), how).unwrap();
    assert_eq!(titles(&boots), [TRIAL, DEFAULT]);
    assert!(boots[0].kernel.is_none() && boots[1].kernel.is_some());
    // no trial, nobody dies
    assert_eq!(titles(&reboot(tree.root(), how).unwrap()), [DEFAULT]);
}

#[test]
fn a_panic_without_a_timeout_is_not_a_reboot() {
    let (_dir, tree) = armed(KERNEL);
    let text = tree.text("boot/grub/custom.cfg").unwrap();
    tree.file("boot/grub/custom.cfg", text.replace("panic=30", "panic=0"))
        .unwrap();
    let result = reboot(
        tree.root(),
        Reboot {
            dies: true,
            ..Reboot::default()
        },
    );
    assert!(matches!(result, Err(PowerError::Stuck(_))));
}

#[test]
fn a_hook_that_cannot_disarm_lets_the_old_entry_boot() {
    let (_dir, tree) = armed(KERNEL);
    let before = tree.read(ENV).unwrap();
    let how = Reboot {
        firmware: Firmware { writable: false },
        dies: false,
    };
    for _ in 0..2 {
        assert_eq!(titles(&reboot(tree.root(), how).unwrap()), [DEFAULT]);
        assert_eq!(tree.read(ENV).unwrap(), before);
    }
}

#[test]
fn stock_next_entry_on_the_same_disk_boots_the_trial_every_time() {
    let (_dir, tree) = armed(KERNEL);
    set_env(&tree, &[("next_entry", "gdr-agent-trial")]);
    let how = Reboot {
        firmware: Firmware { writable: false },
        dies: false,
    };
    for _ in 0..2 {
        let boots = reboot(tree.root(), how).unwrap();
        assert_eq!(titles(&boots), [TRIAL]);
        assert_eq!(boots[0].grub.messages[0], "error: sparse file not allowed.");
    }
}

#[test]
fn a_next_entry_that_is_nowhere_boots_the_first_entry() {
    let (_dir, tree) = armed(KERNEL);
    set_env(
        &tree,
        &[("saved_entry", "1"), ("next_entry", "doesnotexist")],
    );
    assert_eq!(
        titles(&reboot(tree.root(), Reboot::default()).unwrap()),
        [DEFAULT]
    );
}

#[test]
fn a_trial_whose_kernel_is_missing_falls_back_by_number() {
    let (_dir, tree) = armed("/boot/nothing");
    assert_eq!(
        titles(&reboot(tree.root(), Reboot::default()).unwrap()),
        [DEFAULT]
    );
}

#[test]
fn without_a_fallback_and_with_one_named_by_id_it_hangs() {
    for fallback in [
        "",
        "set fallback=gnulinux-simple-5d0f3c1a-7b42-4e86-9a10-2f6c8e4b7d93;",
    ] {
        let (_dir, tree) = armed("/boot/nothing");
        let text = tree.text("boot/grub/custom.cfg").unwrap();
        tree.file(
            "boot/grub/custom.cfg",
            text.replace("set fallback=0;", fallback),
        )
        .unwrap();
        let error = reboot(tree.root(), Reboot::default())
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("failed to boot both default and fallback entries"),
            "{error}"
        );
        assert!(error.contains("file `/boot/nothing' not found"), "{error}");
    }
}

#[test]
fn without_41_custom_no_hook_runs() {
    let (_dir, tree) = armed(KERNEL);
    tree.mode("etc/grub.d/41_custom", 0o644).unwrap();
    mkconfig::regenerate(&tree, None).unwrap();
    assert_eq!(
        titles(&reboot(tree.root(), Reboot::default()).unwrap()),
        [DEFAULT]
    );
    assert!(
        tree.text(ENV)
            .unwrap()
            .contains(&format!("gdr_trial={ID}\n"))
    );
}

#[test]
fn an_environment_block_that_is_none_disarms_everything() {
    let (_dir, tree) = armed(KERNEL);
    tree.file(ENV, format!("gdr_trial={ID}\n")).unwrap();
    let boots = reboot(tree.root(), Reboot::default()).unwrap();
    assert_eq!(titles(&boots), [DEFAULT]);
    assert_eq!(
        boots[0].grub.messages[0],
        "error: invalid environment block."
    );
}

#[test]
fn a_broken_grub_cfg_stops_at_the_prompt() {
    let (_dir, tree) = node(&NodeSpec::default());
    let text = tree.text("boot/grub/grub.cfg").unwrap();
    tree.mode("boot/grub/grub.cfg", 0o644).unwrap();
    tree.file("boot/grub/grub.cfg", text.get(..text.len() / 2).unwrap())
        .unwrap();
    let error = reboot(tree.root(), Reboot::default())
        .unwrap_err()
        .to_string();
    assert!(error.contains("GRUB is at its prompt"), "{error}");
}

#[test]
fn a_saved_default_in_a_submenu_is_found() {
    let (_dir, tree) = node(&NodeSpec::default());
    tree.file("etc/default/grub.d/saved.cfg", "GRUB_DEFAULT=saved\n")
        .unwrap();
    mkconfig::regenerate(&tree, None).unwrap();
    let uuid = super::super::ROOT_UUID;
    let saved = format!("gnulinux-advanced-{uuid}>gnulinux-6.1.0-35-amd64-advanced-{uuid}");
    set_env(&tree, &[("saved_entry", &saved)]);
    let boots = reboot(tree.root(), Reboot::default()).unwrap();
    assert_eq!(
        titles(&boots),
        ["Debian GNU/Linux, with Linux 6.1.0-35-amd64"]
    );
    assert_eq!(
        tree.text("proc/sys/kernel/osrelease").unwrap(),
        "6.1.0-35-amd64\n"
    );
}

#[test]
fn defaults_are_read_as_the_shell_reads_them() {
    let (_dir, tree) = node(&NodeSpec::default());
    let more = "GRUB_CMDLINE_LINUX_DEFAULT=\"${GRUB_CMDLINE_LINUX_DEFAULT:+$GRUB_CMDLINE_LINUX_DEFAULT }iommu=pt\"\n";
    tree.file("etc/default/grub.d/50-a.cfg", more).unwrap();
    tree.file(
        "etc/default/grub.d/ignored.txt",
        "GRUB_CMDLINE_LINUX_DEFAULT=no\n",
    )
    .unwrap();
    assert_eq!(
        mkconfig::menu(&tree).unwrap().cmdline_default,
        "quiet iommu=pt"
    );
    // a last command that is false stops grub-mkconfig without a word
    tree.file(
        "etc/default/grub.d/60-b.cfg",
        "[ -f /nowhere ] && . /nowhere\n",
    )
    .unwrap();
    assert!(matches!(
        mkconfig::menu(&tree),
        Err(mkconfig::MkconfigError::Defaults { status: 1, said }) if said.is_empty()
    ));
}

#[test]
fn grubs_own_checker_likes_the_menu() {
    let (_dir, tree) = armed(KERNEL);
    for file in ["boot/grub/grub.cfg", "boot/grub/custom.cfg"] {
        program("grub-script-check", &[path(&tree.at(file))]);
    }
}

#[test]
fn quotes_of_the_script_and_of_the_command_line() {
    let (_dir, tree) = node(&NodeSpec::default());
    let entry = r#"
menuentry "two \"words\"" --id x {
  a="one two"
  linux /boot/vmlinuz-6.1.0-37-amd64 "pci=x;y" 'dyndbg=file a.c +p' $a "$a" b\;c empty=""
}
set default=x
"#;
    tree.file("boot/grub/custom.cfg", entry).unwrap();
    let boots = reboot(tree.root(), Reboot::default()).unwrap();
    assert_eq!(titles(&boots), ["two \"words\""]);
    assert_eq!(
        boots[0].grub.cmdline,
        "BOOT_IMAGE=/boot/vmlinuz-6.1.0-37-amd64 pci=x;y \"dyndbg=file a.c +p\" one two \"one two\" b;c empty="
    );
}

#[test]
fn only_a_new_or_empty_directory_becomes_a_node_and_only_a_node_is_rebooted() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("mine"), "precious").unwrap();
    assert!(matches!(
        create(dir.path(), &NodeSpec::default()),
        Err(PowerError::NotEmpty(_))
    ));
    assert!(matches!(
        reboot(dir.path(), Reboot::default()),
        Err(PowerError::NotANode(_))
    ));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// What this GRUB saves, GRUB's own tool reads, and the block keeps its size.
    #[test]
    fn grub_editenv_reads_what_is_saved(
        values in prop::collection::btree_map("[a-z_]{1,12}", "[ -~]{0,40}", 1..8),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let tree = Tree::new(dir.path());
        set_env(&tree, &[("old", "x")]);
        let mut block = tree.read(ENV).unwrap();
        for (name, value) in &values {
            block = super::super::grub::save_env(&block, name, Some(value)).unwrap();
        }
        block = super::super::grub::save_env(&block, "old", None).unwrap();
        prop_assert_eq!(block.len(), 1024);
        tree.file(ENV, &block).unwrap();
        if let Some(list) = program("grub-editenv", &[path(&tree.at(ENV)), "list"]) {
            let mut lines: Vec<&str> = list.lines().collect();
            lines.sort_unstable();
            let mut expected: Vec<String> = values.iter().map(|(name, value)| format!("{name}={value}")).collect();
            expected.sort_unstable();
            prop_assert_eq!(lines, expected);
        }
    }
}
