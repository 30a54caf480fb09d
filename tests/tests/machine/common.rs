//! Questions that several scenarios put to the machine.

use std::time::{Duration, Instant};

use gdr_tests::machine::{Answer, Error, Image, Inventory, Machine};

/// The root ports above the GPU's stand-in, the NIC's, and the third device that is on no path.
pub(crate) const GPU_PORT: &str = "0000:00:10.0";
pub(crate) const NIC_PORT: &str = "0000:00:11.0";
pub(crate) const OTHER_PORT: &str = "0000:00:12.0";

/// The ACS control word that this kernel sets at boot: SV, RR, CR and UF.
pub(crate) const ACS_ON: u16 = 0x1d;
/// The same without the redirect bits RR, CR and EC.
pub(crate) const ACS_CLEARED: u16 = 0x11;

/// What `gdr_trial` and `gdr_taken` hold when they name no transaction.
pub(crate) const NOBODY: &str = "0000000000000000";

/// A machine with the agent and this policy, nothing applied, and what its files were like.
pub(crate) fn ready(
    image: &Image,
    name: &str,
    policy: &str,
) -> Result<(Machine, Inventory), Error> {
    let mut machine = Machine::start(image, name)?;
    assert_healthy(&mut machine)?;
    write_policy(&mut machine, policy)?;
    let before = Inventory::take(&mut machine)?;
    assert!(!before.is_empty());
    assert_eq!(state(&mut machine)?, "IDLE");
    Ok((machine, before))
}

/// Puts the policy where the agent looks for it.
pub(crate) fn write_policy(machine: &mut Machine, policy: &str) -> Result<(), Error> {
    machine.put("/etc/gdr-agent/policy.toml", 0o644, policy)
}

/// The kernel's command line.
pub(crate) fn cmdline(machine: &mut Machine) -> Result<Vec<String>, Error> {
    let line = machine.ok("cat /proc/cmdline")?;
    Ok(line.split_whitespace().map(str::to_owned).collect())
}

/// Whether an argument of this name is on a command line.
pub(crate) fn has(cmdline: &[String], name: &str) -> bool {
    cmdline
        .iter()
        .any(|arg| arg.split('=').next() == Some(name))
}

/// The kinds of IOMMU groups there are, each once: `identity`, `DMA-FQ`, ...
pub(crate) fn group_types(machine: &mut Machine) -> Result<String, Error> {
    machine.ok("cat /sys/kernel/iommu_groups/*/type | sort -u | paste -sd' '")
}

/// The ACS control word of a port.
pub(crate) fn acs(machine: &mut Machine, port: &str) -> Result<u16, Error> {
    let word = machine.ok(&format!("setpci -s {port} ECAP_ACS+0x6.w"))?;
    Ok(u16::from_str_radix(&word, 16).unwrap())
}

/// The control words of the GPU's, the NIC's and the third device's port.
pub(crate) fn acs_words(machine: &mut Machine) -> Result<[u16; 3], Error> {
    Ok([
        acs(machine, GPU_PORT)?,
        acs(machine, NIC_PORT)?,
        acs(machine, OTHER_PORT)?,
    ])
}

/// The value of a variable in grubenv, as GRUB's own tool reads it.
pub(crate) fn grubenv(machine: &mut Machine, name: &str) -> Result<Option<String>, Error> {
    let list = machine.ok("grub-editenv /boot/grub/grubenv list")?;
    let value = |line: &str| {
        line.strip_prefix(name)?
            .strip_prefix('=')
            .map(str::to_owned)
    };
    Ok(list.lines().find_map(value))
}

/// GRUB has not been told to boot a trial.
pub(crate) fn assert_not_armed(machine: &mut Machine) -> Result<(), Error> {
    let armed = grubenv(machine, "gdr_trial")?;
    assert!(
        armed.as_deref().is_none_or(|id| id == NOBODY),
        "armed: {armed:?}"
    );
    Ok(())
}

/// No unit failed, and systemd is content.
pub(crate) fn assert_healthy(machine: &mut Machine) -> Result<(), Error> {
    let state = machine.settled()?;
    if state == "running" {
        return Ok(());
    }
    let why = machine.ok(
        "systemctl --failed --plain --no-legend
         for unit in $(systemctl --failed --plain --no-legend | awk '{print $1}'); do journalctl -b --no-pager -u $unit | tail -n 30; done",
    )?;
    panic!("the machine is {state}: {why}")
}

/// The state of the agent's transaction.
pub(crate) fn state(machine: &mut Machine) -> Result<String, Error> {
    Ok(machine.agent("status")?.text("state").to_owned())
}

/// Waits, over reboots, until the transaction is in one of the states.
pub(crate) fn wait_for_state(machine: &mut Machine, wanted: &[&str]) -> Result<Answer, Error> {
    let limit = Duration::from_secs(20 * 60);
    let started = Instant::now();
    let mut last = String::new();
    while started.elapsed() < limit {
        match machine.agent("status") {
            Ok(answer) if wanted.contains(&answer.text("state")) => return Ok(answer),
            Ok(answer) => last = answer.json.to_string(),
            // On its way down or up: the next boot's shell answers again.
            Err(Error::Rebooted { .. } | Error::Timeout { .. }) => {}
            Err(other) => return Err(other),
        }
        std::thread::sleep(Duration::from_secs(2));
    }
    panic!("no state of {wanted:?} within 20 minutes, last seen {last}");
}

/// What the agent tells of the default entry is what booted.
pub(crate) fn told_is_booted(machine: &mut Machine) -> Result<(), Error> {
    let answer = machine.agent("cmdline")?;
    assert_eq!(answer.status, 0, "{}", answer.stderr);
    let entries = answer.json["entries"].as_array().unwrap();
    let default = entries.iter().find(|e| e["default"] == true).unwrap();
    let line = machine.ok("cat /proc/cmdline")?;
    let (_image, running) = line.split_once(' ').unwrap();
    assert_eq!(default["raw"].as_str().unwrap().trim(), running);
    for argument in default["arguments"].as_array().unwrap() {
        assert_ne!(argument["from"].as_array().unwrap().len(), 0, "{argument}");
    }
    Ok(())
}

/// Every way of quoting that a `linux` line knows.
const ODD: &str = r#"#!/bin/sh
exec tail -n +3 $0
set odd_list="two odd.z=3"
menuentry 'Odd > one' --class debian --id odd-entry {
  search --no-floppy --label rootfs --set=root
  set tail=last
  linux /boot/vmlinuz-KERNEL root=LABEL=rootfs ro console=ttyS0 no_timer_check odd.a='single quoted' odd.b="double $tail" odd.c=back\ slash odd.d=${odd_list} odd.e="${odd_list}" 'odd.f=$tail' odd.g=\$tail "odd.h=q\"uote" odd.i=a''b odd.j=semi\;colon odd.k=x"y z"w odd.l=hash#tag odd.m=$unset odd.n='it'"'"'s' odd.o=\\ iommu=pt
  initrd /boot/initrd.img-KERNEL
}
"#;

/// Boots an entry that is quoted in every way, and is told what booted.
pub(crate) fn odd_quoting(machine: &mut Machine) -> Result<(), Error> {
    let kernel = machine.ok("uname -r")?;
    machine.put("/etc/grub.d/09_odd", 0o755, &ODD.replace("KERNEL", &kernel))?;
    machine.put(
        "/etc/default/grub.d/odd.cfg",
        0o644,
        "GRUB_DEFAULT=odd-entry\n",
    )?;
    machine.ok("update-grub && sync")?;
    machine.reboot()?;
    assert!(machine.ok("cat /proc/cmdline")?.contains("odd.z=3"));
    told_is_booted(machine)
}
