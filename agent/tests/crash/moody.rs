//! A coordinator with moods.

use std::cell::Cell;
use std::time::Duration;

use gdr_agent::reboot::{Coordinator, Desk, Question, Refusal, Request, Standing};

use crate::chance::Mood;

/// What it was asked, and what it said.
#[derive(Debug)]
pub struct Moody {
    pub mood: Mood,
    pub asked: Cell<u32>,
    /// How often its yes was written down.
    pub granted: Cell<u32>,
}

impl Moody {
    pub fn new(mood: Mood) -> Self {
        Self {
            mood,
            asked: Cell::new(0),
            granted: Cell::new(0),
        }
    }
}

impl Coordinator for Moody {
    fn name(&self) -> &'static str {
        "logind"
    }

    fn can(&self) -> Result<(), Refusal> {
        Ok(())
    }

    fn request(&self, _: &Request, desk: &mut dyn Desk) -> Result<(), Refusal> {
        self.asked.set(self.asked.get() + 1);
        let text = "not today".to_owned();
        match self.mood {
            Mood::Yes | Mood::Forgets => {
                desk.granted().map_err(|text| Refusal::Busy { text })?;
                self.granted.set(self.granted.get() + 1);
                Ok(())
            }
            Mood::Lies => Ok(()),
            Mood::No => Err(Refusal::Denied {
                by: Vec::new(),
                text,
            }),
            Mood::Later => Err(Refusal::Busy { text }),
            Mood::Silent => Err(Refusal::Unreachable { text }),
            Mood::Lost => Err(Refusal::Protocol { text }),
        }
    }

    fn questions(&self, _: &Request, _: bool) -> Vec<Question> {
        Vec::new()
    }

    fn poll(&self, _: Duration) -> Result<Standing, Refusal> {
        Ok(match self.mood {
            Mood::Forgets => Standing::Gone("nothing is scheduled".to_owned()),
            Mood::Silent | Mood::Lost => {
                let text = "no answer".to_owned();
                return Err(Refusal::Unreachable { text });
            }
            _ => Standing::Coming("soon".to_owned()),
        })
    }

    fn cancel(&self) -> Result<(), Refusal> {
        match self.mood {
            Mood::Silent | Mood::Lost => Err(Refusal::Unreachable {
                text: "no answer".to_owned(),
            }),
            _ => Ok(()),
        }
    }

    fn release(&self) -> Result<(), Refusal> {
        self.cancel()
    }
}
