//! Making it permanent. Every step can be done again, so that a power cut only delays it.

use grub_config_parser::cmdline::{Arg, CommandLine};

use super::engine::{Engine, EngineError};
use super::files::Kind;
use crate::journal::Trial;
use crate::machine::TxnId;
use crate::plan::{Action, Edits, Phase};
use crate::state::{self, COMMITTED, Committed};
use crate::sys::SysError;
use crate::world::{Ports, World};

impl Engine<'_> {
    pub(super) fn commit(&mut self) -> Result<(), EngineError> {
        let record = self.record()?;
        let (policy, digest, id) = (
            record.work.policy.clone(),
            record.txn.digest.clone(),
            record.txn.id.clone(),
        );
        let trial = record.work.trial.clone();
        let in_image = record.work.ends_in_image();
        // The plan that was made before the trial is history: files may have changed since.
        let world = World::read_for(self.root, &policy, in_image)?;
        let ports = world.ports(&policy);
        let plan = world.plan(
            &policy,
            &ports,
            &digest,
            id.as_str(),
            trial.as_ref().map(|t| t.target.as_str()),
        );
        if let Some(refusal) = plan.refusals.first() {
            let why = format!("{}: {}", refusal.id, refusal.message);
            return Err(SysError::Refused {
                action: "commit to",
                path: self.root.path().into(),
                why,
            }
            .into());
        }
        for step in plan.steps.iter().filter(|s| s.phase == Phase::Commit) {
            match &step.action {
                Action::Write { path, bytes, boot } => {
                    let kind = Kind {
                        boot: *boot,
                        generated: false,
                    };
                    self.write_file(path, bytes.as_deref(), kind)?;
                }
                Action::SetEnv { name, value } => self.set_env(name, value)?,
                Action::CheckMenu => {
                    if let Some(trial) = &trial {
                        self.check_menu(trial)?;
                    }
                }
                Action::Menu => {
                    if let Some(trial) = &trial {
                        self.regenerate(trial)?;
                    }
                }
                Action::Record
                | Action::Install(_)
                | Action::LoadModule(_)
                | Action::UnloadModule(_)
                | Action::TrialEntry
                | Action::ClearAcs => {}
            }
        }
        self.keep_template_newer()?;
        let added = added(&world, &ports, &policy, trial.as_ref());
        self.remember(&digest, &id, policy, added)?;
        if trial.is_some() {
            self.remove_hook()?;
            self.clean_env()?;
        }
        self.sweep()
    }

    fn remember(
        &mut self,
        digest: &str,
        id: &TxnId,
        policy: gdr_policy::Policy,
        added: Vec<String>,
    ) -> Result<(), EngineError> {
        let committed = Committed {
            format: 1,
            digest: digest.to_owned(),
            txn: id.to_string(),
            policy,
            added,
        };
        self.write_file(
            COMMITTED,
            Some(&state::committed_bytes(&committed)),
            Kind::default(),
        )
    }
}

/// The policy's arguments that this agent put there, now or for an earlier policy.
fn added(
    world: &World,
    ports: &Ports<'_>,
    policy: &gdr_policy::Policy,
    trial: Option<&Trial>,
) -> Vec<String> {
    let before = trial.map(|t| CommandLine::parse(&t.known_good));
    let earlier = world.committed.as_ref().map(|c| c.added.as_slice());
    let mut set = Edits::of(policy, &world.facts, &ports.acs).set;
    set.retain(|arg| {
        earlier.unwrap_or_default().contains(arg)
            || before
                .as_ref()
                .is_some_and(|line| !line.contains_exact(&Arg::new(arg)))
    });
    set
}
