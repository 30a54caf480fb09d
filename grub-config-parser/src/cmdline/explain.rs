//! What each argument of a line does.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use super::arg::Arg;
use super::line::CommandLine;
use super::names::accumulates;

/// What an argument does on its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Effect {
    /// It counts: no other argument of its name stands behind it.
    Counts,
    /// The argument with this index, of the same name, stands behind it and is the one that counts.
    Overridden {
        /// An index into [`CommandLine::args`].
        by: usize,
    },
    /// It counts together with all others of its name.
    Adds,
    /// The `--` behind which nothing is the kernel's.
    Separator,
    /// It stands behind `--`: init gets it, the kernel does not look at it.
    ForInit,
}

/// One argument and what it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explained<'a> {
    /// The argument.
    pub arg: &'a Arg,
    /// What it does.
    pub effect: Effect,
    /// The module whose parameter it is, as written: the part before the first dot. Names that
    /// programs of the system have taken (`systemd.`, `rd.` and kin) are not modules.
    pub module: Option<&'a str>,
}

/// First parts of names that are not modules' but programs': systemd(1), dracut.cmdline(7),
/// kernel-command-line(7), plymouthd(8).
const PROGRAMS: &[&str] = &[
    "systemd", "rd", "udev", "luks", "fstab", "plymouth", "vconsole", "locale",
];

impl CommandLine {
    /// Says of each argument what it does, in order.
    ///
    /// ```
    /// use grub_config_parser::cmdline::{CommandLine, Effect};
    /// let line = CommandLine::parse("console=tty0 iommu=off console=ttyS0 iommu=pt nvme-core.x=1 -- s");
    /// let effects: Vec<Effect> = line.explain().iter().map(|one| one.effect).collect();
    /// assert_eq!(effects[0], Effect::Adds);
    /// assert_eq!(effects[1], Effect::Overridden { by: 3 });
    /// assert_eq!(effects[3], Effect::Counts);
    /// assert_eq!(line.explain()[4].module, Some("nvme-core"));
    /// assert_eq!(effects[6], Effect::ForInit);
    /// ```
    pub fn explain(&self) -> Vec<Explained<'_>> {
        let end = self.kernel_end();
        let folded = |arg: &Arg| arg.name().replace('-', "_");
        let kernel = self.kernel_args().iter().enumerate();
        let last: BTreeMap<String, usize> = kernel.map(|(at, arg)| (folded(arg), at)).collect();
        let explained = self.args().iter().enumerate().map(|(index, arg)| {
            let effect = match index.cmp(&end) {
                core::cmp::Ordering::Equal => Effect::Separator,
                core::cmp::Ordering::Greater => Effect::ForInit,
                core::cmp::Ordering::Less if accumulates(arg.name()) => Effect::Adds,
                core::cmp::Ordering::Less => {
                    let last = last.get(&folded(arg)).filter(|by| **by > index);
                    last.map_or(Effect::Counts, |by| Effect::Overridden { by: *by })
                }
            };
            let module = arg.name().split_once('.').map(|(module, _)| module);
            let module = module.filter(|name| !name.is_empty() && !PROGRAMS.contains(name));
            Explained {
                arg,
                effect,
                module: module.filter(|_| index < end),
            }
        });
        explained.collect()
    }

    /// How many bytes the line is too long for this kernel (`uname -m`), its terminating NUL counted:
    /// 0 if it fits, `None` where the limit is not known. What is too long is cut off silently.
    pub fn excess(&self, machine: &str) -> Option<usize> {
        let limit = super::length_limit(machine)?;
        let written: usize = self.args().iter().map(|arg| arg.raw().len() + 1).sum();
        Some(written.max(1).saturating_sub(limit))
    }
}
