//! A FleetLock server as the coordinator: a slot of the node's group is taken before the next
//! coordinator, normally logind, is asked, and given back when the transaction is over.
//!
//! Protocol: coreos.github.io/zincati, "FleetLock protocol". 200 is yes and everything else is no;
//! what a no is called differs between servers (airlock says `failed_lock` with 500 when all slots
//! are taken, the specification's example says something else), so that it is shown and decides nothing.
//! A server forgets nothing by itself: a slot is held until it is given back.

use std::time::Duration;

use super::desk::{Desk, Lock};
use super::http::{Answer, HttpError, Wire};
use super::refusal::one_line;
use super::{Coordinator, Question, Refusal, Request, Standing};
use crate::sys::clock;

/// `coordinator = "fleetlock"`.
#[derive(Debug)]
pub struct FleetLock {
    wire: Box<dyn Wire>,
    lock: Lock,
    next: Box<dyn Coordinator>,
}

impl FleetLock {
    /// The server and who this node is to it, and who is asked once the slot is there.
    #[must_use]
    pub fn new(wire: impl Wire + 'static, lock: Lock, next: Box<dyn Coordinator>) -> Self {
        let wire = Box::new(wire);
        Self { wire, lock, next }
    }

    fn post(&self, step: &str) -> Result<Answer, HttpError> {
        let url = format!("{}/v1/{step}", self.lock.url.as_str().trim_end_matches('/'));
        let body = serde_json::json!({
            "client_params": { "id": self.lock.id, "group": self.lock.group },
        });
        let headers = [
            ("fleet-lock-protocol", "true"),
            ("content-type", "application/json"),
        ];
        self.wire.post(&url, &headers, body.to_string().as_bytes())
    }

    /// Asks the server for one step. Yes is 200 and nothing else.
    fn ask(&self, step: &str) -> Result<(), Refusal> {
        let answer = self.post(step).map_err(|e| match e {
            HttpError::Unreachable(text) => Refusal::Unreachable {
                text: format!("the FleetLock server {text}; nothing reboots until it answers"),
            },
            HttpError::Protocol(text) => Refusal::Protocol {
                text: format!("the FleetLock server {text}"),
            },
        })?;
        if answer.status == 200 {
            return Ok(());
        }
        Err(self.no(step, &answer))
    }

    /// What a no is for people. Its words decide nothing.
    fn no(&self, step: &str, answer: &Answer) -> Refusal {
        let Lock { url, group, id, .. } = &self.lock;
        let status = answer.status;
        let said = said(&answer.body);
        let to = format!("{step} of {url} for group `{group}`, node {id}");
        if let Some(location) = answer
            .location
            .as_deref()
            .filter(|_| (300..400).contains(&status))
        {
            return Refusal::Protocol {
                text: format!(
                    "{to} was redirected to {location}, which is not followed; set [reboot.fleetlock] url to where the server is"
                ),
            };
        }
        match status {
            404 | 405 => Refusal::Protocol {
                text: format!(
                    "{to} was answered with {status}{said}: there is no FleetLock server at that URL"
                ),
            },
            401 | 403 => Refusal::NotPermitted {
                text: format!(
                    "{to} was answered with {status}{said}: the server, or a proxy before it, does not let this node in"
                ),
            },
            _ => Refusal::Denied {
                by: Vec::new(),
                text: format!("{to} was answered with {status}{said}; asked again later"),
            },
        }
    }
}

/// The error's kind and text, or the beginning of whatever it is.
fn said(body: &[u8]) -> String {
    let json: Option<serde_json::Value> = serde_json::from_slice(body).ok();
    let text = |key: &str| json.as_ref()?.get(key)?.as_str().map(one_line);
    match (text("kind"), text("value")) {
        (Some(kind), Some(value)) => format!(" ({kind}: {value})"),
        (Some(kind), None) => format!(" ({kind})"),
        _ if body.is_empty() => String::new(),
        _ => {
            let start = body.get(..body.len().min(120)).unwrap_or_default();
            format!(" ({})", one_line(String::from_utf8_lossy(start).trim()))
        }
    }
}

impl Coordinator for FleetLock {
    fn name(&self) -> &'static str {
        "fleetlock"
    }

    /// The server cannot be asked without taking a slot, so only the next coordinator is.
    fn can(&self) -> Result<(), Refusal> {
        self.next.can()
    }

    fn request(&self, request: &Request, desk: &mut dyn Desk) -> Result<(), Refusal> {
        let record = |text: String| Refusal::Record {
            text,
            reboot: super::Fate::NotAsked,
        };
        // Before it is asked: a yes that gets lost on the way holds a slot all the same.
        let mut lock = self.lock.clone();
        lock.since = clock::unix_now();
        desk.lock(&lock).map_err(record)?;
        self.ask("pre-reboot")?;
        lock.held = true;
        desk.lock(&lock).map_err(record)?;
        self.next.request(request, desk)
    }

    fn questions(&self, request: &Request, ask: bool) -> Vec<Question> {
        let Lock { url, group, id, .. } = &self.lock;
        let mut all = vec![Question {
            who: self.name().to_owned(),
            asks: format!("{url} for a slot of group `{group}`, as node {id}"),
            no: None,
        }];
        all.extend(self.next.questions(request, ask));
        all
    }

    fn poll(&self, age: Duration) -> Result<Standing, Refusal> {
        self.next.poll(age)
    }

    fn objection(&self, back: bool) -> Result<(), Refusal> {
        self.next.objection(back)
    }

    /// The slot stays: calling back one reboot does not end the transaction.
    fn cancel(&self) -> Result<(), Refusal> {
        self.next.cancel()
    }

    fn release(&self) -> Result<(), Refusal> {
        self.next.release()?;
        self.ask("steady-state")
    }
}
