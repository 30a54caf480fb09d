//! A policy whose command line kills the boot: the machine comes back by itself, as it was.

use gdr_tests::machine::{Error, Inventory, agent_image};

use crate::common::*;
use crate::policy::{CAN_BE_MET, DIES, policy};

#[test]
fn a_policy_that_kills_the_boot_is_undone_and_not_tried_again() -> Result<(), Error> {
    let Some(image) = agent_image("dies")? else {
        return Ok(());
    };
    let (mut machine, before) = ready(&image, "dies", &policy(DIES, CAN_BE_MET))?;
    let old_line = cmdline(&mut machine)?;
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
    assert_eq!(cmdline(&mut machine)?, old_line);

    let status = wait_for_state(&mut machine, &["QUARANTINED"])?;
    assert_eq!(status.status, 6, "{}", status.json);
    assert!(
        !status.text("reason").is_empty(),
        "it says what happened: {}",
        status.json
    );
    assert_eq!(
        before.changes(&Inventory::take(&mut machine)?),
        Vec::<String>::new()
    );
    assert_healthy(&mut machine)?;

    // Asked again, it says no, and why; the machine stays up.
    let boot = machine.boot_id().to_owned();
    let again = machine.agent("apply --reboot")?;
    assert_eq!(
        (again.status, again.flag("changed")),
        (7, Some(false)),
        "{}",
        again.json
    );
    assert_not_armed(&mut machine)?;
    assert_eq!(
        before.changes(&Inventory::take(&mut machine)?),
        Vec::<String>::new()
    );
    machine.ok("systemctl start gdr-agent-reconcile.service; sleep 15")?;
    assert_eq!(machine.boot_id(), boot);
    Ok(())
}
