//! What to do with the ACS of each port: a pure decision, with its reason and the `setpci` line that
//! does the same by hand.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Bdf;
use super::acs::{self, AcsRegisters};
use super::config::Found;
use super::platform::Need;
use super::topology::{Bridge, Topology, handed_to_a_guest};
use super::tree::{NodeId, Tree};
use crate::plain::counted;

mod finding;
mod refusal;

pub use finding::Finding;
pub use refusal::{Conditions, Lockdown, Refusal};

/// Which ports a policy names (`[acs] scope`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// The ports that decide on at least one GPU-NIC path, whatever its kind. Ports that only a
    /// path between host bridges passes belong: redirection there costs a translation too.
    Paths,
    /// Every root port and switch downstream port of the machine.
    Bridges,
    /// Every function that has the capability, endpoints too.
    All,
    /// None.
    Keep,
}

/// What the policy asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Which ports.
    pub scope: Scope,
    /// Which control bits to clear; bits other than [`acs::REDIRECT`] are never touched.
    pub mask: u16,
}

/// What happens to a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Its bits are to be cleared.
    Clear,
    /// They are clear.
    AlreadyClear,
    /// It has no ACS capability, so it redirects nothing.
    NoCapability,
    /// Its registers cannot be read; it is left alone.
    Unknown,
    /// The scope does not name it.
    OffPath,
    /// It should be cleared, and must not be; see `refusals`.
    Refused,
    /// GPUDirect on this platform needs its ACS.
    LeftAlone,
}

/// The decision about one port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PortDecision {
    /// Its address.
    pub bdf: Bdf,
    /// Offset of the ACS capability; the control word lies 6 bytes on.
    pub offset: Option<u16>,
    /// Control word now.
    pub ctl: Option<u16>,
    /// Control word afterwards.
    pub new: Option<u16>,
    /// What happens.
    pub action: Action,
    /// Why.
    pub reason: String,
    /// The command that does the same, where something is or would be written.
    pub setpci: Option<String>,
}

/// The decisions about all ports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AcsPlan {
    /// One entry per bridge (with [`Scope::All`] per function with ACS), in order of addresses.
    pub ports: Vec<PortDecision>,
    /// Why ports are refused.
    pub refusals: Vec<Refusal>,
    /// Things worth knowing that refuse nothing, with what to do about them.
    pub findings: Vec<Finding>,
    /// The same, where there is nothing to do about them.
    pub notes: Vec<String>,
    /// The ports that the scope names and that may be cleared, redirecting or not.
    #[serde(skip)]
    #[schemars(skip)]
    pub in_scope: Vec<Bdf>,
    /// Where the kernel is to turn redirection off at boot: the argument for it, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_kernel: Option<ByKernel>,
}

/// Redirection is turned off by the kernel's command line and not by writing registers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ByKernel {
    /// `pci=disable_acs_redir=...`; null where there is nothing to turn off, or it must not be used.
    pub argument: Option<String>,
}

impl AcsPlan {
    /// The ports whose bits are to be cleared.
    pub fn to_clear(&self) -> impl Iterator<Item = &PortDecision> {
        self.ports
            .iter()
            .filter(|port| port.action == Action::Clear)
    }
}

/// Decides about every port.
#[must_use]
pub fn plan(
    tree: &Tree<'_>,
    topology: &Topology,
    request: Request,
    conditions: Conditions,
) -> AcsPlan {
    let mut deciding = Deciding {
        tree,
        topology,
        scope: request.scope,
        mask: request.mask & acs::REDIRECT,
        in_guest: conditions.in_vm == Some(true),
        refusals: Vec::new(),
    };
    let bridges = topology.bridges.iter();
    let mut ports: Vec<PortDecision> = bridges.map(|bridge| deciding.bridge(bridge)).collect();
    if request.scope == Scope::All {
        let endpoints = tree
            .nodes()
            .filter(|(_, node)| topology.bridge(node.bdf).is_none());
        ports.extend(endpoints.filter_map(|(id, _)| deciding.endpoint(id)));
        ports.sort_by_key(|port| port.bdf);
    }
    let mut refusals = deciding.refusals;
    let pending = ports.iter().any(|port| port.action == Action::Clear);
    let in_scope = ports
        .iter()
        .filter(|port| matches!(port.action, Action::Clear | Action::AlreadyClear))
        .map(|port| port.bdf)
        .collect();
    let whole = if pending { conditions.refusal() } else { None };
    if let Some(refusal) = &whole {
        for port in ports.iter_mut().filter(|port| port.action == Action::Clear) {
            port.action = Action::Refused;
            port.reason = refused(&port.reason, refusal);
        }
    }
    refusals.extend(whole);
    AcsPlan {
        findings: finding::findings(topology, &ports, conditions),
        ports,
        refusals,
        notes: notes(request, conditions),
        in_scope,
        by_kernel: None,
    }
}

fn notes(request: Request, conditions: Conditions) -> Vec<String> {
    let mut notes = Vec::new();
    let mut note = |text: &str| notes.push(text.to_owned());
    if request.scope == Scope::Keep {
        note(
            "the policy keeps ACS as it is: peer traffic that a port redirects stays slow or fails",
        );
    }
    if request.mask & !acs::REDIRECT != 0 {
        note("only RR, CR and EC are ever cleared; the other bits of the mask are ignored");
    }
    notes.extend(conditions.note());
    notes
}

/// The scope's answer for a bridge, with the reason in words.
fn in_scope(bridge: &Bridge, scope: Scope) -> (bool, String) {
    let role = bridge.role.words();
    match scope {
        Scope::Keep => (false, "the policy keeps ACS as it is".to_owned()),
        Scope::Paths if bridge.on_paths > 0 => (
            true,
            format!(
                "{role} on {}",
                counted(bridge.on_paths as usize, "GPU-NIC path")
            ),
        ),
        Scope::Paths if !bridge.role.redirects_peers() => (
            false,
            format!("{role}: passes peer traffic on whatever its ACS says"),
        ),
        Scope::Paths if bridge.devices_below == 0 => {
            (false, format!("{role} without a selected GPU or NIC below"))
        }
        Scope::Paths => (
            false,
            format!("{role} above the point where its paths turn"),
        ),
        Scope::Bridges if bridge.role.redirects_peers() => (true, role.to_owned()),
        Scope::Bridges => (
            false,
            format!("{role}: passes peer traffic on whatever its ACS says"),
        ),
        Scope::All => (true, role.to_owned()),
    }
}

/// What deciding about one port takes.
struct Deciding<'a> {
    tree: &'a Tree<'a>,
    topology: &'a Topology,
    scope: Scope,
    mask: u16,
    in_guest: bool,
    refusals: Vec<Refusal>,
}

impl Deciding<'_> {
    fn bridge(&mut self, bridge: &Bridge) -> PortDecision {
        let registers = self
            .tree
            .find(bridge.bdf)
            .and_then(|id| self.tree.node(id))
            .map(|n| &n.decoded.acs);
        let (wanted, place) = in_scope(bridge, self.scope);
        let (registers, mut decision) = match registers {
            Some(Found::Present(registers)) => (*registers, decided(bridge.bdf, *registers, place)),
            Some(Found::Unknown(_)) | None if wanted => {
                let why = bridge.acs_unknown.as_deref().unwrap_or("not read");
                return undecided(bridge.bdf, Action::Unknown, format!("{place}; {why}"));
            }
            Some(Found::Absent) if wanted => {
                let reason = format!("{place}; it has no ACS capability and redirects nothing");
                return undecided(bridge.bdf, Action::NoCapability, reason);
            }
            Some(Found::Unknown(_) | Found::Absent) | None => {
                return undecided(bridge.bdf, Action::OffPath, place);
            }
        };
        if !wanted {
            decision.action = Action::OffPath;
            return decision;
        }
        self.propose(&mut decision, registers, &bridge.passthrough_below);
        decision
    }

    fn endpoint(&mut self, id: NodeId) -> Option<PortDecision> {
        let node = self.tree.node(id)?;
        let registers = *node.decoded.acs.present()?;
        let mut decision = decided(node.bdf, registers, "endpoint with ACS".to_owned());
        let own = node.function.filter(|function| handed_to_a_guest(function));
        let own: Vec<Bdf> = own.map(|function| function.bdf).into_iter().collect();
        self.propose(&mut decision, registers, &own);
        Some(decision)
    }

    /// Has a port cleared that redirects, unless it must be left alone or a guest's device is in
    /// `passthrough`.
    fn propose(
        &mut self,
        decision: &mut PortDecision,
        registers: AcsRegisters,
        passthrough: &[Bdf],
    ) {
        if registers.ctl & self.mask == 0 {
            return;
        }
        decision.action = Action::Clear;
        decision.new = Some(registers.ctl & !self.mask);
        decision.setpci = Some(setpci(decision.bdf, 0, self.mask));
        // In a guest ATS says nothing about guests, and there is a better reason.
        let need = self.topology.needs_acs.get(&decision.bdf);
        let need = need.filter(|need| !(self.in_guest && **need == Need::Virtualised));
        if let Some(need) = need {
            decision.action = Action::LeftAlone;
            decision.reason = need.reason().to_owned();
        } else if !passthrough.is_empty() {
            let refusal = Refusal::vfio(decision.bdf, passthrough);
            decision.action = Action::Refused;
            decision.reason = refused(&decision.reason, &refusal);
            self.refusals.push(refusal);
        }
    }
}

fn decided(bdf: Bdf, registers: AcsRegisters, reason: String) -> PortDecision {
    PortDecision {
        bdf,
        offset: Some(registers.offset),
        ctl: Some(registers.ctl),
        new: Some(registers.ctl),
        action: Action::AlreadyClear,
        reason,
        setpci: None,
    }
}

fn undecided(bdf: Bdf, action: Action, reason: String) -> PortDecision {
    PortDecision {
        bdf,
        offset: None,
        ctl: None,
        new: None,
        action,
        reason,
        setpci: None,
    }
}

fn refused(place: &str, refusal: &Refusal) -> String {
    format!("{place}; refused: {}", refusal.id)
}

/// The `setpci` command that writes the bits of `mask` with those of `value`.
#[must_use]
pub fn setpci(bdf: Bdf, value: u16, mask: u16) -> String {
    format!("setpci -s {bdf} ECAP_ACS+0x6.w={value:04x}:{mask:04x}")
}

#[cfg(test)]
mod tests;
