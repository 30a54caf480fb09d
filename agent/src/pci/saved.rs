//! The control words that ports had before the agent first cleared them, so that `acs restore` can
//! put them back.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::acs::REDIRECT;
use super::config::{Found, PortType};
use super::tree::{Node, Tree};
use super::{Bdf, clear};

/// Format of `acs/saved.json`.
pub const VERSION: u32 = 1;

/// What a port is, apart from its address. Bus numbers change when a card is added; a value is only
/// ever written to the kind of device that it was read from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// Vendor id.
    pub vendor: u16,
    /// Device id.
    pub device: u16,
    /// Subsystem vendor and device, where it has them.
    pub subsystem: Option<(u16, u16)>,
    /// 24 bits of class.
    pub class: u32,
    /// PCI Express port type, where configuration space says it.
    pub port: Option<PortType>,
}

impl Identity {
    /// The identity of a node; `None` where its ids were not read.
    #[must_use]
    pub fn of(node: &Node<'_>) -> Option<Self> {
        let function = node.function?;
        Some(Self {
            vendor: function.vendor?,
            device: function.device?,
            subsystem: function.subsystem,
            class: function.class?,
            port: node.decoded.express.present().map(|express| express.port),
        })
    }
}

/// One port's old control word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SavedPort {
    /// Its address then.
    pub bdf: Bdf,
    /// What it was.
    pub identity: Identity,
    /// Offset of its ACS capability.
    pub offset: u16,
    /// Its control word before the first write of that boot.
    pub ctl: u16,
    /// The bits that were cleared.
    pub mask: u16,
    /// The boot in which the word was read; `None` where the root has no boot id.
    pub boot_id: Option<String>,
}

/// The contents of `acs/saved.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Saved {
    /// Always [`VERSION`].
    pub version: u32,
    /// In order of addresses.
    pub ports: Vec<SavedPort>,
}

impl Default for Saved {
    fn default() -> Self {
        Self {
            version: VERSION,
            ports: Vec::new(),
        }
    }
}

impl Saved {
    /// Takes in the words that a plan is about to change. Within one boot the first word of a port
    /// stays, since a later one may be the agent's own; a new boot starts from what the kernel set.
    /// Ports whose ids are not known are left out and must not be written: their addresses are
    /// returned.
    #[must_use]
    pub fn remember(
        &mut self,
        tree: &Tree<'_>,
        plan: &clear::AcsPlan,
        boot_id: Option<&str>,
    ) -> Vec<Bdf> {
        let mut nameless = Vec::new();
        for port in plan.to_clear() {
            let node = tree.find(port.bdf).and_then(|id| tree.node(id));
            let identity = node.and_then(Identity::of);
            let (Some(identity), Some(offset), Some(ctl), Some(new)) =
                (identity, port.offset, port.ctl, port.new)
            else {
                nameless.push(port.bdf);
                continue;
            };
            let boot_id = boot_id.map(str::to_owned);
            let fresh = SavedPort {
                bdf: port.bdf,
                identity,
                offset,
                ctl,
                mask: ctl & !new,
                boot_id,
            };
            match self
                .ports
                .binary_search_by_key(&port.bdf, |saved| saved.bdf)
            {
                Ok(at) => {
                    if let Some(old) = self.ports.get_mut(at) {
                        old.take(fresh);
                    }
                }
                Err(at) => self.ports.insert(at, fresh),
            }
        }
        nameless
    }
}

impl SavedPort {
    fn take(&mut self, fresh: Self) {
        let same_port = self.identity == fresh.identity && self.offset == fresh.offset;
        if same_port && self.boot_id == fresh.boot_id {
            // Bits that came back since, or that an earlier mask left alone.
            self.ctl |= fresh.ctl & fresh.mask;
            self.mask |= fresh.mask;
        } else {
            *self = fresh;
        }
    }
}

/// What `acs restore` does with one saved port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RestoreAction {
    /// The saved bits are to be written back.
    Restore,
    /// They are as saved.
    AlreadyRestored,
    /// Another kind of device has this address now.
    OtherDevice,
    /// No device has this address now.
    Gone,
    /// Its registers cannot be read.
    Unknown,
}

/// The decision about one saved port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RestoreDecision {
    /// Its address.
    pub bdf: Bdf,
    /// Offset of its ACS capability.
    pub offset: u16,
    /// Control word now.
    pub ctl: Option<u16>,
    /// Control word afterwards: the saved redirect bits, everything else as it is now.
    pub new: Option<u16>,
    /// The bits that are written.
    pub mask: u16,
    /// What happens.
    pub action: RestoreAction,
    /// Why.
    pub reason: String,
    /// The command that does the same, where something is to be written.
    pub setpci: Option<String>,
}

/// Decides what to put back.
#[must_use]
pub fn restore(tree: &Tree<'_>, saved: &Saved) -> Vec<RestoreDecision> {
    saved
        .ports
        .iter()
        .map(|port| restore_port(tree, port))
        .collect()
}

fn restore_port(tree: &Tree<'_>, saved: &SavedPort) -> RestoreDecision {
    let mask = saved.mask & REDIRECT;
    let mut decision = RestoreDecision {
        bdf: saved.bdf,
        offset: saved.offset,
        ctl: None,
        new: None,
        mask,
        action: RestoreAction::Gone,
        reason: "no device has this address now".to_owned(),
        setpci: None,
    };
    let Some(node) = tree.find(saved.bdf).and_then(|id| tree.node(id)) else {
        return decision;
    };
    if matches!(node.decoded.express, Found::Unknown(_)) || node.function.is_none() {
        return unreadable(decision);
    }
    if Identity::of(node).as_ref() != Some(&saved.identity) {
        decision.action = RestoreAction::OtherDevice;
        decision.reason = "another kind of device has this address now; not written".to_owned();
        return decision;
    }
    let Some(registers) = node
        .decoded
        .acs
        .present()
        .filter(|acs| acs.offset == saved.offset)
    else {
        return unreadable(decision);
    };
    let new = (registers.ctl & !mask) | (saved.ctl & mask);
    decision.ctl = Some(registers.ctl);
    decision.new = Some(new);
    if new == registers.ctl {
        decision.action = RestoreAction::AlreadyRestored;
        decision.reason = "its bits are as saved".to_owned();
    } else {
        decision.action = RestoreAction::Restore;
        decision.reason = format!("saved control word {:#06x}", saved.ctl);
        decision.setpci = Some(clear::setpci(saved.bdf, saved.ctl & mask, mask));
    }
    decision
}

fn unreadable(mut decision: RestoreDecision) -> RestoreDecision {
    decision.action = RestoreAction::Unknown;
    decision.reason = format!(
        "its ACS registers are not readable at {:#05x}",
        decision.offset
    );
    decision
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pci::clear::{AcsPlan, Action, PortDecision};
    use crate::pci::{ConfigBytes, RawFunction};

    fn port(device: u16, ctl: u16) -> RawFunction {
        let mut bytes = vec![0; 4096];
        bytes[6] = 0x10;
        bytes[0x34] = 0x40;
        bytes[0x40..0x44].copy_from_slice(&[0x10, 0, 0x62, 0]);
        bytes[0x100..0x104].copy_from_slice(&0x0001_000d_u32.to_le_bytes());
        bytes[0x106..0x108].copy_from_slice(&ctl.to_le_bytes());
        RawFunction {
            vendor: Some(0x1000),
            device: Some(device),
            class: Some(0x06_0400),
            config: ConfigBytes::whole(&bytes),
            ..RawFunction::bare("0000:17:00.0".parse().unwrap())
        }
    }

    fn clearing(ctl: u16, new: u16) -> AcsPlan {
        let port = PortDecision {
            bdf: "0000:17:00.0".parse().unwrap(),
            offset: Some(0x100),
            ctl: Some(ctl),
            new: Some(new),
            action: Action::Clear,
            reason: String::new(),
            setpci: None,
        };
        AcsPlan {
            ports: vec![port],
            refusals: Vec::new(),
            findings: Vec::new(),
            notes: Vec::new(),
            in_scope: vec![],
            by_kernel: None,
        }
    }

    fn remembered(saved: &mut Saved, ctl: u16, new: u16, boot: &str) {
        let functions = [port(0xc030, ctl)];
        let nameless = saved.remember(&Tree::build(&functions), &clearing(ctl, new), Some(boot));
        assert_eq!(nameless, []);
    }

    fn restored(saved: &Saved, function: RawFunction) -> RestoreDecision {
        restore(&Tree::build(&[function]), saved).remove(0)
    }

    #[test]
    fn the_first_word_of_a_boot_stays() {
        let mut saved = Saved::default();
        remembered(&mut saved, 0x1d, 0x19, "a");
        remembered(&mut saved, 0x19, 0x11, "a");
        assert_eq!((saved.ports[0].ctl, saved.ports[0].mask), (0x1d, 0x0c));
        // The next boot's kernel set something else.
        remembered(&mut saved, 0x0d, 0x01, "b");
        assert_eq!((saved.ports[0].ctl, saved.ports[0].mask), (0x0d, 0x0c));
    }

    #[test]
    fn only_the_saved_bits_are_put_back() {
        let mut saved = Saved::default();
        remembered(&mut saved, 0x1d, 0x11, "a");
        let decision = restored(&saved, port(0xc030, 0x50));
        assert_eq!(decision.action, RestoreAction::Restore);
        assert_eq!((decision.ctl, decision.new), (Some(0x50), Some(0x5c)));
        let line = "setpci -s 0000:17:00.0 ECAP_ACS+0x6.w=000c:000c";
        assert_eq!(decision.setpci.as_deref(), Some(line));
        let again = restored(&saved, port(0xc030, 0x5c));
        assert_eq!(again.action, RestoreAction::AlreadyRestored);
    }

    #[test]
    fn another_device_at_the_address_is_never_written() {
        let mut saved = Saved::default();
        remembered(&mut saved, 0x1d, 0x11, "a");
        assert_eq!(
            restored(&saved, port(0xc040, 0x11)).action,
            RestoreAction::OtherDevice
        );
        let mut other_class = port(0xc030, 0x11);
        other_class.class = Some(0x02_0000);
        assert_eq!(
            restored(&saved, other_class).action,
            RestoreAction::OtherDevice
        );
        let mut moved = port(0xc030, 0x11);
        moved.bdf = "0000:18:00.0".parse().unwrap();
        assert_eq!(restored(&saved, moved).action, RestoreAction::Gone);
        let mut short = port(0xc030, 0x11);
        short.config = ConfigBytes::failed("gone");
        assert_eq!(restored(&saved, short).action, RestoreAction::Unknown);
    }

    #[test]
    fn a_port_without_ids_is_handed_back() {
        let mut nameless = port(0xc030, 0x1d);
        nameless.vendor = None;
        let mut saved = Saved::default();
        let functions = [nameless];
        let left = saved.remember(&Tree::build(&functions), &clearing(0x1d, 0x11), None);
        assert_eq!((left.len(), saved.ports.len()), (1, 0));
    }

    #[test]
    fn the_file_is_a_format() {
        let mut saved = Saved::default();
        remembered(&mut saved, 0x1d, 0x11, "a");
        let json = serde_json::to_string(&saved).unwrap();
        assert_eq!(serde_json::from_str::<Saved>(&json).unwrap(), saved);
        let unknown = json.replacen("\"version\"", "\"later\":1,\"version\"", 1);
        assert!(serde_json::from_str::<Saved>(&unknown).is_err());
    }
}
