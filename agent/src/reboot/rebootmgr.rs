//! openSUSE's rebootmgr as the coordinator: it reboots when its own strategy and window say so.
//!
//! Versions 1 and 2 speak D-Bus and answer every `Reboot` with success: switched off, an order that they
//! do not know and a request while one is pending are all passed over in silence, so that `Status` is what
//! counts. A request is in the daemon's memory only. Version 3 speaks varlink and says what is wrong, but
//! when it is switched off while a request waits, the request stays "waiting" for ever and stands in the
//! way of the next one. `AboutToReboot` is never sent by any of them.
//! Source: github.com/openSUSE/rebootmgr (dbus/org.opensuse.RebootMgr.xml, src/rebootmgrd.c).

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use super::bus::{Bus, Fault, Service};
use super::varlink::{self, VarlinkError};
use super::{Coordinator, Desk, Fate, Question, Refusal, Request, Standing};
use crate::sys::clock;

const SERVICE: Service<'static> = Service {
    name: "org.opensuse.RebootMgr",
    path: "/org/opensuse/RebootMgr",
    interface: "org.opensuse.RebootMgr",
};
/// `RM_REBOOTORDER_STANDARD`: by strategy and window.
const STANDARD: u32 = 1;
const INTERFACE: &str = "org.openSUSE.rebootmgr";
/// Where version 3 listens.
const SOCKET: &str = "/run/rebootmgr/rebootmgrd.socket";
const LIMIT: Duration = Duration::from_secs(10);
/// How long a request may take to show in `Status`.
const SETTLES: Duration = Duration::from_secs(2);

const OFF: &str = "rebootmgr's strategy is \"off\": it reboots nothing; `rebootmgrctl set-strategy maint-window` \
    (or best-effort) switches it on";

/// `coordinator = "rebootmgr"`.
#[derive(Debug, Clone)]
pub struct Rebootmgr {
    bus: Bus,
    socket: PathBuf,
    limit: Duration,
}

/// Which rebootmgr it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
    Three,
}

/// What it says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
struct State {
    version: Version,
    strategy: Strategy,
    pending: Pending,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Strategy {
    BestEffort,
    Instantly,
    Window,
    EtcdLock,
    Off,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Pending {
    None,
    Requested,
    /// With the time, where it says so.
    Waiting(Option<String>),
    /// Waiting for a time that will not come: version 3 was switched off meanwhile.
    Stuck,
}

impl Rebootmgr {
    /// rebootmgr on this bus, or behind its own socket.
    #[must_use]
    pub fn new(bus: Bus) -> Self {
        Self {
            bus,
            socket: SOCKET.into(),
            limit: LIMIT,
        }
    }

    /// Another place for the socket of version 3, and another longest wait for its answers.
    #[must_use]
    pub fn with_socket(mut self, socket: impl Into<PathBuf>, limit: Duration) -> Self {
        self.socket = socket.into();
        self.limit = limit;
        self
    }

    /// Finds out which version there is, and where it stands. Version 3 has no D-Bus, the others no socket.
    fn look(&self) -> Result<State, Refusal> {
        match self.varlink("FullStatus", &json!({})) {
            Ok(answer) => of_full_status(&answer),
            Err(VarlinkError::Nobody { why, .. }) => self.look_on_bus(&why),
            Err(other) => Err(strange(&other)),
        }
    }

    fn look_on_bus(&self, no_socket: &str) -> Result<State, Refusal> {
        let (strategy, status, version) = self.bus.run(async {
            let session = self.bus.open().await.map_err(|f| fault(f, no_socket))?;
            let strategy: u32 = session
                .ask(&SERVICE, "GetStrategy", &())
                .await
                .map_err(|f| fault(f, no_socket))?;
            let status: u32 = session
                .ask(&SERVICE, "Status", &())
                .await
                .map_err(|f| fault(f, no_socket))?;
            // Lock groups of etcd were dropped with version 2.
            let group: Result<String, Fault> = session.ask(&SERVICE, "GetLockGroup", &()).await;
            let version = match group {
                Ok(_) => Version::One,
                Err(Fault::Error { name, .. }) if name.ends_with(".UnknownMethod") => Version::Two,
                Err(f) => return Err(fault(f, no_socket)),
            };
            Ok::<_, Refusal>((strategy, status, version))
        })?;
        let unknown = |what: &str, n: u32| Refusal::Protocol {
            text: format!("rebootmgr ({version:?}) says {what} {n}, which is not known"),
        };
        let strategy = match (version, strategy) {
            (_, 1) => Strategy::BestEffort,
            (_, 2) => Strategy::Instantly,
            (_, 3) => Strategy::Window,
            (Version::One, 4) => Strategy::EtcdLock,
            (Version::One, 5) | (Version::Two, 4) => Strategy::Off,
            (_, n) => return Err(unknown("strategy", n)),
        };
        let pending = match (version, status) {
            (_, 0) => Pending::None,
            (_, 1) => Pending::Requested,
            (_, 2) | (Version::One, 3) => Pending::Waiting(None),
            (_, n) => return Err(unknown("status", n)),
        };
        Ok(State {
            version,
            strategy,
            pending,
        })
    }

    fn varlink(&self, method: &str, parameters: &Value) -> Result<Value, VarlinkError> {
        varlink::call(
            &self.socket,
            &format!("{INTERFACE}.{method}"),
            parameters,
            self.limit,
        )
    }

    /// Asks for the reboot. Success means nothing before version 3.
    fn ask(&self, version: Version) -> Result<(), Refusal> {
        match version {
            Version::One | Version::Two => self.on_bus("Reboot", &STANDARD),
            // 1 is through the firmware, 2 would be a soft-reboot.
            Version::Three => match self.varlink("Reboot", &json!({ "Reboot": 1 })) {
                Ok(_) => Ok(()),
                Err(VarlinkError::Error { name, .. }) if name.ends_with(".AlreadyInProgress") => {
                    Err(Refusal::Busy {
                        text: "somebody has asked rebootmgr for a reboot already (`rebootmgrctl status`)".to_owned(),
                    })
                }
                Err(other) => Err(strange(&other)),
            },
        }
    }

    fn take_back(&self, version: Version) -> Result<(), Refusal> {
        match version {
            Version::One | Version::Two => self.on_bus("Cancel", &()),
            Version::Three => match self.varlink("Cancel", &json!({})) {
                Ok(_) => Ok(()),
                Err(VarlinkError::Error { name, .. }) if name.ends_with(".NoRebootScheduled") => {
                    Ok(())
                }
                Err(other) => Err(strange(&other)),
            },
        }
    }

    fn on_bus<B>(&self, member: &'static str, body: &B) -> Result<(), Refusal>
    where
        B: serde::Serialize + zbus::DynamicType,
    {
        self.bus.run(async {
            let session = self.bus.open().await.map_err(|f| fault(f, ""))?;
            session
                .call(&SERVICE, member, body)
                .await
                .map(drop)
                .map_err(|f| fault(f, ""))
        })
    }

    /// Waits until the request shows. Before version 3 nothing else tells that it was taken.
    fn shows(&self) -> Result<bool, Refusal> {
        let until = clock::now() + SETTLES;
        loop {
            if self.look()?.pending != Pending::None {
                return Ok(true);
            }
            if clock::now() >= until {
                return Ok(false);
            }
            clock::sleep(Duration::from_millis(100));
        }
    }
}

impl Coordinator for Rebootmgr {
    fn name(&self) -> &'static str {
        "rebootmgr"
    }

    fn can(&self) -> Result<(), Refusal> {
        let state = self.look()?;
        match (state.strategy, &state.pending) {
            (Strategy::Off, _) => Err(Refusal::denied(OFF)),
            (_, Pending::None | Pending::Stuck) => Ok(()),
            (_, Pending::Requested | Pending::Waiting(_)) => Err(Refusal::Busy {
                text: "somebody has asked rebootmgr for a reboot already (`rebootmgrctl status`); wait for it, or \
                       `rebootmgrctl cancel`"
                    .to_owned(),
            }),
        }
    }

    /// rebootmgr may reboot at once, so the record comes first; what it then passes over shows in [`poll`](Self::poll).
    fn request(&self, _request: &Request, desk: &mut dyn Desk) -> Result<(), Refusal> {
        let state = self.look()?;
        self.can()?;
        if state.pending == Pending::Stuck {
            self.take_back(state.version)?;
        }
        desk.granted().map_err(|text| Refusal::Record {
            text,
            reboot: Fate::NotAsked,
        })?;
        self.ask(state.version)?;
        if self.shows()? {
            return Ok(());
        }
        // Temporarily off, it keeps a request and says that there is none.
        self.take_back(state.version)?;
        Err(Refusal::denied(
            "rebootmgr said yes and shows no request: it is switched off for a time (`rebootmgrctl temporary-on` does \
             not work in versions 1 and 2: restart rebootmgr), or it passed the request over",
        ))
    }

    fn questions(&self, _request: &Request, ask: bool) -> Vec<Question> {
        let how = match self.look().map(|state| state.strategy) {
            Ok(Strategy::BestEffort) => "at once, or in its window if it has one",
            Ok(Strategy::Instantly) => "at once",
            Ok(Strategy::Window) => "in its maintenance window (`rebootmgrctl get-window`)",
            Ok(Strategy::EtcdLock) => "once it has its lock in etcd",
            Ok(Strategy::Off) => "never, as long as its strategy is off",
            Err(_) => "by its strategy",
        };
        vec![Question {
            who: self.name().to_owned(),
            asks: format!("rebootmgr for a standard reboot, which comes {how}"),
            no: ask.then(|| self.can().err().map(|refusal| refusal.to_string())),
        }]
    }

    fn poll(&self, _age: Duration) -> Result<Standing, Refusal> {
        Ok(match self.look()?.pending {
            Pending::Requested => Standing::Coming("rebootmgr is about to reboot".to_owned()),
            Pending::Waiting(at) => Standing::Coming(match at {
                Some(at) => format!("rebootmgr reboots at {at}"),
                None => "rebootmgr waits for its maintenance window".to_owned(),
            }),
            Pending::None => Standing::Gone(
                "rebootmgr knows of no request: it was restarted, or somebody cancelled it"
                    .to_owned(),
            ),
            Pending::Stuck => {
                Standing::Gone("rebootmgr was switched off while the request waited".to_owned())
            }
        })
    }

    fn cancel(&self) -> Result<(), Refusal> {
        let state = self.look()?;
        match state.pending {
            Pending::None => Ok(()),
            _ => self.take_back(state.version),
        }
    }

    fn release(&self) -> Result<(), Refusal> {
        Ok(())
    }
}

/// Reads version 3's own report.
fn of_full_status(answer: &Value) -> Result<State, Refusal> {
    let number = |key: &str| {
        answer
            .get(key)
            .and_then(Value::as_u64)
            .ok_or_else(|| Refusal::Protocol {
                text: format!("rebootmgr's FullStatus has no number in {key}"),
            })
    };
    let off = answer
        .get("RebootDisabled")
        .and_then(Value::as_bool)
        .unwrap_or(false);
    let strategy = match number("RebootStrategy")? {
        1 => Strategy::BestEffort,
        2 => Strategy::Instantly,
        3 => Strategy::Window,
        4 => Strategy::Off,
        n => {
            return Err(Refusal::Protocol {
                text: format!("rebootmgr says strategy {n}, which is not known"),
            });
        }
    };
    let strategy = if off { Strategy::Off } else { strategy };
    let time = answer.get("RebootTime").and_then(Value::as_str);
    let time = time
        .filter(|time| !time.is_empty())
        .map(super::refusal::one_line);
    let pending = match number("RebootStatus")? {
        0 => Pending::None,
        _ if strategy == Strategy::Off => Pending::Stuck,
        1 => Pending::Requested,
        // Its timer was dropped while it was off: nothing will come of it.
        2 if time.is_none() => Pending::Stuck,
        2 => Pending::Waiting(time),
        n => {
            return Err(Refusal::Protocol {
                text: format!("rebootmgr says status {n}, which is not known"),
            });
        }
    };
    Ok(State {
        version: Version::Three,
        strategy,
        pending,
    })
}

fn strange(error: &VarlinkError) -> Refusal {
    let text = format!("rebootmgr: {error}; see `systemctl status rebootmgr`");
    match error {
        VarlinkError::Nobody { .. } | VarlinkError::Silent { .. } => Refusal::Unreachable { text },
        VarlinkError::Error { .. } | VarlinkError::Garbage { .. } => Refusal::Protocol { text },
    }
}

fn fault(fault: Fault, no_socket: &str) -> Refusal {
    let text = match no_socket {
        "" => format!("rebootmgr: {fault}"),
        why => format!("rebootmgr: {fault}; and not over its own socket {SOCKET} either: {why}"),
    };
    match fault {
        Fault::NoBus { .. } | Fault::Silent { .. } | Fault::Lost { .. } => {
            Refusal::Unreachable { text }
        }
        Fault::Garbage { .. } => Refusal::Protocol { text },
        Fault::Error { name, .. } => {
            if name.ends_with(".ServiceUnknown")
                || name.ends_with(".NameHasNoOwner")
                || name.ends_with(".NoReply")
                || name.contains(".Spawn.")
            {
                Refusal::Unreachable {
                    text: format!("{text}; `systemctl enable --now rebootmgr`"),
                }
            } else if name.ends_with(".AccessDenied") {
                Refusal::NotPermitted { text }
            } else {
                Refusal::Protocol { text }
            }
        }
    }
}
