//! What a port or a path means for peer traffic, as the picture shows it. Unknown is a state of its
//! own, with its own pattern and mark, so that it never looks fine.

use std::collections::BTreeMap;

use super::text::printable;
use crate::pci::Bdf;
use crate::pci::acs;
use crate::pci::topology::{Bridge, Path, Topology};
use crate::pci::tree::Role;

/// How something is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Peer traffic passes straight.
    Direct,
    /// Peer traffic is sent up to the root complex.
    Redirected,
    /// Cannot be told.
    Unknown,
    /// Its ACS decides about no GPU-NIC path.
    Aside,
}

impl State {
    /// Of a port.
    pub(super) fn of_port(bridge: &Bridge) -> Self {
        let decides = bridge.on_paths > 0;
        match (&bridge.acs, &bridge.acs_unknown) {
            (Some(acs), _) if decides && acs.redirect => Self::Redirected,
            (None, Some(_)) if decides || bridge.role.redirects_peers() => Self::Unknown,
            _ if decides => Self::Direct,
            _ => Self::Aside,
        }
    }

    /// Of a path.
    pub(super) const fn of_path(path: &Path) -> Self {
        match path.redirected {
            Some(true) => Self::Redirected,
            Some(false) => Self::Direct,
            None => Self::Unknown,
        }
    }

    /// Its class in the style sheet.
    pub(super) const fn class(self) -> &'static str {
        match self {
            Self::Direct => "good",
            Self::Redirected => "bad",
            Self::Unknown => "unknown",
            Self::Aside => "aside",
        }
    }

    /// The mark beside the colour, for eyes and printers that do not tell colours apart.
    pub(super) const fn mark(self) -> &'static str {
        match self {
            Self::Redirected => "!",
            Self::Unknown => "?",
            Self::Direct | Self::Aside => "",
        }
    }

    /// In a word.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Redirected => "redirected",
            Self::Unknown => "unknown",
            Self::Aside => "does not decide",
        }
    }
}

/// Paths by their GPU and NIC.
pub(super) fn by_ends(topology: &Topology) -> BTreeMap<(Bdf, Bdf), &Path> {
    let paths = topology.paths.iter();
    paths.map(|path| ((path.gpu, path.nic), path)).collect()
}

/// A port's kind, short enough for a box.
pub(super) const fn role_word(role: Role) -> &'static str {
    match role {
        Role::RootPort => "root",
        Role::UpstreamPort => "switch",
        Role::DownstreamPort => "port",
        Role::PciBridge => "bridge",
        Role::Endpoint => "device",
    }
}

/// A port's ACS, short enough for a box.
pub(super) fn acs_line(bridge: &Bridge) -> String {
    let state = State::of_port(bridge);
    if state == State::Aside && !bridge.role.redirects_peers() {
        return bridge.role.words().trim_start_matches("switch ").to_owned();
    }
    let said = match (&bridge.acs, &bridge.acs_unknown) {
        (Some(acs), _) if acs.ctl == 0 => "ACS all off".to_owned(),
        (Some(acs), _) => format!("ACS {}", acs::short_names(acs.ctl)),
        (None, Some(_)) => "ACS unknown".to_owned(),
        (None, None) => "no ACS".to_owned(),
    };
    format!("{} {said}", state.mark()).trim_start().to_owned()
}

/// Everything about a port, for whoever points at it.
pub(super) fn port_title(bridge: &Bridge) -> String {
    let mut text = format!("{} {}", bridge.bdf, bridge.role.words());
    if let Some(id) = &bridge.id {
        text.push_str(&format!(" {id}"));
    }
    if bridge.role_inferred {
        text.push_str(" (by its place; configuration space does not say)");
    }
    text.push_str(match State::of_port(bridge) {
        State::Direct => ": lets peer traffic pass",
        State::Redirected => ": redirects peer traffic to the root complex",
        State::Unknown => ": what it does to peer traffic is unknown",
        State::Aside => ": decides about no GPU-NIC path",
    });
    match (&bridge.acs, &bridge.acs_unknown) {
        (Some(acs), _) => text.push_str(&format!("; ACSCtl {:04x} {}", acs.ctl, acs.text)),
        (None, Some(why)) => text.push_str(&format!("; ACS unknown: {}", printable(why))),
        (None, None) => text.push_str("; no ACS capability"),
    }
    if let Some(why) = &bridge.needs_acs {
        text.push_str(&format!("; needs its ACS: {}", printable(why)));
    }
    text
}
