//! The package, baked into an image by its builder: the first boot of a node made from the image is the trial, the next one is
//! as committed, and a purge takes everything back.

use std::fs;

use gdr_tests::machine::{Error, Image, Machine, SUITE, Variant, agent_package, image_of};

use crate::common::*;
use crate::policy::{CAN_BE_MET, policy};

/// What has to find the ports as they should be: it starts peer-to-peer traffic, or what does.
const LATER: [&str; 5] = [
    "nvidia-persistenced",
    "openibd",
    "slurmd",
    "kubelet",
    "containerd",
];

/// In the image alone: a bind mount has nothing of what is mounted below the builder's own root, so no /proc, /sys, /run or
/// devices, and nothing runs that could be asked.
const BAKE: &str = r#"image=/tmp/image
mkdir $image
mount --bind / $image
cp gdr-agent.deb $image/var/tmp/
chroot $image dpkg -i /var/tmp/gdr-agent.deb
rm $image/var/tmp/gdr-agent.deb
cp policy.toml $image/etc/gdr-agent/policy.toml
for unit in LATER; do
  printf '[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/true\n' > $image/etc/systemd/system/$unit.service
  printf '[Install]\nWantedBy=multi-user.target\n' >> $image/etc/systemd/system/$unit.service
  chroot $image systemctl --quiet enable $unit.service
done
status=0
chroot $image gdr-agent --format json apply --bake > $image/root/baked.json || status=$?
cat $image/root/baked.json
[ $status = 8 ]
for id in /etc/machine-id /proc/sys/kernel/random/boot_id; do
  ! grep -rl -e "$(cat $id)" -e "$(tr -d - < $id)" $image/etc/default $image/etc/gdr-agent $image/var/lib/gdr-agent $image/boot/grub
done
: > $image/etc/machine-id
umount $image
"#;

fn baked() -> Result<Option<Image>, Error> {
    let name = "baked";
    let Some(image) = image_of(Variant::of(SUITE), name)? else {
        return Ok(None);
    };
    let Some(package) = agent_package(name)? else {
        return Ok(None);
    };
    let job = tempfile::tempdir().unwrap();
    fs::write(
        job.path().join("job"),
        BAKE.replace("LATER", &LATER.join(" ")),
    )
    .unwrap();
    fs::write(job.path().join("policy.toml"), policy("[]", CAN_BE_MET)).unwrap();
    fs::copy(package, job.path().join("gdr-agent.deb")).unwrap();
    image.prepared(name, job.path()).map(Some)
}

#[test]
fn a_node_from_a_baked_image_needs_no_boot_more_than_its_first() -> Result<(), Error> {
    let Some(image) = baked()? else {
        return Ok(());
    };
    let mut machine = Machine::start(&image, "baked")?;
    let trial = cmdline(&mut machine)?;
    assert!(has(&trial, "gdr.txn"), "the first boot is it: {trial:?}");
    assert_eq!(group_types(&mut machine)?, "identity");
    wait_for_state(&mut machine, &["COMMITTED"])?;
    assert_eq!(acs_words(&mut machine)?, [ACS_CLEARED, ACS_CLEARED, ACS_ON]);
    assert_not_armed(&mut machine)?;
    assert_healthy(&mut machine)?;
    before_whatever_uses_it(&mut machine)?;

    machine.reboot()?;
    let committed = cmdline(&mut machine)?;
    assert!(!has(&committed, "gdr.txn"), "{committed:?}");
    assert!(committed.ends_with(&["intel_iommu=on".to_owned(), "iommu=pt".to_owned()]));
    assert_eq!(acs_words(&mut machine)?, [ACS_CLEARED, ACS_CLEARED, ACS_ON]);
    before_whatever_uses_it(&mut machine)?;
    let again = machine.agent("apply")?;
    assert_eq!((again.status, again.flag("changed")), (0, Some(false)));

    machine.ok("dpkg -P gdr-agent")?;
    let left = machine.ok(
        "ls -d /etc/gdr-agent /var/lib/gdr-agent /run/gdr-agent /usr/bin/gdr-agent 2> /dev/null
         grep -rl gdr /boot/grub /etc/default /etc/modules-load.d /etc/systemd /usr/lib/systemd /usr/lib/udev /var/lib/systemd; true",
    )?;
    assert_eq!(left, "");
    machine.reboot()?;
    let mut wanted = committed;
    wanted.truncate(wanted.len() - 2);
    assert_eq!(cmdline(&mut machine)?, wanted);
    assert_eq!(acs_words(&mut machine)?, [ACS_ON; 3]);
    assert_healthy(&mut machine)
}

/// Each of the services started when the early unit had done its work for the first time: it runs again for bridges that are found anew.
fn before_whatever_uses_it(machine: &mut Machine) -> Result<(), Error> {
    let done = machine
        .ok("journalctl -b -o json UNIT=gdr-agent-acs.service JOB_RESULT=done | head -n 1")?;
    let done: serde_json::Value = serde_json::from_str(&done).unwrap();
    let done: u64 = done["__MONOTONIC_TIMESTAMP"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    for unit in LATER {
        let started = machine.ok(&format!(
            "systemctl show --value -p InactiveExitTimestampMonotonic {unit}.service"
        ))?;
        let started: u64 = started.parse().unwrap();
        assert!(
            started > done,
            "{unit} started at {started} us, ACS was done at {done} us"
        );
    }
    Ok(())
}
