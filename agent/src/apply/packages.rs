//! Installing the package that brings nvidia-peermem. It rolls forward: nothing takes a package out again.

use gdr_policy::Policy;

use super::engine::{Engine, EngineError};
use crate::facts::gdr::PEERMEM;
use crate::package::{self, Problem};
use crate::sys::SysError;
use crate::world::World;

impl Engine<'_> {
    /// Installs what is missing, if anything is, and proves that the module is there then. Says whether it did.
    pub(super) fn install_packages(
        &mut self,
        world: &mut World,
        policy: &Policy,
    ) -> Result<bool, EngineError> {
        let decision = world.decide(policy);
        if package::need(policy, &world.facts, &decision).0.is_empty() {
            return Ok(false);
        }
        world.survey(self.root, policy);
        let Some(mut install) = self.surveyed(world)? else {
            return Ok(false);
        };
        (self.progress.0)("fetching the package manager's index");
        let mut log = package::refresh(self.root, install.manager).map_err(|e| self.failed(&e))?;
        if !log.is_empty() {
            world.survey(self.root, policy);
            match self.surveyed(world)? {
                Some(newer) => install = newer,
                None => return Ok(false),
            }
        }
        self.amend("packages", |_, work| {
            work.packages.extend(install.specs.iter().cloned());
        })?;
        let report = self.progress.0;
        let done = package::install(self.root, &install, report);
        log.push_str(&done.log);
        let kept = self.journal.save_log("packages", log.as_bytes())?;
        done.result.map_err(|mut problem| {
            problem.message = format!("{}; all that was said is in {kept}", problem.message);
            self.failed(&problem)
        })?;
        self.prove(policy, &install)?;
        Ok(true)
    }

    /// What is to be installed; what is in the way is an error here, since only what can be done is begun.
    fn surveyed(&self, world: &World) -> Result<Option<package::Install>, EngineError> {
        let Some(survey) = &world.packages else {
            return Ok(None);
        };
        match survey.problems.first() {
            Some(problem) => Err(self.failed(problem)),
            None => Ok(survey.install.clone()),
        }
    }

    /// A package that was installed is no proof: the module has to be there, for this kernel, and register.
    fn prove(&self, policy: &Policy, install: &package::Install) -> Result<(), EngineError> {
        let world = World::read_for(self.root, policy, self.record()?.work.bake)?;
        let decision = world.decide(policy);
        let lacks = decision
            .modules
            .iter()
            .find(|module| install.kernels.contains(&module.kernel));
        let Some(lacks) = lacks else { return Ok(()) };
        let (kernel, finding) = (&lacks.kernel, &lacks.finding);
        let message = format!(
            "{} is installed, and kernel {kernel} has no {PEERMEM} that would work: {finding}",
            install.specs.join(", ")
        );
        Err(self.failed(&Problem {
            id: "package.no-module",
            message,
            fix: "`gdr-agent plan` says why; the package stays installed".to_owned(),
        }))
    }

    fn failed(&self, problem: &Problem) -> EngineError {
        SysError::Refused {
            action: "install packages in",
            path: self.root.path().into(),
            why: problem.to_string(),
        }
        .into()
    }
}
