//! Everything that was read, held together, so that plan, checks and reports see the same instant.

use gdr_policy::{AcsScope, Policy};

use crate::acs::with_selectors;
use crate::checks::{self, Check};
use crate::facts::pci::{Depth, conditions, functions};
use crate::facts::{Facts, More};
use crate::measure::{self, Measured};
use crate::package::{self, Survey};
use crate::pci::RawFunction;
use crate::pci::clear::{self, AcsPlan, Conditions};
use crate::pci::topology::Topology;
use crate::pci::tree::Tree;
use crate::plan::{self, Decision, Plan};
use crate::state::{self, Committed, Quarantine, StateError};
use crate::sys::{Ask, Root};

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
    /// What was found out about packages; none unless asked for, and where none is needed.
    pub packages: Option<Survey>,
    /// What no plan needs; nothing where it was not read.
    pub more: More,
}

impl World {
    /// As [`World::read`], of an image that is being built if `bake`.
    ///
    /// # Errors
    /// As [`World::read`].
    pub fn read_for(root: &Root, policy: &Policy, bake: bool) -> Result<Self, StateError> {
        let mut world = Self::read(root, policy)?;
        world.facts.set_bake(bake);
        Ok(world)
    }

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
            packages: None,
            more: More::default(),
        })
    }

    /// Asks the package manager for the package that is needed, if one is. No program is started otherwise.
    pub fn survey(&mut self, root: &Root, policy: &Policy) {
        let decision = self.decide(policy);
        self.packages = package::survey(root, policy, &self.facts, &decision);
    }

    /// How NIC drivers reach GPU memory.
    #[must_use]
    pub fn decide(&self, policy: &Policy) -> Decision {
        plan::decide(&plan::gdr::Input {
            policy,
            facts: &self.facts,
            functions: &self.functions,
        })
    }

    /// The PCI tree and what a policy makes of it, worked out once for all who ask.
    #[must_use]
    pub fn ports(&self, policy: &Policy) -> Ports<'_> {
        let tree = Tree::build(&self.functions);
        let topology = with_selectors(&policy.devices, |selectors| Topology::of(&tree, selectors));
        let request = crate::acs::request(policy);
        let mut acs = clear::plan(&tree, &topology, request, self.conditions);
        let release = self.facts.running.release.get().map(String::as_str);
        crate::acs::ask_kernel(&mut acs, &tree, policy, self.conditions, release);
        Ports {
            tree,
            topology,
            acs,
        }
    }

    /// The plan for a policy. `txn` names the transaction in the trial's marker; `committing` is the
    /// command line that was tried, when half of the commit may be there already.
    #[must_use]
    pub fn plan(
        &self,
        policy: &Policy,
        ports: &Ports<'_>,
        digest: &str,
        txn: &str,
        committing: Option<&str>,
    ) -> Plan {
        let quarantined = self.quarantine.policies.iter().find(|q| q.digest == digest);
        plan::plan(&plan::Input {
            policy,
            digest,
            facts: &self.facts,
            functions: &self.functions,
            acs: &ports.acs,
            packages: self.packages.as_ref(),
            committed: self.committed.as_ref(),
            quarantined: quarantined.filter(|_| committing.is_none()),
            txn,
            committing,
        })
    }

    /// The policy's checks.
    #[must_use]
    pub fn checks(&self, policy: &Policy) -> Vec<Check> {
        let ports = self.ports(policy);
        checks::run(&checks::Input {
            policy,
            facts: &self.facts,
            functions: &self.functions,
            topology: &ports.topology,
            acs: &ports.acs,
            more: &self.more,
        })
    }

    /// Has perftest run where the policy wants that, in time for a trial's deadline. `tell` hears of each test.
    pub fn measure(
        &self,
        root: &Root,
        policy: &Policy,
        on_trial: bool,
        tell: &dyn Fn(&str),
    ) -> Option<Vec<Measured>> {
        let topology = || self.ports(policy).topology;
        let until = measure::until(root, policy, on_trial);
        checks::measures(policy)
            .then(|| measure::all(root, policy, &topology(), until, on_trial, tell))
    }

    /// Reads what checks look at beyond what plans are made from. With `ask`, nvidia-smi is run.
    pub fn read_more(&mut self, root: &Root, policy: &Policy, ask: Option<Ask<'_>>) {
        let (more, env) = More::read(root, &self.functions, &self.ports(policy).topology, ask);
        self.more = more;
        self.facts.nccl_env = env;
    }
}

/// The PCI tree and what a policy makes of it.
#[derive(Debug)]
pub struct Ports<'w> {
    /// Which bridge each function hangs from.
    pub tree: Tree<'w>,
    /// Paths and ports, by the policy's selectors.
    pub topology: Topology,
    /// What the policy would do about ACS.
    pub acs: AcsPlan,
}
