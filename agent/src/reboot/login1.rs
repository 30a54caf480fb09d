//! The few methods of systemd-logind that a reboot needs, and what its errors mean.
//!
//! Interface: org.freedesktop.login1(5). Behaviour: systemd's `src/login/logind-dbus.c`.

use std::os::fd::OwnedFd;

use super::bus::{Fault, Service, Session};
use super::refusal::{Fate, Holder, one_line};

const MANAGER: Service<'static> = Service {
    name: "org.freedesktop.login1",
    path: "/org/freedesktop/login1",
    interface: "org.freedesktop.login1.Manager",
};

/// `SD_LOGIND_ROOT_CHECK_INHIBITORS`: root's requests are held up too. Before systemd 257 root
/// passed over every block inhibitor unless it asked like this.
const CHECK_INHIBITORS: u64 = 1 << 0;
/// `SD_LOGIND_SKIP_INHIBITORS`, systemd 257 and later: block inhibitors are passed over. Older
/// versions call the flag invalid.
const SKIP_INHIBITORS: u64 = 1 << 4;

/// logind's word for a full reboot.
pub(super) const REBOOT: &str = "reboot";
/// Microseconds in a second.
const USEC: u64 = 1_000_000;

/// A shutdown that is scheduled for later.
#[derive(Debug)]
pub(super) struct Scheduled {
    /// Which, such as `poweroff`.
    pub(super) kind: String,
    /// When, in seconds since 1970.
    pub(super) at: u64,
}

/// logind, over an open connection.
#[derive(Debug)]
pub(super) struct Login1<'a>(pub(super) &'a Session);

impl Login1<'_> {
    /// Whether a shutdown of some kind is under way, delayed ones included.
    pub(super) async fn preparing_for_shutdown(&self) -> Result<bool, Fault> {
        self.0.property(&MANAGER, "PreparingForShutdown").await
    }

    /// The shutdown that is scheduled for later, if any.
    pub(super) async fn scheduled_shutdown(&self) -> Result<Option<Scheduled>, Fault> {
        let (kind, at): (String, u64) = self.0.property(&MANAGER, "ScheduledShutdown").await?;
        // Time 0 is what an immediate shutdown leaves there, whether it happened or not.
        let scheduled = !kind.is_empty() && !kind.starts_with("dry-") && at != 0 && at != u64::MAX;
        Ok(scheduled.then(|| Scheduled {
            kind: one_line(&kind),
            at: at / USEC,
        }))
    }

    /// The message that goes with a scheduled shutdown.
    pub(super) async fn wall_message(&self) -> Result<String, Fault> {
        self.0.property(&MANAGER, "WallMessage").await
    }

    /// Asks for a full reboot at `at`, in seconds since 1970. logind tells everybody who is logged in, then and
    /// again from time to time. No version has a flag here: what passes over inhibitors is [`reboot`](Self::reboot).
    pub(super) async fn schedule_reboot(&self, at: u64) -> Result<(), Fault> {
        let body = (REBOOT, at.saturating_mul(USEC));
        self.0
            .call(&MANAGER, "ScheduleShutdown", &body)
            .await
            .map(drop)
    }

    /// How long logind waits for delay locks, in microseconds.
    pub(super) async fn inhibit_delay_max_usec(&self) -> Result<u64, Fault> {
        self.0.property(&MANAGER, "InhibitDelayMaxUSec").await
    }

    /// logind's own opinion: `yes`, `no`, `na`, `challenge` and, from 257 on, some words about
    /// inhibitors.
    pub(super) async fn can_reboot(&self) -> Result<String, Fault> {
        self.0.ask(&MANAGER, "CanReboot", &()).await
    }

    /// The locks that hold up a shutdown: `block` and `block-weak`, never `delay`.
    pub(super) async fn blockers(&self) -> Result<Vec<Holder>, Fault> {
        type Row = (String, String, String, String, u32, u32);
        let rows: Vec<Row> = self.0.ask(&MANAGER, "ListInhibitors", &()).await?;
        Ok(rows
            .into_iter()
            .filter(|(what, _, _, mode, ..)| {
                what.split(':').any(|word| word == "shutdown")
                    && matches!(mode.as_str(), "block" | "block-weak")
            })
            .map(|(what, who, why, mode, uid, pid)| Holder {
                who: one_line(&who),
                why: one_line(&why),
                what: one_line(&what),
                mode,
                uid,
                pid,
            })
            .collect())
    }

    /// A delay lock of our own: a shutdown that starts from now on waits until it is dropped, or
    /// until `InhibitDelayMaxUSec` has passed. It outlives the connection.
    pub(super) async fn delay_shutdown(&self) -> Result<OwnedFd, Fault> {
        let body = (
            "shutdown",
            "gdr-agent",
            "recording the granted reboot",
            "delay",
        );
        let fd: zbus::OwnedFd = self.0.ask(&MANAGER, "Inhibit", &body).await?;
        Ok(fd.into())
    }

    /// What people on terminals read when the machine goes down; an empty text says nothing.
    pub(super) async fn set_wall_message(&self, text: &str) -> Result<(), Fault> {
        self.0
            .call(&MANAGER, "SetWallMessage", &(text, !text.is_empty()))
            .await
            .map(drop)
    }

    /// Asks for a full reboot through the firmware and boot loader, never kexec or soft-reboot.
    pub(super) async fn reboot(&self, respect_inhibitors: bool) -> Result<(), Fault> {
        let flags = if respect_inhibitors {
            CHECK_INHIBITORS
        } else {
            SKIP_INHIBITORS
        };
        let mut answer = self.reboot_with_flags(flags).await;
        if flags == SKIP_INHIBITORS && answer.is_error("org.freedesktop.DBus.Error.InvalidArgs") {
            answer = self.reboot_with_flags(0).await;
        }
        if answer.is_error("org.freedesktop.DBus.Error.UnknownMethod") {
            // Before systemd 249. The argument is "interactive": ask nobody for a password.
            answer = self.0.call(&MANAGER, "Reboot", &false).await.map(drop);
        }
        answer
    }

    async fn reboot_with_flags(&self, flags: u64) -> Result<(), Fault> {
        self.0
            .call(&MANAGER, "RebootWithFlags", &flags)
            .await
            .map(drop)
    }

    /// Calls back a scheduled or delayed shutdown and looks whether that worked. logind's own
    /// answer does not tell: before systemd 257 it says "cancelled" of a reboot that it holds up for a delay
    /// lock, which then happens all the same (systemd issue 34554). What is scheduled for later is called back on
    /// every version.
    pub(super) async fn call_back(&self) -> Result<Fate, Fault> {
        let _: bool = self.0.ask(&MANAGER, "CancelScheduledShutdown", &()).await?;
        if self.preparing_for_shutdown().await? {
            return Ok(Fate::GoesOn);
        }
        Ok(match self.scheduled_shutdown().await? {
            Some(_) => Fate::Unknown,
            None => Fate::CalledBack,
        })
    }
}

trait IsError {
    fn is_error(&self, wanted: &str) -> bool;
}

impl IsError for Result<(), Fault> {
    fn is_error(&self, wanted: &str) -> bool {
        matches!(self, Err(Fault::Error { name, .. }) if name == wanted)
    }
}
