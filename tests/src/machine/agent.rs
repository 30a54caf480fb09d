//! The agent as people and machines use it: its command line, its JSON, its exit status.

use serde_json::Value;

use super::{Error, Machine};

/// What one run of the agent said.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The exit status.
    pub status: i32,
    /// The JSON object on standard output.
    pub json: Value,
    /// Standard error, for messages.
    pub stderr: String,
}

impl Answer {
    /// The text under a key of the top level, or an empty one.
    #[must_use]
    pub fn text(&self, key: &str) -> &str {
        self.json
            .get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// The truth under a key of the top level.
    #[must_use]
    pub fn flag(&self, key: &str) -> Option<bool> {
        self.json.get(key).and_then(Value::as_bool)
    }
}

impl Machine {
    /// Runs `gdr-agent --format json ARGS` and reads its one object.
    ///
    /// # Errors
    /// The machine does not answer, or the output is not one JSON object.
    pub fn agent(&mut self, args: &str) -> Result<Answer, Error> {
        let ran = self.run(&format!("gdr-agent --format json {args}"))?;
        let json = serde_json::from_str(&ran.stdout).map_err(|e| Error::Json {
            verb: args.to_owned(),
            reason: e.to_string(),
            stdout: format!("{}{}", ran.stdout, ran.stderr),
        })?;
        Ok(Answer {
            status: ran.status,
            json,
            stderr: ran.stderr,
        })
    }

    /// The state that `gdr-agent status` reports.
    ///
    /// # Errors
    /// As [`Machine::agent`].
    pub fn agent_state(&mut self) -> Result<String, Error> {
        Ok(self.agent("status")?.text("state").to_owned())
    }
}
