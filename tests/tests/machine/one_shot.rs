//! The ground that the agent stands on, without the agent: GRUB boots the trial entry of a hand-written hook once, and only
//! once, whether it works or dies; and the machine has what the other scenarios look at.

use gdr_tests::machine::{Error, Machine, plain_image};

use crate::common::*;

/// Disarms, reads back, and only then chooses the trial entry: what cannot be disarmed is not booted.
const HOOK: &str = r#"
if [ "${gdr_trial}" = "ID" ]; then
  set gdr_taken="${gdr_trial}"
  set gdr_trial=0000000000000000
  save_env gdr_trial gdr_taken
  set gdr_trial=unknown
  load_env gdr_trial
  if [ "${gdr_trial}" = "0000000000000000" ]; then set default=trial; set boot_once=true; fi
fi
menuentry "trial" --id trial --unrestricted {
  search --no-floppy --label rootfs --set=root
  linux /boot/vmlinuz-KERNEL root=LABEL=rootfs ro console=ttyS0 gdr.txn=ID panic=3 ARGUMENTS
  initrd /boot/initrd.img-KERNEL
}
"#;

/// Writes the hook for a trial and arms it.
fn arm(machine: &mut Machine, id: &str, arguments: &str) -> Result<(), Error> {
    let kernel = machine.ok("uname -r")?;
    let hook = HOOK
        .replace("ID", id)
        .replace("KERNEL", &kernel)
        .replace("ARGUMENTS", arguments);
    machine.put("/boot/grub/custom.cfg", 0o644, &hook)?;
    machine.ok("grub-script-check /boot/grub/custom.cfg")?;
    machine.ok(&format!(
        "grub-editenv /boot/grub/grubenv set gdr_trial={id} gdr_taken=0000000000000000; sync"
    ))?;
    Ok(())
}

#[test]
fn a_trial_entry_boots_once_whether_it_works_or_dies() -> Result<(), Error> {
    let Some(image) = plain_image("one_shot")? else {
        return Ok(());
    };
    let mut machine = Machine::start(&image, "one-shot")?;
    assert_eq!(machine.settled()?, "running");
    let old_line = cmdline(&mut machine)?;
    assert!(
        !old_line
            .iter()
            .any(|a| a.starts_with("gdr.txn") || a.contains("iommu"))
    );
    assert_eq!(group_types(&mut machine)?, "DMA-FQ");
    for port in [GPU_PORT, NIC_PORT, OTHER_PORT] {
        assert_eq!(
            acs(&mut machine, port)?,
            0x1d,
            "{port}: SV, RR, CR and UF are on"
        );
    }
    assert_eq!(machine.run("systemd-detect-virt")?.stdout.trim(), "none");

    arm(&mut machine, "1111111111111111", "intel_iommu=on iommu=pt")?;
    machine.reboot()?;
    let trial = cmdline(&mut machine)?;
    assert!(
        trial.contains(&"gdr.txn=1111111111111111".to_owned()),
        "{trial:?}"
    );
    assert_eq!(group_types(&mut machine)?, "identity");
    assert_eq!(
        grubenv(&mut machine, "gdr_trial")?.as_deref(),
        Some("0000000000000000")
    );
    assert_eq!(
        grubenv(&mut machine, "gdr_taken")?.as_deref(),
        Some("1111111111111111")
    );

    // This one gets as far as the initramfs, which cannot mount the root with such an option.
    arm(&mut machine, "2222222222222222", "rootflags=no_such_option")?;
    let before = machine.serial()?.len();
    machine.reboot()?;
    assert_eq!(cmdline(&mut machine)?, old_line);
    assert_eq!(
        grubenv(&mut machine, "gdr_trial")?.as_deref(),
        Some("0000000000000000")
    );
    assert_eq!(
        grubenv(&mut machine, "gdr_taken")?.as_deref(),
        Some("2222222222222222")
    );
    let serial = machine.serial()?;
    assert!(
        serial[before..].contains("Rebooting automatically due to panic="),
        "it died"
    );
    Ok(())
}
