//! Under kernel lockdown no register can be written: the kernel is told to turn ACS redirection off
//! itself, and the registers decide whether it did.

use gdr_tests::machine::{Error, agent_image};

use crate::common::*;
use crate::policy::{CAN_BE_MET, policy};

/// RR, CR and EC.
const REDIRECT: u16 = 0x2c;

#[test]
fn behind_lockdown_the_kernel_clears_acs_by_its_command_line() -> Result<(), Error> {
    let Some(image) = agent_image("lockdown")? else {
        return Ok(());
    };
    let (mut machine, _) = ready(&image, "lockdown", &policy("[]", CAN_BE_MET))?;
    machine.put(
        "/etc/default/grub.d/50-lockdown.cfg",
        0o644,
        "GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX lockdown=integrity\"\n",
    )?;
    machine.ok("update-grub && sync")?;
    machine.reboot()?;
    let locked = machine.ok("cat /sys/kernel/security/lockdown")?;
    assert_eq!(locked, "none [integrity] confidentiality");

    // Reads work, writes do not, for anybody.
    assert_eq!(acs_words(&mut machine)?, [ACS_ON; 3]);
    machine.run(&format!("setpci -s {GPU_PORT} ECAP_ACS+0x6.w=0000:002c"))?;
    assert_eq!(acs(&mut machine, GPU_PORT)?, ACS_ON);
    let clear = machine.agent("acs clear")?;
    assert_eq!(clear.status, 9, "{}", clear.json);
    assert!(
        clear.json.to_string().contains("acs.lockdown"),
        "{}",
        clear.json
    );

    let apply = machine.agent("apply --reboot")?;
    assert_eq!(apply.status, 8, "{}\n{}", apply.json, apply.stderr);
    machine.wait_for_boot()?;
    let trial = cmdline(&mut machine)?;
    let told = trial
        .iter()
        .find(|arg| arg.starts_with("pci=disable_acs_redir="));
    assert!(has(&trial, "gdr.txn") && told.is_some(), "{trial:?}");
    wait_for_state(&mut machine, &["COMMITTED", "IDLE"])?;
    let words = acs_words(&mut machine)?;
    assert_eq!(
        [words[0] & REDIRECT, words[1] & REDIRECT, words[2]],
        [0, 0, ACS_ON]
    );
    let kept = machine.ok("cat /etc/default/grub.d/99-gdr-agent.cfg")?;
    assert!(kept.contains(told.unwrap()), "{kept}");
    told_is_committed(&mut machine)?;
    assert_healthy(&mut machine)
}

/// The menu has the argument with its semicolons whole.
fn told_is_committed(machine: &mut gdr_tests::machine::Machine) -> Result<(), Error> {
    let answer = machine.agent("cmdline")?;
    let entries = answer.json["entries"].as_array().unwrap();
    let default = entries.iter().find(|e| e["default"] == true).unwrap();
    let args = default["args"].to_string();
    assert!(
        args.contains(&format!("pci=disable_acs_redir={GPU_PORT};{NIC_PORT}")),
        "{args}"
    );
    machine
        .ok("grub-script-check /boot/grub/grub.cfg")
        .map(|_| ())
}
