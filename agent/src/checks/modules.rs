//! Are the modules loaded that the policy needs?

use super::{Answer, Input};
use crate::kmod::fold;
use crate::plan::{GdrPath, decide, gdr};

const ID: &str = "modules.loaded";

pub(super) fn ask(input: &Input) -> Vec<Answer> {
    let wanted: &[&str] = match decide(&gdr::Input {
        policy: input.policy,
        facts: input.facts,
        functions: input.functions,
    })
    .path
    {
        GdrPath::Peermem => &["nvidia", "ib_core", "nvidia_peermem"],
        GdrPath::DmaBuf => &["nvidia", "ib_core"],
        GdrPath::None => {
            return vec![Answer::unknown(
                ID,
                "modules",
                "no way to GPU memory was found",
                "find out the way to GPU memory first: it is in the group gdr-path",
            )];
        }
    };
    let fact = &input.facts.modules.loaded;
    let Some(loaded) = fact.get() else {
        return vec![Answer::unknown(
            ID,
            "modules",
            fact.why_missing(),
            "run it on the booted node",
        )];
    };
    let answer = |name: &&str| {
        if loaded.contains(&fold(name)) {
            Answer::met(ID, *name, format!("{}: it is loaded", fact.from))
        } else {
            Answer::failed(
                ID,
                *name,
                format!("{}: it is not loaded", fact.from),
                format!("modprobe {name}"),
            )
        }
    };
    wanted.iter().map(answer).collect()
}
