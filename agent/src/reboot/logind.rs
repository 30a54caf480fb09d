//! systemd-logind as the coordinator: whoever holds a block inhibitor has a veto.

use std::os::fd::OwnedFd;
use std::time::Duration;

use super::bus::{Bus, Fault, Session};
use super::faults::{blocked, cannot_pass_over, refusal, says_blocked, says_denied, says_no_reply};
use super::login1::{Login1, REBOOT, Scheduled};
use super::refusal::{Fate, Refusal, one_line};
use super::shutdown_kind::reboot_is_masked;
use super::{Coordinator, Desk, Question, Request, ShutdownKind, Standing, pending_shutdown};
use crate::sys::clock;

/// A shutdown that was granted and is not under way after this has not happened.
const GRANT_LASTS: Duration = Duration::from_secs(120);

/// How every message begins that goes with a reboot of the agent's. logind keeps it beside a scheduled shutdown,
/// which is how the agent's own is told from somebody else's, whichever process asked for it.
const WALL: &str = "gdr-agent reboots this machine: ";

/// `coordinator = "logind"`.
#[derive(Debug, Clone)]
pub struct Logind {
    bus: Bus,
    delay: Option<Duration>,
    message: Option<String>,
    respect_inhibitors: bool,
}

impl Logind {
    /// logind on this bus, normally [`Bus::system`].
    #[must_use]
    pub fn new(bus: Bus) -> Self {
        Self {
            bus,
            delay: None,
            message: None,
            respect_inhibitors: true,
        }
    }

    /// Whether a block inhibitor that somebody takes while a reboot is scheduled is an objection to it.
    #[must_use]
    pub fn respecting_inhibitors(mut self, respect: bool) -> Self {
        self.respect_inhibitors = respect;
        self
    }

    /// Warns people that long before, with these words after the agent's own. The way back from a failed trial does
    /// not wait.
    #[must_use]
    pub fn warning(mut self, delay: Option<Duration>, message: Option<String>) -> Self {
        self.delay = delay;
        self.message = message;
        self
    }

    fn delay_of(&self, request: &Request) -> Option<Duration> {
        self.delay.filter(|_| !request.back)
    }

    fn wall(&self, request: &Request) -> String {
        let words = self.message.as_deref().map(|words| format!("; {words}"));
        format!(
            "{WALL}{}{}",
            one_line(&request.reason),
            words.unwrap_or_default()
        )
    }

    /// Everything up to logind's yes. A lock that comes back keeps the machine up.
    async fn ask(&self, request: &Request) -> Result<Option<OwnedFd>, Refusal> {
        let session = self.bus.open().await.map_err(refusal)?;
        let login1 = Login1(&session);
        may_reboot(&login1, request.respect_inhibitors).await?;
        match self.delay_of(request) {
            Some(delay) => {
                may_be_started(&session).await?;
                self.ask_later(&login1, request, delay).await.map(|()| None)
            }
            None => self.ask_now(&login1, request).await.map(Some),
        }
    }

    /// A reboot after a delay, with a warning. No lock: the machine stays up for seconds at least, which is longer
    /// than logind would wait for one, and the record is refused if it is not made in time.
    async fn ask_later(
        &self,
        login1: &Login1<'_>,
        request: &Request,
        delay: Duration,
    ) -> Result<(), Refusal> {
        // A delay is there to warn people, and the message is what the schedule is known by afterwards.
        login1
            .set_wall_message(&self.wall(request))
            .await
            .map_err(refusal)?;
        let at = clock::unix_now().saturating_add(delay.as_secs());
        match login1.schedule_reboot(at).await {
            Ok(()) => Ok(()),
            Err(fault) => {
                let no = self.explain(login1, fault, request).await;
                let _ = login1.set_wall_message("").await;
                Err(no)
            }
        }
    }

    /// A reboot at once. The lock keeps the machine up until the grant is recorded: logind's answer comes when the
    /// shutdown has begun, so that without it the units that stop would race with the record.
    async fn ask_now(&self, login1: &Login1<'_>, request: &Request) -> Result<OwnedFd, Refusal> {
        if login1.inhibit_delay_max_usec().await.map_err(refusal)? == 0 {
            return Err(Refusal::Record {
                text: "logind gives no time to record the grant before a shutdown \
                       (InhibitDelayMaxSec=0); set it to 5 in /etc/systemd/logind.conf and restart systemd-logind"
                    .to_owned(),
                reboot: Fate::NotAsked,
            });
        }
        let lock = login1.delay_shutdown().await.map_err(refusal)?;
        // A courtesy: a logind that will not pass the message on may still reboot.
        let told = match login1.set_wall_message(&self.wall(request)).await {
            Ok(()) => true,
            Err(Fault::Error { .. }) => false,
            Err(broken) => return Err(refusal(broken)),
        };
        match login1.reboot(request.respect_inhibitors).await {
            Ok(()) => Ok(lock),
            Err(fault) => {
                let no = self.explain(login1, fault, request).await;
                if told {
                    let _ = login1.set_wall_message("").await;
                }
                Err(no)
            }
        }
    }

    /// Turns a failed reboot call into a refusal, after looking at what it left behind.
    async fn explain(&self, login1: &Login1<'_>, fault: Fault, request: &Request) -> Refusal {
        let respect = request.respect_inhibitors;
        match &fault {
            Fault::Error { name, .. } if says_blocked(name) || says_denied(name) => {
                match login1.blockers().await {
                    Ok(by) if by.is_empty() && !says_blocked(name) => refusal(fault),
                    Ok(by) if respect => blocked(by),
                    Ok(by) => cannot_pass_over(by, self.delay_of(request).is_some()),
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

    /// What a schedule says about a granted reboot; none where only the job queue can tell.
    async fn scheduled_standing(&self) -> Result<Option<Standing>, Refusal> {
        let session = self.bus.open().await.map_err(refusal)?;
        let login1 = Login1(&session);
        let Some(scheduled) = login1.scheduled_shutdown().await.map_err(refusal)? else {
            return Ok(None);
        };
        if !is_ours(&login1, &scheduled).await.map_err(refusal)? {
            return Ok(Some(Standing::Gone(format!(
                "somebody has scheduled a {} in its place",
                scheduled.kind
            ))));
        }
        let left = scheduled.at.checked_sub(clock::unix_now());
        Ok(left.map(|left| Standing::Coming(format!("it is scheduled, {left} s from now"))))
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
        let when = self.delay_of(request).map(|delay| {
            format!(
                " {} s after a warning to everybody who is logged in",
                delay.as_secs()
            )
        });
        vec![Question {
            who: self.name().to_owned(),
            asks: format!(
                "for a reboot through the firmware{}, {inhibitors}",
                when.unwrap_or_default()
            ),
            no: ask.then(no),
        }]
    }

    fn poll(&self, age: Duration) -> Result<Standing, Refusal> {
        if self.delay.is_some()
            && let Some(standing) = self.bus.run(self.scheduled_standing())?
        {
            return Ok(standing);
        }
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

    /// When its time has come, logind carries a scheduled shutdown out whoever holds a block inhibitor by then.
    fn objection(&self, _back: bool) -> Result<(), Refusal> {
        if !self.respect_inhibitors {
            return Ok(());
        }
        self.bus.run(async {
            // A logind that does not answer could not be asked to call it back either.
            let Ok(session) = self.bus.open().await else {
                return Ok(());
            };
            match Login1(&session).blockers().await {
                Ok(by) if !by.is_empty() => Err(blocked(by)),
                _ => Ok(()),
            }
        })
    }

    fn cancel(&self) -> Result<(), Refusal> {
        self.bus.run(async {
            let session = self.bus.open().await.map_err(refusal)?;
            let login1 = Login1(&session);
            // What somebody else has put in its place is theirs.
            if let Some(scheduled) = login1.scheduled_shutdown().await.map_err(refusal)?
                && !is_ours(&login1, &scheduled).await.map_err(refusal)?
            {
                return Ok(());
            }
            match login1.call_back().await.map_err(refusal)? {
                Fate::CalledBack | Fate::NotAsked => {
                    let _ = login1.set_wall_message("").await;
                    Ok(())
                }
                Fate::GoesOn => Err(Refusal::Busy {
                    text: "a shutdown is under way and can no longer be called back".to_owned(),
                }),
                Fate::Unknown => Err(Refusal::Protocol {
                    text: "logind was asked to call the scheduled reboot back, and still has it \
                           (`shutdown --show`); call it back with `shutdown -c`"
                        .to_owned(),
                }),
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
    if let Some(scheduled) = login1.scheduled_shutdown().await.map_err(refusal)? {
        let what = scheduled.kind;
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

/// logind finds out that `reboot.target` is masked when the scheduled time has come, and then the machine stays up
/// (before systemd 257 `CanReboot` does not tell, either). Where systemd does not answer, logind's answer is what there is.
async fn may_be_started(session: &Session) -> Result<(), Refusal> {
    match reboot_is_masked(session).await {
        Ok(true) => Err(Refusal::NotPermitted {
            text: "reboot.target is masked, so that a scheduled reboot would not come; `systemctl unmask reboot.target`"
                .to_owned(),
        }),
        Ok(false) => Ok(()),
        Err(fault) => {
            tracing::info!("whether reboot.target is masked is not known: {fault}");
            Ok(())
        }
    }
}

/// Whether a scheduled shutdown is one of the agent's.
async fn is_ours(login1: &Login1<'_>, scheduled: &Scheduled) -> Result<bool, Fault> {
    Ok(scheduled.kind == REBOOT && login1.wall_message().await?.starts_with(WALL))
}
