//! A logind that behaves as the real one does in three of its ages, or misbehaves as told.
#![allow(dead_code, unreachable_pub, clippy::disallowed_methods, missing_docs)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

pub mod daemon;
pub mod systemd;

use std::collections::HashMap;
use std::future::poll_fn;
use std::io::{PipeReader, PipeWriter, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use zbus::export::futures_core::Stream;
use zbus::message::{Message, Type};
use zbus::{Connection, Guid, MessageStream, Variant, connection};

/// (what, who, why, mode, uid, pid), as ListInhibitors gives them.
pub type Lock = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    u32,
    u32,
);

/// The ages of logind that differ in what matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Age {
    /// No RebootWithFlags (Debian 11).
    V247,
    /// Root passes over block locks unless flag 1 is given; flag 16 is invalid;
    /// CancelScheduledShutdown claims to cancel a delayed reboot and does not (Debian 12).
    V252,
    /// Block locks bind root, flag 16 skips them, cancelling works (Debian 13).
    V257,
}

/// How one method or property misbehaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Never answers and does nothing.
    Silent,
    /// Does what it should and never answers.
    DoneButSilent,
    /// Answers with an error.
    Error(&'static str, &'static str),
    /// Answers with values of the wrong types.
    Garbage,
    /// Closes the connection.
    HangUp,
}

#[derive(Debug, Clone)]
pub struct Setup {
    pub age: Age,
    pub locks: Vec<Lock>,
    pub can_reboot: &'static str,
    pub preparing: bool,
    pub scheduled: (&'static str, u64),
    /// The message beside it.
    pub wall: &'static str,
    pub delay_max_usec: u64,
    /// Whether polkit is there to decide about passing over block locks.
    pub polkit: bool,
    pub jobs: Vec<(&'static str, &'static str)>,
    pub faults: HashMap<&'static str, Fault>,
}

impl Setup {
    pub fn new(age: Age) -> Self {
        Self {
            age,
            locks: Vec::new(),
            can_reboot: "yes",
            preparing: false,
            scheduled: ("", u64::MAX),
            wall: "",
            delay_max_usec: 5_000_000,
            polkit: true,
            jobs: Vec::new(),
            faults: HashMap::new(),
        }
    }

    pub fn lock(mut self, what: &'static str, mode: &'static str) -> Self {
        self.locks.push((
            what,
            "backup",
            "copying the scratch file system",
            mode,
            1000,
            4711,
        ));
        self
    }

    pub fn fault(mut self, member: &'static str, fault: Fault) -> Self {
        self.faults.insert(member, fault);
        self
    }
}

#[derive(Debug, Default)]
struct State {
    delayed: bool,
    own_locks: usize,
    scheduled: Option<(&'static str, u64)>,
    wall: String,
    went_down: bool,
    log: Vec<String>,
}

/// The shared end of a fake: what happened, in order.
#[derive(Clone)]
pub struct Fake {
    setup: Arc<Setup>,
    state: Arc<(Mutex<State>, Condvar)>,
}

impl Fake {
    pub fn new(setup: Setup) -> Self {
        let scheduled = Some(setup.scheduled);
        let wall = setup.wall.to_owned();
        Self {
            setup: Arc::new(setup),
            state: Arc::new((
                Mutex::new(State {
                    scheduled,
                    wall,
                    ..State::default()
                }),
                Condvar::new(),
            )),
        }
    }

    pub fn faults(&self) -> impl Iterator<Item = Fault> {
        self.setup.faults.values().copied()
    }

    pub fn log(&self, event: impl Into<String>) {
        self.with(|state| state.log.push(event.into()));
    }

    pub fn events(&self) -> Vec<String> {
        self.with(|state| state.log.clone())
    }

    /// The events that change something: asking is left out.
    pub fn deeds(&self) -> Vec<String> {
        const QUESTIONS: [&str; 8] = [
            "LoadUnit",
            "WallMessage",
            "PreparingForShutdown",
            "ScheduledShutdown",
            "InhibitDelayMaxUSec",
            "ListInhibitors",
            "CanReboot",
            "SetWallMessage",
        ];
        let mut events = self.events();
        events.retain(|e| !QUESTIONS.iter().any(|q| e.starts_with(q)));
        events
    }

    /// Somebody else's `shutdown`, which takes the place of whatever was scheduled.
    pub fn schedule_instead(&self, kind: &'static str, at: u64, wall: &str) {
        self.with(|state| {
            state.scheduled = Some((kind, at));
            state.wall = wall.to_owned();
        });
    }

    /// What is scheduled, in microseconds.
    pub fn scheduled(&self) -> Option<(&'static str, u64)> {
        self.with(|state| state.scheduled.filter(|(kind, _)| !kind.is_empty()))
    }

    pub fn has(&self, event: &str) -> bool {
        self.events().iter().any(|e| e == event)
    }

    /// Waits, within reason, for an event that another thread logs.
    pub fn wait_for(&self, event: &str) -> bool {
        let end = Instant::now() + Duration::from_secs(10);
        let (lock, changed) = &*self.state;
        let mut state = lock.lock().unwrap();
        while !state.log.iter().any(|e| e == event) {
            let Some(left) = end.checked_duration_since(Instant::now()) else {
                return false;
            };
            state = changed.wait_timeout(state, left).unwrap().0;
        }
        true
    }

    fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let outcome = change(&mut self.state.0.lock().unwrap());
        self.state.1.notify_all();
        outcome
    }

    /// Serves one client after the other on a socket, without a message bus.
    pub fn listen(&self, dir: &Path) -> PathBuf {
        let path = dir.join("private");
        let listener = UnixListener::bind(&path).unwrap();
        let fake = self.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let fake = fake.clone();
                thread::spawn(move || fake.serve_peer(stream.unwrap()));
            }
        });
        path
    }

    fn serve_peer(&self, stream: UnixStream) {
        zbus::block_on(async {
            let messages = connection::Builder::unix_stream(stream)
                .server(Guid::generate())
                .p2p()
                .build_message_stream()
                .await;
            if let Ok(messages) = messages {
                self.serve(messages).await;
            }
        });
    }

    /// Serves on a message bus under logind's and systemd's names.
    pub fn join(&self, address: &str) {
        let (fake, address) = (self.clone(), address.to_owned());
        let (ready, wait) = std::sync::mpsc::channel();
        thread::spawn(move || {
            zbus::block_on(async {
                let messages = connection::Builder::address(address.as_str())
                    .name("org.freedesktop.login1")
                    .name("org.freedesktop.systemd1")
                    .build_message_stream()
                    .await
                    .unwrap();
                ready.send(()).unwrap();
                fake.serve(messages).await;
            });
        });
        wait.recv_timeout(Duration::from_secs(10))
            .expect("the fake gets its names on the bus");
    }

    async fn serve(&self, mut messages: MessageStream) {
        let connection = Connection::from(&messages);
        while let Some(Ok(call)) = poll_fn(|cx| Pin::new(&mut messages).poll_next(cx)).await {
            if call.message_type() == Type::MethodCall && !self.answer(&connection, &call).await {
                let _ = connection.close().await;
                return;
            }
        }
    }

    /// Answers one call; false means: hang up.
    async fn answer(&self, connection: &Connection, call: &Message) -> bool {
        let header = call.header();
        let member = header.member().unwrap().to_string();
        let (asked, log) = match member.as_str() {
            "Get" => {
                let (_, property): (String, String) = call.body().deserialize().unwrap();
                (property.clone(), property)
            }
            "RebootWithFlags" => {
                let flags: u64 = call.body().deserialize().unwrap();
                (member.clone(), format!("RebootWithFlags({flags})"))
            }
            "ScheduleShutdown" => {
                let (kind, _): (String, u64) = call.body().deserialize().unwrap();
                (member.clone(), format!("ScheduleShutdown({kind})"))
            }
            "Reboot" => {
                let interactive: bool = call.body().deserialize().unwrap();
                (member.clone(), format!("Reboot({interactive})"))
            }
            "Inhibit" => {
                let (what, who, _, mode): (String, String, String, String) =
                    call.body().deserialize().unwrap();
                (member.clone(), format!("Inhibit({what}, {who}, {mode})"))
            }
            "SetWallMessage" => {
                let (text, on): (String, bool) = call.body().deserialize().unwrap();
                (member.clone(), format!("SetWallMessage({text}, {on})"))
            }
            _ => (member.clone(), member.clone()),
        };
        self.log(log);
        let fault = self.setup.faults.get(asked.as_str()).copied();
        let answer = match fault {
            Some(Fault::Silent) => return true,
            Some(Fault::HangUp) => return false,
            Some(Fault::Error(name, text)) => Err((name, text.to_owned())),
            Some(Fault::Garbage) => {
                connection
                    .reply(&header, &(42u8, "not what you asked for"))
                    .await
                    .unwrap();
                return true;
            }
            Some(Fault::DoneButSilent) | None => self.behave(&asked, call),
        };
        if fault == Some(Fault::DoneButSilent) {
            return true;
        }
        match answer {
            Err((name, text)) => connection.reply_error(&header, name, &text).await.unwrap(),
            Ok(Answer::Nothing) => connection.reply(&header, &()).await.unwrap(),
            Ok(Answer::Bool(yes)) => connection.reply(&header, &yes).await.unwrap(),
            Ok(Answer::Text(text)) => connection.reply(&header, &text).await.unwrap(),
            Ok(Answer::Property(value)) => connection.reply(&header, &value).await.unwrap(),
            Ok(Answer::Locks(rows)) => connection.reply(&header, &rows).await.unwrap(),
            Ok(Answer::Jobs(rows)) => connection.reply(&header, &rows).await.unwrap(),
            Ok(Answer::Fd(fd)) => {
                connection
                    .reply(&header, &zbus::Fd::from(OwnedFd::from(fd)))
                    .await
                    .unwrap();
            }
        }
        true
    }

    fn behave(&self, asked: &str, call: &Message) -> Result<Answer, (&'static str, String)> {
        let setup = &self.setup;
        Ok(match asked {
            "PreparingForShutdown" => {
                let preparing = setup.preparing || self.with(|s| s.delayed || s.went_down);
                Answer::Property(Variant::from(preparing))
            }
            "ScheduledShutdown" => {
                let scheduled = self.with(|s| s.scheduled).unwrap_or(("", u64::MAX));
                Answer::Property(Variant::from(scheduled))
            }
            "InhibitDelayMaxUSec" => Answer::Property(Variant::from(setup.delay_max_usec)),
            "ListInhibitors" => {
                let mut rows = setup.locks.clone();
                if self.with(|s| s.own_locks) > 0 {
                    rows.push(("shutdown", "gdr-agent", "recording", "delay", 0, 1));
                }
                Answer::Locks(rows)
            }
            "CanReboot" => Answer::Text(setup.can_reboot),
            "SetWallMessage" => {
                let (text, _): (String, bool) = call.body().deserialize().unwrap();
                self.with(|s| s.wall = text);
                Answer::Nothing
            }
            "WallMessage" => Answer::Property(Variant::from(self.with(|s| s.wall.clone()))),
            // No version has flags here: inhibitors are judged as with flags of 0.
            "ScheduleShutdown" => {
                let (kind, at): (String, u64) = call.body().deserialize().unwrap();
                assert_eq!(kind, "reboot");
                self.blocked(0)?;
                self.with(|s| s.scheduled = Some(("reboot", at)));
                Answer::Nothing
            }
            "Inhibit" => {
                let (reader, writer) = std::io::pipe().unwrap();
                self.with(|s| s.own_locks += 1);
                let fake = self.clone();
                thread::spawn(move || fake.watch(reader));
                Answer::Fd(writer)
            }
            "RebootWithFlags" if setup.age != Age::V247 => {
                let flags: u64 = call.body().deserialize().unwrap();
                self.reboot(flags)?
            }
            "Reboot" => self.reboot(0)?,
            "CancelScheduledShutdown" => Answer::Bool(self.with(|s| {
                let claim = s.delayed || s.scheduled.is_some_and(|(kind, _)| !kind.is_empty());
                if setup.age == Age::V257 {
                    s.delayed = false;
                }
                s.scheduled = None;
                claim
            })),
            "ListJobs" => Answer::Jobs(
                setup
                    .jobs
                    .iter()
                    .zip(1u32..)
                    .map(|((unit, kind), id)| {
                        let path = |of| zbus::ObjectPath::try_from(of).unwrap();
                        (id, *unit, *kind, "waiting", path("/job"), path("/unit"))
                    })
                    .collect(),
            ),
            _ => {
                return Err((
                    "org.freedesktop.DBus.Error.UnknownMethod",
                    format!("Unknown method {asked} or interface."),
                ));
            }
        })
    }

    fn reboot(&self, flags: u64) -> Result<Answer, (&'static str, String)> {
        let setup = &self.setup;
        let known = if setup.age == Age::V257 { 0x1f } else { 0x0f };
        if flags & !known != 0 {
            let text = "Invalid flags parameter".to_owned();
            return Err(("org.freedesktop.DBus.Error.InvalidArgs", text));
        }
        self.blocked(flags)?;
        self.with(|s| {
            s.log.push("granted".to_owned());
            if s.own_locks > 0 {
                s.delayed = true;
            } else {
                s.went_down = true;
                s.log.push("shutdown starts".to_owned());
            }
        });
        Ok(Answer::Nothing)
    }

    /// What an inhibitor says to a request with these flags.
    fn blocked(&self, flags: u64) -> Result<(), (&'static str, String)> {
        let setup = &self.setup;
        let held = |mode: &str| {
            setup
                .locks
                .iter()
                .any(|l| l.0.contains("shutdown") && l.3 == mode)
        };
        let checked = flags & 1 != 0;
        let blocked = match setup.age {
            Age::V247 => false,
            Age::V252 => checked && held("block"),
            Age::V257 => flags & 16 == 0 && (held("block") || (checked && held("block-weak"))),
        };
        if blocked {
            let name = if setup.age == Age::V257 {
                "org.freedesktop.login1.BlockedByInhibitorLock"
            } else {
                "org.freedesktop.DBus.Error.AccessDenied"
            };
            return Err((
                name,
                "Operation denied due to active block inhibitor".to_owned(),
            ));
        }
        if setup.age == Age::V257 && !setup.polkit && held("block") {
            return Err((
                "org.freedesktop.DBus.Error.AccessDenied",
                "Permission denied".to_owned(),
            ));
        }
        Ok(())
    }

    /// Waits until every copy of a delay lock is closed.
    fn watch(&self, mut lock: PipeReader) {
        let _ = lock.read(&mut [0]);
        self.with(|s| {
            s.own_locks -= 1;
            s.log.push("lock released".to_owned());
            if s.delayed && s.own_locks == 0 {
                s.delayed = false;
                s.went_down = true;
                s.log.push("shutdown starts".to_owned());
            }
        });
    }
}

type JobRow = (
    u32,
    &'static str,
    &'static str,
    &'static str,
    zbus::ObjectPath<'static>,
    zbus::ObjectPath<'static>,
);

enum Answer {
    Nothing,
    Bool(bool),
    Text(&'static str),
    Property(Variant<'static>),
    Locks(Vec<Lock>),
    Jobs(Vec<JobRow>),
    Fd(PipeWriter),
}
