//! Before the reboot: live changes, the hook and the trial entry, room in grubenv.

use std::time::Duration;

use super::engine::{Engine, EngineError};
use super::files::Kind;
use crate::facts::Facts;
use crate::journal::Trial;
use crate::machine::TxnId;
use crate::plan::{self, Action, Phase};
use crate::sys::{SysError, boot_write, module, process};
use crate::world::World;

impl Engine<'_> {
    pub(super) fn stage(&mut self) -> Result<(), EngineError> {
        let record = self.record()?;
        let (policy, digest, id) = (
            record.work.policy.clone(),
            record.txn.digest.clone(),
            record.txn.id.clone(),
        );
        let trial = record.work.trial.clone();
        let (bakes, commits) = (record.work.bake, record.work.commits_in_image());
        let mut world = World::read_for(self.root, &policy, bakes)?;
        if self.install_packages(&mut world, &policy)? {
            world = World::read_for(self.root, &policy, bakes)?;
        }
        let ports = world.ports(&policy);
        let plan = world.plan(&policy, &ports, &digest, id.as_str(), None);
        for step in plan.steps.iter().filter(|s| s.phase == Phase::Live) {
            match &step.action {
                Action::LoadModule(name) => self.load_module(name, &world)?,
                Action::UnloadModule(name) => self.unload_module(name)?,
                _ => {}
            }
        }
        match trial {
            // The command line is committed next: there is no trial to write an entry for.
            Some(_) if commits => Ok(()),
            Some(trial) => self.write_trial(&world, &trial, id.as_str()),
            None if bakes => Ok(()),
            // Without a trial boot the volatile changes are made now, to be judged now.
            None => super::acs::clear_for(self.root, &ports),
        }
    }

    fn load_module(&mut self, name: &str, world: &World) -> Result<(), EngineError> {
        self.amend("module", |_, work| work.modules.push(name.to_owned()))?;
        module::load(self.root, name)?.map_err(|refused| {
            let why = super::modules::why(&refused, &world.facts);
            SysError::Process {
                program: format!("modprobe -- {name}"),
                why,
            }
            .into()
        })
    }

    fn unload_module(&mut self, name: &str) -> Result<(), EngineError> {
        self.amend("module unloaded", |_, work| {
            work.unloaded.push(name.to_owned());
        })?;
        Ok(module::unload(self.root, name)?)
    }

    fn write_trial(&mut self, world: &World, trial: &Trial, id: &str) -> Result<(), EngineError> {
        let boot = &world.facts.boot;
        let (Some(custom), Some(env)) =
            (boot.in_grub_dir("custom.cfg"), boot.in_grub_dir("grubenv"))
        else {
            return Err(self
                .refused("/boot/grub", "GRUB's directory is gone")
                .into());
        };
        // Room first: afterwards every change of grubenv keeps the place and length of everything.
        let old = self.root.read(&env)?;
        let reserved = plan::env_with(&old, TxnId::NONE, TxnId::NONE)
            .map_err(|why| self.refused(&env, &why))?;
        if reserved != old {
            // Settled with custom.cfg, which GRUB reads nothing of these without.
            boot_write::overwrite_only(self.root, &env, &old, &reserved)?;
        }
        let block = plan::hook_block(trial, id).map_err(|why| self.refused(&custom, &why))?;
        let base = boot
            .files
            .custom_cfg
            .as_deref()
            .and_then(plan::without_hook)
            .unwrap_or_default();
        let mut text = base;
        if !text.is_empty() && !text.ends_with(b"\n") {
            text.push(b'\n');
        }
        text.extend_from_slice(block.as_bytes());
        self.check_script(&custom, &text, &world.facts)?;
        self.write_file(
            &custom,
            Some(&text),
            Kind {
                boot: true,
                generated: false,
            },
        )
    }

    /// A script with an error would be skipped whole by GRUB, the hook with it.
    pub(super) fn check_script(
        &self,
        path: &str,
        text: &[u8],
        facts: &Facts,
    ) -> Result<(), EngineError> {
        if let Err(e) = grub_config_parser::cfg::Script::parse(text) {
            return Err(self
                .refused(
                    path,
                    &format!("line {} would be no GRUB script: {}", e.line, e.message),
                )
                .into());
        }
        let Some(program) = facts
            .boot
            .script_check
            .get()
            .filter(|_| self.root.is_live())
        else {
            return Ok(());
        };
        let temp = "/var/lib/gdr-agent/check.cfg";
        crate::sys::write::replace(self.root, temp, text, None)?;
        let checked = process::run_ok(self.root, &[program, temp], Duration::from_secs(30));
        crate::sys::write::remove(self.root, temp)?;
        checked.map(|_| ()).map_err(EngineError::from)
    }

    pub(super) fn refused(&self, path: &str, why: &str) -> SysError {
        SysError::Refused {
            action: "write",
            path: self.root.outside(path),
            why: why.to_owned(),
        }
    }
}
