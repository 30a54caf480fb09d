//! Who would be asked for a reboot, for people who want to know before it is asked for.

use gdr_policy::Policy;
use schemars::JsonSchema;
use serde::Serialize;

use super::output::{paint, style};
use crate::reboot::{self, Refusal, Request};
use crate::sys::Root;

/// Who would be asked for the reboot.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Rehearsal {
    /// The policy's coordinator.
    coordinator: String,
    /// Everything that would be asked, in this order. The first no ends it.
    would_ask: Vec<Asked>,
}

/// One question.
#[derive(Debug, Serialize, JsonSchema)]
struct Asked {
    /// A gate, or a coordinator.
    who: String,
    /// What it is asked, in words.
    asks: String,
    /// `yes` or `no`; `not-asked` where it was not asked, since that changes something or is not wanted.
    answer: &'static str,
    /// Why not.
    reason: Option<String>,
}

impl Rehearsal {
    /// With `ask`, what can be asked without changing anything is asked.
    ///
    /// # Errors
    /// What the policy's coordinator needs is not there.
    pub(super) fn of(root: &Root, policy: &Policy, ask: bool) -> Result<Self, Refusal> {
        let request = Request {
            reason: "a dry run".to_owned(),
            respect_inhibitors: policy.reboot.respect_inhibitors,
            back: false,
        };
        let questions = reboot::choose(root, policy)?.questions(&request, ask);
        let would_ask = questions.into_iter().map(|question| Asked {
            who: question.who,
            asks: question.asks,
            answer: match &question.no {
                None => "not-asked",
                Some(None) => "yes",
                Some(Some(_)) => "no",
            },
            reason: question.no.flatten(),
        });
        Ok(Self {
            coordinator: policy.reboot.coordinator.to_string(),
            would_ask: would_ask.collect(),
        })
    }

    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for asked in &self.would_ask {
            let colour = match asked.answer {
                "yes" => style::GOOD,
                "no" => style::BAD,
                _ => style::DIM,
            };
            text.push_str(&format!(
                "{:14} {}  {}\n",
                asked.who,
                paint(colour, &format!("{:9}", asked.answer)),
                asked.asks
            ));
            if let Some(reason) = &asked.reason {
                text.push_str(&format!("{:25} {reason}\n", ""));
            }
        }
        text
    }
}
