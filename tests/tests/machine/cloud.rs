//! Given to a node by cloud-init at its first boot: installed, applied, tried, committed; and the same user data once more.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use gdr_tests::machine::{Error, Image, Machine, SUITE, Variant, agent_package, image_of};

use crate::common::*;
use crate::policy::{CAN_BE_MET, policy};

/// How long cloud-init may take here: it is much Python, all of it emulated.
const LIMIT: Duration = Duration::from_secs(600);

/// The seed that a NoCloud node finds on its disk, and a repository there that has the package.
const SEED: &str = r#"seed=/var/lib/cloud/seed/nocloud
mkdir -p $seed /srv/site
cp user-data $seed/
printf 'instance-id: first\nlocal-hostname: node1\n' > $seed/meta-data
cp gdr-agent.deb /srv/site/
{
  dpkg-deb --field gdr-agent.deb
  echo "Filename: ./gdr-agent.deb"
  echo "Size: $(stat -c %s gdr-agent.deb)"
  echo "SHA256: $(sha256sum gdr-agent.deb | cut -d' ' -f1)"
} > /srv/site/Packages
rm -rf /etc/apt/sources.list /etc/apt/sources.list.d/*
echo 'deb [trusted=yes] file:/srv/site ./' > /etc/apt/sources.list.d/site.list
# The machine has no network, nothing to ask but its disk, and no tool to make its file system larger.
printf 'network: {config: disabled}\ndatasource_list: [NoCloud]\napt: {preserve_sources_list: true}\nresize_rootfs: false\ngrowpart: {mode: "off"}\n' > /etc/cloud/cloud.cfg.d/99-machine.cfg
"#;

/// What the repository ships, with the policy that fits the machine's stand-ins.
fn user_data() -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging/cloud-init/user-data.yaml");
    let text = fs::read_to_string(file).unwrap();
    let (head, rest) = text.split_once("      [devices]\n").unwrap();
    let (_policy, tail) = rest.split_once("\n\n  # The agent asks").unwrap();
    let policy = policy("[]", CAN_BE_MET).replace("[reboot]", "[reboot]\nallow = true");
    let indented: String = policy
        .lines()
        .map(|line| format!("      {line}\n"))
        .collect();
    format!("{head}{indented}\n  # The agent asks{tail}")
}

fn seeded() -> Result<Option<Image>, Error> {
    let name = "cloud";
    let with_cloud_init = Variant {
        suite: SUITE,
        with: "cloud-init",
    };
    let Some(image) = image_of(with_cloud_init, name)? else {
        return Ok(None);
    };
    let Some(package) = agent_package(name)? else {
        return Ok(None);
    };
    let job = tempfile::tempdir().unwrap();
    fs::write(job.path().join("job"), SEED).unwrap();
    fs::write(job.path().join("user-data"), user_data()).unwrap();
    fs::copy(package, job.path().join("gdr-agent.deb")).unwrap();
    image.prepared(name, job.path()).map(Some)
}

#[test]
fn cloud_init_takes_a_node_from_its_first_boot_to_committed() -> Result<(), Error> {
    let Some(image) = seeded()? else {
        return Ok(());
    };
    let mut machine = Machine::start(&image, "cloud")?;
    assert!(
        !has(&cmdline(&mut machine)?, "iommu"),
        "the first boot is as the image was"
    );
    machine.ok("cloud-init schema --config-file /var/lib/cloud/seed/nocloud/user-data")?;

    // Nobody but cloud-init and the agent does anything here.
    asks_when_cloud_init_is_done(&mut machine)?;
    machine.wait_for_boot()?;
    let trial = cmdline(&mut machine)?;
    assert!(has(&trial, "gdr.txn"), "{trial:?}");
    wait_for_state(&mut machine, &["COMMITTED"])?;
    done(&mut machine)?;

    // A new instance, as after `cloud-init clean` or from a snapshot: everything in the user data is done again.
    machine.ok(
        "cloud-init clean --logs && sed -i s/first/second/ /var/lib/cloud/seed/nocloud/meta-data",
    )?;
    machine.reboot()?;
    let boot = machine.boot_id().to_owned();
    done(&mut machine)?;
    let ran = machine.ok("cat /var/log/cloud-init-output.log")?;
    assert!(
        ran.contains("gdr-agent is already the newest version"),
        "it ran: {ran}"
    );
    let committed = cmdline(&mut machine)?;
    assert!(
        has(&committed, "iommu") && !has(&committed, "gdr.txn"),
        "{committed:?}"
    );
    assert_eq!(state(&mut machine)?, "COMMITTED");
    assert_not_armed(&mut machine)?;
    assert_healthy(&mut machine)?;
    assert_eq!(machine.boot_id(), boot, "no reboot was asked for");
    Ok(())
}

/// Waits for the grant: the hook in the user data holds it back until cloud-init is done, and the agent's timers ask again.
fn asks_when_cloud_init_is_done(machine: &mut Machine) -> Result<(), Error> {
    let until = Instant::now() + LIMIT;
    while Instant::now() < until {
        // Between its installation and its first words it is there and not yet asked; on the way down nobody answers.
        match machine.agent("status") {
            Ok(answer) if ["GRANTED", "ARMED"].contains(&answer.text("state")) => return Ok(()),
            Ok(_) | Err(Error::Json { .. }) => {}
            Err(Error::Rebooted { .. } | Error::Timeout { .. }) => return Ok(()),
            Err(other) => return Err(other),
        }
        std::thread::sleep(Duration::from_secs(3));
    }
    let why = machine.ok(
        "gdr-agent status; systemctl list-timers --all --no-pager
         journalctl --no-pager -o short-monotonic -b -u 'gdr-agent-ask*' -u 'gdr-agent-reconcile*' | tail -n 60",
    )?;
    panic!("no reboot was granted: {why}")
}

/// cloud-init has ended, without an error or a warning.
fn done(machine: &mut Machine) -> Result<(), Error> {
    let status = machine.run_for("cloud-init status --wait --long --format json", LIMIT)?;
    let said: serde_json::Value = serde_json::from_str(&status.stdout).unwrap();
    assert_eq!(said["status"], "done", "{}", status.stdout);
    assert_eq!(said["errors"], serde_json::json!([]), "{}", status.stdout);
    Ok(())
}
