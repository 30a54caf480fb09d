//! A trial that boots well and does not meet what the policy requires.

use gdr_tests::machine::{Error, Inventory, Machine, agent_image};

use crate::common::*;
use crate::policy::{CAN_BE_MET, CANNOT_BE_MET, policy};

#[test]
fn a_trial_that_fails_to_verify_goes_back_by_one_more_reboot() -> Result<(), Error> {
    let Some(image) = agent_image("fails")? else {
        return Ok(());
    };
    let (mut machine, before) = ready(&image, "fails", &policy("[]", CANNOT_BE_MET))?;
    let old_line = cmdline(&mut machine)?;

    let apply = machine.agent("apply --reboot")?;
    assert_eq!(
        apply.status, 8,
        "staged, the reboot is outstanding: {}",
        apply.stderr
    );
    machine.wait_for_boot()?;
    let trial = cmdline(&mut machine)?;
    assert!(has(&trial, "gdr.txn"), "{trial:?}");

    machine.wait_for_boot()?;
    assert_eq!(cmdline(&mut machine)?, old_line);
    let status = wait_for_state(&mut machine, &["QUARANTINED"])?;
    assert_eq!(status.status, 6, "{}", status.json);
    assert!(
        status.json.to_string().contains("gdr-path"),
        "it names the check: {}",
        status.json
    );
    assert_eq!(group_types(&mut machine)?, "DMA-FQ");
    assert_eq!(
        before.changes(&Inventory::take(&mut machine)?),
        Vec::<String>::new()
    );
    assert_healthy(&mut machine)?;
    a_verification_that_hangs_is_ended_by_the_deadline(&mut machine)
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
