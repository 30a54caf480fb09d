//! ACS stays clear: after a port was taken away and found again, a bus was reset, something set the bits
//! anew, and the machine slept.

use std::time::{Duration, Instant};

use gdr_tests::machine::{Error, Machine};

use crate::common::*;

/// Waits until the port's word is what it should be, without doing anything for it.
fn wait_until_cleared(machine: &mut Machine, port: &str, limit: Duration) -> Result<(), Error> {
    let started = Instant::now();
    loop {
        let word = acs(machine, port)?;
        if word == ACS_CLEARED {
            return Ok(());
        }
        assert!(
            started.elapsed() < limit,
            "{port} still has {word:#06x} after {} s",
            limit.as_secs()
        );
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// How often the early unit has said that it cleared this port.
fn said(machine: &mut Machine, port: &str) -> Result<usize, Error> {
    let log =
        machine.ok("journalctl -b --no-pager -o cat -u gdr-agent-acs -u gdr-agent-reconcile")?;
    let told = log.lines().filter(|line| {
        line.contains("ACS redirection") && line.contains("cleared") && line.contains(port)
    });
    Ok(told.count())
}

/// On a machine whose policy clears the ports of its path.
pub(crate) fn acs_is_cleared_again_without_a_person(machine: &mut Machine) -> Result<(), Error> {
    assert_eq!(acs_words(machine)?, [ACS_CLEARED, ACS_CLEARED, ACS_ON]);

    // Taken away and found again, as by hotplug: the kernel sets the bits of what it finds. The timer is
    // stopped, so that it is udev that brings the unit.
    machine.ok("systemctl stop gdr-agent-reconcile.timer")?;
    let before = said(machine, NIC_PORT)?;
    machine.ok(&format!(
        "echo 1 > /sys/bus/pci/devices/{NIC_PORT}/remove && sleep 1 && echo 1 > /sys/bus/pci/rescan && udevadm settle"
    ))?;
    wait_until_cleared(machine, NIC_PORT, Duration::from_secs(120))?;
    assert!(
        said(machine, NIC_PORT)? > before,
        "the bits were set, and the unit cleared them"
    );

    // A NIC that is plugged in brings a path that was not there, through a port that the kernel has set.
    machine.unplug_nic()?;
    machine.ok(&format!("setpci -s {NIC_PORT} ECAP_ACS+0x6.w=001d"))?;
    machine.plug_nic()?;
    wait_until_cleared(machine, NIC_PORT, Duration::from_secs(120))?;
    machine.ok("until grep -q 8086:10C9 /sys/bus/pci/devices/*/uevent; do sleep 1; done")?;

    // A reset of the bus below is none of the port's own registers.
    machine.ok(&format!(
        "setpci -s {NIC_PORT} BRIDGE_CONTROL=40:40 && sleep 0.2 && setpci -s {NIC_PORT} BRIDGE_CONTROL=00:40 && sleep 1"
    ))?;
    wait_until_cleared(machine, NIC_PORT, Duration::from_secs(120))?;

    // Set anew without any event, as a reset leaves them: the timer finds out.
    machine.ok("systemctl start gdr-agent-reconcile.timer")?;
    machine.ok(&format!("setpci -s {GPU_PORT} ECAP_ACS+0x6.w=001d"))?;
    assert_eq!(acs(machine, GPU_PORT)?, ACS_ON);
    wait_until_cleared(machine, GPU_PORT, Duration::from_secs(240))?;
    assert_eq!(acs(machine, OTHER_PORT)?, ACS_ON, "on no path");

    machine.ok("systemctl stop gdr-agent-reconcile.timer")?;
    let before = said(machine, GPU_PORT)?;
    sleep_and_wake_up(machine)?;
    wait_until_cleared(machine, GPU_PORT, Duration::from_secs(120))?;
    assert_eq!(acs_words(machine)?, [ACS_CLEARED, ACS_CLEARED, ACS_ON]);
    assert!(
        said(machine, GPU_PORT)? > before,
        "the kernel set the bits when it woke up, and the unit cleared them"
    );
    machine.ok("systemctl start gdr-agent-reconcile.timer")?;
    assert_healthy(machine)
}

/// Suspends to memory, where the ports lose what was written to them, until the clock wakes it up.
fn sleep_and_wake_up(machine: &mut Machine) -> Result<(), Error> {
    machine.ok("echo deep > /sys/power/mem_sleep
         alarm=/sys/class/rtc/rtc0/wakealarm
         echo 0 > $alarm && echo +60 > $alarm && systemctl suspend")?;
    let started = Instant::now();
    while machine
        .run("journalctl -b -k -o cat --no-pager | grep -qx 'PM: suspend exit'")?
        .status
        != 0
    {
        assert!(
            started.elapsed() < Duration::from_secs(300),
            "it does not wake up"
        );
        std::thread::sleep(Duration::from_secs(1));
    }
    Ok(())
}
