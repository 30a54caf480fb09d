//! Everything that was read, held together, so that plan, checks and reports see the same instant.

use gdr_policy::{AcsScope, Policy, Selector};

use crate::checks::{self, Check};
use crate::facts::Facts;
use crate::facts::pci::{Depth, functions};
use crate::pci::RawFunction;
use crate::pci::clear::{self, AcsPlan, Conditions, Lockdown};
use crate::pci::select::Selectors;
use crate::pci::topology::Topology;
use crate::pci::tree::Tree;
use crate::plan::{self, Plan};
use crate::state::{self, Committed, Quarantine, StateError};
use crate::sys::Root;

/// What is, and what the agent remembers.
#[derive(Debug)]
pub struct World {
    /// Facts without PCI.
    pub facts: Facts,
    /// PCI functions.
    pub functions: Vec<RawFunction>,
    /// The policy that boots keep.
    pub committed: Option<Committed>,
    /// The policies that failed.
    pub quarantine: Quarantine,
}

impl World {
    /// Reads a root, PCI as far as the policy's selectors and scope ask for it.
    ///
    /// # Errors
    /// A state file of the agent is there and cannot be used, or the PCI functions cannot be listed.
    pub fn read(root: &Root, policy: &Policy) -> Result<Self, StateError> {
        let (gpu, nic) = (matcher(&policy.devices.gpu), matcher(&policy.devices.nic));
        let depth = match policy.acs.scope {
            AcsScope::All => Depth::Everything,
            _ => Depth::Topology(Selectors {
                gpu: &gpu,
                nic: &nic,
            }),
        };
        Ok(Self {
            facts: Facts::read(root),
            functions: functions(root, &depth)?,
            committed: state::committed(root)?,
            quarantine: state::quarantine(root)?,
        })
    }

    /// Paths and ports, by a policy's selectors.
    #[must_use]
    pub fn topology(&self, policy: &Policy) -> Topology {
        self.with_tree(policy, |_, topology| topology.clone())
    }

    /// What a policy would do about ACS.
    #[must_use]
    pub fn acs(&self, policy: &Policy) -> AcsPlan {
        self.with_tree(policy, |tree, topology| {
            clear::plan(
                tree,
                topology,
                crate::acs::request(policy),
                self.conditions(),
            )
        })
    }

    /// The plan for a policy. `txn` names the transaction in the trial's marker; `committing` is the
    /// command line that was tried, when half of the commit may be there already.
    #[must_use]
    pub fn plan(&self, policy: &Policy, digest: &str, txn: &str, committing: Option<&str>) -> Plan {
        let acs = self.acs(policy);
        let quarantined = self.quarantine.policies.iter().find(|q| q.digest == digest);
        plan::plan(&plan::Input {
            policy,
            digest,
            facts: &self.facts,
            acs: &acs,
            committed: self.committed.as_ref(),
            quarantined: quarantined.filter(|_| committing.is_none()),
            txn,
            committing,
        })
    }

    /// The policy's checks.
    #[must_use]
    pub fn checks(&self, policy: &Policy) -> Vec<Check> {
        let topology = self.topology(policy);
        let acs = self.acs(policy);
        checks::run(&checks::Input {
            policy,
            facts: &self.facts,
            functions: &self.functions,
            topology: &topology,
            acs: &acs,
        })
    }

    /// Hands the tree, which borrows the functions, to `use_it`.
    pub fn with_tree<T>(
        &self,
        policy: &Policy,
        use_it: impl FnOnce(&Tree<'_>, &Topology) -> T,
    ) -> T {
        let tree = Tree::build(&self.functions);
        let (gpu, nic) = (matcher(&policy.devices.gpu), matcher(&policy.devices.nic));
        let topology = Topology::of(
            &tree,
            Selectors {
                gpu: &gpu,
                nic: &nic,
            },
        );
        use_it(&tree, &topology)
    }

    /// What the platform says about writing ACS.
    #[must_use]
    pub fn conditions(&self) -> Conditions {
        let virtualisation = &self.facts.virtualisation;
        Conditions {
            in_vm: virtualisation.get().map(Option::is_some),
            lockdown: match (
                &self.facts.security.lockdown.value,
                &self.facts.security.lockdown.unknown,
            ) {
                (Some(mode), _) => match mode.as_str() {
                    "none" => Lockdown::None,
                    "integrity" => Lockdown::Integrity,
                    "confidentiality" => Lockdown::Confidentiality,
                    _ => Lockdown::Unknown,
                },
                // A kernel without the lockdown module forbids nothing.
                (None, None) => Lockdown::None,
                (None, Some(_)) => Lockdown::Unknown,
            },
            live: self.facts.live,
        }
    }
}

fn matcher(selectors: &[Selector]) -> impl Fn(u16, u16, u16) -> bool {
    |vendor, device, class| selectors.iter().any(|s| s.matches(vendor, device, class))
}
