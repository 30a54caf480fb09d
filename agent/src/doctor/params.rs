//! Arguments of the kernel command line that do not do what they look like. The truth about the IOMMU is in its
//! groups; these say why it is not what somebody wrote.

use grub_config_parser::cmdline::{Arg, CommandLine};

use super::Seen;
use crate::checks::Answer;
use crate::facts::Arch;

const INVALID: &str = "iommu.invalid-param";
const OVERRIDDEN: &str = "iommu.cmdline-overridden";
const OVERRIDE: &str = "acs.override-param";

/// `intel_iommu=` (drivers/iommu/intel/iommu.c `intel_iommu_setup`).
const INTEL: [&str; 11] = [
    "on",
    "off",
    "igfx_off",
    "forcedac",
    "strict",
    "sp_off",
    "sm_on",
    "sm_off",
    "tboot_noforce",
    "nobounce",
    "ecs_off",
];
/// `amd_iommu=` (drivers/iommu/amd/init.c `parse_amd_iommu_options`).
const AMD: [&str; 9] = [
    "fullflush",
    "off",
    "force_isolation",
    "force_enable",
    "pgtbl_v1",
    "pgtbl_v2",
    "irtcachedis",
    "nohugepages",
    "v2_pgsizes_only",
];
/// `iommu=` on x86 (arch/x86/kernel/pci-dma.c `iommu_setup`, GART's own included).
const X86: [&str; 20] = [
    "off",
    "force",
    "noforce",
    "biomerge",
    "panic",
    "nopanic",
    "merge",
    "nomerge",
    "forcesac",
    "allowdac",
    "nodac",
    "usedac",
    "soft",
    "pt",
    "nopt",
    "fullflush",
    "nofullflush",
    "noagp",
    "noaperture",
    "memaper",
];
/// `kstrtobool()`: what `iommu.passthrough=` and `iommu.strict=` take.
const BOOL: [&str; 12] = [
    "0", "1", "y", "n", "Y", "N", "on", "off", "ON", "OFF", "t", "f",
];

/// Arguments that the kernel does not know, and pass-through that a later argument takes back.
pub(super) fn iommu(seen: &Seen) -> Vec<Answer> {
    let fact = &seen.node.facts.running.cmdline;
    let Some(text) = fact.get() else {
        let unknown = |id| {
            Answer::unknown(
                id,
                "kernel command line",
                fact.why_missing(),
                "run it on the booted node",
            )
        };
        return vec![unknown(INVALID), unknown(OVERRIDDEN)];
    };
    let line = CommandLine::parse(text);
    let arm = seen.node.facts.arch.get() == Some(&Arch::Arm);
    let mut answers: Vec<Answer> = line
        .kernel_args()
        .iter()
        .filter_map(|arg| Some((arg, invalid(arg, arm)?)))
        .map(|(arg, (why, fix))| {
            Answer::failed(
                INVALID,
                arg.raw(),
                format!("{}: {}: {why}", fact.from, arg.raw()),
                fix,
            )
        })
        .collect();
    if answers.is_empty() {
        answers.push(Answer::met(
            INVALID,
            "kernel command line",
            format!("{}: none that the kernel does not know", fact.from),
        ));
    }
    answers.push(last_wins(&line, &fact.from));
    answers
}

/// Why an argument is not valid, and what to do.
fn invalid(arg: &Arg, arm: bool) -> Option<(String, &'static str)> {
    let value = arg.value().unwrap_or_default();
    let unknown = |known: &[&str]| {
        value
            .split(',')
            .find(|word| {
                !known.iter().any(|k| {
                    word == k
                        || word
                            .strip_prefix(k)
                            .is_some_and(|rest| rest.starts_with('='))
                })
            })
            .map(str::to_owned)
    };
    match arg.name() {
        "amd_iommu" => {
            let word = unknown(&AMD)?;
            Some(match word.as_str() {
                "on" => (
                    "AMD's IOMMU is on by itself, and the kernel says `Unknown option - 'on'`"
                        .to_owned(),
                    "take it out; pass-through is iommu=pt",
                ),
                "pt" => ("amd_iommu does not know `pt`".to_owned(), "write iommu=pt"),
                _ => (format!("amd_iommu does not know `{word}`"), "take it out"),
            })
        }
        "intel_iommu" => {
            let word = unknown(&INTEL)?;
            Some(match word.as_str() {
                "pt" => (
                    "intel_iommu does not know `pt`".to_owned(),
                    "write intel_iommu=on iommu=pt",
                ),
                _ => (
                    format!("intel_iommu does not know `{word}`"),
                    "take it out, or write intel_iommu=on",
                ),
            })
        }
        "iommu" if arm => Some((
            "iommu= is for x86; this is ARM".to_owned(),
            "write iommu.passthrough=1",
        )),
        "iommu" => {
            let word = unknown(&X86)?;
            let fix = if word.starts_with("pass") {
                "write iommu=pt"
            } else {
                "take it out; pass-through is iommu=pt"
            };
            Some((format!("iommu does not know `{word}`"), fix))
        }
        "iommu.passthrough" | "iommu.strict" if !BOOL.contains(&value) => Some((
            format!("{} takes 0 or 1", arg.name()),
            "write iommu.passthrough=1",
        )),
        _ => None,
    }
}

/// Both ways to write it set the same variable, and the last one counts (drivers/iommu/iommu.c).
fn last_wins(line: &CommandLine, from: &str) -> Answer {
    let settings: Vec<(&Arg, bool)> = line
        .kernel_args()
        .iter()
        .flat_map(|arg| passthrough(arg).into_iter().map(move |on| (arg, on)))
        .collect();
    let asked = settings.iter().find(|(_, on)| *on);
    let subject = "pass-through";
    match (asked, settings.last()) {
        (Some((asked, _)), Some((last, false))) => Answer::failed(
            OVERRIDDEN,
            subject,
            format!(
                "{from}: {} is there, and {} comes later and counts",
                asked.raw(),
                last.raw()
            ),
            format!(
                "take {} out; `gdr-agent cmdline` says which file it comes from",
                last.raw()
            ),
        ),
        (Some(_), Some((last, true))) => {
            Answer::met(OVERRIDDEN, subject, format!("{from}: {}", last.raw()))
        }
        _ => Answer::met(
            OVERRIDDEN,
            subject,
            format!("{from}: no argument asks for it"),
        ),
    }
}

fn passthrough(arg: &Arg) -> Vec<bool> {
    let value = arg.value().unwrap_or_default();
    match arg.name() {
        "iommu" => value
            .split(',')
            .filter_map(|word| match word {
                "pt" => Some(true),
                "nopt" => Some(false),
                _ => None,
            })
            .collect(),
        "iommu.passthrough" => match value.as_bytes().first() {
            Some(b'1' | b'y' | b'Y' | b't' | b'T') => vec![true],
            Some(b'0' | b'n' | b'N' | b'f' | b'F') => vec![false],
            _ if value.eq_ignore_ascii_case("on") => vec![true],
            _ if value.eq_ignore_ascii_case("off") => vec![false],
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// `pcie_acs_override=` is a patch of some distributions' kernels, and helps nobody's GPUDirect.
pub(super) fn override_param(seen: &Seen) -> Vec<Answer> {
    let fact = &seen.node.facts.running.cmdline;
    let Some(text) = fact.get() else {
        return vec![Answer::unknown(
            OVERRIDE,
            "kernel command line",
            fact.why_missing(),
            "run it on the booted node",
        )];
    };
    let line = CommandLine::parse(text);
    vec![match line.last("pcie_acs_override") {
        None => Answer::met(
            OVERRIDE,
            "kernel command line",
            format!("{}: it is not there", fact.from),
        ),
        Some(arg) => Answer::failed(
            OVERRIDE,
            "pcie_acs_override",
            format!("{}: {}", fact.from, arg.raw()),
            "take it out: it only makes a patched kernel pretend isolation that is not there, and clears no register",
        ),
    }]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_that_the_kernel_does_not_know() {
        let bad = |text: &str, arm| invalid(&Arg::new(text), arm).map(|(_, fix)| fix);
        for good in [
            "intel_iommu=on",
            "intel_iommu=on,sm_on",
            "iommu=pt",
            "iommu=force,pt",
            "amd_iommu=fullflush",
            "iommu.passthrough=1",
            "iommu=memaper=3",
            "quiet",
        ] {
            assert_eq!(bad(good, false), None, "{good}");
        }
        assert!(bad("amd_iommu=on", false).unwrap().contains("take it out"));
        assert_eq!(bad("iommu=passthrough", false), Some("write iommu=pt"));
        assert_eq!(bad("iommu=pt", true), Some("write iommu.passthrough=1"));
        assert_eq!(
            bad("intel_iommu=pt", false),
            Some("write intel_iommu=on iommu=pt")
        );
        assert!(bad("iommu.passthrough=yes please", false).is_some());
    }

    #[test]
    fn the_last_one_counts() {
        let id = |text: &str| last_wins(&CommandLine::parse(text), "/proc/cmdline").outcome;
        use crate::checks::Outcome::{Failed, Met};
        assert_eq!(id("iommu=pt iommu.passthrough=0"), Failed);
        assert_eq!(id("iommu=pt,nopt"), Failed);
        assert_eq!(id("iommu.passthrough=off iommu=pt"), Met);
        assert_eq!(id("quiet iommu=nopt"), Met);
        assert_eq!(id("iommu=pt -- iommu=nopt"), Met);
    }
}
