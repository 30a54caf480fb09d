//! A policy whose command line kills the boot: the machine comes back by itself, as it was.

use gdr_tests::machine::{Error, Inventory, Machine};

use crate::common::*;
use crate::policy::{CAN_BE_MET, DIES, policy};

/// It is undone and not tried again.
pub(crate) fn a_policy_that_kills_the_boot(machine: &mut Machine) -> Result<(), Error> {
    write_policy(machine, &policy(DIES, CAN_BE_MET))?;
    let before = Inventory::take(machine)?;
    let old_line = cmdline(machine)?;
    let serial = machine.serial()?.len();

    let apply = machine.agent("apply --reboot")?;
    assert_eq!(
        apply.status, 8,
        "staged, the reboot is outstanding: {}",
        apply.stderr
    );
    // One boot further for whoever looks from here: what died never got as far as a shell.
    machine.wait_for_boot()?;
    let new = machine.serial()?[serial..].to_owned();
    assert!(
        new.contains("Rebooting automatically due to panic="),
        "it died as planned"
    );
    assert_eq!(cmdline(machine)?, old_line);

    let status = wait_for_state(machine, &["QUARANTINED"])?;
    assert_eq!(status.status, 6, "{}", status.json);
    assert!(
        !status.text("reason").is_empty(),
        "it says what happened: {}",
        status.json
    );
    assert_eq!(
        before.changes(&Inventory::take(machine)?),
        Vec::<String>::new()
    );
    assert_healthy(machine)?;

    // Asked again, it says no, and why; the machine stays up.
    let boot = machine.boot_id().to_owned();
    let again = machine.agent("apply --reboot")?;
    assert_eq!(
        (again.status, again.flag("changed")),
        (7, Some(false)),
        "{}",
        again.json
    );
    assert_not_armed(machine)?;
    assert_eq!(
        before.changes(&Inventory::take(machine)?),
        Vec::<String>::new()
    );
    machine.ok("systemctl start gdr-agent-reconcile.service; sleep 15")?;
    assert_eq!(machine.boot_id(), boot);
    Ok(())
}
