//! No coordinator: a person reboots the machine, the agent never does.

use std::time::Duration;

use super::{Coordinator, Desk, Question, Refusal, Request, Standing};

/// `coordinator = "none"`.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoCoordinator;

fn by_hand() -> Refusal {
    Refusal::denied(
        "the policy names no coordinator, so the agent reboots nothing; reboot by hand \
         (`systemctl reboot`) when it suits, or set [reboot] coordinator = \"logind\"",
    )
}

impl Coordinator for NoCoordinator {
    fn name(&self) -> &'static str {
        "none"
    }

    fn can(&self) -> Result<(), Refusal> {
        Err(by_hand())
    }

    fn request(&self, _request: &Request, _desk: &mut dyn Desk) -> Result<(), Refusal> {
        Err(by_hand())
    }

    fn questions(&self, _request: &Request, ask: bool) -> Vec<Question> {
        vec![Question {
            who: self.name().to_owned(),
            asks: "nobody; whoever reboots the machine tries the new command line".to_owned(),
            no: ask.then_some(None),
        }]
    }

    /// Whoever reboots the machine does so some day.
    fn poll(&self, _age: Duration) -> Result<Standing, Refusal> {
        Ok(Standing::Coming(
            "somebody is to reboot the machine".to_owned(),
        ))
    }

    /// Nothing was ever asked for, so nothing is under way because of the agent.
    fn cancel(&self) -> Result<(), Refusal> {
        Ok(())
    }

    fn release(&self) -> Result<(), Refusal> {
        Ok(())
    }
}
