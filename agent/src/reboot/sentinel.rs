//! A sentinel file as the coordinator: whoever watches for `/run/reboot-required` reboots the node when it
//! suits (kured, unattended-upgrades), and nobody says when or whether.
//!
//! Format: Debian's and Ubuntu's `notify-reboot-required`. The first file says that a reboot is wanted, `.pkgs`
//! has one line for each who wants it. kured uncordons a node and gives its lock back as soon as its pod
//! runs again, without knowing of a verification: a node whose trial fails reboots once more under jobs
//! that were let in already.

use std::time::Duration;

use super::{Coordinator, Desk, Fate, Question, Refusal, Request, Standing};
use crate::sys::{EntryKind, Root, SysError, write};

const REQUIRED: &str = "reboot-required";
const PACKAGES: &str = "reboot-required.pkgs";
const TEXT: &[u8] = b"*** System restart required ***\n";
/// The agent's own line.
const LINE: &str = "gdr-agent";

/// What has to be known about whoever watches for the file.
pub const KURED: &str = "whoever watches for /run/reboot-required lets jobs in again as soon as the node is up: kured \
    uncordons it before the trial is verified, and a failed trial reboots once more; a FleetLock server or a drain of \
    your own in /etc/gdr-agent/pre-reboot.d does not have that gap";

/// `coordinator = "sentinel"`.
#[derive(Debug)]
pub struct Sentinel {
    root: Root,
}

impl Sentinel {
    /// The sentinel of a root.
    #[must_use]
    pub fn new(root: Root) -> Self {
        Self { root }
    }

    /// `/run`, and `/var/run` where that is a directory of its own.
    fn dirs(&self) -> Result<Vec<&'static str>, SysError> {
        let mut dirs = vec!["/run"];
        let var_run = self.root.stat_link("/var/run")?;
        if var_run.is_some_and(|stat| stat.kind == EntryKind::Dir) {
            dirs.push("/var/run");
        }
        Ok(dirs)
    }

    fn add(&self) -> Result<(), SysError> {
        for dir in self.dirs()? {
            // The line first: without the file beside it, it means nothing.
            let packages = format!("{dir}/{PACKAGES}");
            let text = self.root.text_if_there(&packages)?.unwrap_or_default();
            if !text.lines().any(|line| line == LINE) {
                let gap = if text.is_empty() || text.ends_with('\n') {
                    ""
                } else {
                    "\n"
                };
                write::append(&self.root, &packages, format!("{gap}{LINE}\n").as_bytes())?;
            }
            let required = format!("{dir}/{REQUIRED}");
            if self.root.stat(&required)?.is_none() {
                write::replace(&self.root, &required, TEXT, None)?;
            }
        }
        Ok(())
    }

    /// Takes the agent's line out, and the files once nobody is left in them.
    fn remove(&self) -> Result<(), SysError> {
        for dir in self.dirs()? {
            let packages = format!("{dir}/{PACKAGES}");
            let text = self.root.text_if_there(&packages)?.unwrap_or_default();
            if !text.lines().any(|line| line == LINE) {
                continue;
            }
            let others: String = text
                .lines()
                .filter(|line| *line != LINE)
                .map(|line| format!("{line}\n"))
                .collect();
            if others.is_empty() {
                write::remove(&self.root, &format!("{dir}/{REQUIRED}"))?;
                write::remove(&self.root, &packages)?;
            } else {
                write::replace(&self.root, &packages, others.as_bytes(), None)?;
            }
        }
        Ok(())
    }

    fn stands(&self) -> Result<bool, SysError> {
        let text = self
            .root
            .text_if_there(&format!("/run/{PACKAGES}"))?
            .unwrap_or_default();
        let ours = text.lines().any(|line| line == LINE);
        Ok(ours && self.root.stat(&format!("/run/{REQUIRED}"))?.is_some())
    }
}

fn failed(e: &SysError) -> Refusal {
    Refusal::NotPermitted {
        text: format!("the sentinel file cannot be used: {e}"),
    }
}

impl Coordinator for Sentinel {
    fn name(&self) -> &'static str {
        "sentinel"
    }

    fn can(&self) -> Result<(), Refusal> {
        self.stands().map(drop).map_err(|e| failed(&e))
    }

    /// The file is the request and the answer: who sees it may reboot at once, so the record comes first.
    fn request(&self, _request: &Request, desk: &mut dyn Desk) -> Result<(), Refusal> {
        self.can()?;
        desk.granted().map_err(|text| Refusal::Record {
            text,
            reboot: Fate::NotAsked,
        })?;
        self.add().map_err(|e| failed(&e))
    }

    fn questions(&self, _request: &Request, ask: bool) -> Vec<Question> {
        vec![Question {
            who: self.name().to_owned(),
            asks: KURED.to_owned(),
            no: ask.then(|| self.can().err().map(|refusal| refusal.to_string())),
        }]
    }

    fn poll(&self, _age: Duration) -> Result<Standing, Refusal> {
        Ok(if self.stands().map_err(|e| failed(&e))? {
            Standing::Coming(format!(
                "whoever watches for /run/{REQUIRED} is to reboot the node"
            ))
        } else {
            Standing::Gone(format!(
                "somebody took the agent's line out of /run/{PACKAGES}"
            ))
        })
    }

    fn cancel(&self) -> Result<(), Refusal> {
        self.remove().map_err(|e| failed(&e))
    }

    fn release(&self) -> Result<(), Refusal> {
        self.cancel()
    }
}
