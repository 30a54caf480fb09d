//! What logind itself answers; the same questions on each of its versions.

use gdr_tests::machine::{Error, Machine};

use crate::common::*;

/// Starts something that holds a block lock against shutdowns.
pub(crate) fn hold(machine: &mut Machine) -> Result<(), Error> {
    machine.ok(
        "systemd-run --quiet --unit=hold systemd-inhibit --what=shutdown --mode=block --who=backup --why='tape is running' sleep infinity
         for i in $(seq 60); do systemd-inhibit --list --no-legend | grep -q backup && exit 0; sleep 1; done; exit 1",
    )?;
    Ok(())
}

/// What people are told who work on the machine.
pub(crate) const MESSAGE: &str = "a new policy for the GPUs";

/// The same policy with people warned a minute before.
pub(crate) fn warned_before(policy: &str) -> String {
    let warning = format!("[reboot]\ndelay = \"1m\"\nmessage = \"{MESSAGE}\"");
    policy.replace("[reboot]", &warning)
}

/// Applies while a lock is held, asks while a shutdown is scheduled and while reboot.target is masked; then nothing is in the way
/// any more, logind takes the reboot for a minute later, and the machine goes down for the trial by itself.
pub(crate) fn refused_three_times(machine: &mut Machine) -> Result<(), Error> {
    let version = machine.ok("systemctl --version | head -n 1")?;
    hold(machine)?;
    let apply = machine.agent("apply --reboot")?;
    assert_eq!(apply.status, 8, "{}\n{}", apply.json, apply.stderr);
    waits_for(machine, "backup")?;

    machine.ok("systemctl stop hold; shutdown -r +600 2>&1")?;
    ask(machine)?;
    waits_for(machine, "scheduled")?;
    let scheduled = machine.ok("cat /run/systemd/shutdown/scheduled")?;
    assert!(scheduled.contains("MODE=reboot"), "{version}: {scheduled}");

    machine.ok("shutdown -c; systemctl mask --quiet --runtime reboot.target")?;
    ask(machine)?;
    waits_for(machine, "masked")?;

    machine.ok("systemctl unmask --quiet --runtime reboot.target")?;
    ask(machine)?;
    // logind writes the message escaped.
    let scheduled = machine
        .ok("cat /run/systemd/shutdown/scheduled")?
        .replace("\\x20", " ");
    assert!(
        scheduled.contains("MODE=reboot") && scheduled.contains(MESSAGE),
        "{version}: {scheduled}"
    );
    assert_eq!(state(machine)?, "GRANTED");
    // Whoever calls it back now is obeyed: GRUB is told when the machine goes down.
    assert_not_armed(machine)
}

/// What the timer does every minute.
fn ask(machine: &mut Machine) -> Result<(), Error> {
    machine.ok("systemctl start gdr-agent-reconcile.service")?;
    Ok(())
}

/// The request stands, `status` says what is in its way, and GRUB has not been told anything.
fn waits_for(machine: &mut Machine, what: &str) -> Result<(), Error> {
    let status = machine.agent("status")?;
    assert_eq!(status.text("state"), "REBOOT_REQUESTED", "{}", status.json);
    let said = status.json.to_string();
    assert!(said.contains(what), "{what}: {said}");
    assert_not_armed(machine)
}
