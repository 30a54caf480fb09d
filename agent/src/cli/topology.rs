//! `gdr-agent topology`

use schemars::JsonSchema;
use serde::Serialize;

use super::output::style;
use super::{CliError, Context, Exit, Format, load};
use crate::acs::with_selectors;
use crate::facts::pci::{Depth, functions};
use crate::pci::picture;
use crate::pci::render::{self, Styles};
use crate::pci::topology::Topology;
use crate::pci::tree::Tree;
use gdr_policy::Policy;

/// The JSON of `topology`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// `gdr-agent/topology/v1`
    schema: &'static str,
    /// GPUs, NICs, bridges and paths.
    #[serde(flatten)]
    topology: Topology,
}

pub(super) fn run(context: &Context) -> Result<Exit, CliError> {
    let policy = policy_or_default(context)?;
    let topology = with_selectors(&policy.devices, |selectors| {
        let functions = functions(&context.root, &Depth::Topology(selectors))?;
        Ok::<_, CliError>(Topology::of(&Tree::build(&functions), selectors))
    })?;
    match context.out.format {
        Format::Svg => {
            context.out.raw(&picture::svg(&topology))?;
            return Ok(Exit::Done);
        }
        Format::Html => {
            context.out.raw(&picture::html(&topology))?;
            return Ok(Exit::Done);
        }
        Format::Text | Format::Json | Format::Diff => {}
    }
    let output = Output {
        schema: "gdr-agent/topology/v1",
        topology,
    };
    context
        .out
        .result(&output, || render::topology(&output.topology, styles()))?;
    Ok(Exit::Done)
}

/// The root's policy. Looking at paths needs none: without one, and without `--policy`, the
/// defaults choose the devices.
pub(super) fn policy_or_default(context: &Context) -> Result<Policy, CliError> {
    match load::policy(context) {
        Ok(policy) => Ok(policy.loaded.policy),
        Err(error) if error.kind == "policy-missing" && context.policy.is_none() => {
            Ok(Policy::default())
        }
        Err(error) => Err(error),
    }
}

/// The command line's styles, for the texts of the PCI domain.
pub(super) const fn styles() -> Styles {
    Styles {
        head: style::BOLD,
        bad: style::BAD,
        good: style::GOOD,
        warn: style::WARN,
        dim: style::DIM,
    }
}
