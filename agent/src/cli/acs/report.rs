//! What `acs` prints.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Serialize;

use super::View;
use crate::acs::Outcome;
use crate::cli::output::paint;
use crate::pci::clear::{Action, Finding, PortDecision, Refusal, Scope};
use crate::pci::render::Styles;
use crate::pci::saved::{RestoreAction, RestoreDecision};
use crate::pci::topology::Path;
use crate::pci::{Bdf, acs};
use crate::plain::counted;
use crate::sys::pci_config::ConfigError;

/// The JSON of `acs show`, `acs clear` and `acs restore`.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct Output {
    /// `gdr-agent/acs/v1`
    schema: &'static str,
    /// `show`, `clear` or `restore`.
    command: &'static str,
    /// A register was written.
    changed: bool,
    /// The policy's scope; null for `restore`, which asks no policy.
    scope: Option<Scope>,
    /// GPU-NIC paths as they were before.
    paths: PathCount,
    /// The ports.
    ports: Vec<Port>,
    /// Why ports are refused.
    pub(super) refusals: Vec<Refusal>,
    /// Things worth knowing, with what to do about them.
    findings: Vec<Finding>,
    /// Things worth knowing.
    notes: Vec<String>,
}

/// How many GPU-NIC paths there are.
#[derive(Debug, Default, Serialize, JsonSchema)]
struct PathCount {
    /// All.
    total: usize,
    /// No port redirects.
    direct: usize,
    /// A port redirects.
    redirected: usize,
    /// None redirects, but one cannot be read.
    unknown: usize,
}

/// One port.
#[derive(Debug, Serialize, JsonSchema)]
struct Port {
    /// Its address.
    bdf: Bdf,
    /// Offset of its ACS capability.
    offset: Option<u16>,
    /// Control word as it was found.
    ctl: Option<u16>,
    /// Control word afterwards; for `show` what `clear` would make of it.
    new: Option<u16>,
    /// `clear`, `already-clear`, `no-capability`, `unknown`, `off-path`, `refused` or `left-alone`;
    /// for `restore` `restore`, `already-restored`, `other-device`, `gone` or `unknown`.
    action: String,
    /// Why.
    reason: String,
    /// The command that does the same by hand.
    setpci: Option<String>,
    /// The register was written and reads back as it should.
    written: bool,
    /// Why writing failed.
    error: Option<Failure>,
}

/// A failed write.
#[derive(Debug, Serialize, JsonSchema)]
struct Failure {
    /// `lockdown`, `vanished`, `short`, `did-not-stick`, or an error of the system.
    kind: String,
    /// In words.
    message: String,
}

fn count(paths: &[Path]) -> PathCount {
    let of = |state| paths.iter().filter(|path| path.redirected == state).count();
    PathCount {
        total: paths.len(),
        direct: of(Some(false)),
        redirected: of(Some(true)),
        unknown: of(None),
    }
}

const fn word(action: Action) -> &'static str {
    match action {
        Action::Clear => "clear",
        Action::AlreadyClear => "already-clear",
        Action::NoCapability => "no-capability",
        Action::Unknown => "unknown",
        Action::OffPath => "off-path",
        Action::Refused => "refused",
        Action::LeftAlone => "left-alone",
    }
}

const fn restore_word(action: RestoreAction) -> &'static str {
    match action {
        RestoreAction::Restore => "restore",
        RestoreAction::AlreadyRestored => "already-restored",
        RestoreAction::OtherDevice => "other-device",
        RestoreAction::Gone => "gone",
        RestoreAction::Unknown => "unknown",
    }
}

impl From<&PortDecision> for Port {
    fn from(port: &PortDecision) -> Self {
        Self {
            bdf: port.bdf,
            offset: port.offset,
            ctl: port.ctl,
            new: port.new,
            action: word(port.action).to_owned(),
            reason: port.reason.clone(),
            setpci: port.setpci.clone(),
            written: false,
            error: None,
        }
    }
}

impl From<&RestoreDecision> for Port {
    fn from(port: &RestoreDecision) -> Self {
        Self {
            bdf: port.bdf,
            offset: Some(port.offset),
            ctl: port.ctl,
            new: port.new,
            action: restore_word(port.action).to_owned(),
            reason: port.reason.clone(),
            setpci: port.setpci.clone(),
            written: false,
            error: None,
        }
    }
}

impl Output {
    pub(super) fn of(command: &'static str, view: &View<'_>) -> Self {
        Self {
            schema: "gdr-agent/acs/v1",
            command,
            changed: false,
            scope: Some(view.scope),
            paths: count(&view.topology.paths),
            ports: view.plan.ports.iter().map(Port::from).collect(),
            refusals: view.plan.refusals.clone(),
            findings: view.plan.findings.clone(),
            notes: view.plan.notes.clone(),
        }
    }

    pub(super) fn of_restore(view: &View<'_>, decisions: &[RestoreDecision]) -> Self {
        let mut notes = Vec::new();
        if decisions.is_empty() {
            notes.push("no control words are saved: there is nothing to put back".to_owned());
        }
        Self {
            command: "restore",
            scope: None,
            ports: decisions.iter().map(Port::from).collect(),
            refusals: Vec::new(),
            findings: Vec::new(),
            notes,
            ..Self::of("restore", view)
        }
    }

    /// Takes in what became of the ports that were written.
    pub(super) fn take(&mut self, outcomes: Vec<Outcome>) {
        for Outcome { bdf, result, .. } in outcomes {
            let Some(port) = self.ports.iter_mut().find(|port| port.bdf == bdf) else {
                continue;
            };
            match result {
                Ok(now) => {
                    self.changed |= port.ctl != Some(now);
                    port.new = Some(now);
                    port.written = true;
                }
                Err(error) => {
                    port.new = port.ctl;
                    let locked = matches!(error, ConfigError::Lockdown { .. });
                    if locked && !self.refusals.iter().any(|r| r.id == "acs.lockdown") {
                        self.refusals.push(Refusal::lockdown());
                    }
                    let kind = error.kind().to_owned();
                    port.error = Some(Failure {
                        kind,
                        message: error.to_string(),
                    });
                }
            }
        }
    }

    /// True if a port could not be written.
    pub(super) fn failed(&self) -> bool {
        self.ports.iter().any(|port| port.error.is_some())
    }

    pub(super) fn note(&mut self, text: &str) {
        self.notes.push(text.to_owned());
    }

    /// Refusals and notes.
    fn remarks(&self, styles: Styles) -> String {
        let mut text = String::new();
        for refusal in &self.refusals {
            let id = paint(styles.bad, &refusal.id);
            let _ = writeln!(text, "\n{id}: {}\n  instead: {}", refusal.text, refusal.fix);
        }
        for finding in &self.findings {
            let id = paint(styles.warn, &finding.id);
            let _ = writeln!(text, "\n{id}: {}\n  {}", finding.text, finding.fix);
        }
        for note in &self.notes {
            let _ = writeln!(text, "\nnote: {note}");
        }
        text
    }

    /// What follows the table of `show`.
    pub(super) fn summary(&self, styles: Styles) -> String {
        let PathCount {
            total,
            direct,
            redirected,
            unknown,
        } = self.paths;
        format!(
            "\n{}: {direct} direct, {redirected} redirected by ACS, {unknown} unknown\n{}",
            counted(total, "GPU-NIC path"),
            self.remarks(styles)
        )
    }

    /// What was done, for people; ports that nothing was wanted of are left out.
    pub(super) fn text(&self, styles: Styles) -> String {
        let mut text = String::new();
        for port in &self.ports {
            let (from, to) = (control(port.ctl), control(port.new));
            let line = match (&port.error, port.written, port.action.as_str()) {
                (Some(error), ..) => paint(styles.bad, &format!("failed: {}", error.message)),
                (None, true, _) => paint(styles.good, &format!("{from} -> {to}")),
                (None, false, "unknown" | "other-device" | "gone" | "left-alone") => {
                    paint(styles.warn, &format!("{}: {}", port.action, port.reason))
                }
                _ => continue,
            };
            let _ = writeln!(text, "{}  {line}", port.bdf);
        }
        let written = self.ports.iter().filter(|port| port.written).count();
        let done = if self.command == "restore" {
            "put back"
        } else {
            "cleared"
        };
        let _ = match written {
            0 => writeln!(text, "Nothing was {done}."),
            _ => writeln!(text, "{} {done}.", counted(written, "port")),
        };
        text.push_str(&self.remarks(styles));
        text
    }
}

fn control(ctl: Option<u16>) -> String {
    ctl.map_or_else(
        || "?".to_owned(),
        |ctl| format!("{ctl:04x} ({})", acs::short_names(ctl)),
    )
}
