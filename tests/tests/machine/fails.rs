//! Trials that do not end well: one that kills the boot, one that boots and does not meet what the policy requires, and one
//! whose verification hangs.

use gdr_tests::machine::{Error, Inventory, Machine, agent_image};

use crate::common::*;
use crate::dies::a_policy_that_kills_the_boot;
use crate::policy::{CAN_BE_MET, CANNOT_BE_MET, policy};

#[test]
fn what_dies_or_fails_to_verify_or_hangs_is_undone() -> Result<(), Error> {
    let Some(image) = agent_image("fails")? else {
        return Ok(());
    };
    let (mut machine, _) = ready(&image, "fails", &policy("[]", CANNOT_BE_MET))?;
    a_policy_that_kills_the_boot(&mut machine)?;
    a_trial_that_fails_to_verify_goes_back_by_one_more_reboot(&mut machine)?;
    a_verification_that_hangs_is_ended_by_the_deadline(&mut machine)
}

fn a_trial_that_fails_to_verify_goes_back_by_one_more_reboot(
    machine: &mut Machine,
) -> Result<(), Error> {
    write_policy(machine, &policy("[]", CANNOT_BE_MET))?;
    let before = Inventory::take(machine)?;
    let old_line = cmdline(machine)?;

    let apply = machine.agent("apply --reboot")?;
    assert_eq!(
        apply.status, 8,
        "staged, the reboot is outstanding: {}",
        apply.stderr
    );
    machine.wait_for_boot()?;
    let trial = cmdline(machine)?;
    assert!(has(&trial, "gdr.txn"), "{trial:?}");

    machine.wait_for_boot()?;
    assert_eq!(cmdline(machine)?, old_line);
    let status = wait_for_state(machine, &["QUARANTINED"])?;
    assert_eq!(status.status, 6, "{}", status.json);
    assert!(
        status.json.to_string().contains("gdr-path"),
        "it names the check: {}",
        status.json
    );
    assert_eq!(group_types(machine)?, "DMA-FQ");
    assert_eq!(
        before.changes(&Inventory::take(machine)?),
        Vec::<String>::new()
    );
    assert_healthy(machine)
}

/// Whatever hangs, a process of its own resets the machine when the policy's time is over.
fn a_verification_that_hangs_is_ended_by_the_deadline(machine: &mut Machine) -> Result<(), Error> {
    let late = policy(r#"["hang.mark=1"]"#, CAN_BE_MET)
        .replace("panic = 5", "panic = 5\ndeadline = \"2m\"");
    write_policy(machine, &late)?;
    machine.put(
        "/etc/systemd/system/gdr-agent-verify.service.d/hang.conf",
        0o644,
        "[Service]\nExecStartPre=/bin/sleep infinity\n",
    )?;
    machine.ok("systemctl daemon-reload && sync")?;
    let before = Inventory::take(machine)?;
    let apply = machine.agent("apply --reboot")?;
    assert_eq!(apply.status, 8, "{}", apply.stderr);
    let status = wait_for_state(machine, &["QUARANTINED"])?;
    assert_eq!(
        status.json["failure"]["kind"], "too-late",
        "{}",
        status.json
    );
    assert!(!has(&cmdline(machine)?, "hang.mark"));
    assert_not_armed(machine)?;
    assert_eq!(
        before.changes(&Inventory::take(machine)?),
        Vec::<String>::new()
    );
    Ok(())
}
