//! Somebody holds a block lock against the reboot; and what is committed in the end stays.

use gdr_tests::machine::{Error, Inventory, Machine, agent_image};

use crate::common::*;
use crate::logind::hold;
use crate::policy::{CAN_BE_MET, policy};
use crate::stays::acs_is_cleared_again_without_a_person;

#[test]
fn a_block_lock_is_respected_and_the_request_outlives_it() -> Result<(), Error> {
    let Some(image) = agent_image("denied")? else {
        return Ok(());
    };
    let (mut machine, before) = ready(&image, "denied", &policy("[]", CAN_BE_MET))?;
    let old_line = cmdline(&mut machine)?;
    nobody_to_ask_is_told_before_anything_is_written(&mut machine, &before)?;
    hold(&mut machine)?;

    let apply = machine.agent("apply --reboot")?;
    assert_eq!(
        apply.status, 8,
        "staged, the reboot is outstanding: {}",
        apply.stderr
    );
    let status = machine.agent("status")?;
    assert_eq!(status.text("state"), "REBOOT_REQUESTED", "{}", status.json);
    assert!(
        status.json.to_string().contains("backup"),
        "it says who: {}",
        status.json
    );
    assert_not_armed(&mut machine)?;

    // A person reboots past the lock. That is not the granted reboot, so it is not the trial.
    machine.reboot()?;
    assert_eq!(cmdline(&mut machine)?, old_line);

    // The lock went with the boot that it was held in. Nobody asks but the agent's own timer.
    machine.wait_for_boot()?;
    let trial = cmdline(&mut machine)?;
    assert!(has(&trial, "gdr.txn"), "{trial:?}");
    wait_for_state(&mut machine, &["COMMITTED", "IDLE"])?;
    assert_healthy(&mut machine)?;
    acs_is_cleared_again_without_a_person(&mut machine)
}

/// Without D-Bus, as far as the agent can see.
fn nobody_to_ask_is_told_before_anything_is_written(
    machine: &mut Machine,
    before: &Inventory,
) -> Result<(), Error> {
    let hidden = machine.run(
        "unshare --mount sh -c 'mount -t tmpfs none /run/dbus && exec gdr-agent apply --reboot'",
    )?;
    assert_eq!(hidden.status, 7, "{}\n{}", hidden.stdout, hidden.stderr);
    for said in ["no system bus", "nothing was changed", "--no-reboot"] {
        assert!(hidden.stderr.contains(said), "{said}: {}", hidden.stderr);
    }
    assert_eq!(
        before.changes(&Inventory::take(machine)?),
        Vec::<String>::new()
    );
    assert_eq!(state(machine)?, "IDLE");
    Ok(())
}
