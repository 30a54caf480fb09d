//! systemd-logind as the coordinator: whoever holds a block inhibitor has a veto.

use std::os::fd::OwnedFd;
use std::time::Duration;

use super::bus::{Bus, Fault};
use super::faults::{refusal, says_blocked, says_denied, says_no_reply};
use super::login1::Login1;
use super::refusal::{Fate, Holder, Refusal, one_line};
use super::{Coordinator, Desk, Question, Request, ShutdownKind, Standing, pending_shutdown};

/// A shutdown that was granted and is not under way after this has not happened.
const GRANT_LASTS: Duration = Duration::from_secs(120);

/// `coordinator = "logind"`.
#[derive(Debug, Clone)]
pub struct Logind {
    bus: Bus,
}

impl Logind {
    /// logind on this bus, normally [`Bus::system`].
    #[must_use]
    pub fn new(bus: Bus) -> Self {
        Self { bus }
    }

    /// Everything up to logind's yes. The lock that comes back keeps the machine up.
    async fn ask(&self, request: &Request) -> Result<OwnedFd, Refusal> {
        let session = self.bus.open().await.map_err(refusal)?;
        let login1 = Login1(&session);
        may_reboot(&login1, request.respect_inhibitors).await?;
        if login1.inhibit_delay_max_usec().await.map_err(refusal)? == 0 {
            return Err(Refusal::Record {
                text: "logind gives no time to record the grant before a shutdown \
                       (InhibitDelayMaxSec=0); set it to 5 in /etc/systemd/logind.conf and restart systemd-logind"
                    .to_owned(),
                reboot: Fate::NotAsked,
            });
        }
        let lock = login1.delay_shutdown().await.map_err(refusal)?;
        let wall = format!(
            "gdr-agent reboots this machine: {}",
            one_line(&request.reason)
        );
        // A courtesy: a logind that will not pass the message on may still reboot.
        let told = match login1.set_wall_message(&wall).await {
            Ok(()) => true,
            Err(Fault::Error { .. }) => false,
            Err(broken) => return Err(refusal(broken)),
        };
        match login1.reboot(request.respect_inhibitors).await {
            Ok(()) => Ok(lock),
            Err(fault) => {
                let no = self
                    .explain(&login1, fault, request.respect_inhibitors)
                    .await;
                if told {
                    let _ = login1.set_wall_message("").await;
                }
                Err(no)
            }
        }
    }

    /// Turns a failed reboot call into a refusal, after looking at what it left behind.
    async fn explain(&self, login1: &Login1<'_>, fault: Fault, respect: bool) -> Refusal {
        match &fault {
            Fault::Error { name, .. } if says_blocked(name) || says_denied(name) => {
                match login1.blockers().await {
                    Ok(by) if by.is_empty() && !says_blocked(name) => refusal(fault),
                    Ok(by) if respect => blocked(by),
                    Ok(by) => cannot_pass_over(by),
                    Err(_) => refusal(fault),
                }
            }
            Fault::Error { name, .. } if !says_no_reply(name) => refusal(fault),
            // The call went out and no answer came: it may have been granted.
            _ => {
                let fate = self.call_back().await;
                match refusal(fault) {
                    Refusal::Unreachable { text } => Refusal::Unreachable {
                        text: format!("{text}; {fate}"),
                    },
                    Refusal::Protocol { text } => Refusal::Protocol {
                        text: format!("{text}; {fate}"),
                    },
                    other => other,
                }
            }
        }
    }

    /// Calls a granted reboot back, over a connection of its own: the old one may be what broke.
    async fn call_back(&self) -> Fate {
        let Ok(session) = self.bus.open().await else {
            return Fate::Unknown;
        };
        let login1 = Login1(&session);
        let fate = login1.call_back().await.unwrap_or(Fate::Unknown);
        if fate == Fate::CalledBack {
            let _ = login1.set_wall_message("").await;
        }
        fate
    }
}

impl Coordinator for Logind {
    fn name(&self) -> &'static str {
        "logind"
    }

    fn can(&self) -> Result<(), Refusal> {
        self.bus.run(async {
            let session = self.bus.open().await.map_err(refusal)?;
            may_reboot(&Login1(&session), true).await
        })
    }

    fn request(&self, request: &Request, desk: &mut dyn Desk) -> Result<(), Refusal> {
        let lock = self.bus.run(self.ask(request))?;
        // Outside the conversation: the caller may want to talk to the bus as well.
        let recorded = desk.granted();
        let outcome = recorded.map_err(|text| Refusal::Record {
            text,
            reboot: self.bus.run(self.call_back()),
        });
        drop(lock);
        outcome
    }

    fn questions(&self, request: &Request, ask: bool) -> Vec<Question> {
        let inhibitors = if request.respect_inhibitors {
            "while nobody holds a block inhibitor"
        } else {
            "whoever holds a block inhibitor"
        };
        let no = || match self.can() {
            Err(Refusal::Denied { by, .. }) if !by.is_empty() && !request.respect_inhibitors => {
                None
            }
            outcome => outcome.err().map(|refusal| refusal.to_string()),
        };
        vec![Question {
            who: self.name().to_owned(),
            asks: format!("for a reboot through the firmware, {inhibitors}"),
            no: ask.then(no),
        }]
    }

    fn poll(&self, age: Duration) -> Result<Standing, Refusal> {
        if age <= GRANT_LASTS {
            return Ok(Standing::Coming(
                "the granted shutdown is about to start".to_owned(),
            ));
        }
        match pending_shutdown(std::slice::from_ref(&self.bus)) {
            Ok(ShutdownKind::None) => Ok(Standing::Gone(
                "no shutdown is under way any more".to_owned(),
            )),
            Ok(_) => Ok(Standing::Coming("a shutdown is under way".to_owned())),
            Err(e) => Err(Refusal::Unreachable {
                text: e.to_string(),
            }),
        }
    }

    fn cancel(&self) -> Result<(), Refusal> {
        self.bus.run(async {
            let session = self.bus.open().await.map_err(refusal)?;
            match Login1(&session).call_back().await.map_err(refusal)? {
                Fate::GoesOn => Err(Refusal::Busy {
                    text: "a shutdown is under way and can no longer be called back".to_owned(),
                }),
                _ => Ok(()),
            }
        })
    }

    /// logind holds nothing for the agent.
    fn release(&self) -> Result<(), Refusal> {
        Ok(())
    }
}

/// Whether a request has a chance. Changes nothing.
async fn may_reboot(login1: &Login1<'_>, respect_inhibitors: bool) -> Result<(), Refusal> {
    if login1.preparing_for_shutdown().await.map_err(refusal)? {
        return Err(Refusal::Busy {
            text: "a shutdown is under way already; wait for it, or see `systemctl list-jobs`"
                .to_owned(),
        });
    }
    if let Some(what) = login1.scheduled_shutdown().await.map_err(refusal)? {
        return Err(Refusal::Busy {
            text: format!(
                "somebody has scheduled a {what} (`shutdown --show`), which this reboot would replace; \
                 wait for it, or cancel it with `shutdown -c`"
            ),
        });
    }
    if respect_inhibitors {
        // Before systemd 257 logind lets root pass over these, so they are judged here.
        let by = login1.blockers().await.map_err(refusal)?;
        if !by.is_empty() {
            return Err(blocked(by));
        }
    }
    match login1.can_reboot().await.map_err(refusal)?.as_str() {
        "yes" => Ok(()),
        "inhibited" | "inhibitor-blocked" if !respect_inhibitors => Ok(()),
        "inhibited" | "inhibitor-blocked" | "challenge-inhibitor-blocked" => {
            Err(blocked(Vec::new()))
        }
        "no" => Err(Refusal::NotPermitted {
            text: "logind says no: reboot.target is masked (`systemctl status reboot.target`), or polkit \
                   forbids org.freedesktop.login1.reboot to this user"
                .to_owned(),
        }),
        "challenge" => Err(Refusal::NotPermitted {
            text: "logind wants a password for this; run gdr-agent as root".to_owned(),
        }),
        "na" => Err(Refusal::NotPermitted {
            text: "logind cannot reboot this machine (a container?); reboot it from outside"
                .to_owned(),
        }),
        other => Err(Refusal::Protocol {
            text: format!("CanReboot was answered with \"{}\", which is not known", one_line(other)),
        }),
    }
}

/// From systemd 257 on only polkit may let somebody pass over a `block` lock, root included, and
/// without polkit nobody may.
fn cannot_pass_over(by: Vec<Holder>) -> Refusal {
    let text = "the policy would pass over this inhibitor lock, but logind does not allow it; wait until it is gone, \
                end its holder, or install polkit (org.freedesktop.login1.reboot-ignore-inhibit decides)";
    Refusal::Denied {
        by,
        text: text.to_owned(),
    }
}

fn blocked(by: Vec<Holder>) -> Refusal {
    let text = "an inhibitor lock holds up the shutdown (`systemd-inhibit --list`); \
                wait until it is gone, or set [reboot] respect_inhibitors = false";
    Refusal::Denied {
        by,
        text: text.to_owned(),
    }
}
