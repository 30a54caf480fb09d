//! Coordinators that a policy may name and that this version does not speak.

use std::time::Duration;

use super::{Coordinator, Desk, Question, Refusal, Request, Standing};

/// A coordinator of which only the name is known. It refuses everything and asks nobody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsupported {
    /// openSUSE's rebootmgr.
    Rebootmgr,
    /// `/run/reboot-required`, for kured or unattended-upgrades.
    Sentinel,
}

impl Unsupported {
    fn refusal(self) -> Refusal {
        Refusal::denied(format!(
            "this version of gdr-agent does not speak to the coordinator \"{}\"; nothing was asked. \
             Reboot by hand (`systemctl reboot`) when the fleet allows it, or set [reboot] coordinator = \"logind\"",
            self.name()
        ))
    }
}

impl Coordinator for Unsupported {
    fn name(&self) -> &'static str {
        match self {
            Self::Rebootmgr => "rebootmgr",
            Self::Sentinel => "sentinel",
        }
    }

    fn can(&self) -> Result<(), Refusal> {
        Err(self.refusal())
    }

    fn request(&self, _request: &Request, _desk: &mut dyn Desk) -> Result<(), Refusal> {
        Err(self.refusal())
    }

    /// Nothing was ever asked for, so nothing is under way because of the agent.
    fn cancel(&self) -> Result<(), Refusal> {
        Ok(())
    }

    fn questions(&self, _request: &Request, ask: bool) -> Vec<Question> {
        vec![Question {
            who: self.name().to_owned(),
            asks: "whether it reboots the machine".to_owned(),
            no: ask.then(|| self.can().err().map(|r| r.to_string())),
        }]
    }

    fn poll(&self, _age: Duration) -> Result<Standing, Refusal> {
        Ok(Standing::Gone("nobody was asked for it".to_owned()))
    }

    fn release(&self) -> Result<(), Refusal> {
        Ok(())
    }
}
