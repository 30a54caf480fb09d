//! Who answers what. Whoever adds a question adds a line here, and its ids to the registry.

use gdr_policy::CheckGroup;

use super::{Seen, boot, gpus, host, logs, params, perftest, settings};
use crate::checks::{self, Answer};

pub(super) type Ask = fn(&Seen) -> Vec<Answer>;

/// The groups, and who answers.
pub(super) const ASKS: &[(&str, Ask)] = &[
    ("gdr-path", |seen| of_verify(CheckGroup::GdrPath, seen)),
    ("modules", |seen| of_verify(CheckGroup::Modules, seen)),
    ("bar1", |seen| of_verify(CheckGroup::Bar1, seen)),
    ("acs", |seen| of_verify(CheckGroup::Acs, seen)),
    ("iommu", |seen| of_verify(CheckGroup::Iommu, seen)),
    ("iommu", params::iommu),
    ("acs", params::override_param),
    ("link", |seen| of_verify(CheckGroup::Link, seen)),
    ("link", settings::ask),
    ("numa", |seen| of_verify(CheckGroup::Numa, seen)),
    ("nccl-env", |seen| of_verify(CheckGroup::NcclEnv, seen)),
    ("gpu", gpus::ask),
    ("kernel-log", host::kernel_log),
    ("host", host::memlock),
    ("host", host::fabric_manager),
    ("boot", boot::pending_reboot),
    ("process", host::process),
    ("nccl-log", logs::ask),
    ("perftest", perftest::ask),
];

/// What `verify` asks as well, in the same words.
fn of_verify(group: CheckGroup, seen: &Seen) -> Vec<Answer> {
    checks::ask(group, &seen.node)
}
