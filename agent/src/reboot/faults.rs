//! What logind's and the bus's errors mean for somebody who wants a reboot.

use super::bus::Fault;
use super::refusal::{Holder, Refusal};

pub(super) fn says_blocked(name: &str) -> bool {
    name == "org.freedesktop.login1.BlockedByInhibitorLock"
}

/// AccessDenied is what systemd before 257 says of an inhibitor, too.
pub(super) fn says_denied(name: &str) -> bool {
    matches!(
        name,
        "org.freedesktop.DBus.Error.AccessDenied"
            | "org.freedesktop.DBus.Error.AuthFailed"
            | "org.freedesktop.DBus.Error.InteractiveAuthorizationRequired"
            | "org.freedesktop.PolicyKit1.Error.NotAuthorized"
    )
}

pub(super) fn says_no_reply(name: &str) -> bool {
    matches!(
        name,
        "org.freedesktop.DBus.Error.NoReply"
            | "org.freedesktop.DBus.Error.Timeout"
            | "org.freedesktop.DBus.Error.TimedOut"
            | "org.freedesktop.DBus.Error.Disconnected"
    )
}

fn says_absent(name: &str) -> bool {
    matches!(
        name,
        "org.freedesktop.DBus.Error.ServiceUnknown"
            | "org.freedesktop.DBus.Error.NameHasNoOwner"
            | "org.freedesktop.systemd1.NoSuchUnit"
            | "org.freedesktop.systemd1.UnitMasked"
    ) || name.starts_with("org.freedesktop.DBus.Error.Spawn.")
}

/// What a fault means for somebody who wants a reboot.
pub(super) fn refusal(fault: Fault) -> Refusal {
    let text = fault.to_string();
    match fault {
        Fault::NoBus { .. } => Refusal::Unreachable {
            text: format!(
                "{text}; reboot by hand (`systemctl reboot`, or `reboot -f` without systemd), or start dbus and systemd-logind"
            ),
        },
        Fault::Silent { .. } | Fault::Lost { .. } => Refusal::Unreachable {
            text: format!("{text}; see `systemctl status systemd-logind dbus`, then try again"),
        },
        Fault::Garbage { .. } => Refusal::Protocol {
            text: format!(
                "{text}; is this really systemd-logind? (`busctl status org.freedesktop.login1`)"
            ),
        },
        Fault::Error { name, .. } => {
            if name == "org.freedesktop.login1.OperationInProgress" {
                Refusal::Busy {
                    text: format!("{text}; wait for it, or see `systemctl list-jobs`"),
                }
            } else if says_denied(&name) {
                Refusal::NotPermitted {
                    text: format!(
                        "{text}; run gdr-agent as root, and see whether reboot.target is masked or polkit forbids org.freedesktop.login1.reboot"
                    ),
                }
            } else if says_absent(&name) || says_no_reply(&name) {
                Refusal::Unreachable {
                    text: format!(
                        "{text}; start systemd-logind (`systemctl status systemd-logind dbus`), or reboot by hand"
                    ),
                }
            } else {
                Refusal::Protocol {
                    text: format!("{text}; see `journalctl -u systemd-logind`"),
                }
            }
        }
    }
}

/// From systemd 257 on only polkit may let somebody pass over a `block` lock, root included, and
/// without polkit nobody may. A scheduled shutdown has no flag to ask for it.
pub(super) fn cannot_pass_over(by: Vec<Holder>, later: bool) -> Refusal {
    if later {
        let text = "the policy would pass over this inhibitor lock, which logind allows for no reboot with a delay; wait \
                    until it is gone, end its holder, or leave [reboot] delay out";
        return Refusal::Denied {
            by,
            text: text.to_owned(),
        };
    }
    let text = "the policy would pass over this inhibitor lock, but logind does not allow it; wait until it is gone, \
                end its holder, or install polkit (org.freedesktop.login1.reboot-ignore-inhibit decides)";
    Refusal::Denied {
        by,
        text: text.to_owned(),
    }
}

pub(super) fn blocked(by: Vec<Holder>) -> Refusal {
    let text = "an inhibitor lock holds up the shutdown (`systemd-inhibit --list`); \
                wait until it is gone, or set [reboot] respect_inhibitors = false";
    Refusal::Denied {
        by,
        text: text.to_owned(),
    }
}
