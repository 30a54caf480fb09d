//! Is what the next boot will have what runs?

use grub_config_parser::cmdline::CommandLine;

use super::Seen;
use crate::checks::Answer;
use crate::effective;

const ID: &str = "cmdline.pending-reboot";

pub(super) fn pending_reboot(seen: &Seen) -> Vec<Answer> {
    let mut answers = vec![arguments(seen)];
    let fact = &seen.host.reboot_required;
    if let Some(packages) = fact.get() {
        let names = if packages.is_empty() {
            "a package"
        } else {
            packages
        };
        let evidence = format!("{}: {names}", fact.from);
        answers.push(Answer::failed(ID, "packages", evidence, "reboot"));
    } else if let Some(why) = &fact.unknown {
        answers.push(Answer::unknown(
            ID,
            "packages",
            why.clone(),
            "run it as root on the node",
        ));
    }
    answers
}

fn arguments(seen: &Seen) -> Answer {
    let facts = seen.node.facts;
    let subject = "default boot entry";
    let unknown = |why: String| Answer::unknown(ID, subject, why, "look at `gdr-agent cmdline`");
    let Some(running) = facts.running.cmdline.get() else {
        return unknown(facts.running.cmdline.why_missing());
    };
    if running
        .split_whitespace()
        .any(|word| word.starts_with(crate::plan::MARKER))
    {
        return unknown(
            "/proc/cmdline: this is a trial boot; `gdr-agent status` tells more".to_owned(),
        );
    }
    if let Some(why) = facts.boot.files.unreadable.first() {
        return unknown(why.clone());
    }
    let entries = match effective::entries(&facts.boot) {
        Ok(entries) => entries,
        Err(why) => return unknown(why),
    };
    let Some(default) = entries.iter().find(|entry| entry.default) else {
        return unknown("no GRUB menu with a default entry was found".to_owned());
    };
    if !facts.boot.default_is_certain() {
        return unknown(
            "which entry is the default depends on a GRUB that could not be told".to_owned(),
        );
    }
    let running = CommandLine::parse(running);
    let now = words(&running);
    let next = words(&default.entry.cmdline);
    let missing: Vec<&str> = lacking(&next, &now);
    let extra: Vec<&str> = lacking(&now, &next);
    let mut evidence = Vec::new();
    if !missing.is_empty() {
        evidence.push(format!(
            "{}: the default entry has {}, and /proc/cmdline has not",
            default.source,
            missing.join(" ")
        ));
    }
    if !extra.is_empty() {
        evidence.push(format!(
            "/proc/cmdline has {}, and the default entry of {} has not",
            extra.join(" "),
            default.source
        ));
    }
    if let (Some(kernel), Some(release)) = (&default.entry.kernel, facts.running.release.get())
        && !kernel.ends_with(release.as_str())
    {
        evidence.push(format!(
            "{}: the default entry boots {kernel}, and {release} runs",
            default.source
        ));
    }
    if evidence.is_empty() {
        return Answer::met(
            ID,
            subject,
            format!(
                "{}: the default entry has what /proc/cmdline has",
                default.source
            ),
        );
    }
    let mut answer = Answer::failed(
        ID,
        subject,
        "",
        "reboot; `gdr-agent cmdline` says where each argument is written",
    );
    answer.evidence = evidence;
    answer
}

/// The arguments but for those that the boot loader adds.
fn words(line: &CommandLine) -> Vec<&str> {
    let args = line
        .args()
        .iter()
        .filter(|arg| !matches!(arg.name(), "BOOT_IMAGE" | "initrd"));
    args.map(grub_config_parser::cmdline::Arg::raw).collect()
}

fn lacking<'a>(these: &[&'a str], those: &[&str]) -> Vec<&'a str> {
    these
        .iter()
        .copied()
        .filter(|word| !those.contains(word))
        .collect()
}
