//! Is the IOMMU in the mode that the policy wants, for every GPU and NIC? The group's type is the
//! truth; the command line and the boot log are not.

use gdr_policy::IommuMode;

use super::{Answer, Input};

const ID: &str = "iommu.translated";

pub(super) fn ask(input: &Input) -> Vec<Answer> {
    let mode = input.policy.kernel.iommu;
    if mode == IommuMode::Keep {
        return vec![Answer::met(ID, "IOMMU", "the policy keeps it as it is")];
    }
    let fact = &input.facts.iommu.groups;
    if let Some(why) = &fact.unknown {
        return vec![Answer::unknown(
            ID,
            "IOMMU groups",
            why.clone(),
            "run it as root on the node",
        )];
    }
    let groups = fact.value.clone().unwrap_or_default();
    if mode == IommuMode::Off {
        return vec![if groups.is_empty() {
            Answer::met(ID, "IOMMU", format!("{}: there is no group", fact.from))
        } else {
            Answer::failed(
                ID,
                "IOMMU",
                format!("{}: {} groups", fact.from, groups.len()),
                "run `gdr-agent plan`",
            )
        }];
    }
    let topology = input.topology;
    let devices = topology
        .gpus
        .iter()
        .map(|g| g.bdf)
        .chain(topology.nics.iter().map(|n| n.bdf));
    let mut answers: Vec<Answer> = Vec::new();
    for bdf in devices {
        let group = input
            .functions
            .iter()
            .find(|f| f.bdf == bdf)
            .and_then(|f| f.iommu_group);
        let subject = bdf.to_string();
        answers.push(match group {
            None if groups.is_empty() && input.facts.running.boot_id.get().is_some() => {
                Answer::met(ID, subject, "no IOMMU translates its DMA: it is in no group")
            }
            None => Answer::unknown(ID, subject, "its IOMMU group could not be read", "run it as root on the node"),
            Some(id) => {
                let from = format!("{}/{id}/type", fact.from);
                match groups.get(&id).and_then(Option::as_deref) {
                    Some("identity") => Answer::met(ID, subject, format!("{from}: identity")),
                    Some(kind) => Answer::failed(
                        ID,
                        subject,
                        format!("{from}: {kind}"),
                        "set `kernel.iommu = \"passthrough\"` in the policy and run `gdr-agent apply`; memory encryption (SME, SEV) overrides it",
                    ),
                    None => Answer::unknown(ID, subject, format!("{from} could not be read"), "run it as root on the node"),
                }
            }
        });
    }
    if answers.is_empty() {
        answers.push(Answer::unknown(
            ID,
            "GPUs and NICs",
            "none was found by the policy's selectors",
            "look at `gdr-agent topology`, and at `devices` in the policy",
        ));
    }
    answers
}
