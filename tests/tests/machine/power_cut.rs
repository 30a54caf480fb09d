//! The plug pulled at random moments between `apply` and commit.

use std::thread::sleep;
use std::time::Duration;

use gdr_tests::machine::{Error, Inventory, Machine, Random, agent_image};

use crate::common::*;
use crate::policy::{CAN_BE_MET, policy};

/// A stretch of the way; the moment is random within it, so that five cuts do not all hit the same.
#[derive(Debug, Clone, Copy)]
enum Stretch {
    /// While `apply` stages and asks for the reboot.
    Apply,
    /// While the machine goes down, where the trial is armed.
    Shutdown,
    /// From the start of GRUB, with its hook, into the kernel.
    Boot,
    /// The trial is up: verification.
    Trial,
    /// Verification and commit.
    Commit,
}

impl Stretch {
    const ALL: [Self; 5] = [
        Self::Apply,
        Self::Shutdown,
        Self::Boot,
        Self::Trial,
        Self::Commit,
    ];

    /// Waits for its beginning, and then a random part of its length.
    fn wait(self, machine: &mut Machine, from: usize, random: &mut Random) -> Result<(), Error> {
        let longest = match self {
            Self::Apply => Duration::from_secs(4),
            Self::Shutdown => Duration::from_secs(12),
            Self::Boot => {
                machine.wait_for_serial(from, "BdsDxe: starting")?;
                Duration::from_secs(20)
            }
            Self::Trial => {
                machine.wait_for_boot()?;
                Duration::from_secs(10)
            }
            Self::Commit => {
                machine.wait_for_boot()?;
                Duration::from_secs(40)
            }
        };
        let moment = random.below(longest);
        eprintln!("power cut: {self:?} and {:.2} s", moment.as_secs_f32());
        sleep(moment);
        Ok(())
    }
}

#[test]
fn a_power_cut_at_any_moment_ends_committed_or_rolled_back() -> Result<(), Error> {
    let Some(image) = agent_image("power cut")? else {
        return Ok(());
    };
    let mut random = Random::from_env();
    eprintln!(
        "power cut: GDR_VM_SEED={} gives these moments again",
        random.seed()
    );
    let (mut machine, _) = ready(&image, "power-cut", &policy("[]", CAN_BE_MET))?;
    let mut ends = Vec::new();
    for (number, stretch) in Stretch::ALL.into_iter().enumerate() {
        let end = cut(&mut machine, number, stretch, &mut random)?;
        ends.push(format!("{stretch:?}: {end}"));
    }
    eprintln!("power cut: {}", ends.join(", "));
    Ok(())
}

/// Applies a policy of its own, cuts the power, and looks where the machine ends.
fn cut(
    machine: &mut Machine,
    number: usize,
    stretch: Stretch,
    random: &mut Random,
) -> Result<String, Error> {
    let mark = format!("cut.mark={number}");
    write_policy(machine, &policy(&format!("[{mark:?}]"), CAN_BE_MET))?;
    machine.ok("sync")?;
    let before = Inventory::take(machine)?;
    let last = machine.agent("status")?.text("txn").to_owned();
    let from = machine.serial()?.len();
    // Not waited for: the cut may come in the middle of it.
    machine.ok("systemd-run --no-block --unit=apply --collect gdr-agent apply --reboot")?;
    stretch.wait(machine, from, random)?;
    machine.cut_power();

    machine.power_on()?;
    machine.wait_for_boot()?;
    let ends = ["IDLE", "COMMITTED", "ROLLED_BACK", "QUARANTINED"];
    let status = wait_for_state(machine, &ends)?;
    // Cut before the first record: what is told then is how the transaction before this one ended.
    let begun = status.text("txn") != last;
    let state = if begun {
        status.text("state").to_owned()
    } else {
        "not begun".to_owned()
    };
    assert_not_armed(machine)?;
    machine.ok("grub-script-check /boot/grub/grub.cfg")?;
    let next = machine.ok("grep -m1 '^\tlinux' /boot/grub/grub.cfg")?;
    let committed = next.split_whitespace().any(|arg| arg == mark);
    assert_eq!(
        committed,
        state == "COMMITTED",
        "{state}, and the next boot's line is: {next}"
    );
    if !committed {
        assert_eq!(
            before.changes(&Inventory::take(machine)?),
            Vec::<String>::new()
        );
    }
    assert_healthy(machine)?;
    if committed {
        // A cut in the middle of the commit leaves the old line running: the next transaction, rightly,
        // wants to see this one's boot first.
        machine.reboot()?;
        let running = cmdline(machine)?;
        assert!(running.contains(&mark), "{running:?}");
        assert!(!has(&running, "gdr.txn"), "{running:?}");
        assert_healthy(machine)?;
    }
    Ok(state)
}
