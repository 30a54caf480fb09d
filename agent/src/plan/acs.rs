//! Ports whose ACS redirect bits are to be cleared, at every boot.

use gdr_policy::AcsMethod;

use super::step::{Action, Phase, Step};
use super::{Input, Plan};
use crate::plain::counted;

pub(super) fn plan(input: &Input, plan: &mut Plan) {
    let asked = input.policy.acs.method == AcsMethod::Cmdline;
    for refusal in &input.acs.refusals {
        if asked
            && input
                .acs
                .by_kernel
                .as_ref()
                .is_some_and(|k| k.argument.is_none())
        {
            // What the policy asks for by name is not left out silently, nor tried to see it fail.
            plan.refuse(&refusal.id, refusal.text.clone(), refusal.fix.clone());
            continue;
        }
        // A node where ACS must stay as it is can still have everything else applied.
        plan.notes
            .push(format!("{}: {}; {}", refusal.id, refusal.text, refusal.fix));
    }
    for finding in &input.acs.findings {
        plan.notes
            .push(format!("{}: {}; {}", finding.id, finding.text, finding.fix));
    }
    if input.acs.by_kernel.is_some() {
        // The argument is part of the command line's trial; the registers decide after the boot.
        return;
    }
    let writes: Vec<_> = input.acs.to_clear().collect();
    if writes.is_empty() {
        return;
    }
    let lines = writes
        .iter()
        .filter_map(|w| w.setpci.as_ref())
        .map(|line| format!("{line}\n"));
    let ports = counted(writes.len(), "port");
    plan.step(Step {
        id: "acs.clear".to_owned(),
        kind: "acs".to_owned(),
        summary: format!("clear ACS redirection on {ports} of GPU-NIC paths"),
        path: None,
        diff: Some(lines.collect()),
        phase: Phase::EveryBoot,
        undo: "`gdr-agent acs restore`, or any reboot".to_owned(),
        action: Action::ClearAcs,
    });
}
