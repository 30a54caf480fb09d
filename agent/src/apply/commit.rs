//! Making it permanent. Every step can be done again, so that a power cut only delays it.

use super::engine::{Engine, EngineError};
use super::files::Kind;
use crate::machine::TxnId;
use crate::plan::{Action, Phase};
use crate::state::{self, COMMITTED, Committed};
use crate::sys::SysError;
use crate::world::World;

impl Engine<'_> {
    pub(super) fn commit(&mut self) -> Result<(), EngineError> {
        let record = self.record()?;
        let (policy, digest, id) = (
            record.work.policy.clone(),
            record.txn.digest.clone(),
            record.txn.id.clone(),
        );
        let trial = record.work.trial.clone();
        // The plan that was made before the trial is history: files may have changed since.
        let world = World::read(self.root, &policy)?;
        let plan = world.plan(
            &policy,
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
                Action::Write { path, bytes } => {
                    self.write_file(path, bytes.as_deref(), Kind::default())?;
                }
                Action::Menu => {
                    if let Some(trial) = &trial {
                        self.regenerate(trial)?;
                    }
                }
                Action::Record | Action::LoadModule(_) | Action::TrialEntry | Action::ClearAcs => {}
            }
        }
        self.remember(&digest, &id, policy)?;
        if trial.is_some() {
            self.remove_hook()?;
            self.clean_env()?;
        }
        Ok(())
    }

    fn remember(
        &mut self,
        digest: &str,
        id: &TxnId,
        policy: gdr_policy::Policy,
    ) -> Result<(), EngineError> {
        let committed = Committed {
            format: 1,
            digest: digest.to_owned(),
            txn: id.to_string(),
            policy,
        };
        self.write_file(
            COMMITTED,
            Some(&state::committed_bytes(&committed)),
            Kind::default(),
        )
    }
}
