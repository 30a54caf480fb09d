//! GRUB's menu: regenerated, judged, and only then installed.

use std::time::Duration;

use grub_config_parser::cmdline::CommandLine;

use super::engine::{Engine, EngineError};
use super::files::Kind;
use crate::facts::Facts;
use crate::journal::Trial;
use crate::plan::edit_menu;
use crate::sys::process;

/// os-prober looks at every disk.
const LIMIT: Duration = Duration::from_secs(300);

impl Engine<'_> {
    /// Makes the menu anew from the files as they are now, and installs it if its default entry
    /// boots what was tried.
    pub(super) fn regenerate(&mut self, trial: &Trial) -> Result<(), EngineError> {
        let facts = Facts::read(self.root);
        let boot = &facts.boot;
        let Some(path) = boot.in_grub_dir("grub.cfg") else {
            return Err(self
                .refused("/boot/grub", "GRUB's directory is gone")
                .into());
        };
        let bytes = match self.mkconfig(&facts)? {
            Some(bytes) => bytes,
            // In an image grub-mkconfig sees the builder's disks and writes no Linux entry: there
            // the entries that it once wrote are edited.
            None => {
                let old = boot.files.grub_cfg.clone().unwrap_or_default();
                let (from, to) = (
                    CommandLine::parse(&trial.known_good),
                    CommandLine::parse(&trial.target),
                );
                edit_menu(&old, &from, &to).map_err(|why| self.refused(&path, &why))?
            }
        };
        self.check_script(&path, &bytes, &facts)?;
        self.default_is(&path, &bytes, trial, &facts)?;
        self.write_file(
            &path,
            Some(&bytes),
            Kind {
                boot: true,
                generated: true,
            },
        )
    }

    /// Checks that the menu, with the entries as they are now, boots by default what was tried.
    pub(super) fn check_menu(&self, trial: &Trial) -> Result<(), EngineError> {
        let facts = Facts::read(self.root);
        let Some((path, bytes)) = facts
            .boot
            .in_grub_dir("grub.cfg")
            .zip(facts.boot.files.grub_cfg.as_ref())
        else {
            return Err(self.refused("/boot", "GRUB's menu is gone").into());
        };
        self.default_is(&path, bytes, trial, &facts)
    }

    /// What grub-mkconfig makes of the files as they are now; `None` where it cannot be run.
    pub(super) fn mkconfig(&self, facts: &Facts) -> Result<Option<Vec<u8>>, EngineError> {
        let program = facts.boot.mkconfig.get();
        let Some(program) = program.filter(|_| self.root.is_live()) else {
            return Ok(None);
        };
        Ok(Some(process::run_ok(self.root, &[program], LIMIT)?.stdout))
    }

    fn default_is(
        &self,
        path: &str,
        bytes: &[u8],
        trial: &Trial,
        facts: &Facts,
    ) -> Result<(), EngineError> {
        let menu =
            crate::facts::menu_of(bytes, &facts.boot).map_err(|why| self.refused(path, &why))?;
        let entry = menu.default.and_then(|at| menu.entries.get(at));
        let Some(entry) = entry else {
            return Err(self
                .refused(path, "the new menu has no default entry")
                .into());
        };
        let target = CommandLine::parse(&trial.target);
        if entry.cmdline.equivalent(&target) {
            return Ok(());
        }
        let why = format!(
            "the new menu would boot `{}`, and what was tried is `{}`",
            entry.cmdline, trial.target
        );
        Err(self.refused(path, &why).into())
    }
}
