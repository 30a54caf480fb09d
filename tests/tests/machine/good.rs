//! The way it should go: applied, tried, verified, committed, and the same after one more reboot.

use gdr_tests::machine::{Error, Inventory, Machine, agent_image};

use crate::common::*;
use crate::policy::{CAN_BE_MET, policy};

#[test]
fn a_good_policy_is_tried_once_and_then_permanent() -> Result<(), Error> {
    let Some(image) = agent_image("good")? else {
        return Ok(());
    };
    let (mut machine, before) = ready(&image, "good", &policy("[]", CAN_BE_MET))?;
    assert_eq!(group_types(&mut machine)?, "DMA-FQ");
    assert_eq!(acs_words(&mut machine)?, [ACS_ON; 3]);
    let old_line = cmdline(&mut machine)?;

    planning_changes_nothing(&mut machine, &before)?;

    let apply = machine.agent("apply --reboot")?;
    assert_eq!(
        apply.status, 8,
        "staged, the reboot is outstanding: {}",
        apply.stderr
    );
    assert_eq!(apply.flag("changed"), Some(true));
    assert_eq!(apply.flag("reboot_required"), Some(true));

    machine.wait_for_boot()?;
    let trial = cmdline(&mut machine)?;
    assert!(has(&trial, "gdr.txn"), "{trial:?}");
    assert!(trial.contains(&"panic=5".to_owned()), "{trial:?}");
    assert!(trial.contains(&"iommu=pt".to_owned()), "{trial:?}");
    assert_eq!(group_types(&mut machine)?, "identity");
    wait_for_state(&mut machine, &["COMMITTED", "IDLE"])?;
    assert_eq!(acs_words(&mut machine)?, [ACS_CLEARED, ACS_CLEARED, ACS_ON]);
    assert_not_armed(&mut machine)?;
    assert_healthy(&mut machine)?;

    machine.reboot()?;
    let committed = cmdline(&mut machine)?;
    assert!(
        !has(&committed, "gdr.txn") && !has(&committed, "panic"),
        "{committed:?}"
    );
    let mut kept = committed.clone();
    kept.retain(|arg| old_line.contains(arg));
    assert_eq!(kept, old_line, "what was there stays, in its order");
    let added: Vec<_> = committed
        .iter()
        .filter(|arg| !old_line.contains(arg))
        .collect();
    assert_eq!(added, ["intel_iommu=on", "iommu=pt"]);
    assert_eq!(group_types(&mut machine)?, "identity");
    // The kernel sets the bits at every boot; the early unit cleared them again.
    assert_eq!(acs_words(&mut machine)?, [ACS_CLEARED, ACS_CLEARED, ACS_ON]);
    assert_healthy(&mut machine)?;

    told_is_booted(&mut machine)?;
    the_second_apply_changes_nothing(&mut machine)?;
    only_its_own_files_differ(&before.changes(&Inventory::take(&mut machine)?));
    Ok(())
}

/// `plan` says what is to do and does none of it.
fn planning_changes_nothing(machine: &mut Machine, before: &Inventory) -> Result<(), Error> {
    let plan = machine.agent("plan")?;
    assert_eq!(plan.status, 3, "changes are pending: {}", plan.stderr);
    assert_eq!(plan.flag("changed"), Some(true));
    assert_eq!(plan.flag("reboot_required"), Some(true));
    assert_eq!(
        before.changes(&Inventory::take(machine)?),
        Vec::<String>::new()
    );
    assert_eq!(acs_words(machine)?, [ACS_ON; 3]);
    Ok(())
}

/// Idempotent: nothing written, no reboot wanted, no child process.
fn the_second_apply_changes_nothing(machine: &mut Machine) -> Result<(), Error> {
    let before = Inventory::take(machine)?;
    let again = machine.agent("apply")?;
    assert_eq!(
        (again.status, again.flag("changed")),
        (0, Some(false)),
        "{}",
        again.json
    );
    assert_eq!(
        before.changes(&Inventory::take(machine)?),
        Vec::<String>::new()
    );
    let verify = machine.agent("verify")?;
    assert_eq!(verify.status, 0, "{}", verify.json);
    // With room for one task only, any fork would fail.
    machine.ok("systemd-run --quiet --wait --pipe --property=TasksMax=1 gdr-agent plan")?;
    Ok(())
}

/// The smallest edit: the agent's drop-in, GRUB's menu, the hook and the environment block.
fn only_its_own_files_differ(changes: &[String]) {
    const ALLOWED: [&str; 4] = [
        "/etc/default/grub.d",
        "/boot/grub/grub.cfg",
        "/boot/grub/custom.cfg",
        "/boot/grub/grubenv",
    ];
    for change in changes {
        let path = change.trim_start_matches("sha256 of ");
        assert!(
            ALLOWED.iter().any(|allowed| path.starts_with(allowed)),
            "{change}"
        );
    }
    assert!(!changes.is_empty(), "the commit left something behind");
}
