//! What a node goes through on a real file system.

use gdr_tests::node::{Family, NodeSpec};

use super::volume::FileSystem;
use crate::scenario::{APPLY, ARM, LIFE, Scenario, Step};

/// The scenarios that make sense on a file system; some make sense only there.
pub fn scenarios(family: Family, system: FileSystem) -> Vec<Scenario> {
    let mut all = Scenario::all(family);
    let commit = all.remove(0);
    // What is set in grubenv goes over more than one sector, and is written as a new file.
    let wide = Scenario {
        name: "commit, a long line",
        spec: NodeSpec {
            cmdline: LONG_LINE.to_owned(),
            ..commit.spec.clone()
        },
        ..commit.clone()
    };
    let wide_rollback = Scenario {
        name: "rollback, a long line",
        before: LIFE,
        steps: &[Step::Agent(&["rollback"]), ARM, Step::Reboot],
        ..wide.clone()
    };
    // Ubuntu does this at each boot: afterwards GRUB has other blocks for grubenv than Linux.
    let editenv = Scenario {
        name: "commit, grub-editenv",
        steps: &[
            Step::Editenv,
            APPLY,
            Step::Editenv,
            ARM,
            Step::Reboot,
            Step::Editenv,
            Step::Reboot,
        ],
        ..commit.clone()
    };
    let taken_back = Scenario {
        name: "taken back when armed, grub-editenv",
        before: &[APPLY, ARM],
        steps: &[Step::Editenv, Step::Agent(&["rollback"])],
        ..commit.clone()
    };
    all.insert(0, commit);
    if family == Family::El8 {
        all.extend([wide, wide_rollback]);
    }
    all.extend([editenv, taken_back]);
    if system == FileSystem::Btrfs {
        // No trial is ever taken, so that none is committed; only an image is.
        let taken = ["bake: trial", "rollback", "purge of a commit"];
        all.retain(|scenario| scenario.writable && !taken.contains(&scenario.name));
        for scenario in &mut all {
            scenario.writable = false;
            let policy = scenario.spec.policy.clone().unwrap_or_default();
            let fallback = "fallback = \"best-effort\"";
            let policy = match policy.contains("[trial]\n") {
                true => policy.replace("[trial]\n", &format!("[trial]\n{fallback}\n")),
                false => format!("{policy}\n[trial]\n{fallback}\n"),
            };
            scenario.spec.policy = Some(policy);
        }
    }
    all
}

/// So long that a line of the policy's crosses the border of a sector.
const LONG_LINE: &str = "console=tty0 console=ttyS0,115200n8 crashkernel=1G-4G:192M,4G-64G:256M,64G-:512M \
     nvme_core.default_ps_max_latency_us=0 nvme_core.io_timeout=4294967295 processor.max_cstate=1 intel_idle.max_cstate=0 \
     transparent_hugepage=madvise numa_balancing=disable audit=0 mitigations=auto net.ifnames=0 biosdevname=0 sysctl.kernel.watchdog_thresh=20 nmi_watchdog=0";
