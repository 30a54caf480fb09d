//! Does the running kernel have what the policy sets, and not what it removes? The last one wins.

use grub_config_parser::cmdline::{Arg, CommandLine, accumulates};

use super::{Answer, Input, Severity};
use crate::plan::Edits;

const ID: &str = "cmdline.argument";

pub(super) fn ask(input: &Input) -> Vec<Answer> {
    let edits = Edits::of(input.policy, input.facts, input.acs);
    let fact = &input.facts.running.cmdline;
    let Some(text) = fact.get() else {
        return vec![Answer::unknown(
            ID,
            "kernel command line",
            fact.why_missing(),
            "run it on the booted node",
        )];
    };
    let line = CommandLine::parse(text);
    let mut answers: Vec<Answer> = edits
        .set
        .iter()
        .map(|arg| wanted(&line, arg, &fact.from))
        .collect();
    answers.extend(
        edits
            .remove
            .iter()
            .map(|pattern| unwanted(&line, pattern, &fact.from)),
    );
    if line.all("pcie_acs_override").next().is_some() {
        let mut answer = Answer::failed(
            "acs.override-param",
            "pcie_acs_override",
            format!(
                "{}: pcie_acs_override only makes the kernel pretend isolation; it clears no register",
                fact.from
            ),
            "add \"pcie_acs_override\" to `kernel.remove`",
        );
        // It does nothing to GPUDirect RDMA, so a trial that is good otherwise does not go back for it.
        answer.severity = Some(Severity::Warning);
        answers.push(answer);
    }
    answers
}

fn wanted(line: &CommandLine, arg: &str, from: &str) -> Answer {
    let arg = Arg::new(arg);
    if accumulates(arg.name()) {
        return if line.contains_exact(&arg) {
            Answer::met(ID, arg.raw(), format!("{from}: it is there"))
        } else {
            Answer::failed(
                ID,
                arg.raw(),
                format!("{from}: it is not there"),
                "run `gdr-agent plan`",
            )
        };
    }
    match line.last(arg.name()) {
        Some(last) if last.value() == arg.value() => {
            Answer::met(ID, arg.raw(), format!("{from}: {}", last.raw()))
        }
        Some(last) => {
            let earlier = line.all(arg.name()).any(|a| a.value() == arg.value());
            let id = if earlier && arg.name().contains("iommu") {
                "iommu.cmdline-overridden"
            } else {
                ID
            };
            let evidence = format!("{from}: the last `{}` says {}", arg.name(), last.raw());
            Answer::failed(
                id,
                arg.raw(),
                evidence,
                "run `gdr-agent plan`: it says which file the later one comes from",
            )
        }
        None => Answer::failed(
            ID,
            arg.raw(),
            format!("{from}: it is not there"),
            "run `gdr-agent plan`",
        ),
    }
}

fn unwanted(line: &CommandLine, pattern: &str, from: &str) -> Answer {
    let mut rest = line.clone();
    let found = rest.remove(pattern);
    match found.first() {
        None => Answer::met(
            ID,
            format!("no {pattern}"),
            format!("{from}: it is not there"),
        ),
        Some(arg) => Answer::failed(
            ID,
            format!("no {pattern}"),
            format!("{from}: {}", arg.raw()),
            "run `gdr-agent plan`",
        ),
    }
}
