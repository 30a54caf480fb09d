//! Questions put to the facts. Each answer is met, failed or unknown, with its evidence; what could
//! not be read is never met.

mod acs;
pub(crate) mod bandwidth;
mod bar1;
mod cmdline;
mod gdr;
mod iommu;
mod link;
mod modules;
mod nccl;
mod numa;
pub mod registry;

use gdr_policy::{CheckGroup, Policy, Verify};
use schemars::JsonSchema;
use serde::Serialize;

use crate::facts::{Facts, More};
use crate::finding::Finding;
use crate::pci::RawFunction;
use crate::pci::clear::AcsPlan;
use crate::pci::topology::Topology;

/// The answer to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It is as it should be.
    Met,
    /// It is not.
    Failed,
    /// What was read does not tell.
    Unknown,
}

/// How much it matters to whoever asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Verification fails without it.
    Required,
    /// Worth knowing.
    Warning,
    /// Worth trying when everything else is in order.
    Note,
}

/// One answered question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Check {
    /// The group that the policy names it by, such as `gdr-path`.
    pub group: String,
    /// The question, by the id of the finding that "no" would be.
    pub id: String,
    /// The question in words; "yes" is the good answer.
    pub question: String,
    /// The answer.
    pub outcome: Outcome,
    /// What it is about: a device, an argument, a file.
    pub subject: String,
    /// What was read, each with where from.
    pub evidence: Vec<String>,
    /// What to do if it is not met.
    pub fix: Option<String>,
    /// How much it matters here.
    pub severity: Severity,
    /// Where the failure is described.
    pub see: Option<String>,
}

/// Everything that checks look at.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    /// What should be.
    pub policy: &'a Policy,
    /// What is.
    pub facts: &'a Facts,
    /// The PCI functions.
    pub functions: &'a [RawFunction],
    /// GPUs, NICs and their paths.
    pub topology: &'a Topology,
    /// What would still have to be cleared.
    pub acs: &'a AcsPlan,
    /// What no plan needs.
    pub more: &'a More,
}

/// An answer before anybody has said how much it matters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) id: &'static str,
    pub(crate) outcome: Outcome,
    pub(crate) subject: String,
    pub(crate) evidence: Vec<String>,
    pub(crate) fix: Option<String>,
    /// Where this answer weighs less than its question does.
    pub(crate) severity: Option<Severity>,
}

impl Answer {
    /// A reader's finding; none if its id is not in the registry.
    pub(crate) fn of(finding: Finding) -> Option<Self> {
        let (_, entry) = registry::find(&finding.id)?;
        Some(Self {
            id: entry.id,
            outcome: finding.outcome,
            subject: finding.subject,
            evidence: finding.evidence,
            fix: finding.fix,
            severity: (finding.severity != Severity::Required).then_some(finding.severity),
        })
    }

    pub(crate) fn met(
        id: &'static str,
        subject: impl Into<String>,
        evidence: impl Into<String>,
    ) -> Self {
        Self {
            id,
            outcome: Outcome::Met,
            subject: subject.into(),
            evidence: vec![evidence.into()],
            fix: None,
            severity: None,
        }
    }

    pub(crate) fn failed(
        id: &'static str,
        subject: impl Into<String>,
        evidence: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self {
            id,
            outcome: Outcome::Failed,
            subject: subject.into(),
            evidence: vec![evidence.into()],
            fix: Some(fix.into()),
            severity: None,
        }
    }

    pub(crate) fn unknown(
        id: &'static str,
        subject: impl Into<String>,
        evidence: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self {
            id,
            outcome: Outcome::Unknown,
            subject: subject.into(),
            evidence: vec![evidence.into()],
            fix: Some(fix.into()),
            severity: None,
        }
    }
}

type Ask = fn(&Input) -> Vec<Answer>;

/// The groups that a policy names, and who answers.
const GROUPS: [(CheckGroup, Ask); 10] = [
    (CheckGroup::Cmdline, cmdline::ask),
    (CheckGroup::Iommu, iommu::ask),
    (CheckGroup::Acs, acs::ask),
    (CheckGroup::GdrPath, gdr::ask),
    (CheckGroup::Bar1, bar1::ask),
    (CheckGroup::Link, link::ask),
    (CheckGroup::NcclEnv, nccl::ask),
    (CheckGroup::Numa, numa::ask),
    (CheckGroup::Modules, modules::ask),
    (CheckGroup::Bandwidth, bandwidth::ask),
];

/// Asks what the policy requires and what it wants to be warned about.
#[must_use]
pub fn run(input: &Input) -> Vec<Check> {
    let verify = &input.policy.verify;
    let groups = verify.require.iter().map(|g| (*g, Severity::Required));
    let groups = groups.chain(verify.warn.iter().map(|g| (*g, Severity::Warning)));
    // the table alone has it reported
    let measured = measures(input.policy) && !named(verify, CheckGroup::Bandwidth);
    let groups = groups.chain(measured.then_some((CheckGroup::Bandwidth, Severity::Warning)));
    groups
        .flat_map(|(group, severity)| {
            ask(group, input)
                .into_iter()
                .map(move |answer| finish(group.as_str(), answer, severity))
        })
        .collect()
}

fn named(verify: &Verify, group: CheckGroup) -> bool {
    verify.require.contains(&group) || verify.warn.contains(&group)
}

/// Whether the policy wants perftest to be run.
#[must_use]
pub fn measures(policy: &Policy) -> bool {
    policy.verify.bandwidth.is_some() || named(&policy.verify, CheckGroup::Bandwidth)
}

/// Whether the answers of a group decide.
#[must_use]
pub fn requires(policy: &Policy, group: CheckGroup) -> bool {
    policy.verify.require.contains(&group)
}

/// Asks one group, whatever the policy says.
pub(crate) fn ask(group: CheckGroup, input: &Input) -> Vec<Answer> {
    match GROUPS.iter().find(|(g, _)| *g == group) {
        Some((_, ask)) => ask(input),
        None => vec![Answer::unknown(
            "check.unsupported",
            group.as_str(),
            "this version does not run this check",
            "take it out of `verify`",
        )],
    }
}

/// An answer with what the registry knows about its question.
pub(crate) fn finish(group: &str, answer: Answer, severity: Severity) -> Check {
    let Answer {
        id,
        outcome,
        subject,
        evidence,
        fix,
        severity: less,
    } = answer;
    let entry = registry::find(id).map(|(_, entry)| entry);
    Check {
        group: group.to_owned(),
        id: id.to_owned(),
        question: entry.map_or_else(String::new, |entry| entry.question.to_owned()),
        see: entry.map(registry::Entry::anchor),
        outcome,
        subject,
        evidence,
        fix,
        severity: match less {
            Some(less) if severity == Severity::Required => less,
            _ => severity,
        },
    }
}

/// Whether everything that is required is met.
#[must_use]
pub fn verdict(checks: &[Check]) -> Outcome {
    let required = || checks.iter().filter(|c| c.severity == Severity::Required);
    if required().any(|c| c.outcome == Outcome::Failed) {
        Outcome::Failed
    } else if required().any(|c| c.outcome == Outcome::Unknown) {
        Outcome::Unknown
    } else {
        Outcome::Met
    }
}

/// A line for each required check that is not met.
#[must_use]
pub fn unmet(checks: &[Check]) -> Vec<String> {
    let bad = checks
        .iter()
        .filter(|c| c.severity == Severity::Required && c.outcome != Outcome::Met);
    bad.map(|c| {
        format!(
            "{}: {} ({}): {}",
            c.group,
            c.id,
            c.subject,
            c.evidence.join("; ")
        )
    })
    .collect()
}
