//! Gates: what must be open before somebody is asked for a reboot. Each is one question without a
//! side effect, but for the operator's own programs; not knowing is closed.

use std::time::Duration;

use super::{Coordinator, Desk, Question, Refusal, Request, Standing};

/// One question before a reboot.
pub(super) trait Gate: std::fmt::Debug {
    /// Its name, such as `window`.
    fn name(&self) -> &'static str;

    /// What it asks, in words.
    fn asks(&self) -> String;

    /// Whether it is open; `back` is true for the reboot that leaves a failed trial.
    ///
    /// # Errors
    /// Why it is closed, or cannot be known to be open.
    fn open(&self, back: bool) -> Result<(), String>;

    /// Whether it has to stay open until the machine goes down, and can be asked without a network.
    fn lasts(&self) -> bool {
        false
    }

    /// Whether asking changes nothing, so that a dry run may do it.
    fn harmless(&self) -> bool {
        true
    }
}

/// A coordinator that is asked only while all gates are open.
#[derive(Debug)]
pub struct Gated {
    gates: Vec<Box<dyn Gate>>,
    next: Box<dyn Coordinator>,
}

impl Gated {
    pub(super) fn new(gates: Vec<Box<dyn Gate>>, next: Box<dyn Coordinator>) -> Self {
        Self { gates, next }
    }
}

impl Coordinator for Gated {
    fn name(&self) -> &'static str {
        self.next.name()
    }

    /// A gate that is closed now may be open later.
    fn can(&self) -> Result<(), Refusal> {
        self.next.can()
    }

    fn request(&self, request: &Request, desk: &mut dyn Desk) -> Result<(), Refusal> {
        for gate in &self.gates {
            gate.open(request.back).map_err(|text| Refusal::Gate {
                gate: gate.name(),
                text,
            })?;
        }
        self.next.request(request, desk)
    }

    fn questions(&self, request: &Request, ask: bool) -> Vec<Question> {
        let mut all: Vec<Question> = self
            .gates
            .iter()
            .map(|gate| Question {
                who: gate.name().to_owned(),
                asks: gate.asks(),
                no: (ask && gate.harmless()).then(|| gate.open(request.back).err()),
            })
            .collect();
        all.extend(self.next.questions(request, ask));
        all
    }

    fn poll(&self, age: Duration) -> Result<Standing, Refusal> {
        self.next.poll(age)
    }

    fn objection(&self, back: bool) -> Result<(), Refusal> {
        for gate in self.gates.iter().filter(|gate| gate.lasts()) {
            gate.open(back).map_err(|text| Refusal::Gate {
                gate: gate.name(),
                text,
            })?;
        }
        self.next.objection(back)
    }

    fn cancel(&self) -> Result<(), Refusal> {
        self.next.cancel()
    }

    fn release(&self) -> Result<(), Refusal> {
        self.next.release()
    }
}
