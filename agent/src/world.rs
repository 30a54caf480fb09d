//! Everything that was read, held together, so that plan, checks and reports see the same instant.

use gdr_policy::{AcsScope, Policy};

use crate::acs::with_selectors;
use crate::checks::{self, Check};
use crate::facts::Facts;
use crate::facts::pci::{Depth, conditions, functions};
use crate::pci::RawFunction;
use crate::pci::clear::{self, AcsPlan, Conditions};
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
    /// What the platform says about writing ACS.
    pub conditions: Conditions,
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
        let functions = with_selectors(&policy.devices, |selectors| {
            let depth = match policy.acs.scope {
                AcsScope::All => Depth::Everything,
                _ => Depth::Topology(selectors),
            };
            functions(root, &depth)
        })?;
        Ok(Self {
            facts: Facts::read(root),
            functions,
            conditions: conditions(root),
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
            let request = crate::acs::request(policy);
            let mut plan = clear::plan(tree, topology, request, self.conditions);
            let release = self.facts.running.release.get().map(String::as_str);
            crate::acs::ask_kernel(&mut plan, tree, policy, self.conditions, release);
            plan
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
            functions: &self.functions,
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
        let topology = with_selectors(&policy.devices, |selectors| Topology::of(&tree, selectors));
        use_it(&tree, &topology)
    }
}
