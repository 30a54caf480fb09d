//! Does any port on a GPU-NIC path send peer traffic up to the root complex?

use gdr_policy::AcsScope;

use super::{Answer, Input};
use crate::pci::acs;
use crate::pci::clear::{Action, PortDecision};
use crate::pci::platform::Need;

const ID: &str = "acs.redirect";

pub(super) fn ask(input: &Input) -> Vec<Answer> {
    if input.policy.acs.scope == AcsScope::Keep {
        return vec![Answer::met(
            ID,
            "ACS",
            "the policy keeps it as it is, which costs peer traffic its short way",
        )];
    }
    let mut answers: Vec<Answer> = Vec::new();
    for port in &input.acs.ports {
        let from = || {
            port.ctl.map_or_else(
                || port.reason.clone(),
                |ctl| format!("ACS control word {ctl:#06x}"),
            )
        };
        let subject = port.bdf.to_string();
        match port.action {
            Action::OffPath => {}
            Action::LeftAlone => answers.push(left_alone(input, port)),
            Action::AlreadyClear | Action::NoCapability => {
                answers.push(Answer::met(ID, subject, from()));
            }
            Action::Clear => answers.push(Answer::failed(ID, subject, from(), fix(input))),
            Action::Refused if input.acs.by_kernel.is_some() => {
                answers.push(Answer::failed(ID, subject, from(), fix(input)));
            }
            Action::Refused => answers.push(Answer::failed(
                ID,
                subject,
                format!("{}; {}", from(), port.reason),
                reason_fix(&port.reason),
            )),
            Action::Unknown => answers.push(Answer::unknown(
                ID,
                subject,
                port.reason.clone(),
                "run it as root on the node",
            )),
        }
    }
    if answers.is_empty() {
        let found = !input.topology.paths.is_empty();
        answers.push(if found {
            Answer::met(ID, "GPU-NIC paths", "no port lies on a path")
        } else {
            Answer::unknown(
                ID,
                "GPU-NIC paths",
                "no GPU-NIC pair was found",
                "look at `gdr-agent topology`",
            )
        });
    }
    answers
}

/// A reason to refuse begins or ends with its id, and the registry knows what helps.
fn reason_fix(reason: &str) -> &'static str {
    let named = super::registry::all().find(|entry| reason.contains(entry.id));
    named.map_or("see the reason", |entry| entry.fix)
}

/// A port that redirects, and stays so because of the platform.
fn left_alone(input: &Input, port: &PortDecision) -> Answer {
    let subject = port.bdf.to_string();
    let need = input.topology.needs_acs.get(&port.bdf).copied();
    let said = |text: &str| format!("{text}: {}", port.reason);
    match (need, port.ctl) {
        (Some(Need::Virtualised), Some(ctl)) if ctl & acs::DT != 0 => Answer::met(
            ID,
            subject,
            said("redirects, but translated requests go directly (DT)"),
        ),
        // Which bits are right depends on more than this port: for guests, DT on the one above the NIC.
        (need, _) => Answer::unknown(
            ID,
            subject,
            said("left as it is, and not judged"),
            need.map_or("see the reason", Need::fix),
        ),
    }
}

/// What helps where a port redirects.
fn fix(input: &Input) -> &'static str {
    let told = input
        .acs
        .by_kernel
        .as_ref()
        .and_then(|kernel| kernel.argument.as_deref());
    let line = input.facts.running.cmdline.get();
    match (told, line) {
        (Some(argument), Some(line)) if line.contains(argument) => {
            "this kernel does not do what pci=disable_acs_redir= says (6.11 and later until \"PCI: Fix Extend ACS \
             configurability\" write wrong values): use another kernel, or `acs.method = \"config-space\"`"
        }
        (Some(_), _) => "run `gdr-agent plan`: the kernel has to be booted with the argument",
        (None, _) if input.acs.by_kernel.is_some() => "see the refusals of `gdr-agent plan`",
        (None, _) => "run `gdr-agent acs clear`",
    }
}
