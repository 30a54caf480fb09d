//! The same way on the oldest and the newest GRUB that there is: 2.06, and 2.14 with boot entries in
//! files of their own (the good way is on 2.12); and on the oldest and newest systemd-logind. After every boot the command line that `gdr-agent cmdline` tells for the default
//! entry is the one that the kernel was given.

use gdr_tests::machine::{Error, Machine, agent_image_of};

use crate::common::*;
use crate::logind::{refused_three_times, warned_before};
use crate::policy::{CAN_BE_MET, policy};

/// Makes boot entries in files of their own the menu, as Fedora has them.
const ENTRIES: &str = r#"set -e
mkdir -p /boot/loader/entries
args=$(sed 's/^BOOT_IMAGE=[^ ]* //; s/ quiet$//' /proc/cmdline)
for kernel in $(uname -r) 0.1-rescue; do
  printf 'title Debian (%s)\n# a comment\nversion %s\nlinux /boot/vmlinuz-%s\ninitrd /boot/initrd.img-%s\noptions %s $bls_extra quiet\n' \
    $kernel $kernel $(uname -r) $(uname -r) "$args" > /boot/loader/entries/debian-$kernel.conf
done
chmod -x /etc/grub.d/10_linux
printf '#!/bin/sh\nexec tail -n +3 $0\nset bls_extra="extra.one extra.two=2"\nsearch --no-floppy --label rootfs --set=root\ninsmod blsuki\nblscfg --path /boot/loader/entries\n' > /etc/grub.d/11_entries
chmod +x /etc/grub.d/11_entries
update-grub
grep -q blscfg /boot/grub/grub.cfg
"#;

fn whole_way(machine: &mut Machine) -> Result<Vec<String>, Error> {
    assert_healthy(machine)?;
    told_is_booted(machine)?;
    let old_line = cmdline(machine)?;
    write_policy(machine, &warned_before(&policy("[]", CAN_BE_MET)))?;
    refused_three_times(machine)?;
    machine.wait_for_boot()?;
    let trial = cmdline(machine)?;
    assert!(has(&trial, "gdr.txn"), "{trial:?}");
    assert_eq!(group_types(machine)?, "identity");
    wait_for_state(machine, &["COMMITTED", "IDLE"])?;
    assert_not_armed(machine)?;
    assert_healthy(machine)?;

    machine.reboot()?;
    let committed = cmdline(machine)?;
    let mut wanted = old_line;
    wanted.extend(["intel_iommu=on".to_owned(), "iommu=pt".to_owned()]);
    assert_eq!(committed, wanted);
    told_is_booted(machine)?;
    let again = machine.agent("apply")?;
    assert_eq!(
        (again.status, again.flag("changed")),
        (0, Some(false)),
        "{}",
        again.json
    );
    Ok(committed)
}

#[test]
fn grub_2_06_goes_the_whole_way() -> Result<(), Error> {
    let Some(image) = agent_image_of("bookworm", "grub 2.06")? else {
        return Ok(());
    };
    let mut machine = Machine::start(&image, "grub-2.06")?;
    let version = machine.ok("grub-mkconfig --version")?;
    assert!(version.contains(" 2.06"), "{version}");
    whole_way(&mut machine)?;
    odd_quoting(&mut machine)
}

#[test]
fn grub_2_14_goes_the_whole_way_with_entries_in_files_of_their_own() -> Result<(), Error> {
    let Some(image) = agent_image_of("sid", "grub 2.14")? else {
        return Ok(());
    };
    let mut machine = Machine::start(&image, "grub-2.14")?;
    let version = machine.ok("grub-mkconfig --version")?;
    assert!(version.contains(" 2.14"), "{version}");
    machine.ok(ENTRIES)?;
    let menu = machine.ok("sha256sum /boot/grub/grub.cfg")?;
    machine.reboot()?;
    assert!(
        has(&cmdline(&mut machine)?, "extra.two"),
        "the entry booted"
    );
    let committed = whole_way(&mut machine)?;
    assert!(has(&committed, "extra.two"), "{committed:?}");
    assert_eq!(machine.ok("sha256sum /boot/grub/grub.cfg")?, menu);
    let kept = machine.ok("cat /etc/kernel/cmdline")?;
    assert!(
        kept.contains("iommu=pt") && !kept.contains("gdr.txn"),
        "{kept}"
    );
    odd_quoting(&mut machine)
}
