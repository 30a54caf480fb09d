//! Putting things back, newest first. What somebody else has changed since is left alone and told.

use grub_config_parser::cmdline::{Arg, CommandLine};

use super::arm::grub_dir;
use super::engine::{Engine, EngineError};
use crate::facts::{ENTRIES, Facts, KERNEL_CMDLINE};
use crate::journal::{DIR, Image, Intent, Trial, Work, image_of};
use crate::plan;
use crate::sys::{boot_write, module, write};

impl Engine<'_> {
    /// Returns the files that were left alone, with why.
    pub(super) fn undo(&mut self) -> Result<Vec<String>, EngineError> {
        let record = self.record()?;
        let (work, id) = (record.work.clone(), record.txn.id.clone());
        let on_trial = record.txn.on_trial;
        let mut conflicts = Vec::new();
        let mut regenerate = None;
        for intent in work.intents.iter().rev() {
            match self.put_back(intent)? {
                Outcome::Done => {}
                Outcome::Regenerate => regenerate = Some(intent.path.clone()),
                Outcome::Conflict if self.unpick(intent)? => conflicts.push(format!(
                    "{} was changed by somebody else since: only the policy's arguments were taken out",
                    intent.path
                )),
                Outcome::Conflict => {
                    let old = intent
                        .blob
                        .as_ref()
                        .map_or("it was not there before".to_owned(), |b| {
                            format!("its old content is {DIR}/tx/{id}/{b}")
                        });
                    conflicts.push(format!(
                        "{} was changed by somebody else since and was left alone; {old}",
                        intent.path
                    ));
                }
            }
        }
        if let Some(path) = regenerate {
            conflicts.extend(self.regenerate_old(&path)?);
        }
        for intent in work.env.iter().rev() {
            conflicts.extend(self.put_env_back(intent)?);
        }
        if let Some(trial) = &work.trial {
            self.clean_new_entries(trial, &work)?;
            self.remove_hook()?;
            self.clean_env()?;
        }
        self.keep_template_newer()?;
        self.sweep()?;
        conflicts.extend(super::acs::restore(self.root, &work.policy)?);
        // Where a reboot follows, it unloads them; the units that run there may not.
        let modules = work.modules.iter().filter(|_| !on_trial);
        for name in modules {
            // Somebody may use it by now; that is no reason to keep the rest.
            if let Err(e) = module::unload(self.root, name) {
                conflicts.push(format!("module {name} stays loaded: {e}"));
            }
        }
        for name in work.unloaded.iter().filter(|_| !on_trial) {
            let failed = match module::load(self.root, name) {
                Ok(Ok(())) => continue,
                Ok(Err(refused)) => refused.stderr.trim().to_owned(),
                Err(e) => e.to_string(),
            };
            conflicts.push(format!("module {name} is not loaded again: {failed}"));
        }
        Ok(conflicts)
    }

    /// Entries of kernels that were installed meanwhile have what the trial's or the committed line
    /// gave them.
    fn clean_new_entries(&self, trial: &Trial, work: &Work) -> Result<(), EngineError> {
        let committed = work.intents.iter().any(|i| i.path.starts_with(ENTRIES));
        let added = if committed { added(trial) } else { Vec::new() };
        for (path, bytes) in Facts::read(self.root).boot.files.entries {
            if work.entries.contains(&path) {
                continue;
            }
            if let Some(new) = plan::entry_without(&bytes, &added) {
                boot_write::replace(self.root, &path, &new, None)?;
            }
        }
        Ok(())
    }

    /// Takes the policy's arguments out of an entry that somebody else has changed since, as grubby and
    /// grub2-mkconfig do, and leaves the rest.
    fn unpick(&self, intent: &Intent) -> Result<bool, EngineError> {
        let record = self.record()?;
        let (Some(trial), true) = (&record.work.trial, intent.path.starts_with(ENTRIES)) else {
            return Ok(false);
        };
        let Some(bytes) = self.root.read_if_there(&intent.path)? else {
            return Ok(true);
        };
        let Some(new) = plan::entry_without(&bytes, &added(trial)) else {
            return Ok(false);
        };
        boot_write::replace(self.root, &intent.path, &new, None)?;
        Ok(true)
    }

    /// Red Hat's kernel-install runs grub2-mkconfig, which overwrites `/etc/kernel/cmdline`, where that is
    /// older than `/etc/default/grub`.
    pub(super) fn keep_template_newer(&self) -> Result<(), EngineError> {
        let [template, _] = KERNEL_CMDLINE;
        let intents = &self.record()?.work.intents;
        if intents.iter().any(|intent| intent.path == plan::MAIN) {
            write::touch(self.root, template)?;
        }
        Ok(())
    }

    /// Removes what interrupted writes have left beside the files of this transaction.
    pub(super) fn sweep(&self) -> Result<(), EngineError> {
        let mut dirs: Vec<String> = Vec::new();
        for intent in &self.record()?.work.intents {
            if let Some((dir, _)) = intent.path.rsplit_once('/')
                && !dirs.iter().any(|known| known == dir)
            {
                write::sweep(self.root, dir)?;
                dirs.push(dir.to_owned());
            }
        }
        Ok(())
    }

    fn put_back(&self, intent: &Intent) -> Result<Outcome, EngineError> {
        let (now, bytes) = image_of(self.root, &intent.path)?;
        if now.same_bytes(&intent.pre) {
            return Ok(Outcome::Done);
        }
        if !now.same_bytes(&intent.post) {
            // Our block can be taken out of somebody's newer file.
            let ours = bytes
                .as_deref()
                .is_some_and(|b| String::from_utf8_lossy(b).contains(plan::HOOK_BEGIN));
            return Ok(match (ours, intent.generated) {
                (true, _) => Outcome::Done,
                (_, true) => Outcome::Regenerate,
                _ => Outcome::Conflict,
            });
        }
        match (&intent.pre, &intent.blob) {
            (Image::File { attributes, .. }, Some(blob)) => {
                let old = self.journal.blob(blob)?;
                if intent.boot {
                    boot_write::replace(self.root, &intent.path, &old, Some(*attributes))?;
                } else {
                    write::replace(self.root, &intent.path, &old, Some(*attributes))?;
                }
            }
            _ if intent.boot => boot_write::remove(self.root, &intent.path)?,
            _ => write::remove(self.root, &intent.path)?,
        }
        Ok(Outcome::Done)
    }

    /// Takes our block out of custom.cfg, whatever else is in it by now.
    pub(super) fn remove_hook(&mut self) -> Result<(), EngineError> {
        let path = format!("{}/custom.cfg", grub_dir(self.root)?);
        let intents = &self.record()?.work.intents;
        if let Some(intent) = intents.iter().find(|i| i.path == path).cloned() {
            self.put_back(&intent)?;
        }
        let Some(text) = self.root.read_if_there(&path)? else {
            return Ok(());
        };
        match plan::without_hook(&text) {
            Some(rest) if rest == text => {}
            Some(rest) => boot_write::replace(self.root, &path, &rest, None)?,
            None => boot_write::remove(self.root, &path)?,
        }
        Ok(())
    }

    /// The menu was regenerated by somebody since: its old bytes may name kernels that are gone, so
    /// it is made anew from the files that were just put back.
    pub(super) fn regenerate_old(&self, path: &str) -> Result<Option<String>, EngineError> {
        let facts = Facts::read(self.root);
        let Some(bytes) = self.mkconfig(&facts)? else {
            return Ok(Some(format!(
                "{path} was changed by somebody else since and was left alone; run `update-grub` on the node"
            )));
        };
        self.check_script(path, &bytes, &facts)?;
        boot_write::replace(self.root, path, &bytes, None)?;
        Ok(None)
    }
}

/// What the trial had and the known-good line had not.
fn added(trial: &Trial) -> Vec<Arg> {
    new_args(&trial.known_good, &trial.target)
}

/// The arguments of the second line that the first has not.
pub(super) fn new_args(before: &str, after: &str) -> Vec<Arg> {
    let (before, after) = (CommandLine::parse(before), CommandLine::parse(after));
    let new = after
        .args()
        .iter()
        .filter(|arg| !before.contains_exact(arg));
    new.cloned().collect()
}

enum Outcome {
    Done,
    Regenerate,
    Conflict,
}
