//! The stop file and the stop URL: nothing reboots while either is there.

use super::gates::Gate;
use super::http::Http;
use super::refusal::one_line;
use crate::sys::Root;

pub(super) const FILE: &str = "stop-file";
pub(super) const URL: &str = "stop-url";

/// A file on the node.
#[derive(Debug)]
pub(super) struct StopFile {
    pub(super) root: Root,
    pub(super) path: String,
}

impl Gate for StopFile {
    fn name(&self) -> &'static str {
        FILE
    }

    fn asks(&self) -> String {
        format!("whether {} is not there", self.path)
    }

    fn lasts(&self) -> bool {
        true
    }

    fn open(&self, _back: bool) -> Result<(), String> {
        match self.root.stat(&self.path) {
            Ok(None) => Ok(()),
            Ok(Some(_)) => {
                let why = self.root.text_if_there(&self.path).ok().flatten();
                Err(format!("{} is there{}", self.path, reason(why.as_deref())))
            }
            Err(e) => Err(format!("whether it is there is not known: {e}")),
        }
    }
}

/// A URL for many nodes.
#[derive(Debug)]
pub(super) struct StopUrl {
    pub(super) http: Http,
    pub(super) url: String,
}

impl Gate for StopUrl {
    fn name(&self) -> &'static str {
        URL
    }

    fn asks(&self) -> String {
        format!("whether {} is not there (404 or 410)", self.url)
    }

    fn open(&self, _back: bool) -> Result<(), String> {
        let answer = self
            .http
            .get(&self.url)
            .map_err(|e| format!("whether it is there is not known: {e}"))?;
        match answer.status {
            404 | 410 => Ok(()),
            200 => {
                let body = String::from_utf8_lossy(&answer.body);
                Err(format!("{} is there{}", self.url, reason(Some(&body))))
            }
            other => Err(format!(
                "whether it is there is not known: {} was answered with {other}",
                self.url
            )),
        }
    }
}

/// The first line of a file is the reason that people read.
fn reason(text: Option<&str>) -> String {
    let line = text
        .and_then(|text| text.lines().next())
        .unwrap_or_default();
    match line.trim() {
        "" => String::new(),
        line => format!(": {}", one_line(line)),
    }
}
