//! A service manager that knows one unit, and misbehaves as told.
#![allow(dead_code, unreachable_pub, missing_docs, clippy::unwrap_used)]

use std::future::poll_fn;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use zbus::export::futures_core::Stream;
use zbus::message::{Message, Type};
use zbus::{Connection, Guid, MessageStream, ObjectPath, Variant, connection};

/// What `StartUnit` leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// Active at once.
    Works,
    /// A job that ends after so many looks.
    After(u32),
    /// A job that never ends.
    Hangs,
    /// The job is done and the unit is as before: it has ended again.
    Ends,
    /// The same, since a condition is not met.
    ConditionNotMet,
    /// The unit's state is `failed`.
    Fails,
    /// Answered with this error.
    Error(&'static str),
    /// Never answered.
    Silent,
}

#[derive(Debug, Clone, Copy)]
pub struct Unit {
    pub load: &'static str,
    pub active: &'static str,
    pub start: Start,
    /// `LoadUnit` is answered with this error.
    pub unknown: Option<&'static str>,
}

impl Unit {
    pub fn inactive(start: Start) -> Self {
        Self {
            load: "loaded",
            active: "inactive",
            start,
            unknown: None,
        }
    }
}

#[derive(Debug, Default)]
struct State {
    started: u32,
    looks: u32,
    log: Vec<String>,
}

#[derive(Clone)]
pub struct Systemd {
    unit: Unit,
    state: Arc<Mutex<State>>,
}

impl Systemd {
    pub fn new(unit: Unit) -> Self {
        Self {
            unit,
            state: Arc::default(),
        }
    }

    pub fn log(&self) -> Vec<String> {
        self.state.lock().unwrap().log.clone()
    }

    /// As systemd listens on `/run/systemd/private`.
    pub fn listen(&self, dir: &Path) -> PathBuf {
        let path = dir.join("private");
        let listener = UnixListener::bind(&path).unwrap();
        let fake = self.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let fake = fake.clone();
                thread::spawn(move || {
                    zbus::block_on(async {
                        let messages = connection::Builder::unix_stream(stream.unwrap())
                            .server(Guid::generate())
                            .p2p()
                            .build_message_stream()
                            .await;
                        if let Ok(messages) = messages {
                            fake.serve(messages).await;
                        }
                    });
                });
            }
        });
        path
    }

    /// Serves on a message bus.
    pub fn join(&self, address: &str) {
        let (fake, address) = (self.clone(), address.to_owned());
        let (ready, wait) = std::sync::mpsc::channel();
        thread::spawn(move || {
            zbus::block_on(async {
                let messages = connection::Builder::address(address.as_str())
                    .name("org.freedesktop.systemd1")
                    .build_message_stream()
                    .await
                    .unwrap();
                ready.send(()).unwrap();
                fake.serve(messages).await;
            });
        });
        wait.recv_timeout(Duration::from_secs(10)).unwrap();
    }

    async fn serve(&self, mut messages: MessageStream) {
        let connection = Connection::from(&messages);
        while let Some(Ok(call)) = poll_fn(|cx| Pin::new(&mut messages).poll_next(cx)).await {
            if call.message_type() == Type::MethodCall {
                self.answer(&connection, &call).await;
            }
        }
    }

    async fn answer(&self, connection: &Connection, call: &Message) {
        let header = call.header();
        let path = |text: &'static str| ObjectPath::try_from(text).unwrap();
        match header.member().unwrap().as_str() {
            "LoadUnit" => {
                let name: String = call.body().deserialize().unwrap();
                self.note(format!("LoadUnit({name})"));
                match self.unit.unknown {
                    Some(error) => connection
                        .reply_error(&header, error, &"told so")
                        .await
                        .unwrap(),
                    None => connection.reply(&header, &path("/unit/arm")).await.unwrap(),
                }
            }
            "StartUnit" => {
                let (name, mode): (String, String) = call.body().deserialize().unwrap();
                self.note(format!("StartUnit({name}, {mode})"));
                match self.unit.start {
                    Start::Silent => {}
                    Start::Error(error) => {
                        connection
                            .reply_error(&header, error, &"told so")
                            .await
                            .unwrap();
                    }
                    _ => {
                        self.state.lock().unwrap().started += 1;
                        connection.reply(&header, &path("/job/7")).await.unwrap();
                    }
                }
            }
            "Get" => {
                let (interface, name): (String, String) = call.body().deserialize().unwrap();
                assert_eq!(interface, "org.freedesktop.systemd1.Unit");
                assert_eq!(header.path().unwrap().as_str(), "/unit/arm");
                connection
                    .reply(&header, &self.property(&name))
                    .await
                    .unwrap();
            }
            other => {
                let error = "org.freedesktop.DBus.Error.UnknownMethod";
                connection
                    .reply_error(&header, error, &other)
                    .await
                    .unwrap();
            }
        }
    }

    fn note(&self, event: String) {
        self.state.lock().unwrap().log.push(event);
    }

    fn property(&self, name: &str) -> Variant<'static> {
        let mut state = self.state.lock().unwrap();
        let started = state.started > 0;
        if name == "ActiveState" && started {
            state.looks += 1;
        }
        let (active, job) = match self.unit.start {
            _ if !started => (self.unit.active, false),
            Start::Works => ("active", false),
            Start::After(looks) if state.looks > looks => ("active", false),
            Start::After(_) => ("activating", true),
            // A job that waits for another unit: the unit itself is still inactive.
            Start::Hangs => ("inactive", true),
            Start::Fails => ("failed", false),
            _ => ("inactive", false),
        };
        match name {
            "LoadState" => Variant::from(self.unit.load),
            "ActiveState" => Variant::from(active),
            "Job" => {
                let number: u32 = if job { 7 } else { 0 };
                Variant::from((number, ObjectPath::try_from("/").unwrap()))
            }
            "ConditionResult" => Variant::from(self.unit.start != Start::ConditionNotMet),
            other => Variant::from(format!("no property {other}")),
        }
    }
}
